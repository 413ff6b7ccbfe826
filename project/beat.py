"""Celery's schedule with a memory that survives kill -9: one small file, replaced by rename.

Celery's own is a dbm file, which a kill in the middle of a write can leave unreadable.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from celery import beat
from django.db import InterfaceError, OperationalError, close_old_connections, connection

from project.env import data_dir


def memory() -> Path:
    """Where beat remembers what it started when: there on the machine that it runs on."""
    return data_dir() / "beat.json"


def newest() -> datetime | None:
    """When beat last started a job, None where it has no memory or an unreadable one."""
    try:
        moments = [
            datetime.fromisoformat(text) for text in json.loads(memory().read_text()).values()
        ]
    except (OSError, ValueError, TypeError, AttributeError):
        return None
    return max((moment for moment in moments if moment.tzinfo), default=None)


class Scheduler(beat.Scheduler):
    """Remembers when each entry ran last: a daily job runs daily, however often we restart.

    `conditions` maps names of entries to a cheap check of whether the job would find work. A job
    that would not is skipped: starting it costs a message, a thread and several statements.
    """

    conditions: dict[str, Callable[[], bool]] = {}

    def schedules_equal(self, *_: Any) -> bool:
        """Compared before each tick; ours never changes while beat runs."""
        return True

    def adjust(self, n: float, drift: float = 0.0) -> float:
        """When an entry is due. Celery's own wakes 10 ms before and spins until then: with jobs of
        every second, most of what an idle server used."""
        return n

    def apply_entry(self, entry: beat.ScheduleEntry, producer: Any = None) -> None:
        condition = self.conditions.get(str(entry.name))
        if condition is None or _holds(condition):
            super().apply_entry(entry, producer=producer)

    def setup_schedule(self) -> None:
        super().setup_schedule()
        self._file = memory()
        remembered: dict[str, str] = {}
        with contextlib.suppress(OSError, ValueError):
            remembered = json.loads(self._file.read_text())
        for name, entry in self.schedule.items():
            # Celery's own converts between time zones several times per second.
            vars(entry.schedule)["nowfun"] = _now
            with contextlib.suppress(KeyError, TypeError, ValueError):
                entry.last_run_at = datetime.fromisoformat(remembered[name])

    def sync(self) -> None:
        ran = {name: entry.last_run_at for name, entry in self.schedule.items()}
        last = {name: moment.isoformat() for name, moment in ran.items() if moment}
        draft = self._file.with_name(f".beat.{os.getpid()}")
        draft.write_text(json.dumps(last))
        draft.replace(self._file)

    @property
    def info(self) -> str:
        return f"    . file -> {self._file}"


def _now() -> datetime:
    return datetime.now(UTC)


def _holds(condition: Callable[[], bool]) -> bool:
    """Whether the condition holds; also when the database cannot be asked: the job reports why."""
    close_old_connections()
    try:
        return condition()
    except (OperationalError, InterfaceError):
        connection.close()
        return True
