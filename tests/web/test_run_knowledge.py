"""The pages about the context of a run, and about the readers of a version."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from state_admin.models import Revision, Run, RunRead, Thread, Ticket
from state_admin.services import compaction_jobs
from state_admin.services.compactions import request_compaction, undo_compaction
from state_admin.services.entries import delete_entry
from state_admin.services.snapshots import Read
from state_admin.web import run_knowledge
from tests.builders import (
    Person,
    commit,
    conversation,
    make_namespace,
    make_run,
    make_state_key,
    make_thread,
    put,
)
from tests.web.conftest import CheckQueries
from tests.web.stories import HOSTILE, create_story
from tests.web.test_threads import htmx, page

PAGES = {
    "run, knowledge": "/run/knowledge/r1?step=2",
    "run, knowledge of the newest step": "/run/knowledge/r1",
    "run, resume from a revision": "/run/resume/r1?revision=1",
    "entry, readers": "/entry/readers/notes/global?version=1",
}


@pytest.fixture
def run(alice: Person) -> Person:
    """r1 read v1 of notes/global in step 2; v2 was written later."""
    make_namespace(alice.actor, "notes")
    make_thread(alice.actor, "t1")
    make_run(alice.actor, "t1", "r1", agent_id="helper")
    put(alice.actor, "notes", "global", "first thought")
    commit(alice.actor, "r1", reads=[Read("notes", "global", 1), Read("notes", "agent_type::x", 0)])
    put(alice.actor, "notes", "global", "second thought", reason="it was wrong")
    return alice


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.usefixtures("run")
def test_page__member__uses_a_bounded_number_of_queries(
    name: str, admin: Client, check_queries: CheckQueries
) -> None:
    check_queries(name, admin, PAGES[name])


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.usefixtures("run")
def test_page__non_member__appears_absent(name: str, stranger: Client) -> None:
    assert stranger.get(PAGES[name]).status_code == 404


@pytest.mark.django_db(transaction=True)
def test_knowledge__step__shows_visible_entries_and_marks_stale_reads(
    admin: Client, run: Person
) -> None:
    commit(run.actor, "r1", label="later")
    delete_entry(actor=run.actor, namespace="notes", key="global")
    then = page(admin, "/run/knowledge/r1?step=2")
    assert "first thought" in then
    assert "second thought" not in then
    assert "deleted since" in then
    assert "stale now" in then
    assert "1 value it read is</strong>" not in then
    assert "1 value read by this step is stale.</strong> It is marked below." in then
    assert 'href="/run/knowledge/r1?step=1"' in then
    assert 'href="/run/knowledge/r1?step=3"' in then
    later = page(admin, "/run/knowledge/r1")
    assert "second thought" in later
    assert "it was wrong" in later
    assert "No reads reported" in later
    assert page(admin, "/run/knowledge/r1?step=1").count("No entries in its scopes") == 1


@pytest.mark.django_db(transaction=True)
def test_knowledge__step__says_what_changed_since_the_step_before(
    admin: Client, run: Person
) -> None:
    make_state_key(run.actor, "goal", scope="thread")
    put(run.actor, "notes", "thread::t1", {"seat": "aisle", "bags": 1})
    commit(run.actor, "r1", {"goal": "Lisbon"}, messages=[{"role": "user", "content": "Go on"}])
    put(run.actor, "notes", "thread::t1", {"seat": "window", "bags": 1})
    delete_entry(actor=run.actor, namespace="notes", key="global")
    commit(run.actor, "r1", {"goal": "Porto"})

    def shown(step: int) -> str:
        text = re.sub(r"<[^>]+>", "", page(admin, f"/run/knowledge/r1?step={step}"))
        return " ".join(text.split())

    third, fourth = shown(3), shown(4)
    assert "Go on" in third
    assert "goal: Lisbon added" in third
    assert "new since step 2" in third
    assert "changed since step 2" in third  # notes/global, v2
    assert "goal: Lisbon → Porto" in fourth
    assert "value/seat: aisle → window" in fourth
    assert "changed since step 3" in fourth
    assert "notes / global: visible to the step before, deleted or expired since." in fourth
    assert "since step" not in shown(1)


@pytest.mark.django_db(transaction=True)
def test_knowledge__step__shows_the_messages_of_its_context(admin: Client, run: Person) -> None:
    commit(run.actor, "r1", messages=[*conversation(8), {"role": "user", "content": "Before it"}])
    job = request_compaction(actor=run.actor, thread_id="t1")
    compaction_jobs.run_compaction(job.public_id)
    commit(run.actor, "r1", messages=[{"role": "user", "content": "After it"}])

    def messages(step: int) -> str:
        shown = page(admin, f"/run/knowledge/r1?step={step}")
        return shown.partition('id="messages-title"')[2].partition("</section>")[0]

    before, after = messages(3), messages(4)
    assert "34 messages" in before
    assert "summary" not in before
    assert "Before it" in before
    assert "After it" not in before
    assert before.count("this step") == 13
    assert "summary" in after
    assert "After it" in after
    assert after.count("this step") == 2  # the summary was made since the step before
    undo_compaction(actor=run.actor, compaction_id=job.public_id)
    assert "summary" in messages(4)  # as it was then
    commit(run.actor, "r1", label="without a message")
    assert "data-summary" not in messages(5)
    assert "this step" not in messages(5)


def test_knowledge__many_messages__shows_the_newest(
    admin: Client, run: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_knowledge, "_MESSAGES", 3)
    commit(run.actor, "r1", messages=conversation(5))
    shown = page(admin, "/run/knowledge/r1")
    assert "7 messages of the context are not listed" in shown
    assert shown.count(">this step<") == 4  # the system message, and the newest three


def test_knowledge__keys_of_the_runtime__are_collapsed(admin: Client, alice: Person) -> None:
    create_story(alice.actor)
    state = page(admin, "/run/knowledge/r1").partition('aria-label="Thread state"')[2]
    assert re.search(r'<details class="state-value"[^>]* open[^>]*><summary><span[^>]*>\w', state)
    for opening in re.findall(r"<details[^>]*>(?=<summary><span[^>]*>__)", state):
        assert "open" not in opening


def test_knowledge__htmx__returns_the_part(admin: Client, run: Person) -> None:
    part = page(admin, "/run/knowledge/r1", headers=htmx("run"))
    title, _, rest = part.partition("</title>")
    assert title == "<title>Context of run r1 · acme"
    assert rest.lstrip().startswith('<div class="stack" id="run"')


def test_knowledge__invalid_step__is_404_or_400(admin: Client, run: Person) -> None:
    assert admin.get("/run/knowledge/r1?step=9").status_code == 404
    assert admin.get("/run/knowledge/r1?step=x").status_code == 400


@pytest.mark.django_db(transaction=True)
def test_knowledge__hostile_values__are_escaped(admin: Client, run: Person) -> None:
    put(run.actor, "notes", "thread::t1", {text: text for text in HOSTILE})
    commit(run.actor, "r1", label="x")
    shown = page(admin, "/run/knowledge/r1")
    assert "alert(1)" in shown
    assert "<script>alert" not in shown


def test_readers__of_a_version__link_to_the_step(admin: Client, run: Person) -> None:
    history = page(admin, "/state/notes/global?tab=history")
    assert 'href="/entry/readers/notes/global?version=1"' in history
    shown = page(admin, "/entry/readers/notes/global?version=1")
    assert 'href="/runs/r1"' in shown
    assert 'href="/run/knowledge/r1?step=2"' in shown
    nobody = page(admin, "/entry/readers/notes/global?version=2")
    assert "No run has reported reading this" in nobody


def test_readers__many__are_paged(
    admin: Client, run: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("state_admin.web.run_knowledge.PAGE", 2)
    for _ in range(3):
        commit(run.actor, "r1", reads=[Read("notes", "global", 1)])
    read = RunRead.objects.filter(key="global").order_by("-id")[1]
    first = page(admin, "/entry/readers/notes/global")
    assert f"last=1&amp;before={read.pk}" in first
    second = page(admin, f"/entry/readers/notes/global?last=1&before={read.pk}")
    assert second.count("data-row") == 2
    assert "First page" in second


# The ways out -------------------------------------------------------------------------------


def test_run__release__ends_the_lease_of_its_worker(admin: Client, run: Person) -> None:
    assert "Release lease…" in page(admin, "/runs/r1")
    assert "commits with its fencing token are refused" in page(admin, "/run/release/r1")
    assert admin.post("/run/release/r1", {"reason": "gone"})["Location"] == "/runs/r1"
    assert Run.objects.get().fencing_token == 2
    shown = page(admin, "/runs/r1")
    assert "no worker has taken it over" in shown
    assert "Release lease…" not in shown


def test_run__resume_from_a_revision__restores_it(admin: Client, alice: Person) -> None:
    create_story(alice.actor)
    assert "/run/resume/r1?revision=3" in page(admin, "/runs/r1")
    assert "Resume from revision 3?" in page(admin, "/run/resume/r1?revision=3")
    admin.post("/run/resume/r1?revision=3", {"reason": "again"})
    run = Run.objects.get(public_id="r1")
    assert (run.status, run.fencing_token) == ("running", 2)
    thread = Thread.objects.get(public_id="t1")
    assert Revision.objects.get(thread=thread, number=thread.revision).kind == "restore"
    assert Ticket.objects.get().status == "void"


def test_ticket__expired__has_no_form_and_says_so(admin: Client, alice: Person) -> None:
    create_story(alice.actor)
    Ticket.objects.update(expires_at="2020-01-01T00:00:00Z")
    shown = page(admin, "/runs/r1")
    assert "The deadline has passed" in shown
    assert "<textarea" not in shown
    assert "Resume run…" in shown
    assert admin.post("/ticket/tk1", {"action": "cancel"}).status_code == 409


@pytest.mark.django_db(transaction=True)
def test_knowledge__entry_gone_between_two_pages__is_on_one_of_them(
    admin: Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_knowledge, "PAGE", 2)
    make_namespace(alice.actor, "notes")
    make_namespace(alice.actor, "rules")
    for name in ("notes", "rules"):
        put(alice.actor, name, "global", name)
    make_namespace(alice.actor, "soon")
    put(alice.actor, "soon", "global", "x")
    make_namespace(alice.actor, "then")
    put(alice.actor, "then", "global", "x")
    make_thread(alice.actor, "t1")
    make_run(alice.actor, "t1", "r1")
    delete_entry(actor=alice.actor, namespace="soon", key="global")
    commit(alice.actor, "r1", reads=[Read("notes", "global", 1)])
    pages = [
        page(admin, "/run/knowledge/r1?step=2"),
        page(admin, "/run/knowledge/r1?step=2&namespace=rules&after=global"),
    ]
    assert ["visible to the step before" in shown for shown in pages] == [False, True]
