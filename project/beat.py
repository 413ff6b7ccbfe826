"""Celery's schedule with a memory that survives kill -9: one small file, replaced by rename.

Celery's own is a dbm file, which a kill in the middle of a write can leave unreadable.
"""

from __future__ import annotations

import contextlib
import json
import os
from datetime import datetime
from pathlib import Path

from celery import beat

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
    """Remembers when each entry ran last: a daily job runs daily, however often we restart."""

    def setup_schedule(self) -> None:
        super().setup_schedule()
        self._file = memory()
        remembered: dict[str, str] = {}
        with contextlib.suppress(OSError, ValueError):
            remembered = json.loads(self._file.read_text())
        for name, entry in self.schedule.items():
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
