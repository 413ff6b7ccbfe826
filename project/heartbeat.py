"""Shows an orchestrator that worker and beat work: each updates the modification time of HEARTBEAT_FILE
every few seconds. A process that hangs does not, although it has not ended.

The heartbeat does not depend on the broker or the database, because to restart a worker does not help
while they are down.
"""

from __future__ import annotations

import errno
import time
from pathlib import Path

import structlog
from django.conf import settings

from project.env import BadSetting
from project.failures import describe_error

log = structlog.get_logger(__name__)

_SECONDS = 5.0
_next = 0.0


def check() -> None:
    """Raise BadSetting if the file cannot be written, unless the disk is full: space may become free."""
    if settings.HEARTBEAT_FILE is None:
        return
    try:
        Path(settings.HEARTBEAT_FILE).touch()
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise BadSetting(
                f"Cannot write {settings.HEARTBEAT_FILE}, which HEARTBEAT_FILE names: {error.strerror}"
            ) from None


def report() -> None:
    """Called in each turn of the loop of worker and beat."""
    global _next
    now = time.monotonic()
    if settings.HEARTBEAT_FILE is None or now < _next:
        return
    _next = now + _SECONDS
    try:
        Path(settings.HEARTBEAT_FILE).touch()
    except OSError as error:  # such as a full disk: jobs that run are not interrupted
        log.warning("heartbeat.not_written", error=describe_error(error))


def report_from_worker() -> None:
    """Let Celery's worker report. It calls `maybe_shutdown` in each turn of its loop, and each second
    while it waits for the broker. Celery's remote control (`inspect ping`) and events would need a
    queue for each worker."""
    # Imported here, because only the worker needs these modules.
    from celery.worker import state
    from celery.worker.consumer import consumer

    maybe_shutdown = state.maybe_shutdown

    def report_then_maybe_shutdown() -> None:
        report()
        maybe_shutdown()

    for module in (state, consumer):
        vars(module)["maybe_shutdown"] = report_then_maybe_shutdown
