"""Dead letters: replayed, cleared; and the purge of finished dispatches."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.conf import settings
from django.db import connection, transaction
from django.db.models import F

from state_admin.contract.types import Cleared
from state_admin.domain.access import Role
from state_admin.models import AuditRow, Change, Dispatch, Mailbox, Thread
from state_admin.services import dead_letters, dispatches, erasures
from state_admin.services.errors import Conflict, Forbidden, NotFound
from tests.builders import Person, make_thread, make_token
from tests.loops import closing
from tests.patience import PATIENCE
from tests.project.running import wait_for
from tests.services.racing import race, split
from tests.services.test_dispatches import ack, box, claimed, enqueue, nack, status, take

__all__ = ["box"]


def make_dead_letter(person: Person, thread: str = "t1", **fields: Any) -> str:
    """A dead letter of a thread without queued dispatches."""
    made = enqueue(person, thread=thread, max_attempts=1, **fields)
    _, token = take(person, thread_id=thread)
    assert nack(person, made, token, error="boom").status == "DeadLetter"
    return made


def replay_all(person: Person, **which: str) -> int:
    return dead_letters.replay_dead_letters(actor=person.actor, **which)


def test_replay__dead_letter__is_requeued_with_all_its_attempts(box: Person) -> None:
    letter = make_dead_letter(box)
    dispatches.interrupt_thread(actor=box.actor, thread_id="t1")
    row = dead_letters.replay_dispatch(actor=box.actor, dispatch_id=letter, reason="fixed")
    assert (row.status, row.attempts, row.replays, row.epoch) == ("Queued", 0, 1, 1)
    assert row.last_error == "boom"
    assert row.finished_at is None
    assert AuditRow.objects.get(action="dispatch.replay").reason == "fixed"
    assert Change.objects.filter(kind="dispatch.replay", key=letter).exists()
    assert ack(box, *take(box)) == "Acked"


def test_replay__not_a_dead_letter__is_a_conflict(box: Person) -> None:
    made = enqueue(box)
    with pytest.raises(Conflict) as refused:
        dead_letters.replay_dispatch(actor=box.actor, dispatch_id=made)
    assert refused.value.detail == f"dispatch is not a dead letter: {made}"
    with pytest.raises(NotFound):
        dead_letters.replay_dispatch(actor=box.actor, dispatch_id="nope")


def test_replay__dedupe_key_in_use__is_a_conflict(box: Person) -> None:
    letter = make_dead_letter(box, dedupe_key="nightly")
    enqueue(box, dedupe_key="nightly")
    with pytest.raises(Conflict) as refused:
        dead_letters.replay_dispatch(actor=box.actor, dispatch_id=letter)
    assert refused.value.detail == "dispatch already enqueued: nightly"
    assert status(letter) == "DeadLetter"
    assert replay_all(box) == 0


def test_replay_all__several_with_one_dedupe_key__requeues_the_newest(box: Person) -> None:
    old, new, plain = (
        make_dead_letter(box, dedupe_key="nightly"),
        make_dead_letter(box, dedupe_key="nightly"),
        make_dead_letter(box, thread="t2"),
    )
    assert replay_all(box) == 2
    assert [status(one) for one in (old, new, plain)] == ["DeadLetter", "Queued", "Queued"]
    traces = AuditRow.objects.filter(action="dispatch.replay").order_by("thread")
    assert list(traces.values_list("thread", "detail")) == [
        ("t1", {"dispatches": 1}),
        ("t2", {"dispatches": 1}),
    ]
    assert sorted(claimed(box, limit=10)) == sorted([new, plain])


def test_replay_all__of_a_thread_or_an_agent__keeps_the_others(box: Person) -> None:
    first, second = (
        make_dead_letter(box, agent_id="planner"),
        make_dead_letter(box, thread="t2", agent_id="writer"),
    )
    assert replay_all(box, thread_id="t1", agent_id="writer") == 0
    assert replay_all(box, agent_id="writer") == 1
    assert [status(one) for one in (first, second)] == ["DeadLetter", "Queued"]
    assert replay_all(box, thread_id="t1") == 1
    with pytest.raises(NotFound):
        replay_all(box, thread_id="nope")


def test_clear__dry_run_then_clear__counts_then_deletes_permanently(box: Person) -> None:
    letter, other = make_dead_letter(box), make_dead_letter(box, thread="t2")
    queued = enqueue(box)
    clear = partial(dead_letters.clear_dead_letters, actor=box.actor, thread_id="t1")
    assert clear(dry_run=True) == Cleared(matched=1, deleted=0)
    assert Dispatch.objects.filter(public_id=letter).exists()
    assert not AuditRow.objects.filter(action="dispatch.clear").exists()
    assert clear(reason="old news") == Cleared(matched=1, deleted=1)
    assert set(Dispatch.objects.values_list("public_id", flat=True)) == {other, queued}
    trace = AuditRow.objects.get(action="dispatch.clear")
    assert (trace.thread, trace.detail, trace.reason) == ("t1", {"dispatches": 1}, "old news")


def test_clear__by_editor_or_restricted_token__is_limited(box: Person, mallory: Person) -> None:
    mine, other = make_dead_letter(box), make_dead_letter(box, thread="t2")
    with pytest.raises(Forbidden):
        dead_letters.clear_dead_letters(actor=make_token(box, Role.EDITOR)[1])
    assert dead_letters.clear_dead_letters(actor=mallory.actor).matched == 0
    assert replay_all(mallory) == 0
    _, narrow = make_token(box, Role.ADMIN, thread_prefixes=["t1"])
    assert dead_letters.clear_dead_letters(actor=narrow).deleted == 1
    assert not Dispatch.objects.filter(public_id=mine).exists()
    assert status(other) == "DeadLetter"


def test_purge__past_the_retention__deletes_and_keeps_dead_letters_longer(
    box: Person,
) -> None:
    acked = enqueue(box)
    ack(box, *take(box))
    letter = make_dead_letter(box)
    queued, fresh = enqueue(box, thread="t2"), enqueue(box, thread="t2")
    dispatches.cancel_dispatch(actor=box.actor, dispatch_id=fresh)

    def age(*ids: str, by: timedelta) -> None:
        rows = Dispatch.objects.filter(public_id__in=ids)
        rows.update(finished_at=F("finished_at") - by, created_at=F("created_at") - by)

    age(acked, letter, queued, by=settings.DISPATCH_RETENTION + timedelta(seconds=1))
    assert dead_letters.purge_dispatches() == {"dispatches": 1}
    assert not Dispatch.objects.filter(public_id=acked).exists()
    age(letter, by=settings.DISPATCH_DEAD_RETENTION)
    assert dead_letters.purge_dispatches() == {"dispatches": 1}
    assert set(Dispatch.objects.values_list("public_id", flat=True)) == {queued, fresh}


@pytest.mark.parametrize("verb", ["replay", "clear"])
def test_all__letter_of_another_thread_meanwhile__is_left_to_others(
    box: Person, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    make_dead_letter(box)
    make_thread(box.actor, "t2")
    lock_dead_letters, traces = dead_letters._lock_dead_letters, dead_letters._traces
    late: list[str] = []

    def lock_just_before_the_letter(*args: Any) -> Any:
        letters = lock_dead_letters(*args)
        late.append(make_dead_letter(box, thread="t2"))
        return letters

    def trace_just_before_others_replay_it(*args: Any) -> Any:
        found = traces(*args)
        monkeypatch.undo()
        dead_letters.replay_dispatch(actor=box.actor, dispatch_id=late[0])
        take(box, thread_id="t2")
        return found

    monkeypatch.setattr(dead_letters, "_lock_dead_letters", lock_just_before_the_letter)
    monkeypatch.setattr(dead_letters, "_traces", trace_just_before_others_replay_it)
    if verb == "replay":
        assert replay_all(box) == 1
    else:
        assert dead_letters.clear_dead_letters(actor=box.actor).deleted == 1
    assert status(late[0]) == "Claimed"


@pytest.mark.django_db(transaction=True)
def test_race__replays_and_clears_of_many_threads__each_has_one_result(box: Person) -> None:
    for number in range(6):
        make_thread(box.actor, f"many-{number}")
        make_dead_letter(box, thread=f"many-{number}")
    works: list[Any] = [partial(replay_all, box)] * 3
    works += [partial(dead_letters.clear_dead_letters, actor=box.actor)] * 3
    won, lost = split(race(works))
    assert lost == []
    replayed = sum(each for each in won if isinstance(each, int))
    deleted = sum(each.deleted for each in won if not isinstance(each, int))
    assert replayed + deleted == 6
    assert Dispatch.objects.filter(status="Queued", replays=1).count() == replayed
    assert Dispatch.objects.count() == replayed


@pytest.mark.django_db(transaction=True)
def test_replay_all__erasure_of_the_threads_meanwhile__waits_for_it(box: Person) -> None:
    """In the table, the mailbox of t1 is behind that of t2: without a common order, each would wait for
    the other."""
    Thread.objects.update(resource_id="customer")
    for thread in ("t1", "t2", "t1"):
        make_dead_letter(box, thread)
    first = Mailbox.objects.filter(thread__public_id="t1")
    replay = partial(replay_all, box)
    erase = partial(erasures.erase, actor=box.actor, resource_id="customer", reason="asked to")
    with ThreadPoolExecutor(2) as others:
        with transaction.atomic():
            list(first.select_for_update(of=("self",)))
            replayed = others.submit(closing(replay))
            wait_for(lambda: count_waiting() == 1, "the replay waits")
            erased = others.submit(closing(erase))
            wait_for(lambda: count_waiting() == 2, "the erasure waits")
        assert replayed.result(PATIENCE) == 3
        assert erased.result(PATIENCE).counts["dispatches"] == 3
    assert not Dispatch.objects.exists()


def count_waiting() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(DISTINCT pid) FROM pg_locks WHERE NOT granted")
        return int(cursor.fetchone()[0])
