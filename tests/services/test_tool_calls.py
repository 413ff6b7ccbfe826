"""The state key of tool calls contains only calls that can still be resumed."""

from __future__ import annotations

from typing import Any

import pytest

from state_admin.models import Revision, Run, StateValue, Ticket
from state_admin.services import forks, runs, snapshots, tickets
from state_admin.services.errors import Invalid, TooLarge
from state_admin.services.runs import RunChange
from state_admin.services.tool_calls import TOOL_CALLS
from tests.builders import Person, commit, make_run, raw
from tests.services.test_leases import run

__all__ = ["run"]

MIB = 1 << 20


def calls(person: Person, revision: int | None = None) -> Any:
    held = snapshots.read_snapshot(actor=person.actor, thread_id="t1", revision=revision)
    return held.parsed().get(TOOL_CALLS)


def put(person: Person, call_id: str, status: str, **more: Any) -> None:
    call = {"call_id": call_id, "tool_name": "f", "status": status, "updated_at": 5, **more}
    commit(person.actor, "r1", {TOOL_CALLS: {"put": call}})


def wait(person: Person, *names: str, **fields: Any) -> None:
    asked = [{"ticket_id": n, "tool_call_id": f"c-{n}", "tool_name": "f", **fields} for n in names]
    waiting = {"reason": "tool_permission", "tickets": asked}
    commit(person.actor, "r1", run=RunChange(status="waiting", waiting=waiting))


def decide(person: Person, ticket_id: str, payload: Any) -> Ticket:
    return tickets.decide_ticket(
        actor=person.actor, ticket_id=ticket_id, action="resume", payload=raw(payload)
    )


def next_run(person: Person) -> Run:
    runs.cancel_run(actor=person.actor, run_id="r1")
    return make_run(person.actor, "t1", "r2")


def test_start__calls_of_previous_runs__only_resumable_ones_are_kept(run: Person) -> None:
    for status in ("new", "running", "resuming", "succeeded", "failed", "cancelled"):
        put(run, status, status)
    put(run, "mine", "suspended")
    put(run, "elsewhere", "suspended", suspension_id="not-a-ticket-of-ours")
    put(run, "odd", "suspended", suspension_id=7)
    wait(run, "k1", "k2")
    decide(run, "k1", {})
    last = Run.objects.get().last_revision
    assert {name: call["status"] for name, call in calls(run, last).items()} == {
        **{status: status for status in ("new", "running", "succeeded", "failed", "cancelled")},
        "resuming": "resuming",
        "mine": "suspended",
        "elsewhere": "suspended",
        "odd": "suspended",
        "c-k1": "resuming",
        "c-k2": "suspended",
    }
    started = next_run(run)
    assert sorted(calls(run)) == ["elsewhere", "mine", "odd"]
    start = Revision.objects.get(number=started.start_revision)
    assert (start.kind, TOOL_CALLS in start.touched) == ("start", True)
    assert len(calls(run, last)) == 11


def test_fork__tool_calls__are_those_without_a_ticket(run: Person) -> None:
    """Nobody can decide the ticket of another thread."""
    put(run, "mine", "suspended")
    put(run, "elsewhere", "suspended", suspension_id="not-a-ticket-of-ours")
    wait(run, "k1", "k2")
    decide(run, "k1", {})
    forks.fork_thread(actor=run.actor, thread_id="t1", fork_id="f1")
    forked = snapshots.read_snapshot(actor=run.actor, thread_id="f1").parsed()
    assert sorted(forked[TOOL_CALLS]) == ["elsewhere", "mine"]
    assert len(calls(run)) == 4


def test_fork__only_calls_with_tickets__has_no_value(run: Person) -> None:
    wait(run, "k1")
    forks.fork_thread(actor=run.actor, thread_id="t1", fork_id="f1")
    assert TOOL_CALLS not in snapshots.read_snapshot(actor=run.actor, thread_id="f1").parsed()


def test_start__suspended_call_of_a_closed_ticket__is_dropped(run: Person) -> None:
    """A late worker may have written it again."""
    wait(run, "k1")
    decide(run, "k1", {})
    put(run, "c-k1", "suspended", suspension_id="k1")
    assert calls(run)["c-k1"]["status"] == "suspended"
    next_run(run)
    assert calls(run) is None


def test_start__nothing_to_drop__does_not_change_the_key(run: Person) -> None:
    put(run, "mine", "suspended")
    started = next_run(run)
    assert TOOL_CALLS not in Revision.objects.get(number=started.start_revision).touched
    assert list(calls(run)) == ["mine"]


@pytest.mark.parametrize("held", ['["mine"]', '{"c": 1}', '{"c": {"status": 5}}', "null", "0"])
def test_start__malformed_value__is_unchanged(run: Person, held: str) -> None:
    put(run, "c1", "running")
    StateValue.objects.filter(key=TOOL_CALLS).current().update(value=held)
    next_run(run)
    assert StateValue.objects.filter(key=TOOL_CALLS).current().get().value == held


def test_open__calls_exceed_a_value__is_refused_and_nothing_is_stored(run: Person) -> None:
    wait(run, "k1", arguments="x" * (5 * MIB))
    with pytest.raises(TooLarge) as refused:
        wait(run, "k2", arguments="x" * (4 * MIB))
    assert refused.value.detail.startswith(f"the value of {TOOL_CALLS} would have ")
    assert [row.public_id for row in Ticket.objects.all()] == ["k1"]


def test_open__calls_nested_too_deep__is_refused(run: Person) -> None:
    deep: Any = 1
    for _ in range(63):
        deep = [deep]
    with pytest.raises(Invalid):
        wait(run, "k1", arguments=deep)
    assert (Ticket.objects.count(), Run.objects.get().status) == (0, "running")


def test_decide__answer_exceeds_a_value__is_refused_and_the_ticket_remains_open(
    run: Person,
) -> None:
    wait(run, "k1", arguments="x" * (5 * MIB))
    with pytest.raises(TooLarge):
        decide(run, "k1", "y" * (4 * MIB))
    assert Ticket.objects.get().status == "pending"
    assert decide(run, "k1", "yes").status == "resumed"


def test_end__calls_are_too_large_already__is_not_refused(run: Person) -> None:
    wait(run, "k1", "k2")
    (held,) = StateValue.objects.filter(key=TOOL_CALLS).current()
    grown = (held.value or "")[:-1] + ', "big": {"status": "running", "x": "' + "x" * (9 * MIB)
    StateValue.objects.filter(key=TOOL_CALLS).current().update(value=grown + '"}}')
    with pytest.raises(TooLarge):
        decide(run, "k1", {})
    tickets.decide_ticket(actor=run.actor, ticket_id="k1", action="cancel", payload=raw(None))
    runs.cancel_run(actor=run.actor, run_id="r1")
    assert {row.status for row in Ticket.objects.all()} == {"cancelled", "void"}
    make_run(run.actor, "t1", "r2")
    assert calls(run) is None
