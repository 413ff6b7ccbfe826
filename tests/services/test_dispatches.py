"""The mailbox: claims, leases, and the results of dispatches."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from state_admin.domain.access import Role
from state_admin.models import AuditRow, Change, Dispatch, Mailbox, dispatches_sql
from state_admin.services import dispatches, runs, threads, tickets
from state_admin.services.dispatches import Claims
from state_admin.services.errors import Conflict, Invalid, NotFound
from state_admin.services.runs import RunChange
from tests import builders
from tests.builders import Person, make_run, make_thread, make_token, raw
from tests.services.dispatching import fill
from tests.services.racing import overlap, race, split


def enqueue(person: Person, payload: Any = None, thread: str = "t1", **fields: Any) -> str:
    """Enqueue a dispatch; returns its id."""
    return dispatches.enqueue_dispatch(
        actor=person.actor, thread_id=thread, payload=raw(payload), **fields
    ).public_id


def claim(person: Person, **fields: Any) -> Claims:
    return dispatches.claim_dispatches(actor=person.actor, consumer="w1", **fields)


def claimed(person: Person, **fields: Any) -> list[str]:
    return [row.public_id for row in claim(person, **fields).dispatches]


def take(person: Person, **fields: Any) -> tuple[str, str]:
    """Claim the only available dispatch; returns it and its token."""
    got = claim(person, **fields)
    (row,) = got.dispatches
    return row.public_id, got.token


def ack(person: Person, dispatch_id: str, token: str) -> str:
    return dispatches.ack_dispatch(
        actor=person.actor, dispatch_id=dispatch_id, claim_token=token
    ).status


def nack(person: Person, dispatch_id: str, token: str, **fields: Any) -> Dispatch:
    return dispatches.nack_dispatch(
        actor=person.actor, dispatch_id=dispatch_id, claim_token=token, **fields
    )


def shift(dispatch_id: str, seconds: float) -> None:
    """Let time pass for one dispatch: moves its lease and its availability into the past."""
    by = timedelta(seconds=seconds)
    row = Dispatch.objects.filter(public_id=dispatch_id)
    row.update(lease_until=F("lease_until") - by, available_at=F("available_at") - by)
    Mailbox.objects.filter(thread__in=row.values("thread")).update(due_at=F("due_at") - by)


def status(dispatch_id: str) -> str:
    return Dispatch.objects.get(public_id=dispatch_id).status


@pytest.fixture
def box(alice: Person) -> Person:
    make_thread(alice.actor, "t1")
    make_thread(alice.actor, "t2")
    return alice


# Claims and leases ---------------------------------------------------------------------------


def test_ack__with_its_token__finishes_and_removes_the_claim(box: Person) -> None:
    made, token = enqueue(box, {"n": 1}), ""
    got = claim(box, lease_seconds=60)
    row, token = got.dispatches[0], got.token
    assert (row.status, row.claimed_by, row.attempts) == ("Claimed", "w1", 0)
    assert row.lease_until
    assert row.claimed_at
    assert row.lease_until - row.claimed_at == timedelta(seconds=60)
    assert token not in (row.claim_digest, "")
    assert ack(box, made, token) == "Acked"
    row.refresh_from_db()
    free = (row.claim_digest, row.claimed_by, row.claimed_at, row.lease_until)
    assert free == ("", "", None, None)
    assert row.finished_at


def test_actions__wrong_or_old_token__are_conflicts_and_change_nothing(box: Person) -> None:
    made = enqueue(box)
    old = claim(box).token
    nack(box, made, old, retry_after=0)
    claim(box)
    before = Dispatch.objects.values().get()
    for token in ("wrong", old, "", "é"):
        for verb in (ack, nack):
            with pytest.raises(Conflict) as refused:
                verb(box, made, token)
            assert refused.value.detail == f"the claim is no longer valid: {made}"
            assert refused.value.data["dispatch_status"] == "Claimed"
            assert refused.value.hint == (
                "The claim token is wrong, or the lease expired and the dispatch returned to"
                " the queue."
            )
        with pytest.raises(Conflict):
            dispatches.extend_dispatch(actor=box.actor, dispatch_id=made, claim_token=token)
    assert Dispatch.objects.values().get() == before


def test_ack__of_a_queued_or_finished_dispatch__is_a_conflict(box: Person) -> None:
    made = enqueue(box)
    with pytest.raises(Conflict):
        ack(box, made, "")
    token = claim(box).token
    ack(box, made, token)
    with pytest.raises(Conflict):
        ack(box, made, token)


def test_extend__claimed__postpones_the_end_of_the_lease(box: Person) -> None:
    made = enqueue(box)
    token = claim(box, lease_seconds=1).token
    row = dispatches.extend_dispatch(
        actor=box.actor, dispatch_id=made, claim_token=token, lease_seconds=3600
    )
    assert row.lease_until
    assert row.lease_until - row.updated_at > timedelta(seconds=3590)
    shift(made, 60)
    assert claimed(box) == []
    assert status(made) == "Claimed"


def test_nack__repeated__pauses_increase_until_it_is_a_dead_letter(box: Person) -> None:
    made = enqueue(box, max_attempts=4)
    rests = []
    for number in range(1, 5):
        _, token = take(box)
        row = nack(box, made, token, error=f"boom {number}")
        if row.status == "Queued":
            rests.append((row.available_at - row.updated_at).total_seconds())
            assert claimed(box) == []
            shift(made, 60)
    assert rests == [0.25, 0.5, 1.0]
    assert (row.status, row.attempts, row.last_error) == ("DeadLetter", 4, "boom 4")
    assert row.finished_at
    assert not row.claim_digest
    assert claimed(box) == []


def test_nack__with_retry_after__pauses_as_requested(box: Person) -> None:
    made, token = (enqueue(box), take(box)[1])
    row = nack(box, made, token, retry_after=90)
    assert row.available_at - row.updated_at == timedelta(seconds=90)
    shift(made, 91)
    row = nack(box, made, take(box)[1], retry_after=0)
    assert claimed(box) == [made]


def test_lease__expired__is_requeued_at_the_next_claim_without_a_sweep(box: Person) -> None:
    made = enqueue(box)
    old = take(box, lease_seconds=30)[1]
    shift(made, 31)
    assert claimed(box) == [made]
    row = Dispatch.objects.get()
    assert row.attempts == 1
    assert row.last_error == "the lease of w1 ended without an answer"
    with pytest.raises(Conflict):
        ack(box, made, old)


def test_lease__expired_at_the_last_attempt__is_a_dead_letter_with_its_reason(
    box: Person,
) -> None:
    made = enqueue(box, max_attempts=1)
    take(box)
    shift(made, 31)
    assert claimed(box, thread_id="t1") == []
    row = Dispatch.objects.get()
    assert (row.status, row.attempts) == ("DeadLetter", 1)
    assert "w1" in row.last_error


def test_lease__expired_but_not_requeued__can_still_be_acked(box: Person) -> None:
    made = enqueue(box)
    _, token = take(box)
    shift(made, 31)
    assert ack(box, made, token) == "Acked"


def test_sweep__expired_leases_and_due_dispatches__are_settled_once(box: Person) -> None:
    made = enqueue(box)
    later = enqueue(box, thread="t2", available_at=datetime.now(UTC) + timedelta(hours=1))
    take(box)
    assert not dispatches_sql.workspaces_with_due()
    shift(made, 31)
    shift(later, 3601)
    assert dispatches_sql.workspaces_with_due()
    assert dispatches.settle_mailboxes() == {"mailboxes": 2, "returned": 1}
    assert dispatches.settle_mailboxes() == {"mailboxes": 0, "returned": 0}
    ready = Change.objects.filter(kind="mailbox.ready", actor_name="mailbox")
    assert set(ready.values_list("thread", "key")) == {("t1", made), ("t2", later)}
    assert AuditRow.objects.get(action="dispatch.expire").detail == {
        "status": "Queued",
        "consumer": "w1",
    }


def test_sweep__of_several_workspaces__counts_them_all(box: Person, mallory: Person) -> None:
    make_thread(mallory.actor, "theirs")
    made = [enqueue(box), enqueue(mallory, thread="theirs")]
    take(box)
    take(mallory)
    for one in made:
        shift(one, 31)
    assert dispatches.settle_mailboxes() == {"mailboxes": 2, "returned": 2}


# Cancel and interrupt ------------------------------------------------------------------------


def test_cancel__not_queued__is_refused(box: Person) -> None:
    first, second = enqueue(box), enqueue(box)
    _, token = take(box)
    cancelled = dispatches.cancel_dispatch(actor=box.actor, dispatch_id=second)
    assert cancelled.status == "Cancelled"
    assert cancelled.finished_at is not None
    for one in (first, second):
        with pytest.raises(Conflict) as refused:
            dispatches.cancel_dispatch(actor=box.actor, dispatch_id=one)
        assert refused.value.detail == f"dispatch is not queued: {one}"
        assert refused.value.data["dispatch_status"] == status(one)
    assert ack(box, first, token) == "Acked"
    assert claimed(box) == []


def test_interrupt__any__supersedes_queued_dispatches_and_returns_the_active_one(
    box: Person,
) -> None:
    active, queued = enqueue(box), enqueue(box)
    elsewhere = enqueue(box, thread="t2")
    _, token = take(box, thread_id="t1")
    done = dispatches.interrupt_thread(actor=box.actor, thread_id="t1", reason="new orders")
    assert (done.epoch, done.superseded_dispatches) == (1, 1)
    row = AuditRow.objects.get(action="thread.interrupt")
    assert (row.detail, row.reason) == ({"epoch": 1, "superseded": 1}, "new orders")
    assert done.active
    assert done.active.id == active
    assert [status(one) for one in (active, queued, elsewhere)] == [
        "Claimed",
        "Superseded",
        "Queued",
    ]
    for refused in (
        partial(ack, box, active, token),
        partial(
            dispatches.extend_dispatch,
            actor=box.actor,
            dispatch_id=active,
            claim_token=token,
        ),
    ):
        with pytest.raises(Conflict) as conflict:
            refused()
        assert conflict.value.detail == f"dispatch superseded: {active}"
        assert conflict.value.hint == (
            "The thread was interrupted. Stop processing and nack the dispatch."
        )
    fresh = enqueue(box)
    assert Dispatch.objects.get(public_id=fresh).epoch == 1
    assert claimed(box, thread_id="t1") == []
    assert nack(box, active, token).status == "Superseded"
    assert claimed(box, thread_id="t1") == [fresh]


def test_interrupt__lease_of_the_superseded_expires__frees_the_thread(box: Person) -> None:
    active = enqueue(box)
    take(box)
    dispatches.interrupt_thread(actor=box.actor, thread_id="t1")
    fresh = enqueue(box)
    shift(active, 31)
    assert claimed(box) == [fresh]
    assert status(active) == "Superseded"


def test_interrupt__thread_without_a_mailbox__is_at_its_second_epoch(box: Person) -> None:
    done = dispatches.interrupt_thread(actor=box.actor, thread_id="t1")
    assert (done.epoch, done.superseded_dispatches, done.active) == (1, 0, None)
    assert dispatches.interrupt_thread(actor=box.actor, thread_id="t1").epoch == 2
    with pytest.raises(NotFound):
        dispatches.interrupt_thread(actor=box.actor, thread_id="nope")


# What is enqueued ----------------------------------------------------------------------------


def test_enqueue__dedupe_key_in_use__is_a_conflict_that_names_the_dispatch(box: Person) -> None:
    first = enqueue(box, dedupe_key="nightly")
    elsewhere = enqueue(box, thread="t2", dedupe_key="nightly")
    enqueue(box), enqueue(box)  # "" means no key
    refuse_a_second(box, first)
    _, token = take(box, thread_id="t1")
    refuse_a_second(box, first)
    ack(box, first, token)
    assert enqueue(box, dedupe_key="nightly") not in (first, elsewhere)


def refuse_a_second(person: Person, first: str) -> None:
    with pytest.raises(Conflict) as refused:
        enqueue(person, dedupe_key="nightly")
    assert refused.value.detail == "dispatch already enqueued: nightly"
    assert refused.value.data["dispatch_id"] == first


def test_enqueue__run_of_another_thread__is_refused(box: Person) -> None:
    make_run(box.actor, "t2", "r2")
    with pytest.raises(Invalid) as refused:
        enqueue(box, run_id="r2")
    assert refused.value.detail == "run not found on this thread: r2"
    assert refused.value.data["errors"] == [
        {"pointer": "/run_id", "message": "must be a run of this thread"}
    ]


def test_thread__deleted__deletes_its_mailbox(box: Person) -> None:
    enqueue(box)
    take(box)
    threads.delete_thread(actor=box.actor, thread_id="t1")
    assert not Dispatch.objects.exists()
    assert not Mailbox.objects.exists()


# The trail -----------------------------------------------------------------------------------


def test_actions__each__write_an_audit_row_and_a_change(box: Person) -> None:
    made = enqueue(box)
    token = take(box)[1]
    dispatches.extend_dispatch(actor=box.actor, dispatch_id=made, claim_token=token)
    nack(box, made, token, retry_after=0)
    ack(box, *take(box))
    other = enqueue(box, thread="t2")
    dispatches.cancel_dispatch(actor=box.actor, dispatch_id=other, reason="not needed")
    dispatches.interrupt_thread(actor=box.actor, thread_id="t2")
    verbs = ["enqueue", "claim", "extend", "nack", "claim", "ack", "enqueue", "cancel"]
    wanted = [f"dispatch.{verb}" for verb in verbs] + ["thread.interrupt"]
    audited = AuditRow.objects.filter(action__in=wanted).order_by("pk")
    assert list(audited.values_list("action", flat=True)) == wanted
    changes = Change.objects.filter(kind__in=wanted).order_by("xid", "pk")
    assert list(changes.values_list("kind", flat=True)) == wanted
    assert {row.key for row in audited if row.thread == "t1"} == {made}
    assert AuditRow.objects.get(action="dispatch.cancel").reason == "not needed"
    claims = audited.filter(action="dispatch.claim").values_list("detail", flat=True)
    assert list(claims) == [{"consumer": "w1", "attempt": 1}, {"consumer": "w1", "attempt": 2}]
    assert {row.run for row in audited} == {""}


def test_actions__of_a_run__record_it_and_its_agent(box: Person) -> None:
    make_run(box.actor, "t1", "r1", agent_id="planner")
    enqueue(box, run_id="r1")
    enqueue(box, thread="t2", agent_id="critic")
    assert set(
        AuditRow.objects.filter(action="dispatch.enqueue").values_list("run", flat=True)
    ) == {"r1", ""}
    assert [row.agent_id for row in claim(box, limit=2).dispatches] == ["planner", "critic"]


def test_find__unknown_dispatch__is_not_found(box: Person) -> None:
    with pytest.raises(NotFound) as refused:
        dispatches.find_dispatch(box.actor, "nope")
    assert refused.value.detail == "dispatch not found: nope"


def test_claim__nothing_due__does_not_advance_the_feed_clock(
    box: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatches.journal, "align_feed_clock", None)
    assert claimed(box) == []


def test_claim__due_mailboxes__are_refreshed_in_bounded_numbers(
    box: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatches, "_DUE_AT_ONCE", 1)
    made = [enqueue(box), enqueue(box, thread="t2")]
    assert len(claimed(box, limit=2)) == 2
    for one in made:
        shift(one, 31)
    claim(box)
    assert sorted(map(status, made)) == ["Claimed", "Claimed"]
    assert AuditRow.objects.filter(action="dispatch.expire").count() == 1
    claim(box)
    assert AuditRow.objects.filter(action="dispatch.expire").count() == 2


def test_ready__first_dispatch_changes__is_one_change(box: Person) -> None:
    first = enqueue(box)
    second = enqueue(box)
    ack(box, *take(box))
    ready = Change.objects.filter(kind="mailbox.ready").order_by("pk")
    assert list(ready.values_list("thread", "key")) == [("t1", first), ("t1", second)]


# Tickets -------------------------------------------------------------------------------------


def wait_for_two(person: Person, **waiting: Any) -> None:
    make_run(person.actor, "t1", "r1", agent_id="planner")
    asked = [{"ticket_id": f"k{n}", "tool_call_id": f"c{n}", "tool_name": "refund"} for n in (1, 2)]
    body = {"reason": "tool_permission", "tickets": asked, **waiting}
    builders.commit(person.actor, "r1", run=RunChange(status="waiting", waiting=body))


def decide(person: Person, ticket_id: str) -> None:
    tickets.decide_ticket(
        actor=person.actor, ticket_id=ticket_id, action="resume", payload=raw(True)
    )


def test_decide__last_ticket_of_a_run_with_wake_dispatch__enqueues_one(box: Person) -> None:
    wait_for_two(box, wake="dispatch")
    decide(box, "k1")
    assert not Dispatch.objects.exists()
    decide(box, "k2")
    row = claim(box, agent_id="planner").dispatches[0]
    assert row.run
    assert row.run.public_id == "r1"
    assert row.payload == '{"kind":"hitl_resume","run_id":"r1"}'


def test_decide__run_without_wake__enqueues_nothing(box: Person) -> None:
    wait_for_two(box)
    decide(box, "k1")
    decide(box, "k2")
    assert not Dispatch.objects.exists()


def test_wait__unknown_wake__is_refused(box: Person) -> None:
    with pytest.raises(Invalid) as refused:
        wait_for_two(box, wake="pigeon")
    assert refused.value.data["errors"][0]["pointer"] == "/waiting/wake"


def test_cancel_run__with_wake_dispatch__enqueues_nothing(box: Person) -> None:
    wait_for_two(box, wake="dispatch")
    runs.cancel_run(actor=box.actor, run_id="r1")
    assert not Dispatch.objects.exists()


# Races ---------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_race__claimers_of_one__exactly_one_gets_it(box: Person) -> None:
    made = enqueue(box)
    got = [row for rows in race([partial(claimed, box)] * 8) for row in rows]
    assert got == [made]
    got = race([partial(claimed, box, thread_id="t1")] * 4)
    assert got == [[]] * 4


@pytest.mark.django_db(transaction=True)
def test_race__ack_and_requeue_by_a_claim__has_one_winner(box: Person) -> None:
    for _ in range(5):
        made = enqueue(box)
        _, token = take(box)
        shift(made, 31)
        outcomes = race([partial(ack, box, made, token), partial(claim_again, box)])
        won, lost = split(outcomes)
        if "Acked" in won:
            assert status(made) == "Acked"
        else:
            assert len(lost) == 1
            assert isinstance(lost[0], Conflict)
        Dispatch.objects.all().delete()
        dispatches_sql.refresh(list(Mailbox.objects.values_list("pk", flat=True)), "test")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("where", [{}, {"thread_id": "t1"}])
def test_race__claim_of_an_expired_one_and_deletion_of_its_thread__do_not_deadlock(
    box: Person, where: dict[str, str]
) -> None:
    """At the end of the claim PostgreSQL checks the thread of rows that were changed twice."""
    made = enqueue(box)
    take(box)
    shift(made, 31)
    delete = partial(threads.delete_thread, actor=box.actor, thread_id="t1")
    assert overlap(partial(claim, box, **where), delete).threads == 1
    assert not Dispatch.objects.exists()


def claim_again(person: Person) -> list[str]:
    return claimed(person, thread_id="t1")


@pytest.mark.django_db(transaction=True)
def test_race__interrupt_and_enqueues__leave_no_superseded_dispatch_queued(box: Person) -> None:
    enqueue(box)
    works: list[Any] = [partial(enqueue, box) for _ in range(6)]
    works += [partial(dispatches.interrupt_thread, actor=box.actor, thread_id="t1")] * 2
    assert split(race(works))[1] == []
    assert Mailbox.objects.get().epoch == 2
    assert set(Dispatch.objects.filter(status="Queued").values_list("epoch", flat=True)) <= {2}
    assert set(Dispatch.objects.filter(epoch__lt=2).values_list("status", flat=True)) == {
        "Superseded"
    }


def drain(person: Person, number: int) -> list[str]:
    """Work until no dispatch is open, and return a third of the claimed ones once."""
    done: list[str] = []
    while Dispatch.objects.filter(status__in=["Queued", "Claimed"]).exists():
        got = dispatches.claim_dispatches(actor=person.actor, consumer=f"w{number}", limit=5)
        for row in got.dispatches:
            siblings = Dispatch.objects.filter(thread=row.thread_id, status="Claimed")
            assert list(siblings.values_list("public_id", flat=True)) == [row.public_id]
            if row.attempts == 0 and row.pk % 3 == 0:
                nack(person, row.public_id, got.token, retry_after=0)
            else:
                ack(person, row.public_id, got.token)
                done.append(row.public_id)
    return done


def check_ten_claimers(person: Person, *, threads: int, each: int) -> None:
    fill(person, threads=threads, each=each)
    everything = set(Dispatch.objects.values_list("public_id", flat=True))
    delivered = Counter(
        one
        for done in race([partial(drain, person, n) for n in range(10)], patience=800)
        for one in done
    )
    assert set(delivered) == everything
    assert set(delivered.values()) == {1}
    assert set(Dispatch.objects.values_list("status", flat=True)) == {"Acked"}
    assert Mailbox.objects.filter(next_id=None, due_at=None).count() == threads
    claims = Change.objects.filter(kind="dispatch.claim").count()
    assert claims == len(everything) + Dispatch.objects.filter(attempts=1).count()


@pytest.mark.django_db(transaction=True)
def test_race__10_claimers__each_dispatch_once_and_one_per_thread(box: Person) -> None:
    check_ten_claimers(box, threads=30, each=10)


@pytest.mark.exhaustive
@pytest.mark.timeout(900)
@pytest.mark.django_db(transaction=True)
def test_race__10_claimers_of_10_000__each_dispatch_once_and_one_per_thread(
    box: Person,
) -> None:
    check_ten_claimers(box, threads=500, each=20)


@pytest.mark.django_db(transaction=True)
def test_claim__locked_mailbox__is_skipped_without_waiting(box: Person) -> None:
    enqueue(box, thread="t1", priority=0)
    free = enqueue(box, thread="t2")
    with transaction.atomic():
        list(Mailbox.objects.select_for_update().filter(thread__public_id="t1"))
        assert race([partial(claimed, box, limit=10)]) == [[free]]


def test_times__of_dispatches__are_the_databases(box: Person) -> None:
    made = enqueue(box)
    assert Dispatch.objects.filter(public_id=made, available_at__lte=Now()).exists()


def test_role__editor__may_do_all_except_clear(box: Person) -> None:
    _, editor = make_token(box, Role.EDITOR)
    dispatches.enqueue_dispatch(actor=editor, thread_id="t1", payload=raw(1))
    got = dispatches.claim_dispatches(actor=editor)
    row = dispatches.ack_dispatch(
        actor=editor, dispatch_id=got.dispatches[0].public_id, claim_token=got.token
    )
    assert row.status == "Acked"


def test_enqueue__thread_deleted_meanwhile__is_not_found(
    box: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatches_sql, "open_mailbox", lambda thread: False)
    with pytest.raises(NotFound) as refused:
        enqueue(box)
    assert refused.value.detail == "thread not found: t1"
