"""Tickets: the first decision wins, the last one wakes the run (semantics §7)."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from state_admin.models import Revision, Run, Ticket
from state_admin.services import runs, tickets
from state_admin.services.errors import Conflict, Forbidden, Invalid, NotFound
from state_admin.services.runs import RunChange
from tests import builders
from tests.builders import Person, make_run, make_thread, raw
from tests.services.racing import race, split

SCHEMA = {"type": "object", "required": ["approved"]}


def ticket(number: int, **fields: Any) -> dict[str, Any]:
    return {
        "ticket_id": f"k{number}",
        "tool_call_id": f"c{number}",
        "tool_name": "refund",
        "arguments": {"amount": 1.10},
        "response_schema": SCHEMA,
        **fields,
    }


@pytest.fixture
def waiting(alice: Person) -> Person:
    """r1 waits for k1 and k2."""
    make_thread(alice.actor, "t1")
    make_run(alice.actor, "t1", "r1")
    wait = {"reason": "tool_permission", "tickets": [ticket(1), ticket(2)]}
    builders.commit(alice.actor, "r1", run=RunChange(status="waiting", waiting=wait))
    return alice


def decide(person: Person, ticket_id: str, action: str = "resume", payload: Any = None) -> Ticket:
    body = {"approved": True} if payload is None else payload
    return tickets.decide_ticket(
        actor=person.actor, ticket_id=ticket_id, action=action, payload=raw(body)
    )


def status() -> str:
    return Run.objects.get().status


def test_decide__last_ticket__wakes_the_run_as_one_revision(waiting: Person) -> None:
    before = Revision.objects.count()
    decided = decide(waiting, "k1")
    assert (decided.status, decided.payload, decided.decided_by) == (
        "resumed",
        '{"approved": true}',
        "alice",
    )
    assert (status(), Revision.objects.count()) == ("waiting", before)
    assert decide(waiting, "k2", "cancel").status == "cancelled"
    assert (status(), Revision.objects.count()) == ("running", before + 1)
    assert Run.objects.get().waiting is None


def test_decide__twice__is_refused_with_the_exact_text(waiting: Person) -> None:
    decide(waiting, "k1")
    for action in ("resume", "cancel"):
        with pytest.raises(Conflict) as refused:
            decide(waiting, "k1", action)
        assert refused.value.title == "ticket already decided: k1"
    assert Ticket.objects.get(public_id="k1").status == "resumed"


def test_decide__payload_against_the_schema__is_refused_and_stays_open(waiting: Person) -> None:
    with pytest.raises(Invalid):
        decide(waiting, "k1", payload={"ok": 1})
    with pytest.raises(Invalid):
        decide(waiting, "k1", "shrug")
    assert Ticket.objects.pending().count() == 2


def test_decide__run_has_ended__its_tickets_are_void(waiting: Person) -> None:
    runs.cancel_run(actor=waiting.actor, run_id="r1")
    assert {row.status for row in Ticket.objects.all()} == {"void"}
    with pytest.raises(Conflict) as refused:
        decide(waiting, "k1")
    assert refused.value.title == "ticket already decided: k1"
    assert status() == "done"


def test_decide__run_was_moved_on_by_hand__stays_running(waiting: Person) -> None:
    runs.change_run(actor=waiting.actor, run_id="r1", change=RunChange(status="running"))
    before = Revision.objects.count()
    decide(waiting, "k1")
    decide(waiting, "k2")
    assert (status(), Revision.objects.count()) == ("running", before)


def test_open__id_in_use__is_refused_and_nothing_lands(waiting: Person) -> None:
    make_thread(waiting.actor, "t2")
    make_run(waiting.actor, "t2", "r2")
    wait = {"reason": "tool_permission", "tickets": [ticket(3), ticket(1)]}
    with pytest.raises(Conflict):
        builders.commit(waiting.actor, "r2", run=RunChange(status="waiting", waiting=wait))
    assert Ticket.objects.count() == 2
    assert Run.objects.get(public_id="r2").status == "running"


def test_arguments__any_json__are_kept(waiting: Person) -> None:
    shown = waiting.api("GET", "/tickets/k1").json()
    assert shown["arguments"] == {"amount": 1.10}
    assert shown["response_schema"] == SCHEMA
    assert [row["id"] for row in waiting.api("GET", "/tickets?status=pending").json()["items"]] == [
        "k2",
        "k1",
    ]
    assert [row["id"] for row in waiting.api("GET", "/runs/r1/tickets").json()["items"]] == [
        "k1",
        "k2",
    ]


def test_decide__viewer_or_stranger__is_refused(
    waiting: Person, bob: Person, mallory: Person
) -> None:
    with pytest.raises(Forbidden):
        decide(bob, "k1")
    with pytest.raises(NotFound):
        decide(mallory, "k1")


@pytest.mark.django_db(transaction=True)
def test_race__deciders_of_two_tickets__each_is_decided_once_and_the_run_wakes_once(
    waiting: Person,
) -> None:
    works = [
        partial(decide, waiting, name, action)
        for name in ("k1", "k2")
        for action in ("resume", "cancel")
        for _ in range(4)
    ]
    won, lost = split(race(works))
    assert sorted(row.public_id for row in won) == ["k1", "k2"]
    assert {p.title for p in lost} == {
        "ticket already decided: k1",
        "ticket already decided: k2",
    }
    assert status() == "running"
    assert Revision.objects.count() == 3
