"""Runs compactions, one per job notification. A lost or repeated notification has no effect,
because the rows decide what to do."""

from __future__ import annotations

import threading

from celery import shared_task
from django.conf import settings

from state_admin.services import compaction_jobs, compactions, notifications, retention

# A model may take minutes. Half of a worker's threads are not used for this, so that other jobs can
# run. A task that finds no free slot ends; the holder of a slot sends another notification when it
# is done.
SLOTS = max(1, settings.WORKER_THREADS // 2)
_slots = threading.BoundedSemaphore(SLOTS)


@shared_task(name=compactions.RUN)
def run() -> None:
    if not _slots.acquire(blocking=False):
        return
    try:
        found = compaction_jobs.run_next()
    finally:
        _slots.release()
    if found is not None:
        notifications.notify_worker(compactions.RUN)


@shared_task(name=retention.RUN)
def remove(compaction_id: str) -> None:
    retention.run_retention(compaction_id)
