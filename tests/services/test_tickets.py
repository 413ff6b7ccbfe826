"""Tickets: the first decision wins, the last one resumes the run."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models.functions import Now

from state_admin.models import AuditRow, Change, Revision, Run, StateValue, Ticket
from state_admin.services import maintenance, runs, threads, tickets
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


def test_decide__id_used_again_since_it_was_shown__is_refused(waiting: Person) -> None:
    """A thread was deleted, and a new one has a ticket with the same id."""
    decide_shown = partial(
        tickets.decide_ticket,
        actor=waiting.actor,
        ticket_id="k1",
        action="cancel",
        payload=raw(None),
    )
    shown = Ticket.objects.get(public_id="k1").pk
    threads.delete_thread(actor=waiting.actor, thread_id="t1")
    make_thread(waiting.actor, "t2")
    make_run(waiting.actor, "t2", "r2")
    wait = {"reason": "tool_permission", "tickets": [ticket(1)]}
    builders.commit(waiting.actor, "r2", run=RunChange(status="waiting", waiting=wait))
    with pytest.raises(Conflict, match="ticket replaced: k1"):
        decide_shown(expected_pk=shown)
    assert Ticket.objects.get().status == "pending"
    decide_shown(expected_pk=Ticket.objects.get().pk)
    assert Ticket.objects.get().status == "cancelled"


@pytest.mark.django_db(transaction=True)
def test_decide__late_and_thread_deleted_meanwhile__is_not_found(
    waiting: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    decide(waiting, "k1")
    close = tickets._close

    def close_just_before_the_deletion(*args: Any) -> bool:
        monkeypatch.undo()
        delete = partial(threads.delete_thread, actor=waiting.actor, thread_id="t1")
        transaction.on_commit(delete)
        return close(*args)

    monkeypatch.setattr(tickets, "_close", close_just_before_the_deletion)
    with pytest.raises(NotFound, match="ticket not found: k1"):
        decide(waiting, "k1")


def test_decide__each_ticket__creates_one_revision_and_the_last_resumes_the_run(
    waiting: Person,
) -> None:
    before = Revision.objects.count()
    decided = decide(waiting, "k1")
    assert (decided.status, decided.payload, decided.decided_by) == (
        "resumed",
        '{"approved": true}',
        "alice",
    )
    assert (status(), Revision.objects.count()) == ("waiting", before + 1)
    assert decide(waiting, "k2", "cancel").status == "cancelled"
    assert (status(), Revision.objects.count()) == ("running", before + 2)
    assert Run.objects.get().waiting is None


def test_decide__twice__is_refused_with_the_exact_text(waiting: Person) -> None:
    decide(waiting, "k1")
    for action in ("resume", "cancel"):
        with pytest.raises(Conflict) as refused:
            decide(waiting, "k1", action)
        assert refused.value.detail == "ticket already decided: k1"
    assert Ticket.objects.get(public_id="k1").status == "resumed"


def test_decide__invalid_payload__is_refused_and_the_ticket_remains_open(waiting: Person) -> None:
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
    assert refused.value.detail == "ticket already decided: k1"
    assert status() == "done"


def test_decide__run_resumed_manually__remains_running(waiting: Person) -> None:
    runs.change_run(actor=waiting.actor, run_id="r1", change=RunChange(status="running"))
    before = Revision.objects.count()
    decide(waiting, "k1")
    decide(waiting, "k2")
    assert (status(), Revision.objects.count()) == ("running", before + 2)


def test_open__id_in_use__is_refused_and_nothing_is_stored(waiting: Person) -> None:
    make_thread(waiting.actor, "t2")
    make_run(waiting.actor, "t2", "r2")
    wait = {"reason": "tool_permission", "tickets": [ticket(3), ticket(1)]}
    with pytest.raises(Conflict):
        builders.commit(waiting.actor, "r2", run=RunChange(status="waiting", waiting=wait))
    assert Ticket.objects.count() == 2
    assert Run.objects.get(public_id="r2").status == "running"


def test_arguments__any_json__are_stored(waiting: Person) -> None:
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


def test_list_of_run__more_than_a_page__is_in_the_order_of_opening(
    waiting: Person,
) -> None:
    wait = {"reason": "user_input", "tickets": [ticket(number) for number in range(3, 6)]}
    runs.change_run(
        actor=waiting.actor, run_id="r1", change=RunChange(status="waiting", waiting=wait)
    )
    seen, path = [], "/runs/r1/tickets?limit=2"
    while path:
        page = waiting.api("GET", path).json()
        seen.append([row["id"] for row in page["items"]])
        cursor = page["next_cursor"]
        path = f"/runs/r1/tickets?limit=2&cursor={cursor}" if cursor else ""
    assert seen == [["k1", "k2"], ["k3", "k4"], ["k5"]]
    assert waiting.api("GET", "/runs/r1/tickets?status=pending").status_code == 400


def test_decide__viewer_or_non_member__is_refused(
    waiting: Person, bob: Person, mallory: Person
) -> None:
    with pytest.raises(Forbidden):
        decide(bob, "k1")
    with pytest.raises(NotFound):
        decide(mallory, "k1")


@pytest.mark.django_db(transaction=True)
def test_race__decisions_of_two_tickets__each_is_decided_once_and_the_run_resumes_once(
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
    assert {p.detail for p in lost} == {
        "ticket already decided: k1",
        "ticket already decided: k2",
    }
    assert status() == "running"
    assert Revision.objects.count() == 4


# Deadlines -----------------------------------------------------------------------------------

PAST, FUTURE = "2020-01-01T00:00:00Z", "2999-01-01T00:00:00Z"


def wait_for_two(person: Person, **second: Any) -> None:
    """r1 waits for k1, which does not expire, and k2."""
    make_thread(person.actor, "t1")
    make_run(person.actor, "t1", "r1")
    wait = {"reason": "tool_permission", "tickets": [ticket(1), ticket(2, **second)]}
    builders.commit(person.actor, "r1", run=RunChange(status="waiting", waiting=wait))


def test_decide__in_time__is_stored(alice: Person) -> None:
    wait_for_two(alice, expires_at=FUTURE, on_expiry="cancel")
    assert maintenance.expire_tickets() == {"expired": 0}
    assert decide(alice, "k2").status == "resumed"


def test_decide__too_late_and_kept__is_refused_and_the_run_is_stuck(
    alice: Person,
) -> None:
    wait_for_two(alice, expires_at=PAST)
    for action in ("resume", "cancel"):
        with pytest.raises(Conflict) as refused:
            decide(alice, "k2", action)
        assert refused.value.detail == "ticket expired: k2"
    assert maintenance.expire_tickets() == {"expired": 0}
    assert Ticket.objects.get(public_id="k2").status == "pending"
    assert (status(), maintenance.flag_stuck_runs()) == ("waiting", {"flagged": 1})
    said = AuditRow.objects.get(action="run.stuck").detail["reason"]
    assert said == "a ticket expired undecided at 2020-01-01 00:00:00 UTC"
    assert alice.api("GET", "/runs/r1").json()["stuck_reason"] == said
    decide(alice, "k1")
    assert Run.objects.stuck().count() == 1
    runs.change_run(actor=alice.actor, run_id="r1", change=RunChange(status="running"))
    assert not Run.objects.stuck().exists()


def test_due__several_kept__is_the_first_open_one(alice: Person) -> None:
    make_thread(alice.actor, "t1")
    make_run(alice.actor, "t1", "r1")
    opened = [
        ticket(1, expires_at="2990-01-01T00:00:00Z"),
        ticket(2, expires_at="2980-01-01T00:00:00Z"),
        ticket(3, expires_at="2970-01-01T00:00:00Z", on_expiry="cancel"),
    ]
    wait = {"reason": "tool_permission", "tickets": opened}
    builders.commit(alice.actor, "r1", run=RunChange(status="waiting", waiting=wait))
    years = [Run.objects.get().ticket_due_at.year]  # type: ignore[union-attr]
    decide(alice, "k2")
    years.append(Run.objects.get().ticket_due_at.year)  # type: ignore[union-attr]
    assert years == [2980, 2990]


def expire(ticket_id: str) -> None:
    Ticket.objects.filter(public_id=ticket_id).update(expires_at=Now())


def test_due__ticket_of_an_earlier_wait__counts(alice: Person) -> None:
    """Otherwise its run would wait forever for an answer that is no longer possible."""
    make_thread(alice.actor, "t1")
    make_run(alice.actor, "t1", "r1")
    for number in (1, 2):
        opened = [ticket(number, expires_at=FUTURE if number == 1 else None)]
        wait = {"reason": "tool_permission", "tickets": opened}
        builders.commit(alice.actor, "r1", run=RunChange(status="waiting", waiting=wait))
        if number == 1:
            runs.change_run(actor=alice.actor, run_id="r1", change=RunChange(status="running"))
            assert Run.objects.get().ticket_due_at is None
    expire("k1")
    decide(alice, "k2")
    with pytest.raises(Conflict):
        decide(alice, "k1")
    assert maintenance.flag_stuck_runs() == {"flagged": 1}
    said = alice.api("GET", "/runs/r1").json()["stuck_reason"]
    assert said.startswith("a ticket expired undecided at ")


def test_due__wait_without_tickets__is_that_of_earlier_ones(alice: Person) -> None:
    wait_for_two(alice, expires_at=PAST)
    for status in ("running", "waiting"):
        runs.change_run(actor=alice.actor, run_id="r1", change=RunChange(status=status))
    assert Run.objects.stuck().count() == 1


@pytest.mark.parametrize("swept", [True, False])
def test_expiry__cancel__is_a_decision_by_system_with_or_without_the_sweep(
    alice: Person, swept: bool
) -> None:
    wait_for_two(alice, expires_at=PAST, on_expiry="cancel")
    decide(alice, "k1")
    if swept:
        assert maintenance.expire_tickets() == {"expired": 1}
        assert maintenance.expire_tickets() == {"expired": 0}
    with pytest.raises(Conflict) as refused:
        decide(alice, "k2")
    told = "already decided" if swept else "expired"
    assert refused.value.detail == f"ticket {told}: k2"
    row = Ticket.objects.get(public_id="k2")
    assert (row.status, row.decided_by, status()) == ("cancelled", "system", "running")
    audited = AuditRow.objects.get(action="ticket.cancel", key="k2")
    assert (audited.actor_kind, audited.reason) == ("system", "expired without a decision")
    with pytest.raises(Conflict) as refused:
        decide(alice, "k2")
    assert refused.value.detail == "ticket already decided: k2"


def test_expiry__run_deleted_meanwhile__does_nothing(alice: Person) -> None:
    wait_for_two(alice, expires_at=PAST, on_expiry="cancel")
    late = Ticket.objects.select_related("run").get(public_id="k2")
    threads.delete_thread(actor=alice.actor, thread_id="t1")
    assert not tickets.expire_ticket(late)


@pytest.mark.parametrize("on_expiry", ["explode", 1])
def test_open__unknown_on_expiry__is_refused_with_its_place(alice: Person, on_expiry: Any) -> None:
    with pytest.raises(Invalid) as refused:
        wait_for_two(alice, on_expiry=on_expiry)
    assert refused.value.data["errors"][0]["pointer"] == "/waiting/tickets/1/on_expiry"


@pytest.mark.django_db(transaction=True)
def test_race__decisions_and_the_sweep_at_the_deadline__one_is_stored(alice: Person) -> None:
    """The deadline passes while they run: the first one succeeds, and the others are refused."""
    wait_for_two(alice, expires_at=FUTURE, on_expiry="cancel")
    decide(alice, "k1")
    pass_it = partial(Ticket.objects.filter(public_id="k2").update, expires_at=Now())
    works: list[Any] = [partial(decide, alice, "k2")] * 4
    works += [maintenance.expire_tickets] * 3 + [pass_it]
    won, lost = split(race(works))
    maintenance.expire_tickets()
    decisions = [each for each in won if isinstance(each, Ticket)]
    row = Ticket.objects.get(public_id="k2")
    assert len(decisions) == (row.status == "resumed")
    assert row.decided_by == ("alice" if decisions else "system")
    assert {p.detail for p in lost} <= {"ticket already decided: k2", "ticket expired: k2"}
    assert AuditRow.objects.filter(key="k2").exclude(action="ticket.open").count() == 1
    assert status() == "running"


# The mirror in state, and the news --------------------------------------------------------------


def calls(person: Person) -> dict[str, Any]:
    shown = person.api("GET", "/threads/t1/state").json()["extensions"]
    found: dict[str, Any] = shown["__runtime.tool_call_states"]
    return found


def test_mirror__opened_and_decided__follows_the_reference_implementation(waiting: Person) -> None:
    suspended = calls(waiting)
    assert {call["status"] for call in suspended.values()} == {"suspended"}
    assert suspended["c1"] == {
        "call_id": "c1",
        "tool_name": "refund",
        "arguments": {"amount": 1.10},
        "status": "suspended",
        "updated_at": suspended["c1"]["updated_at"],
        "resume_mode": "replay_tool_call",
        "suspension_id": "k1",
    }
    decide(waiting, "k1")
    decide(waiting, "k2", "cancel")
    decided = calls(waiting)
    assert {key: call["status"] for key, call in decided.items()} == {
        "c1": "resuming",
        "c2": "cancelled",
    }
    assert decided["c1"]["resume_input"] == {
        "decision_id": "k1",
        "action": "resume",
        "result": {"approved": True},
        "updated_at": decided["c1"]["updated_at"],
    }


def test_mirror__call_has_ended__keeps_the_agents_value(waiting: Person) -> None:
    """A transition that the reference implementation forbids is skipped in the state; the decision
    is stored."""
    put = {"call_id": "c1", "tool_name": "refund", "status": "cancelled", "updated_at": 5}
    builders.commit(waiting.actor, "r1", {"__runtime.tool_call_states": {"put": put}})
    assert decide(waiting, "k1").status == "resumed"
    assert calls(waiting)["c1"]["status"] == "cancelled"


def test_mirror__agent_writes_the_key_in_the_same_step__both_are_kept(alice: Person) -> None:
    make_thread(alice.actor, "t1")
    make_run(alice.actor, "t1", "r1")
    put = {"call_id": "c9", "tool_name": "look", "status": "running", "updated_at": 5}
    wait = {"reason": "tool_permission", "tickets": [ticket(1)]}
    builders.commit(
        alice.actor,
        "r1",
        {"__runtime.tool_call_states": {"put": put}},
        run=RunChange(status="waiting", waiting=wait),
    )
    assert {key: call["status"] for key, call in calls(alice).items()} == {
        "c9": "running",
        "c1": "suspended",
    }
    assert Revision.objects.count() == 2


def test_mirror__malformed_value__is_unchanged(alice: Person) -> None:
    make_thread(alice.actor, "t1")
    make_run(alice.actor, "t1", "r1")
    wait = {"reason": "tool_permission", "tickets": [ticket(1)]}
    builders.commit(alice.actor, "r1", run=RunChange(status="waiting", waiting=wait))
    held = StateValue.objects.filter(key="__runtime.tool_call_states").current()
    assert held.update(value='["mine"]') == 1
    assert decide(alice, "k1").status == "resumed"
    assert (status(), calls(alice)) == ("running", ["mine"])


def test_feed__tickets__contains_opening_and_decision(waiting: Person) -> None:
    decide(waiting, "k1")
    decide(waiting, "k2", "cancel")
    rows = Change.objects.filter(kind__startswith="ticket.").order_by("id")
    assert [(row.kind, row.key, row.thread, row.run) for row in rows] == [
        ("ticket.open", "k1", "t1", "r1"),
        ("ticket.open", "k2", "t1", "r1"),
        ("ticket.resume", "k1", "t1", "r1"),
        ("ticket.cancel", "k2", "t1", "r1"),
    ]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("path", ["/tickets/k1?wait=20", "/runs/r1?wait=20&since=2"])
def test_poll__decided_meanwhile__returns(waiting: Person, path: str) -> None:
    assert waiting.api("GET", "/runs/r1").json()["last_revision"] == 2
    decider = threading.Timer(0.2, _decide_and_close, (waiting,))
    decider.start()
    shown = waiting.api("GET", path).json()
    decider.join()
    assert shown["id"] in ("k1", "r1")
    assert shown.get("status") == ("resumed" if shown["id"] == "k1" else "waiting")


def test_poll__decided_before__returns_at_once(waiting: Person) -> None:
    decide(waiting, "k1")
    assert waiting.api("GET", "/tickets/k1?wait=30").json()["status"] == "resumed"
    assert waiting.api("GET", "/runs/r1?wait=30&since=0").json()["last_revision"] == 3
    assert waiting.api("GET", "/tickets/k1?since=1").status_code == 400


def _decide_and_close(person: Person) -> None:
    try:
        decide(person, "k1")
    finally:
        connection.close()
