"""Recovering a stuck run: fail, resume from a snapshot."""

from __future__ import annotations

import json
from typing import Any

import pytest

from state_admin.models import AuditRow, Revision, Run, Thread, Ticket
from state_admin.services import recoveries, runs, snapshots
from state_admin.services.errors import Conflict, Forbidden, NotFound, RevisionConflict
from state_admin.services.runs import RunChange
from tests import builders
from tests.builders import Person, make_run, make_state_key, make_thread

TICKET = {"ticket_id": "k1", "tool_call_id": "c1", "tool_name": "refund"}
LIFECYCLE = "__runtime.run_lifecycle"


@pytest.fixture
def stuck(alice: Person) -> Person:
    """r1 counted to 3 in revisions 2 to 4, and now waits for k1."""
    make_state_key(alice.actor, "count", scope="thread")
    make_state_key(alice.actor, "note", scope="run")
    make_thread(alice.actor, "t1")
    make_run(alice.actor, "t1", "r1")
    for number in (1, 2, 3):
        builders.commit(alice.actor, "r1", {"count": number, "note": f"n{number}"})
    waiting = {"reason": "tool_permission", "tickets": [TICKET]}
    builders.commit(alice.actor, "r1", run=RunChange(status="waiting", waiting=waiting))
    return alice


def resume(person: Person, **options: Any) -> Run:
    return recoveries.resume_run(actor=person.actor, run_id="r1", **options)


def state(person: Person) -> dict[str, Any]:
    shown = snapshots.read_snapshot(actor=person.actor, thread_id="t1")
    return {key: json.loads(text) for key, text in shown.extensions.items()}


def test_resume__from_a_revision__is_the_same_run_with_that_state_in_one_revision(
    stuck: Person,
) -> None:
    run = resume(stuck, revision=3, reason="3 was wrong")
    assert (run.status, run.fencing_token, run.waiting) == ("running", 2, None)
    assert run.lease_expires_at is not None
    assert {key: value for key, value in state(stuck).items() if key != LIFECYCLE} == {
        "count": 2,
        "note": "n2",
    }
    assert state(stuck)[LIFECYCLE]["status"] == "running"
    assert Thread.objects.get().revision == 6
    last = Revision.objects.get(number=6)
    assert (last.kind, last.run_id, last.reason) == ("restore", run.pk, "3 was wrong")
    assert AuditRow.objects.filter(action="run.resume", run="r1").count() == 1
    assert Ticket.objects.get().status == "void"


def test_resume__without_a_revision__continues_from_the_current_state(stuck: Person) -> None:
    run = resume(stuck)
    assert (run.status, run.fencing_token) == ("running", 2)
    now = state(stuck)
    assert (now["count"], now["note"]) == (3, "n3")
    assert now["__runtime.tool_call_states"]["c1"]["status"] == "cancelled"
    assert Ticket.objects.get().status == "void"
    assert resume(stuck).fencing_token == 3


def test_resume__thread_changed__is_refused(stuck: Person) -> None:
    with pytest.raises(RevisionConflict):
        resume(stuck, revision=3, expected_revision=4)
    assert resume(stuck, revision=3, expected_revision=5).last_revision == 6


def test_resume__unknown_revision_or_done_run__is_refused_and_nothing_changes(
    stuck: Person,
) -> None:
    with pytest.raises(NotFound):
        resume(stuck, revision=99)
    assert Ticket.objects.get().status == "pending"
    runs.cancel_run(actor=stuck.actor, run_id="r1")
    with pytest.raises(Conflict) as refused:
        resume(stuck, revision=2)
    assert refused.value.detail == "invalid run transition: done -> running"


def test_fail__any__ends_with_the_reason_and_frees_the_thread(stuck: Person, bob: Person) -> None:
    with pytest.raises(Forbidden):
        recoveries.fail_run(actor=bob.actor, run_id="r1")
    run = recoveries.fail_run(actor=stuck.actor, run_id="r1", message="boom")
    assert (run.status, run.termination_reason) == ("done", {"type": "error", "value": "boom"})
    assert Thread.objects.get().active_run is None
    assert state(stuck)[LIFECYCLE]["status_reason"] == "error"
    assert state(stuck)["__runtime.tool_call_states"]["c1"]["status"] == "cancelled"


def test_api__fail_and_resume__are_operations(stuck: Person) -> None:
    resumed = stuck.api("POST", "/runs/r1/resume", {"revision": 2}).json()
    assert (resumed["status"], resumed["fencing_token"]) == ("running", 2)
    failed = stuck.api("POST", "/runs/r1/fail", Change_Reason="no use").json()
    assert failed["termination_reason"] == {"type": "error", "value": "no use"}
    assert stuck.api("POST", "/runs/r1/fail", {"why": "x"}).status_code == 400
