"""Webhooks: a tick that reads the feed, and the deliveries it finds. Rows decide; messages wake."""

from __future__ import annotations

import threading

from celery import shared_task
from django.conf import settings

from state_admin.services import deliveries, maintenance

# Receivers may hang. One thread of a worker is never theirs, so that other jobs go on; what finds
# no slot is found again by the next tick.
_slots = threading.BoundedSemaphore(max(1, settings.WORKER_THREADS - 1))

# A message older than this was followed by newer ones.
_EXPIRES = 30


@shared_task(name="state_admin.tasks.webhooks.tick")
def tick() -> None:
    def find() -> dict[str, int]:
        report, heads, tests = deliveries.tick()
        for webhook_id in heads:
            drain.apply_async((webhook_id,), expires=_EXPIRES)
        for delivery_id in tests:
            deliver.apply_async((delivery_id,), expires=_EXPIRES)
        return report

    maintenance.run_sweep("webhooks", find)


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


@shared_task(name="state_admin.tasks.webhooks.purge")
def purge() -> None:
    maintenance.run_sweep("purge deliveries", deliveries.purge_deliveries)
