"""Webhooks with a real worker process, started by beat's schedule, also when the worker dies."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.db.models.functions import Now

from project import job_notifications
from state_admin.contract.webhooks import WebhookFilter as Filter
from state_admin.models import Sweep, Webhook, WebhookDelivery
from state_admin.services import webhook_flow, webhooks
from tests.builders import Person, make_namespace, put
from tests.feeding import wait_for_feed
from tests.project.running import Running, wait_for
from tests.receiving import Handler, Receiver, answer, is_signed, receiving
from tests.tasks.conftest import Worker

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("fresh_broker")]


@pytest.fixture
def worker(start_worker: Callable[..., Running]) -> Worker:
    env = {"WEBHOOK_TIMEOUT_SECONDS": "20", "WEBHOOK_RETRY_SECONDS": "0"}
    return partial(start_worker, WEBHOOK_ALLOW_PRIVATE="true", **env)


@pytest.fixture(autouse=True)
def local_receivers(settings: Any) -> None:
    settings.WEBHOOK_ALLOW_PRIVATE = True


def make(alice: Person, receiver: Receiver) -> tuple[Webhook, str]:
    make_namespace(alice.actor, "notes")
    wait_for_feed(alice.workspace.pk)
    return webhooks.create_webhook(
        actor=alice.actor, name="hook", url=receiver.url, filters=Filter(kinds=("entry.*",))
    )


def tick(alice: Person) -> None:
    """Start the job, as beat does every second."""
    wait_for_feed(alice.workspace.pk)
    job_notifications.notify_worker("state_admin.tasks.webhooks.tick")


def finished() -> bool:
    return not WebhookDelivery.objects.exclude(status="delivered").exists()


def test_worker__periodic_job__delivers_changes_in_order(alice: Person, worker: Worker) -> None:
    with receiving() as receiver:
        hook, secret = make(alice, receiver)
        keys = [f"k{number}" for number in range(5)]
        for key in keys:
            put(alice.actor, "notes", key, 1)
        running = worker()
        tick(alice)
        receiver.wait_for(5)
        wait_for(finished, f"all is recorded; {running.output()}")
    assert receiver.keys == keys
    assert all(is_signed(received, secret) for received in receiver.received)
    assert Sweep.objects.get(name="webhooks").error == ""
    hook.refresh_from_db()
    assert hook.last_delivered_at is not None


def test_worker__test_event_requested__is_sent_by_the_notification(
    alice: Person, worker: Worker
) -> None:
    with receiving() as receiver:
        hook, _ = make(alice, receiver)
        running = worker()
        webhook_flow.send_test(actor=alice.actor, webhook_id=hook.public_id)
        wait_for(lambda: receiver.received, f"it comes; {running.output()}")
        wait_for(finished, "it is recorded")


def test_worker__killed_during_a_request__another_repeats_it_and_continues_in_order(
    alice: Person, worker: Worker
) -> None:
    stuck = threading.Event()

    def hang_once(handler: Handler, number: int) -> None:
        if number == 2:
            stuck.wait(60)
        else:
            answer(204)(handler, number)

    with receiving(hang_once) as receiver:
        make(alice, receiver)
        for key in "abc":
            put(alice.actor, "notes", key, 1)
        first = worker()
        tick(alice)
        receiver.wait_for(2)
        first.signal(signal.SIGKILL)
        first.wait()
        assert not finished()
        WebhookDelivery.objects.filter(status="delivering").update(lease_expires_at=Now())

        worker()
        tick(alice)
        wait_for(finished, "all is delivered")
        stuck.set()
    # At least once: the receiver got `b` twice, with one id, and everything in order.
    assert receiver.keys == ["a", "b", "b", "c"]
    ids = [received.headers["webhook-id"] for received in receiver.received]
    assert ids[1] == ids[2]
