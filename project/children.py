"""A child process of the supervisor: start, restart with increasing pauses, stop."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import structlog

from project.env import BASE_DIR, data_dir

log = structlog.get_logger(__name__)

# Seconds between SIGTERM and the abort of requests that are still running.
DRAIN_SECONDS = 10

_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 10.0
# A process that has run this long is healthy: the next pause is short again.
_HEALTHY_AFTER = 30.0


class Child:
    """`python -m project.processes <role>` in its own session, so that Ctrl-C does not reach it."""

    def __init__(self, role: str) -> None:
        self.role = role
        self.deaths = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._pause = _FIRST_PAUSE
        self._started = 0.0
        self._due = 0.0

    @property
    def running(self) -> bool:
        return self._process is not None

    def start(self) -> None:
        self._started = time.monotonic()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "project.processes", self.role],
            cwd=BASE_DIR,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            env={
                **os.environ,
                "COMMONHOLD_ROLE": self.role,
                "COMMONHOLD_SUPERVISOR": str(os.getpid()),
                # a relative path is relative to the supervisor's folder
                "COMMONHOLD_DATA_DIR": str(data_dir()),
            },
        )

    def restart_if_ended(self) -> None:
        """Start it again if it has ended and the pause is over."""
        now = time.monotonic()
        if self._process is None:
            if now >= self._due:
                self.start()
        elif self._process.poll() is not None:
            if now - self._started > _HEALTHY_AFTER:
                self._pause = _FIRST_PAUSE
            log.warning(
                "child.died",
                child=self.role,
                code=self._process.returncode,
                again_in_seconds=self._pause,
            )
            self.deaths += 1
            _kill_group(self._process)  # the processes that it started
            self._process = None
            self._due = now + self._pause
            self._pause = min(self._pause * 2, _LONGEST_PAUSE)

    def stop(self, *, patience: float, hurried: Callable[[], bool]) -> None:
        """Send SIGTERM, and SIGKILL to its process group after `patience` seconds or when
        `hurried`."""
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        deadline = time.monotonic() + patience
        while process.poll() is None and time.monotonic() < deadline and not hurried():
            time.sleep(0.02)
        if process.poll() is None:
            log.warning("child.killed", child=self.role)
        _kill_group(process)
        process.wait()


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
