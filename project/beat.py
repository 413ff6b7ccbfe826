"""Celery's scheduler with a state file that survives kill -9: one small file, replaced by rename.

Celery's own state is a dbm file, which a kill during a write can make unreadable.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import structlog
from celery import beat
from celery.apps import beat as apps
from django.db import InterfaceError, OperationalError, close_old_connections, connection

from project import heartbeat
from project.env import data_dir
from project.failures import describe_error

log = structlog.get_logger(__name__)


def memory() -> Path:
    """The file with the times at which beat last started each job, on the machine on which beat
    runs."""
    return data_dir() / "beat.json"


def newest() -> datetime | None:
    """The time at which beat last started a job; None if the file is missing or unreadable."""
    try:
        moments = [
            datetime.fromisoformat(text) for text in json.loads(memory().read_text()).values()
        ]
    except (OSError, ValueError, TypeError, AttributeError):
        return None
    return max((moment for moment in moments if moment.tzinfo), default=None)


class Beat(apps.Beat):
    """Ends at SIGTERM wherever it is interrupted.

    Celery's handler closes the scheduler, which may wait for a lock that the interrupted code holds, and
    raises SystemExit, which is lost in a finalizer. Here the handler only requests the end; the loop of the
    service closes the scheduler.
    """

    def install_sync_handler(self, service: beat.Service) -> None:
        def end(*_: object) -> None:
            service.stop()
            raise SystemExit  # it interrupts the pause between two jobs

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, end)


class Scheduler(beat.Scheduler):
    """Stores when each entry last ran: a daily job runs daily, even if beat restarts often.

    `conditions` maps names of entries to a cheap check whether the job would find work. A job that
    would not is skipped: starting it costs a message, a thread and several statements.
    """

    conditions: dict[str, Callable[[], object]] = {}

    def schedules_equal(self, *_: Any) -> bool:
        """Called before each tick. False lets Celery plan all entries again. The schedule never
        changes while beat runs, but the clock can be set back. An entry that was last started in
        what is now the future counts as started now, or it would wait until then."""
        heartbeat.report()
        now = _now()
        ahead = [
            entry
            for entry in self.schedule.values()
            if entry.last_run_at is not None and entry.last_run_at > now
        ]
        for entry in ahead:
            entry.last_run_at = now
        return not ahead

    def adjust(self, n: float, drift: float = 0.0) -> float:
        """The seconds until an entry is due. Celery's own method wakes 10 ms early and spins until
        then: with jobs that run every second, this was most of the CPU time of an idle server."""
        return n

    def apply_entry(self, entry: beat.ScheduleEntry, producer: Any = None) -> None:
        condition = self.conditions.get(str(entry.name))
        if condition is not None and not _is_true(condition):
            return
        try:
            self.apply_async(entry, producer=producer, advance=False)
        except beat.SchedulingError as error:
            cause = error.__context__ or error
            log.warning("beat.job_not_sent", job=entry.name, error=describe_error(cause))
            self._disconnect()

    def _ensure_connected(self) -> Any:
        """Overrides Celery's method, which does not call `heartbeat` while it waits for the broker."""

        def log_failure(error: Exception, _: float) -> None:
            log.error("broker.unreachable", error=describe_error(error))

        retries = self.app.conf.broker_connection_max_retries
        return self.connection.ensure_connection(log_failure, retries, callback=heartbeat.report)

    def _disconnect(self) -> None:
        """Drop the connection, so that the next job opens a new one: AMQP does not reopen a lost
        one."""
        for name in ("producer", "connection"):
            kept = vars(self).pop(name, None)
            with contextlib.suppress(Exception):  # closing a lost connection may fail
                kept.close()

    def setup_schedule(self) -> None:
        super().setup_schedule()
        self._file = memory()
        remembered: dict[str, str] = {}
        with contextlib.suppress(OSError, ValueError):
            remembered = json.loads(self._file.read_text())
        for name, entry in self.schedule.items():
            # Celery's own function converts between time zones several times per second.
            vars(entry.schedule)["nowfun"] = _now
            with contextlib.suppress(KeyError, TypeError, ValueError):
                entry.last_run_at = datetime.fromisoformat(remembered[name])

    def sync(self) -> None:
        ran = {name: entry.last_run_at for name, entry in self.schedule.items()}
        last = {name: moment.isoformat() for name, moment in ran.items() if moment}
        draft = self._file.with_name(f".beat.{os.getpid()}")
        try:
            draft.write_text(json.dumps(last))
            draft.replace(self._file)
        except OSError as error:  # such as a full disk: the sweeps need the database only
            log.warning("beat.times_not_stored", error=describe_error(error))
            with contextlib.suppress(OSError):
                draft.unlink()


def _now() -> datetime:
    return datetime.now(UTC)


def _is_true(condition: Callable[[], object]) -> bool:
    """Whether the condition is true, or the database does not respond: the job then reports the
    error."""
    close_old_connections()
    try:
        return bool(condition())
    except (OperationalError, InterfaceError):
        connection.close()
        return True
