"""Webhooks: a sweep that reads the feed, and a job per delivery. Rows decide what to do; messages only
start it."""

from __future__ import annotations

import threading
from typing import Any

from celery import shared_task
from django.conf import settings

from state_admin.services import deliveries
from state_admin.services.batching import Report

# Receivers may hang. One thread of a worker is not used for deliveries, so that other jobs can run;
# a delivery without a free slot is found again by the next periodic job.
_slots = threading.BoundedSemaphore(max(1, settings.WORKER_THREADS - 1))

# After this many seconds newer messages have replaced it (see tasks/sweeps.py).
_OPTIONS: dict[str, Any] = {"expiration": 30}


def start_deliveries() -> Report:
    """The work of the sweep of webhooks: queue the jobs that send what is due."""
    report, heads, tests = deliveries.tick()
    for webhook_id in heads:
        drain.apply_async((webhook_id,), **_OPTIONS)
    for delivery_id in tests:
        deliver.apply_async((delivery_id,), **_OPTIONS)
    return report


@shared_task(name=deliveries.DRAIN)
def drain(webhook_id: str) -> None:
    if _slots.acquire(blocking=False):
        try:
            deliveries.drain(webhook_id)
        finally:
            _slots.release()


@shared_task(name=deliveries.DELIVER)
def deliver(delivery_id: str) -> None:
    if _slots.acquire(blocking=False):
        try:
            deliveries.deliver(delivery_id)
        finally:
            _slots.release()
