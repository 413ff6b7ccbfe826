"""Runs: every transition, one active run per thread, leases, stuck runs."""

from __future__ import annotations

from contextlib import nullcontext
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now
from django.utils import timezone

from state_admin.models import AuditRow, Revision, Run, Thread, Ticket, snapshots_sql
from state_admin.services import maintenance, runs, threads
from state_admin.services.errors import Conflict, Invalid, NotFound
from state_admin.services.runs import RunChange
from tests import builders
from tests.builders import Person, make_run, make_thread, raw
from tests.domain.test_lifecycle import LEGAL
from tests.services.racing import race, split

STATUSES = ("created", "running", "waiting", "done")
MOVES = [(old, new) for old in STATUSES for new in STATUSES]


@pytest.fixture
def thread(alice: Person) -> Person:
    make_thread(alice.actor, "t1")
    return alice


def run_in(person: Person, status: str) -> Run:
    made = make_run(person.actor, "t1", "r1", status="created")
    path = {"created": (), "running": ("running",), "waiting": ("running", "waiting")}
    for step in path.get(status, ("done",)):
        change(person, status=step)
    assert Run.objects.get(pk=made.pk).status == status
    return made


def change(person: Person, **fields: Any) -> Run:
    return runs.change_run(actor=person.actor, run_id="r1", change=RunChange(**fields))


@pytest.mark.parametrize(("old", "new"), MOVES)
def test_move__each_pair__is_valid_a_no_op_or_refused(thread: Person, old: str, new: str) -> None:
    run_in(thread, old)
    before = Revision.objects.count()
    if old == new:
        assert change(thread, status=new).status == new
        assert Revision.objects.count() == before
    elif (old, new) in LEGAL:
        assert change(thread, status=new).status == new
        assert Revision.objects.count() == before + 1
    else:
        with pytest.raises(Conflict) as refused:
            change(thread, status=new)
        assert refused.value.detail == f"invalid run transition: {old} -> {new}"
        assert Run.objects.get().status == old
        assert Revision.objects.count() == before


def by_patch(person: Person, new: str) -> Any:
    return person.api("PATCH", "/runs/r1", {"status": new})


def by_commit(person: Person, new: str) -> Any:
    return person.api("POST", "/runs/r1/commits", {"run": {"status": new}})


@pytest.mark.parametrize("way", [by_patch, by_commit])
@pytest.mark.parametrize(("old", "new"), MOVES)
def test_move__over_the_api__follows_the_same_table(
    thread: Person, way: Any, old: str, new: str
) -> None:
    run_in(thread, old)
    answer = way(thread, new)
    # A step on a finished run is refused, whatever it contains.
    refused = "run is done: r1" if way is by_commit and old == new == "done" else ""
    if old != new and (old, new) not in LEGAL:
        refused = f"invalid run transition: {old} -> {new}"
    assert answer.status_code == (409 if refused else 200)
    assert not refused or answer.json()["detail"] == refused
    assert Run.objects.get().status == (old if refused else new)


@pytest.mark.parametrize("old", STATUSES)
@pytest.mark.parametrize("verb", ["cancel", "fail", "resume"])
def test_move__by_an_operation__follows_the_table(thread: Person, verb: str, old: str) -> None:
    run_in(thread, old)
    answer = thread.api("POST", f"/runs/r1/{verb}")
    if verb == "resume":
        assert answer.status_code == (409 if old == "done" else 200)
        assert Run.objects.get().status == ("done" if old == "done" else "running")
    else:  # ending a run again is not a change
        assert answer.status_code == 200
        ended = answer.json()["termination_reason"]["type"]
        kinds = {"cancel": "cancelled", "fail": "error"}
        assert ended == ("natural_end" if old == "done" else kinds[verb])


@pytest.mark.parametrize("old", ["running", "waiting", "done"])
@pytest.mark.parametrize("action", ["resume", "cancel"])
def test_move__by_a_decision__resumes_only_a_waiting_run(
    thread: Person, action: str, old: str
) -> None:
    run_in(thread, "running")
    ticket = {"ticket_id": "k1", "tool_call_id": "c", "tool_name": "t"}
    change(thread, status="waiting", waiting={"reason": "user_input", "tickets": [ticket]})
    if old != "waiting":
        change(thread, status=old)
    answer = thread.api("POST", "/tickets/k1/decision", {"action": action})
    assert answer.status_code == (409 if old == "done" else 200)
    assert Run.objects.get().status == ("done" if old == "done" else "running")


def test_lineage__given_or_of_the_thread__is_stored_and_returned(thread: Person) -> None:
    make_thread(thread.actor, "t2", parent_thread_id="t1")
    child = {"id": "c1", "parent_run_id": "r0", "agent_id": "sub", "origin": "subagent"}
    shown = thread.api("POST", "/threads/t2/runs", child).json()
    assert (shown["parent_run_id"], shown["parent_thread_id"]) == ("r0", "t1")
    assert thread.api("POST", "/threads/t2/runs", child).status_code == 200
    other = {**child, "parent_thread_id": "elsewhere"}
    assert thread.api("POST", "/threads/t2/runs", other).status_code == 409
    make_thread(thread.actor, "t3")
    told = thread.api("POST", "/threads/t3/runs", {"parent_thread_id": "elsewhere"}).json()
    assert (told["parent_run_id"], told["parent_thread_id"]) == (None, "elsewhere")
    assert thread.api("POST", "/threads/t1/runs", {}).json()["parent_thread_id"] is None


def test_mirror__lifecycle__follows_each_transition(thread: Person) -> None:
    make_run(thread.actor, "t1", "r1", status="created")
    moves: list[tuple[dict[str, Any], str, str | None, int]] = [
        ({"status": "running"}, "running", None, 0),
        ({"step_count": 1}, "running", None, 1),
        ({"status": "waiting", "waiting": {"reason": "user_input"}}, "waiting",
         "input_required", 1),
        ({"status": "running"}, "running", None, 1),
        ({"status": "done", "termination_reason": {"type": "stopped", "code": "max_rounds"}},
         "done", "stopped:max_rounds", 1),
    ]  # fmt: skip
    for fields, status, why, steps in moves:
        change(thread, **fields)
        extensions = thread.api("GET", "/threads/t1/state").json()["extensions"]
        mirror = extensions["__runtime.run_lifecycle"]
        assert mirror.pop("updated_at") > 0
        assert mirror == {
            "run_id": "r1",
            "status": status,
            **({"status_reason": why} if why else {}),
            "step_count": steps,
        }


def test_move__waiting_again_without_a_body__keeps_reason_and_tickets(thread: Person) -> None:
    run_in(thread, "running")
    ticket = {"ticket_id": "k1", "tool_call_id": "c", "tool_name": "t"}
    change(thread, status="waiting", waiting={"reason": "user_input", "tickets": [ticket]})
    assert change(thread, status="waiting").waiting == {"reason": "user_input"}
    assert Ticket.objects.pending().count() == 1


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"status": "flying"}, "/status"),
        ({"status": "done", "termination_reason": {"type": "tired"}}, "/termination_reason/type"),
        ({"status": "done", "termination_reason": {"type": "stopped"}}, "/termination_reason/code"),
        ({"status": "waiting", "waiting": {"reason": "no idea"}}, "/waiting/reason"),
        ({"status": "waiting", "waiting": {"reason": "user_input", "tickets": [{}]}},
         "/waiting/tickets/0/tool_call_id"),
        ({"status": "waiting", "waiting": {"reason": "user_input", "deadline_at": "soon"}},
         "/waiting/deadline_at"),
        ({"status": "waiting", "waiting": {"reason": "user_input", "tickets": [
            {"tool_call_id": "c", "tool_name": "x" * 257}]}}, "/waiting/tickets/0/tool_name"),
        ({"status": "waiting", "waiting": {"reason": "user_input", "tickets": [
            {"tool_call_id": "c", "tool_name": "x", "response_schema": {"type": 5}}]}},
         "/waiting/tickets/0/response_schema/type"),
    ],
)  # fmt: skip
def test_move__invalid_body__is_refused_with_its_place(
    thread: Person, fields: dict[str, Any], pointer: str
) -> None:
    run_in(thread, "running")
    with pytest.raises(Invalid) as refused:
        change(thread, **fields)
    assert pointer in [fault["pointer"] for fault in refused.value.data["errors"]]
    assert Run.objects.get().status == "running"
    assert not Ticket.objects.exists()


@pytest.mark.parametrize("way", ["PATCH", "POST"])
@pytest.mark.parametrize(
    ("old", "sent", "pointer"),
    [
        ("running", {"waiting": {"reason": "user_input"}}, "/waiting"),
        ("running", {"status": "running", "waiting": {"reason": "user_input"}}, "/waiting"),
        ("running", {"status": "done", "waiting": {"reason": "user_input"}}, "/waiting"),
        ("running", {"termination_reason": {"type": "cancelled"}}, "/termination_reason"),
        ("waiting", {"status": "running", "termination_reason": {"type": "cancelled"}},
         "/termination_reason"),
        ("running", {"status": "done", "termination_reason": []}, "/termination_reason"),
        ("running", {"status": "done", "termination_reason": {}}, "/termination_reason/type"),
        ("running", {"status": "done", "termination_reason": ""}, "/termination_reason"),
        ("running", {"status": "done", "termination_reason": 0}, "/termination_reason"),
        ("running", {"status": "done", "termination_reason": False}, "/termination_reason"),
        ("running", {"status": "waiting", "waiting": []}, "/waiting"),
        ("waiting", {"waiting": {}}, "/waiting/reason"),
    ],
)  # fmt: skip
def test_change__unused_body__is_refused_with_its_place(
    thread: Person, way: str, old: str, sent: dict[str, Any], pointer: str
) -> None:
    run_in(thread, old)
    before = Revision.objects.count()
    path, body, place = ("", sent, "") if way == "PATCH" else ("/commits", {"run": sent}, "/run")
    answer = thread.api(way, f"/runs/r1{path}", body)
    assert answer.status_code == 422
    assert [fault["pointer"] for fault in answer.json()["errors"]] == [place + pointer]
    assert (Run.objects.get().status, Revision.objects.count()) == (old, before)


def test_change__done_run_with_another_reason__is_refused(thread: Person) -> None:
    run_in(thread, "done")
    for words in ({"termination_reason": {"type": "cancelled"}}, {"waiting": {"reason": "x"}}):
        assert thread.api("PATCH", "/runs/r1", words).status_code == 422
    again = {"status": "done", "termination_reason": "no"}
    assert thread.api("PATCH", "/runs/r1", again).status_code == 422
    assert Run.objects.get().termination_reason == {"type": "natural_end"}


def test_waiting__new_body_while_it_waits__is_stored(thread: Person) -> None:
    run_in(thread, "waiting")
    answer = thread.api("PATCH", "/runs/r1", {"waiting": {"reason": "rate_limit"}})
    assert (answer.status_code, answer.json()["waiting"]) == (200, {"reason": "rate_limit"})
    extensions = thread.api("GET", "/threads/t1/state").json()["extensions"]
    assert extensions["__runtime.run_lifecycle"]["status_reason"] == "rate_limit"


def test_done__any__has_its_reason_and_frees_the_thread(thread: Person) -> None:
    run_in(thread, "running")
    done = change(thread, status="done", termination_reason={"type": "error", "value": "boom"})
    assert (done.termination_reason, done.lease_expires_at) == (
        {"type": "error", "value": "boom"},
        None,
    )
    assert done.finished_at is not None
    row = Thread.objects.get()
    assert (row.active_run, row.latest_run) == (None, done)
    assert Revision.objects.latest("number").kind == "end"


def test_done_run__usage__may_be_corrected_but_not_its_steps(thread: Person) -> None:
    """The run's key in the state may already be the next run's."""
    run_in(thread, "done")
    make_run(thread.actor, "t1", "r2")
    revision = Thread.objects.get().revision
    assert change(thread, input_tokens=7, cost_usd="0.5").input_tokens == 7
    with pytest.raises(Conflict):
        change(thread, step_count=3)
    assert Thread.objects.get().revision == revision


def test_start__second_active_run__is_refused_with_the_exact_text(thread: Person) -> None:
    make_run(thread.actor, "t1", "r1")
    with pytest.raises(Conflict) as refused:
        make_run(thread.actor, "t1", "r2")
    assert refused.value.detail == "thread already has an active run: t1"
    assert Run.objects.count() == 1


def test_start__same_id__returns_the_stored_run_and_other_content_is_a_conflict(
    thread: Person,
) -> None:
    first = make_run(thread.actor, "t1", "r1", agent_id="a")
    again, created = runs.start_run(actor=thread.actor, thread_id="t1", run_id="r1", agent_id="a")
    assert (again, created) == (first, False)
    with pytest.raises(Conflict):
        make_run(thread.actor, "t1", "r1", agent_id="b")
    assert Thread.objects.get().revision == 1


@pytest.mark.parametrize("other", [{"status": "created"}, {"lease_seconds": 30}])
def test_start__same_id_other_status_or_lease__is_a_conflict(
    thread: Person, other: dict[str, Any]
) -> None:
    start = {"id": "r1", "status": "running", "lease_seconds": 60}
    assert thread.api("POST", "/threads/t1/runs", start).status_code == 201
    assert thread.api("POST", "/threads/t1/runs", {"id": "r1"}).status_code == 200
    assert thread.api("POST", "/threads/t1/runs", {**start, **other}).status_code == 409


@pytest.mark.parametrize("active", ["created", "running", "waiting"])
def test_start__same_id_as_an_active_run__returns_that_run(thread: Person, active: str) -> None:
    first = {"id": "r1", "status": "created"}
    assert thread.api("POST", "/threads/t1/runs", first).status_code == 201
    if active != "created":
        change(thread, status="running")
    if active == "waiting":
        change(thread, status="waiting", waiting={"reason": "user_input"})
    again = thread.api("POST", "/threads/t1/runs", first)
    assert (again.status_code, again.json()["status"]) == (200, active)


def test_start__same_id_as_a_finished_run__is_a_conflict_that_starts_nothing(
    thread: Person,
) -> None:
    run_in(thread, "done")
    answer = thread.api("POST", "/threads/t1/runs", {"id": "r1", "status": "created"})
    assert answer.status_code == 409
    assert "run is done: r1" in answer.json().values()
    assert Run.objects.get().status == "done"
    assert thread.api("GET", "/threads/t1").json()["active_run_id"] is None


def test_start_and_end__thread_with_many_values__reads_no_value(
    thread: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    builders.make_state_key(thread.actor, "plan")
    builders.make_state_key(thread.actor, "memory", scope="thread")
    builders.make_state_key(thread.actor, "secret", scope="thread", persistent=False)
    make_run(thread.actor, "t1", "r0")
    builders.commit(thread.actor, "r0", {"plan": 1, "memory": 2, "secret": 3})
    with monkeypatch.context() as patched:
        patched.delattr(snapshots_sql, "read_state")
        runs.cancel_run(actor=thread.actor, run_id="r0")
        make_run(thread.actor, "t1", "r1")
    extensions = thread.api("GET", "/threads/t1/state").json()["extensions"]
    assert sorted(extensions) == ["__runtime.run_lifecycle", "memory"]


def test_lock__every_column__equals_that_of_the_orm(thread: Person) -> None:
    make_thread(thread.actor, "t2", parent_thread_id="t1", metadata=raw({"n": 1.0}), title="ü")
    make_run(
        thread.actor, "t2", "r2", metadata=raw({"z": 1.0, "a": 2}), timeout_seconds=5, max_rounds=3
    )
    ticket = {"tool_call_id": "c", "tool_name": "t", "expires_at": "2999-01-01T00:00:00Z"}
    wait = {"reason": "user_input", "message": "?", "tickets": [ticket]}
    builders.commit(
        thread.actor, "r2", run=RunChange(status="waiting", waiting=wait, cost_usd="0.25")
    )
    Thread.objects.filter(public_id="t2").update(forked_from={"thread_id": "t0", "revision": 1})
    stored = Run.objects.select_related("thread").get(public_id="r2")
    with transaction.atomic():
        run, locked = runs.lock_run(thread.actor, "r2")
    for held, read in ((run, stored), (locked, stored.thread)):
        for field in held._meta.concrete_fields:
            assert getattr(held, field.attname) == getattr(read, field.attname), field.attname
    assert (run.thread, run.read_at > run.created_at) == (locked, True)
    done = runs.change_run(
        actor=thread.actor,
        run_id="r2",
        change=RunChange(status="done", termination_reason={"type": "error", "value": "é"}),
    )
    with transaction.atomic():
        again, _ = runs.lock_run(thread.actor, "r2")
    assert again.termination_reason == done.termination_reason == {"type": "error", "value": "é"}


@pytest.mark.parametrize(
    ("prefixes", "seen"),
    [(["t"], True), (["x", "t1"], True), (["t1x"], False), (["T"], False), (["_"], False)],
)
def test_lock__token_with_thread_prefixes__finds_only_matching_runs(
    thread: Person, prefixes: list[str], seen: bool
) -> None:
    make_run(thread.actor, "t1", "r1")
    _, narrow = builders.make_token(thread, thread_prefixes=prefixes)
    with nullcontext() if seen else pytest.raises(NotFound), transaction.atomic():
        assert runs.lock_run(narrow, "r1")[0].public_id == "r1"


def test_lock__other_workspace__is_not_found(thread: Person, mallory: Person) -> None:
    make_run(thread.actor, "t1", "r1")
    with pytest.raises(NotFound), transaction.atomic():
        runs.lock_run(mallory.actor, "r1")


def test_start__unknown_or_inaccessible_thread__is_not_found(
    thread: Person, mallory: Person
) -> None:
    with pytest.raises(NotFound):
        make_run(mallory.actor, "t1", "r9")


@pytest.mark.django_db(transaction=True)
def test_race__starts__exactly_one_run_starts(thread: Person) -> None:
    works = [partial(make_run, thread.actor, "t1", f"r{n}") for n in range(8)]
    won, lost = split(race(works))
    assert (len(won), len(lost)) == (1, 7)
    assert {p.detail for p in lost} == {"thread already has an active run: t1"}
    assert Thread.objects.get().active_run_id == won[0].pk


@pytest.mark.django_db(transaction=True)
def test_race__one_run_id_on_two_threads__one_succeeds_and_the_other_gets_the_reason(
    thread: Person,
) -> None:
    make_thread(thread.actor, "t2")
    works = [partial(make_run, thread.actor, f"t{n}", "same") for n in (1, 2)] * 3
    won, lost = split(race(works))
    assert len({run.pk for run in won}) == 1
    assert {p.detail for p in lost} == {"run already exists with other content: same"}


@pytest.mark.django_db(transaction=True)
def test_race__cancel_and_finish__ends_once(thread: Person) -> None:
    make_run(thread.actor, "t1", "r1")
    works = [partial(runs.cancel_run, actor=thread.actor, run_id="r1")] * 4
    works += [partial(change, thread, status="done")] * 4
    won, lost = split(race(works))
    assert (len(won), len(lost)) == (8, 0)
    assert Revision.objects.filter(kind="end").count() == 1
    reasons = {run.termination_reason["type"] for run in won}
    assert len(reasons) == 1


def test_response__each_write__is_the_stored_run(thread: Person) -> None:
    ticket = {
        "ticket_id": "k1",
        "tool_call_id": "c",
        "tool_name": "t",
        "expires_at": "2999-01-01T00:00:00Z",
    }
    wait = {"reason": "user_input", "deadline_at": "2998-01-01T00:00:00Z", "tickets": [ticket]}
    message = {"role": "user", "content": "hi"}
    writes: list[tuple[str, str, Any]] = [
        ("POST", "/commits", {"messages": [message]}),
        ("POST", "/commits", {"run": {"step_count": 1, "cost_usd": "0.1", "metadata": {"a": 1}}}),
        ("PATCH", "", {"input_tokens": 5}),
        ("PATCH", "", {"step_count": 2}),
        ("POST", "/heartbeat", None),
        ("POST", "/lease", None),
        ("DELETE", "/lease", None),
        ("POST", "/commits", {"run": {"status": "waiting", "waiting": wait}}),
        ("POST", "/commits", {"messages": [message]}),
        ("POST", "/resume", None),
        ("POST", "/commits", {}),
        ("POST", "/commits", {"run": {"status": "done"}, "messages": [message]}),
    ]
    for status in ("created", "running"):
        run_id = f"r-{status}"
        made = thread.api("POST", "/threads/t1/runs", {"id": run_id, "status": status})
        assert made.json() == thread.api("GET", f"/runs/{run_id}").json()
        if status == "created":
            ended = thread.api("POST", f"/runs/{run_id}/cancel").json()
            assert ended == thread.api("GET", f"/runs/{run_id}").json()
    for method, path, body in writes:
        answer = thread.api(method, f"/runs/r-running{path}", body)
        assert answer.status_code == 200, answer.content
        shown = answer.json().get("run", answer.json())
        assert shown == thread.api("GET", "/runs/r-running").json(), (path, body)


# Leases --------------------------------------------------------------------------------------


def age(**columns: Any) -> None:
    Run.objects.update(**columns)


def test_heartbeat__thread_deleted_meanwhile__is_not_found(
    thread: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_run(thread.actor)
    find_run = runs.find_run

    def find_just_before_the_deletion(*args: Any) -> Run:
        monkeypatch.undo()
        found = find_run(*args)
        threads.delete_thread(actor=thread.actor, thread_id="t1")
        return found

    monkeypatch.setattr(runs, "find_run", find_just_before_the_deletion)
    with pytest.raises(NotFound, match="run not found: r1"):
        runs.heartbeat(actor=thread.actor, run_id="r1")


def test_heartbeat__active_run__renews_the_lease_and_clears_the_flag(thread: Person) -> None:
    make_run(thread.actor, "t1", "r1", lease_seconds=60)
    age(lease_expires_at=Now() - timedelta(seconds=1), flagged_at=Now())
    assert Run.objects.stuck().count() == 1
    run = runs.heartbeat(actor=thread.actor, run_id="r1")
    assert run.flagged_at is None
    assert not Run.objects.stuck().exists()
    change(thread, status="done")
    with pytest.raises(Conflict):
        runs.heartbeat(actor=thread.actor, run_id="r1")


def test_commit__any__renews_the_lease_and_clears_the_flag(thread: Person) -> None:
    make_run(thread.actor, "t1", "r1")
    age(lease_expires_at=Now() - timedelta(seconds=1), flagged_at=Now())
    builders.commit(thread.actor, "r1", messages=[{"role": "user", "content": "x"}])
    run = Run.objects.get()
    assert run.flagged_at is None
    assert not Run.objects.stuck().exists()


@pytest.mark.parametrize(
    ("status", "columns", "stuck"),
    [
        ("running", {}, False),
        ("running", {"lease_expires_at": Now() - timedelta(seconds=1)}, True),
        ("running", {"max_rounds": 3, "step_count": 3}, True),
        ("running", {"max_rounds": 3, "step_count": 2}, False),
        ("running", {"max_rounds": 0, "step_count": 9}, False),
        ("running", {"times_out_at": Now() - timedelta(seconds=1)}, True),
        ("waiting", {}, False),
        ("waiting", {"deadline_at": Now() - timedelta(seconds=1)}, True),
        ("waiting", {"deadline_at": Now() + timedelta(seconds=60)}, False),
        ("created", {"lease_expires_at": Now() - timedelta(seconds=1)}, False),
        ("done", {"times_out_at": Now() - timedelta(seconds=1), "max_rounds": 1,
                  "step_count": F("step_count") + 1}, False),
    ],
)  # fmt: skip
def test_stuck__each_condition__is_flagged_once_and_nothing_is_ended(
    thread: Person, status: str, columns: dict[str, Any], stuck: bool
) -> None:
    run_in(thread, status)
    age(**columns)
    assert maintenance.any_run_to_flag() == stuck
    assert maintenance.flag_stuck_runs() == {"flagged": int(stuck)}
    assert not maintenance.any_run_to_flag()
    assert maintenance.flag_stuck_runs() == {"flagged": 0}
    run = Run.objects.get()
    assert (run.flagged_at is not None, run.status) == (stuck, status)
    assert AuditRow.objects.filter(action="run.stuck").count() == int(stuck)
    shown = thread.api("GET", "/runs?stuck=true").json()["items"]
    assert [row["id"] for row in shown] == (["r1"] if stuck else [])


@pytest.mark.parametrize(("ahead", "late"), [(7200, -1), (-7200, 1)])
def test_stuck__clock_of_the_app_server_is_wrong__does_not_matter(
    thread: Person, monkeypatch: pytest.MonkeyPatch, ahead: int, late: int
) -> None:
    """The database's clock decides, as in the query that finds stuck runs."""
    run_in(thread, "running")
    age(lease_expires_at=Now() - timedelta(seconds=3600 * late))
    skewed = timezone.now() + timedelta(seconds=ahead)
    monkeypatch.setattr(timezone, "now", lambda: skewed)
    stuck = late > 0
    assert bool(thread.api("GET", "/runs/r1").json()["stuck_reason"]) == stuck
    (listed,) = thread.api("GET", "/runs").json()["items"]
    assert bool(listed["stuck_reason"]) == stuck
    assert maintenance.flag_stuck_runs() == {"flagged": int(stuck)}
    for row in AuditRow.objects.filter(action="run.stuck"):
        assert row.detail["reason"].startswith("silent for 1 h")


def test_counts__totals__are_stored_as_given(thread: Person) -> None:
    make_run(thread.actor, "t1", "r1")
    change(thread, input_tokens=10, output_tokens=20, cost_usd="1.25", metadata=raw({"a": 1}))
    change(thread, input_tokens=15)
    run = Run.objects.get()
    assert (run.input_tokens, run.output_tokens, str(run.cost_usd)) == (15, 20, "1.250000")
    assert run.metadata == '{"a": 1}'
    assert Thread.objects.get().revision == 1
