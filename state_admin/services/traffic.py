"""Counts the calls of the API by outcome, in memory. Every few seconds, the server's process adds
the counts to the database (project/asgi.py).

The counts are only shown in charts. Those that are not flushed when the process is killed are lost,
and those of a flush whose commit was not acknowledged are added twice.
"""

from __future__ import annotations

import threading
import time
from enum import IntEnum
from typing import Final

import structlog

from state_admin.models.traffic import Minute, add_calls

SAFE_METHODS: Final = ("GET", "HEAD", "OPTIONS")
_CONFLICTS = (409, 412)

log = structlog.get_logger()


class CallKind(IntEnum):
    """How a call is counted. The value is its index among the counts of a minute."""

    READ = 0
    WRITE = 1
    CONFLICT = 2
    FAILURE = 3


def kind_of_call(method: str | None, status: int) -> CallKind | None:
    """How a call with this response is counted: 409 and 412 as a conflict, 5xx as a failure, 2xx
    and 304 as a read or, for an unsafe method, as a write. None: other refused calls are not
    counted."""
    if status in _CONFLICTS:
        return CallKind.CONFLICT
    if status >= 500:
        return CallKind.FAILURE
    if 200 <= status < 300 or status == 304:
        return CallKind.READ if method in SAFE_METHODS else CallKind.WRITE
    return None


class Counter:
    """The calls of this process that are not flushed yet, by minute and outcome."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._calls: dict[Minute, list[int]] = {}

    def count(self, workspace_id: int, outcome: CallKind) -> None:
        """Count a call in the current minute."""
        minute = Minute(workspace_id, int(time.time()) // 60)
        with self._mutex:
            self._calls.setdefault(minute, [0] * len(CallKind))[outcome] += 1

    def flush(self) -> None:
        """Add the counts to the table. Never raises; after an error, the counts are kept for the
        next flush."""
        with self._mutex:
            calls, self._calls = self._calls, {}
        if not calls:
            return
        try:
            add_calls(calls)
        except Exception as error:
            log.warning("traffic.flush_failed", error=type(error).__name__)
            self._keep(calls)

    def _keep(self, calls: dict[Minute, list[int]]) -> None:
        with self._mutex:
            for minute, numbers in calls.items():
                since = self._calls.get(minute, [0] * len(CallKind))
                self._calls[minute] = [sum(pair) for pair in zip(numbers, since, strict=True)]


counter = Counter()
