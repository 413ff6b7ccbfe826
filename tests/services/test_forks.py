"""Forks of threads: as of a revision and a message count, with nothing shared."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from django.db import connection

from state_admin.models import (
    AuditRow,
    Change,
    Compaction,
    Message,
    Revision,
    Run,
    StateValue,
    Thread,
    Ticket,
    hot,
)
from state_admin.services import (
    compaction_jobs,
    compactions,
    contexts,
    erasures,
    forks,
    quotas,
    snapshots,
    threads,
)
from state_admin.services.errors import (
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    QuotaExceeded,
)
from state_admin.services.tool_calls import TOOL_CALLS
from tests import builders
from tests.builders import Person, append, commit, make_run, make_state_key, make_thread, raw
from tests.services.canary import tables_with
from tests.services.racing import race, split

USER = {"role": "user", "content": "hi"}


@pytest.fixture
def source(alice: Person) -> Person:
    """t1 at revision 4: two steps of r1, which waits for a ticket; five messages."""
    a = alice.actor
    make_state_key(a, "plan")
    make_state_key(a, "grant", persistent=False)
    make_thread(a, "t1", title="Refund", resource_id="ann", metadata=raw({"b": 1.10, "a": 2}))
    make_run(a, "t1", "r1")
    commit(a, "r1", {"plan": 1, "grant": 1}, messages=[{**USER, "id": "m1"}, USER])
    commit(a, "r1", {"plan": 2}, messages=[USER, USER])
    ticket = {"ticket_id": "k1", "tool_call_id": "c1", "tool_name": "refund"}
    waiting = {"reason": "tool_permission", "tickets": [ticket]}
    commit(a, "r1", run=builders.runs.RunChange(status="waiting", waiting=waiting))
    append(a, "t1", USER)
    return alice


def fork(person: Person, fork_id: str = "f1", thread_id: str = "t1", **asked: Any) -> Thread:
    made, _ = forks.fork_thread(actor=person.actor, thread_id=thread_id, fork_id=fork_id, **asked)
    return made


def state(person: Person, thread_id: str, revision: int | None = None) -> dict[str, Any]:
    return snapshots.read_snapshot(
        actor=person.actor, thread_id=thread_id, revision=revision
    ).parsed()


def log(thread: Thread) -> list[tuple[Any, ...]]:
    rows = Message.objects.filter(thread=thread).in_order()
    return list(rows.values_list("seq", "public_id", "role", "body", "created_at"))


@pytest.mark.parametrize(
    ("asked", "revision", "count"),
    [
        ({}, 4, 5),
        ({"revision": 4}, 4, 4),
        ({"revision": 2}, 2, 2),
        ({"revision": 2, "message_count": 5}, 2, 5),
        ({"revision": 0}, 0, 0),
        ({"message_count": 0}, 4, 0),
        ({"revision": 1, "message_count": 1}, 1, 1),
    ],
)
def test_fork__as_of_a_revision__has_its_state_and_messages(
    source: Person, asked: dict[str, int], revision: int, count: int
) -> None:
    made = fork(source, **asked)
    assert made.forked_from == {"thread_id": "t1", "revision": revision, "message_count": count}
    assert (made.revision, made.message_count) == (1, count)
    wanted = state(source, "t1", revision)
    wanted.pop("grant", None)
    wanted.pop(snapshots.LIFECYCLE, None)
    wanted.pop(TOOL_CALLS, None)
    assert state(source, "f1") == state(source, "f1", 1) == wanted
    assert state(source, "f1", 0) == {}
    assert log(made) == log(Thread.objects.get(public_id="t1"))[:count]
    assert made.context_tokens == sum(
        Message.objects.filter(thread=made).values_list("estimated_tokens", flat=True)
    )
    row = Revision.objects.get(thread=made)
    assert (row.number, row.kind, row.message_count) == (1, "fork", count)


def test_fork__any__copies_the_documented_parts(source: Person) -> None:
    threads.change_thread(
        actor=source.actor, thread_id="t1", policy=raw({"autocompact_threshold": 5})
    )
    made = fork(source)
    assert (made.title, made.resource_id, made.parent) == ("Refund", "ann", None)
    assert made.metadata == '{"b": 1.1, "a": 2}'
    assert made.policy == '{"autocompact_threshold": 5}'
    assert (made.active_run, made.latest_run) == (None, None)
    assert not Run.objects.filter(thread=made).exists()
    assert Ticket.objects.count() == 1
    assert not Message.objects.filter(thread=made).exclude(run=None).exists()
    other = fork(source, "f2", title="", metadata=raw({}))
    assert (other.title, other.metadata) == ("", "{}")


def test_fork__and_source__change_independently(source: Person) -> None:
    fork(source)
    before = (state(source, "t1"), log(Thread.objects.get(public_id="t1")))
    make_run(source.actor, "f1", "r2")
    commit(source.actor, "r2", {"plan": "mine"}, messages=[{**USER, "id": "new"}])
    assert (state(source, "t1"), log(Thread.objects.get(public_id="t1"))) == before
    kept = (state(source, "f1"), log(Thread.objects.get(public_id="f1")))
    threads.delete_thread(actor=source.actor, thread_id="t1")
    assert (state(source, "f1"), log(Thread.objects.get(public_id="f1"))) == kept
    # The origin is stored.
    assert Thread.objects.get().forked_from == {
        "thread_id": "t1",
        "revision": 4,
        "message_count": 5,
    }


def test_fork__of_a_fork__refers_to_its_source(source: Person) -> None:
    fork(source, revision=2)
    made = fork(source, "f2", thread_id="f1")
    assert made.forked_from == {"thread_id": "f1", "revision": 1, "message_count": 2}
    assert state(source, "f2") == state(source, "f1")


def test_fork__summaries_within_it__are_copied_and_can_be_undone(alice: Person) -> None:
    a = alice.actor
    make_thread(a, "t1")
    append(a, "t1", *builders.conversation(8, rounds=1))
    before = Thread.objects.get().message_count
    job = compactions.request_compaction(actor=a, thread_id="t1").public_id
    assert compaction_jobs.run_compaction(job) == "done"
    append(a, "t1", USER)
    whole, plain = fork(alice), fork(alice, "f2", message_count=before)

    def context(thread_id: str) -> list[str]:
        return contexts.read_context(actor=a, thread_id=thread_id).messages

    assert context("f1") == context("t1")
    assert whole.context_tokens == Thread.objects.get(public_id="t1").context_tokens
    # Cut before the summary: it is not part of the fork.
    assert len(context("f2")) == before
    assert not Compaction.objects.filter(thread=plain).exists()
    copied = Compaction.objects.get(thread=whole)
    assert (copied.status, copied.cost_usd) == ("done", 0)
    compactions.undo_compaction(actor=a, compaction_id=copied.public_id)
    assert len(context("f1")) == before + 1
    assert len(context("t1")) < before
    assert Compaction.objects.get(public_id=job).status == "done"


def test_fork__undone_summary__does_not_block_compaction_of_the_fork(alice: Person) -> None:
    a = alice.actor
    make_thread(a, "t1", policy=raw({"autocompact_threshold": 200}))
    append(a, "t1", *builders.conversation(8, rounds=2))
    job = Compaction.objects.get().public_id
    assert compaction_jobs.run_compaction(job) == "done"
    assert compactions.undo_compaction(actor=a, compaction_id=job).status == "undone"
    fork(alice)
    assert Compaction.objects.get(thread__public_id="f1").status == "undone"
    append(a, "f1", USER)
    assert Compaction.objects.filter(thread__public_id="f1", trigger="threshold").count() == 2


def test_fork__any__writes_one_audit_row_one_change(source: Person) -> None:
    AuditRow.objects.all().delete()
    Change.objects.all().delete()
    fork(source, reason="what if")
    audited = AuditRow.objects.values_list("action", "thread", "version", "reason")
    assert list(audited) == [("thread.fork", "f1", 1, "what if")]
    assert list(Change.objects.values_list("kind", "thread", "version")) == [
        ("thread.fork", "f1", 1)
    ]


def test_fork__same_id_and_content__returns_the_stored_fork(
    source: Person,
) -> None:
    body = {"id": "f1", "revision": 2}
    first = source.api("POST", "/threads/t1/fork", body)
    commit(source.actor, "r1", {"plan": 9})
    Revision.objects.filter(number=2).update(dropped=True)
    again = source.api("POST", "/threads/t1/fork", body)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json()
    for other in ({"id": "f1"}, {**body, "title": "x"}, {**body, "message_count": 2}):
        assert source.api("POST", "/threads/t1/fork", other).status_code == 409
    assert source.api("POST", "/threads", {"id": "f1"}).status_code == 409
    assert Thread.objects.count() == 2


def test_fork__missing_revision__is_refused(source: Person, mallory: Person) -> None:
    for revision in (5, 99):
        with pytest.raises(NotFound):
            fork(source, revision=revision)
    Revision.objects.filter(number=3).update(dropped=True)
    with pytest.raises(Gone):
        fork(source, revision=3)
    with pytest.raises(Invalid) as refused:
        fork(source, message_count=6)
    assert refused.value.data["errors"] == [
        {"pointer": "/message_count", "message": "the thread has 5 messages"}
    ]
    with pytest.raises(Invalid):
        fork(source, "a\nb")
    with pytest.raises(NotFound):
        fork(mallory)
    with pytest.raises(Conflict):
        fork(source, "t1")
    assert Thread.objects.count() == 1
    body = {"revision": 1, "runs": True}
    assert source.api("POST", "/threads/t1/fork", body).status_code == 400


def test_fork__viewer_or_restricted_token__is_refused(source: Person, bob: Person) -> None:
    with pytest.raises(Forbidden):
        fork(bob)
    _, narrow = builders.make_token(source, thread_prefixes=["t"])
    with pytest.raises(Forbidden):
        forks.fork_thread(actor=narrow, thread_id="t1", fork_id="f1")
    assert forks.fork_thread(actor=narrow, thread_id="t1", fork_id="t-fork")[1]


def test_fork__quota__includes_it(source: Person) -> None:
    quotas.set_quota(actor=source.actor, entries=None, bytes=None, threads=2)
    fork(source)
    with pytest.raises(QuotaExceeded):
        fork(source, "f2")
    fork(source)  # an existing fork needs no quota
    threads.delete_thread(actor=source.actor, thread_id="f1")
    fork(source, "f2")
    quotas.forget_accounts()


def test_fork__many_messages__uses_as_many_statements_as_few(source: Person) -> None:
    def statements(fork_id: str) -> int:
        seen = []
        by_hand = hot.fetch_all
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(hot, "fetch_all", lambda *a: seen.append(a) or by_hand(*a))
            with connection.execute_wrapper(lambda do, *a: seen.append(a) or do(*a)):
                fork(source, fork_id)
        return len(seen)

    short = statements("f1")
    for _ in range(3):
        append(source.actor, "t1", *[USER] * 1000)
    assert statements("f2") == short
    assert Message.objects.filter(thread__public_id="f2").count() == 3005
    assert list(
        Message.objects.filter(thread__public_id="f2").in_order().values_list("seq", flat=True)
    ) == list(range(1, 3006))


def test_lineage__of_forks_and_families__is_returned(source: Person, bob: Person) -> None:
    a = source.actor
    make_thread(a, "child", parent_thread_id="t1")
    make_thread(a, "grandchild", parent_thread_id="child")
    fork(source)
    fork(source, "f2")

    def lineage(thread_id: str) -> Any:
        return bob.api("GET", f"/threads/{thread_id}/lineage").json()

    assert lineage("t1") == {
        "thread_id": "t1",
        "ancestors": [],
        "child_count": 1,
        "forked_from": None,
        "fork_count": 2,
    }
    assert lineage("grandchild")["ancestors"] == ["child", "t1"]
    assert lineage("f1")["forked_from"]["thread_id"] == "t1"
    listed = bob.api("GET", "/threads?forked_from=t1").json()["items"]
    assert [row["id"] for row in listed] == ["f2", "f1"]
    secret, _ = builders.make_token(source, thread_prefixes=["grand", "t1"])
    seen = builders.call(secret, "GET", "/threads/grandchild/lineage").json()
    assert seen["ancestors"] == ["t1"]
    hidden = builders.call(secret, "GET", "/threads/t1/lineage").json()
    assert (hidden["child_count"], hidden["fork_count"]) == (0, 0)


def test_origin__outside_the_tokens_prefixes__appears_absent(source: Person) -> None:
    fork(source)
    secret, _ = builders.make_token(source, thread_prefixes=["f"])
    ask = partial(builders.call, secret)
    assert ask("GET", "/threads/f1").json()["forked_from"] is None
    assert ask("GET", "/threads/f1/lineage").json()["forked_from"] is None
    assert ask("GET", "/threads?forked_from=t1").json()["items"] == []
    assert source.api("GET", "/threads/f1").json()["forked_from"]["thread_id"] == "t1"


def test_forks_of_a_thread__among_many__are_found_by_an_index(source: Person) -> None:
    fork(source)
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        found = Thread.objects.filter(workspace_id=source.workspace.pk).forks_of("t1")
        assert "threads_forks" in found.explain()


def test_erasure__of_the_source__removes_its_name_from_forks(source: Person) -> None:
    make_thread(source.actor, "secret-source", resource_id="zoe")
    fork(source, thread_id="secret-source", reason="x")
    Thread.objects.filter(public_id="f1").update(resource_id="")
    erasures.erase(actor=source.actor, resource_id="zoe", reason="asked")
    assert Thread.objects.get(public_id="f1").forked_from is None
    assert tables_with("secret-source") == set()


@pytest.mark.django_db(transaction=True)
def test_race__forks_with_one_id__one_is_created(source: Person) -> None:
    one = partial(forks.fork_thread, actor=source.actor, thread_id="t1", fork_id="f1", revision=2)
    won, lost = split(race([one] * 8))
    assert lost == []
    assert sorted(created for _, created in won) == [False] * 7 + [True]
    assert Message.objects.filter(thread__public_id="f1").count() == 2


@pytest.mark.django_db(transaction=True)
def test_race__forks_and_commits__each_fork_equals_a_past_state(source: Person) -> None:
    commit(source.actor, "r1", run=builders.runs.RunChange(status="running"))
    works = [partial(commit, source.actor, "r1", {"plan": n}, messages=[USER]) for n in range(6)]
    works += [partial(fork, source, f"f{n}") for n in range(6)]
    _, lost = split(race(works))
    assert lost == []
    for number in range(6):
        made = Thread.objects.get(public_id=f"f{number}")
        origin = made.forked_from
        assert origin is not None
        was = state(source, "t1", origin["revision"])
        was.pop("grant")
        was.pop(snapshots.LIFECYCLE)
        was.pop(TOOL_CALLS)
        assert state(source, made.public_id) == was
        assert Message.objects.filter(thread=made).count() == origin["message_count"]
    assert StateValue.objects.filter(thread__public_id="f0").count() == len(state(source, "f0"))
