"""Compaction jobs: their order, their phases, and that cancelled jobs call no model."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F
from django.db.models.functions import Now

from state_admin.domain import boundaries
from state_admin.models import AuditRow, Compaction, Message, Thread
from state_admin.models.compactions_sql import claim_next
from state_admin.services import compaction_jobs, compactions, maintenance, policies, threads
from state_admin.tasks import compaction as task
from tests.builders import Person, append, conversation, make_run, make_thread, raw
from tests.loops import closing
from tests.patience import PATIENCE
from tests.project.running import wait_for
from tests.services.racing import holds_up, race
from tests.services.test_compactions import Fake, fake

__all__ = ["fake"]

LEASE = compaction_jobs.LEASE


def queue(person: Person, count: int, prefix: str = "q") -> None:
    """Jobs of `count` empty threads, oldest first."""
    owner = person.workspace.pk
    made = Thread.objects.bulk_create(
        Thread(workspace_id=owner, public_id=f"{prefix}{number}") for number in range(count)
    )
    Compaction.objects.bulk_create(
        Compaction(
            workspace_id=owner,
            public_id=f"{person.workspace.slug}-{row.public_id}",
            kind="context",
            trigger="hand",
            thread=row,
            requested_by=person.actor.name,
        )
        for row in made
    )


def talk(person: Person, thread_id: str = "t1", **policy: Any) -> str:
    """A thread worth summarizing by the fake, and its requested job."""
    make_thread(person.actor, thread_id, policy=raw({"summarizer": "fake", **policy}))
    append(person.actor, thread_id, *conversation(6, rounds=2))
    return compactions.request_compaction(actor=person.actor, thread_id=thread_id).public_id


# Whose turn it is -----------------------------------------------------------------------------


def test_claim__thousand_jobs_of_one_workspace__do_not_delay_others(
    alice: Person, mallory: Person
) -> None:
    queue(alice, 1_000)
    queue(mallory, 3)
    served = []
    for _ in range(6):  # one worker with one thread: each job ends before the next begins
        claimed = claim_next(LEASE)
        served.append(str(claimed).split("-")[0])
        Compaction.objects.filter(public_id=claimed).update(status="done")
    assert sorted(served[:2]) == sorted(served[2:4]) == sorted(served[4:]) == ["acme", "rival"]


def test_claim__running_jobs__workspace_with_the_fewest_is_next(
    alice: Person, mallory: Person
) -> None:
    queue(alice, 10)
    for _ in range(4):
        claim_next(LEASE)
    queue(mallory, 3)
    assert [str(claim_next(LEASE)).split("-")[0] for _ in range(4)] == ["rival"] * 3 + ["acme"]


def test_claim__within_a_workspace__is_in_order_of_waiting(alice: Person) -> None:
    queue(alice, 3)
    Compaction.objects.filter(public_id="acme-q2").update(available_at=Now() - timedelta(seconds=9))
    Compaction.objects.filter(public_id="acme-q0").update(available_at=Now() + timedelta(seconds=9))
    assert [claim_next(LEASE) for _ in range(3)] == ["acme-q2", "acme-q1", None]


def test_claim__worker_died__its_job_is_claimed_again_and_others_are_not_blocked(
    alice: Person, mallory: Person
) -> None:
    queue(alice, 1)
    assert claim_next(LEASE) == "acme-q0"
    assert claim_next(LEASE) is None
    Compaction.objects.update(lease_expires_at=Now() - timedelta(seconds=1))
    assert claim_next(LEASE) == "acme-q0"
    row = Compaction.objects.get()
    assert (row.attempts, row.claim, row.status) == (2, 2, "running")


def test_claim__jobs_of_other_kinds__are_not_touched(alice: Person) -> None:
    queue(alice, 1)
    Compaction.objects.update(kind="snapshot")
    assert claim_next(LEASE) is None


@pytest.mark.django_db(transaction=True)
def test_race__claims__each_job_is_claimed_once(alice: Person, mallory: Person) -> None:
    queue(alice, 12)
    queue(mallory, 4)
    claimed = race([lambda: claim_next(LEASE)] * 16)
    assert len({str(each) for each in claimed} - {"None"}) == 16
    assert set(Compaction.objects.values_list("attempts", flat=True)) == {1}


@pytest.mark.django_db(transaction=True)
def test_race__many_threads_and_workers__each_is_summarized_once(alice: Person, fake: Fake) -> None:
    for number in range(8):
        talk(alice, f"t{number}")
    assert race([compaction_jobs.run_next] * 8) == ["done"] * 8
    assert Message.objects.filter(folds_to__isnull=False).count() == 8
    assert compaction_jobs.run_next() is None


# The broker and the worker's threads ----------------------------------------------------------


def test_sweep__broker_lost_everything__counts_waiting_jobs(alice: Person, fake: Fake) -> None:
    talk(alice)
    assert maintenance.find_lost_compactions() == {"compactions": 1}
    task.run()
    assert Compaction.objects.get().status == "done"
    assert maintenance.find_lost_compactions() == {"compactions": 0}


def test_notification__job_done__notifies_for_the_next(
    alice: Person, fake: Fake, sent_notifications: list[tuple[str, ...]]
) -> None:
    talk(alice)
    sent_notifications.clear()
    task.run()
    assert sent_notifications == [(compactions.RUN,)]
    task.run()
    assert len(sent_notifications) == 1, "there was none, so that is the end of it"


@pytest.fixture
def one_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task, "_slots", threading.BoundedSemaphore(1))


def test_notification__all_slots_used_by_slow_models__leaves_threads_for_other_jobs(
    alice: Person, fake: Fake, one_slot: None, sent_notifications: list[Any]
) -> None:
    assert 1 <= task.SLOTS < 4, "with 4 threads, the default"
    talk(alice, "t1")
    talk(alice, "t2")
    fake.during = task.run  # notified while a model is called
    task.run()
    assert sorted(Compaction.objects.values_list("status", flat=True)) == ["done", "queued"]
    fake.during = None
    task.run()
    assert set(Compaction.objects.values_list("status", flat=True)) == {"done"}


def test_notification__job_crashes__releases_its_slot(
    alice: Person, fake: Fake, one_slot: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk(alice)

    def crash(*_: Any) -> None:
        raise RuntimeError("not of a summarizer")

    with monkeypatch.context() as broken:
        broken.setattr(boundaries, "plan", crash)
        with pytest.raises(RuntimeError):
            task.run()
    Compaction.objects.update(lease_expires_at=Now() - timedelta(seconds=1))
    task.run()
    assert Compaction.objects.get().status == "done"


def test_notification__summarizer_crashes__job_fails_with_the_class_of_the_error_only(
    alice: Person, fake: Fake
) -> None:
    talk(alice)

    def crash() -> None:
        raise RuntimeError("what was said")

    fake.during = crash
    task.run()
    row = Compaction.objects.get()
    assert (row.status, row.detail) == ("failed", "the summarizer failed: RuntimeError")
    assert row.lease_expires_at is None


# Where a job is -------------------------------------------------------------------------------


def test_phases__of_a_job__are_shown_in_order(
    alice: Person, fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = talk(alice)
    seen: list[Any] = [alice.api("GET", f"/compactions/{asked}").json()["phase"]]

    def look(*_: Any) -> None:
        body = alice.api("GET", f"/compactions/{asked}").json()
        seen.append((body["phase"], body["attempts"]))

    def looking(real: Any) -> Any:
        def wrapped(*args: Any, **more: Any) -> Any:
            look()
            return real(*args, **more)

        return wrapped

    for module, name in (
        (compaction_jobs, "_do"),
        (boundaries, "plan"),
        (compaction_jobs, "_apply"),
    ):
        monkeypatch.setattr(module, name, looking(getattr(module, name)))
    fake.during = look
    fake.failures = 1
    assert compaction_jobs.run_compaction(asked) == "queued"
    Compaction.objects.update(available_at=Now())
    assert compaction_jobs.run_compaction(asked) == "done"
    assert seen == [
        None,
        ("claimed", 1), ("planning", 1), ("asking", 1),
        ("claimed", 2), ("planning", 2), ("asking", 2), ("applying", 2),
    ]  # fmt: skip
    assert alice.api("GET", f"/compactions/{asked}").json()["phase"] is None


def test_cancel__before_the_model_is_called__costs_nothing(
    alice: Person, fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = talk(alice)
    real = boundaries.plan

    def plan(*args: Any) -> Any:
        compactions.cancel_compaction(actor=alice.actor, compaction_id=asked)
        return real(*args)

    monkeypatch.setattr(boundaries, "plan", plan)
    assert compaction_jobs.run_compaction(asked) == "superseded"
    assert fake.asked == []
    assert Compaction.objects.get().status == "cancelled"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_deleted", [True, False], ids=["thread deleted", "taken over"])
def test_claim__lost_before_the_job_is_read__calls_no_model(
    alice: Person, fake: Fake, monkeypatch: pytest.MonkeyPatch, is_deleted: bool
) -> None:
    talk(alice)
    work = compaction_jobs._work

    def interfere() -> None:
        if is_deleted:
            threads.delete_thread(actor=alice.actor, thread_id="t1")
        else:
            Compaction.objects.update(lease_expires_at=Now())
            assert claim_next(LEASE)

    with ThreadPoolExecutor(1) as other:
        later: list[Future[None]] = []

        def claim_and_lose(lease: timedelta) -> str | None:
            claimed = claim_next(lease)
            later.append(other.submit(closing(interfere)))
            wait_for(lambda: later[0].done() or holds_up(), "the other is done, or waits")
            return claimed

        def work_later(job: Any) -> Any:
            later[0].result(PATIENCE)
            return work(job)

        monkeypatch.setattr(compaction_jobs, "claim_next", claim_and_lose)
        monkeypatch.setattr(compaction_jobs, "_work", work_later)
        assert compaction_jobs.run_next() == "superseded"
    assert fake.asked == []


@pytest.mark.parametrize("failures", [0, 1])
def test_lost_claim__any_late_result__changes_nothing(
    alice: Person, fake: Fake, failures: int
) -> None:
    asked = talk(alice)
    fake.failures = failures
    fake.during = lambda: Compaction.objects.update(claim=F("claim") + 1)
    assert compaction_jobs.run_compaction(asked) == "superseded"
    row = Compaction.objects.get()
    assert (row.status, row.phase, row.detail) == ("running", "asking", "")
    assert not Message.objects.filter(folds_to__isnull=False).exists()


# By the clock ---------------------------------------------------------------------------------


def age(hours: float) -> None:
    """Move everything into the past by so many hours."""
    past = timedelta(hours=hours)
    Thread.objects.update(created_at=F("created_at") - past)
    Message.objects.update(created_at=F("created_at") - past)
    Compaction.objects.update(created_at=F("created_at") - past)


def scheduled() -> list[str]:
    """Request what is due; returns the threads of the queued jobs."""
    before = set(Compaction.objects.values_list("pk", flat=True))
    compactions.request_scheduled()
    made = Compaction.objects.exclude(pk__in=before).order_by("thread__public_id")
    assert set(made.values_list("trigger", flat=True)) <= {"schedule"}
    return list(made.values_list("thread__public_id", flat=True))


def test_schedule__every_hours__requests_again_after_new_messages(
    alice: Person, sent_notifications: list[Any]
) -> None:
    make_thread(alice.actor, "t1", policy=raw({"every_hours": 24}))
    append(alice.actor, "t1", *conversation(8))
    assert scheduled() == []
    age(24)
    assert scheduled() == ["t1"]
    assert sent_notifications == [(compactions.RUN,)]
    age(24)
    assert scheduled() == [], "one is queued already"
    assert compaction_jobs.run_next() == "done"
    age(24)
    assert scheduled() == [], "nothing came since"
    append(alice.actor, "t1", *conversation(8)[1:])
    assert scheduled() == ["t1"]
    asked = AuditRow.objects.filter(action="compaction.request").latest("pk")
    assert (asked.actor_name, asked.reason) == ("compaction schedule", "every 24 hours")
    compaction_jobs.run_next()
    append(alice.actor, "t1", *conversation(8)[1:])
    age(23)
    assert scheduled() == []


def test_schedule__every_hours_in_several_layers__nearest_wins(
    alice: Person, mallory: Person
) -> None:
    policies.put_policy(actor=alice.actor, scope="workspace", body=raw({"every_hours": 1}))
    policies.put_policy(
        actor=alice.actor, scope="agent", name="planner", body=raw({"every_hours": 48})
    )
    for person in (alice, mallory):
        for thread_id in ("by-agent", "by-itself", "by-workspace", "never", "short"):
            make_thread(person.actor, thread_id)
            if thread_id != "short":
                append(person.actor, thread_id, *conversation(8))
    make_run(alice.actor, "by-agent", "r1", agent_id="planner")
    for thread_id, hours in (("by-itself", 2), ("never", None)):
        policies.put_policy(
            actor=alice.actor, scope="thread", name=thread_id, body=raw({"every_hours": hours})
        )
    age(1.5)
    assert scheduled() == ["by-workspace"]
    age(1)
    assert scheduled() == ["by-itself"]
    age(48)
    assert scheduled() == ["by-agent"]


def test_schedule__too_short_to_summarize__creates_no_job(alice: Person) -> None:
    make_thread(alice.actor, "t1", policy=raw({"every_hours": 1, "min_gain_tokens": 100}))
    append(alice.actor, "t1", {"role": "user", "content": "x" * 380})
    age(2)
    assert scheduled() == []
    append(alice.actor, "t1", {"role": "user", "content": ""})
    assert scheduled() == ["t1"]


def test_schedule__more_than_one_batch__requests_all(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compactions, "_BATCH", 2)
    policies.put_policy(
        actor=alice.actor, scope="workspace", body=raw({"every_hours": 1, "min_gain_tokens": 0})
    )
    for number in range(5):
        make_thread(alice.actor, f"t{number}")
        append(alice.actor, f"t{number}", {"role": "user", "content": "hi"})
    age(2)
    assert compactions.request_scheduled() == {"requested": 5}
    assert compactions.request_scheduled() == {"requested": 0}


def test_schedule__policy_changed_meanwhile__requests_nothing(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_thread(alice.actor, "t1", policy=raw({"every_hours": 24}))
    append(alice.actor, "t1", *conversation(8))
    age(25)
    find_due = compactions.find_due_threads

    def change(**given: Any) -> list[int]:
        found = find_due(**given)
        policies.put_policy(actor=alice.actor, scope="thread", name="t1", body=raw({}))
        return found

    monkeypatch.setattr(compactions, "find_due_threads", change)
    assert compactions.request_scheduled() == {"requested": 0}
    assert not Compaction.objects.exists()
