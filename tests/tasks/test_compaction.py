"""Compaction with a real worker process: notified by the commit, and taken over when it dies."""

from __future__ import annotations

import signal
from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from project import job_notifications
from state_admin.models import Compaction, Message, Thread
from state_admin.services import compaction_jobs, compactions, effective_views, maintenance
from state_admin.tasks.compaction import run as task
from tests import builders
from tests.builders import Person, append, conversation, make_record, make_thread, raw
from tests.modelling import completion, in_turn, replies
from tests.project.running import wait_for
from tests.receiving import Receiver, hang, receiving
from tests.tasks.conftest import Worker

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("fresh_broker")]

KEY = "sk-registry-1234567890"


def status(thread_id: str = "t1") -> str | None:
    row = Compaction.objects.filter(thread__public_id=thread_id).order_by("-pk").first()
    return row.status if row else None


def test_worker__commit_reaches_the_threshold__compacts_automatically(
    alice: Person, worker: Worker
) -> None:
    make_thread(alice.actor, "t1", policy=raw({"autocompact_threshold": 1000}))
    builders.make_run(alice.actor, "t1", "r1")
    worker()
    builders.commit(alice.actor, "r1", messages=conversation(8, rounds=2))
    wait_for(lambda: status() == "done", "the commit woke the worker")
    job = Compaction.objects.get()
    assert (job.trigger, job.attempts) == ("threshold", 1)
    assert "<conversation-summary>" in Message.objects.get(folds_to__isnull=False).body
    view = effective_views.effective_messages(Thread.objects.get())
    tokens = Thread.objects.get().context_tokens
    assert tokens == sum(message.estimated_tokens for message in view) < 1000 * 3


def test_worker__killed_during_a_job__another_continues_after_the_lease(
    alice: Person, worker: Worker
) -> None:
    make_thread(alice.actor, "t1")
    append(alice.actor, "t1", *conversation(8, rounds=2))
    job = compactions.request_compaction(actor=alice.actor, thread_id="t1")
    # The state after a worker was killed between its claim and its end.
    Compaction.objects.update(
        status="running", claim=1, attempts=1, lease_expires_at=Now() - timedelta(seconds=1)
    )
    worker()
    maintenance.find_lost_compactions()
    wait_for(lambda: status() == "done", "another worker did it")
    assert Compaction.objects.get(pk=job.pk).attempts == 2
    assert Message.objects.filter(folds_to__isnull=False).count() == 1


def by_model(alice: Person, receiver: Receiver) -> str:
    """A job for the model `small` of the config registry, whose provider is the receiver."""
    provider = {
        "adapter": "openai",
        "base_url": f"http://127.0.0.1:{receiver.port}/v1",
        "api_key": KEY,
        "timeout_secs": 30,
    }
    make_record(alice.actor, "providers", "acme", provider)
    model = {"provider_id": "acme", "upstream_model": "small-1", "context_window": 30_000}
    make_record(alice.actor, "models", "small", model)
    make_thread(alice.actor, "t1", policy=raw({"summarizer": "model", "summary_model": "small"}))
    append(alice.actor, "t1", *conversation(8, rounds=2))
    return compactions.request_compaction(actor=alice.actor, thread_id="t1").public_id


def test_worker__configured_provider__is_called_and_the_thread_is_summarized(
    alice: Person, worker: Worker
) -> None:
    with receiving(replies(completion("Trips were booked."))) as receiver:
        worker()
        by_model(alice, receiver)
        wait_for(lambda: status() == "done", "the model's summary stands")
    asked = receiver.received[0]
    assert (asked.path, asked.headers["authorization"]) == ("/v1/chat/completions", f"Bearer {KEY}")
    job = Compaction.objects.get()
    assert (job.provider, job.model, job.summary_text) == ("acme", "small-1", "Trips were booked.")
    shown = effective_views.effective_messages(Thread.objects.get())
    assert "Trips were booked." in (shown[0].body or "")


def test_worker__killed_during_the_call_of_a_model__another_continues_with_one_effect(
    alice: Person, worker: Worker
) -> None:
    with receiving(in_turn(hang, replies(completion("Trips were booked.")))) as receiver:
        first = worker()
        job = by_model(alice, receiver)
        receiver.wait_for(1)
        row = Compaction.objects.get()
        assert (row.status, row.phase, row.provider) == ("running", "asking", "acme")
        first.signal(signal.SIGKILL)
        first.wait()
        worker()
        maintenance.find_lost_compactions()
        assert compaction_jobs.run_compaction(job) is None, "its lease still holds"
        Compaction.objects.update(lease_expires_at=Now() - timedelta(seconds=1))
        maintenance.find_lost_compactions()
        wait_for(lambda: status() == "done", "another worker did it")
        assert len(receiver.received) == 2
    row.refresh_from_db()
    assert (row.attempts, row.claim, row.phase) == (2, 2, "")
    assert Message.objects.filter(folds_to__isnull=False).count() == 1


def test_worker__notified_twice_and_stopped__has_one_effect_and_ends(
    alice: Person, worker: Worker
) -> None:
    make_thread(alice.actor, "t1")
    append(alice.actor, "t1", *conversation(8, rounds=2))
    process = worker()
    compactions.request_compaction(actor=alice.actor, thread_id="t1")
    for _ in range(3):
        job_notifications.notify_worker(task.name)
    wait_for(lambda: status() == "done", "the job is done")
    process.signal(signal.SIGTERM)
    assert process.wait() == 0, process.output()
    assert Message.objects.filter(folds_to__isnull=False).count() == 1
    assert Compaction.objects.get().attempts == 1


def test_task__no_waiting_job__does_nothing(db: Any) -> None:
    task()
    assert not Compaction.objects.exists()
