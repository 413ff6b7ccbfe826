"""Automatic compaction by the size of a thread, and when it is not repeated."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from state_admin.models import AuditRow, Compaction, Thread
from state_admin.services import (
    compaction_jobs,
    compactions,
)
from tests import builders
from tests.builders import Person, append, conversation, make_thread, raw
from tests.services.test_compactions import Fake, ask, fake, run, thread

__all__ = ["fake", "thread"]


@pytest.mark.parametrize(("threshold", "asked"), [(None, 0), (13, 1), (12, 1), (14, 0)])
@pytest.mark.parametrize("how", ["append", "commit"])
def test_trigger__threshold_reached__requests_once(
    alice: Person, sent_notifications: list[Any], threshold: int | None, asked: int, how: str
) -> None:
    make_thread(alice.actor, "t1", policy=raw({"autocompact_threshold": threshold}))
    body = {"role": "user", "content": "x" * 36}  # 4 + 36 / 4 = 13 tokens
    if how == "append":
        append(alice.actor, "t1", body)
        append(alice.actor, "t1", {"role": "user", "content": ""})
    else:
        builders.make_run(alice.actor, "t1", "r1")
        builders.commit(alice.actor, "r1", messages=[body])
    if how == "append" and threshold == 14:
        asked = 1  # the empty message's four tokens
    assert Compaction.objects.filter(trigger="threshold").count() == asked
    assert len(sent_notifications) == asked


def words(count: int) -> dict[str, str]:
    """A message with so many estimated tokens."""
    return {"role": "user", "content": "x" * 4 * (count - 4)}


def long_talk(person: Person, *bodies: Any, **policy: Any) -> None:
    """t1 is over its threshold; the fake summarizes from 100 tokens on."""
    wanted = {"summarizer": "fake", "autocompact_threshold": 150, "min_gain_tokens": 100, **policy}
    make_thread(person.actor, "t1", policy=raw(wanted))
    append(person.actor, "t1", *bodies or conversation(6, rounds=2))


def asked_by_size() -> int:
    return Compaction.objects.filter(trigger="threshold").count()


def newest() -> str:
    return Compaction.objects.latest("pk").public_id


def test_trigger__nothing_to_summarize__requests_again_after_enough_growth(
    alice: Person, fake: Fake
) -> None:
    long_talk(alice, words(200))
    assert run(newest()) == "skipped"
    for _ in range(9):
        append(alice.actor, "t1", words(11))
        assert asked_by_size() == 1
    assert AuditRow.objects.filter(action="compaction.request").count() == 1
    append(alice.actor, "t1", {"role": "user", "content": ""})
    assert Thread.objects.get().context_tokens == 303
    assert asked_by_size() == 2
    assert run(newest()) == "done"
    append(alice.actor, "t1", words(11))
    assert asked_by_size() == 2, "it is below the threshold"


def test_trigger__model_fails_or_saves_too_little__does_not_call_it_for_each_message(
    alice: Person, fake: Fake
) -> None:
    fake.text = "blah " * 20_000
    long_talk(alice, summary_max_tokens=100_000)
    assert run(newest()) == "skipped"
    append(alice.actor, "t1", words(99))
    assert asked_by_size() == 1
    append(alice.actor, "t1", words(4))
    assert asked_by_size() == 2
    fake.failures = 99
    for _ in range(compaction_jobs.MAX_ATTEMPTS):
        Compaction.objects.update(available_at=Now() - timedelta(seconds=1))
        last = run(newest())
    assert last == "failed"
    append(alice.actor, "t1", words(99))
    assert asked_by_size() == 2


@pytest.mark.parametrize("folds", [1, 2])
def test_trigger__after_undo__waits_for_as_many_new_messages(
    alice: Person, fake: Fake, folds: int
) -> None:
    long_talk(alice)
    done = [newest()]
    assert run(done[0]) == "done"
    if folds == 2:
        append(alice.actor, "t1", *conversation(6, rounds=2)[1:])
        done.append(newest())
        assert run(done[1]) == "done"
    for each in reversed(done):
        compactions.undo_compaction(actor=alice.actor, compaction_id=each)
    append(alice.actor, "t1", words(99))
    assert asked_by_size() == folds
    assert ask(alice) not in done, "by hand it may be asked at any time"
    compactions.cancel_compaction(actor=alice.actor, compaction_id=newest())
    append(alice.actor, "t1", words(99))
    assert asked_by_size() == folds, "who cancels does not want it at the next message"
    append(alice.actor, "t1", words(4))
    assert asked_by_size() == folds + 1


def test_trigger__undone_while_another_runs__waits_too(alice: Person, fake: Fake) -> None:
    long_talk(alice)
    inner = newest()
    assert run(inner) == "done"
    append(alice.actor, "t1", *conversation(6, rounds=2)[1:])
    assert asked_by_size() == 2
    fake.during = lambda: compactions.undo_compaction(actor=alice.actor, compaction_id=inner)
    assert run(newest()) == "superseded"
    append(alice.actor, "t1", words(99))
    assert asked_by_size() == 2


@pytest.mark.parametrize("over", [False, True])
def test_trigger__below_the_threshold__executes_no_statement(
    alice: Person, django_assert_num_queries: Any, over: bool
) -> None:
    long_talk(alice, words(200))
    assert run(newest()) == "skipped"
    thread = Thread.objects.get()
    with django_assert_num_queries(int(over)):  # beside the hot statement for the policy
        compactions.request_when_due(alice.actor, thread, 200 if over else 149)


def test_trigger__refused_commit__requests_nothing(alice: Person) -> None:
    make_thread(alice.actor, "t1", policy=raw({"autocompact_threshold": 1}))
    builders.make_run(alice.actor, "t1", "r1")
    with pytest.raises(Exception, match="version conflict"):
        builders.commit(
            alice.actor,
            "r1",
            messages=[{"role": "user", "content": "x"}],
            expected_message_count=5,
        )
    assert not Compaction.objects.exists()
