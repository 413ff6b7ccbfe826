"""Does compactions, one per ring. A lost or repeated ring changes nothing: the rows decide."""

from __future__ import annotations

import threading

from celery import shared_task
from django.conf import settings

from state_admin.services import compaction_jobs, compactions, notifications, retention

# A model may take minutes. Half of a worker's threads are never its, so that other jobs go on; who
# finds no slot leaves: whoever holds one rings again when done.
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
