"""Notifies a worker of a committed change.

A notification may be lost, because a sweep finds jobs that no worker has claimed. It must not delay
a request or make it fail.
"""

from __future__ import annotations

import functools
import time
from contextlib import suppress
from typing import Any

import structlog
from django.db import transaction
from kombu import pools

from project import broker

# After a failed notification, requests do not try the same broker again for this long.
_PAUSE_SECONDS = 5.0

log = structlog.get_logger(__name__)

_paused_until = 0.0


def notify_worker(task: str, *args: Any) -> None:
    """Queue the job `task` (its full name) with `args`, which are JSON, after the commit.

    Without an open transaction, it is queued immediately. Never raises. Waits about one second for
    a broker that does not respond, and skips all notifications of the next five seconds.
    """
    transaction.on_commit(functools.partial(_send, task, args))


def _send(task: str, args: tuple[Any, ...]) -> None:
    global _paused_until
    if time.monotonic() < _paused_until:
        return
    # Importing Celery takes 0.1 s, which would delay the start of every process.
    from project.celery import app

    try:
        with pools.producers[broker.quick_connection()].acquire(
            block=True, timeout=broker.QUICK_SECONDS
        ) as producer:
            app.send_task(task, args=args, producer=producer, retry=False, ignore_result=True)
    except Exception as error:
        _paused_until = time.monotonic() + _PAUSE_SECONDS
        # An open connection does not check again whether the queue exists; it may have been
        # dropped.
        _drop()
        log.warning("job.notification_failed", task=task, error=type(error).__name__)


def _drop() -> None:
    """Close the connection pools of notifications, but not those of a worker."""
    for group in (pools.producers, pools.connections):
        with suppress(Exception):  # never raise; another thread may have closed it first
            connection = broker.quick_connection()
            if connection in group:
                group[connection].force_close_all()
                del group[connection]
