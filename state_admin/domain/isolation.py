"""Runs validations that may take long in a process of their own.

A validation is one call of native code that holds Python's interpreter lock: the process serves no
other request meanwhile, and nothing can interrupt it. A validation that may take long therefore
runs in a child process with its own limits. Each process has one child, which starts at the first
use and ends with its parent. The child's code is in validation_process.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Final, cast

from state_admin.domain.values import JSON

CPU_SECONDS: Final = 1.0
MEMORY_BYTES: Final = 1 << 30
# Longer than this only if the child is suspended or gets no CPU time.
_WALL_SECONDS: Final = 30.0
_TURN_SECONDS: Final = 0.5
OUT_OF_MEMORY: Final = 3
# How a child ends at its limits, in native code too, or if the machine is out of memory.
_LIMITED: Final = (OUT_OF_MEMORY, -signal.SIGPROF, -signal.SIGABRT, -signal.SIGKILL)
_ROOT: Final = Path(__file__).resolve().parents[2]
_START: Final = "from state_admin.domain.validation_process import serve; serve"


class ValidationLimitExceeded(Exception):
    """The validation exceeded its limit of CPU time or memory."""


class Busy(Exception):
    """Other validations keep the child busy: nothing was validated. Try again."""


class Child:
    """A process that validates values. Safe to share between threads, which use it in turn."""

    def __init__(self, cpu_seconds: float = CPU_SECONDS, memory_bytes: int = MEMORY_BYTES) -> None:
        self._limits = f"{cpu_seconds}, {memory_bytes}"
        self._turn = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        os.register_at_fork(after_in_child=self._forget)

    def ask(self, request: dict[str, JSON]) -> Any:
        """What `validation_process.answer` returns in the child. Raises ValidationLimitExceeded;
        Busy if other validations keep the child busy; RuntimeError if the child ends for any other
        reason."""
        with self.turn():
            return self._exchange(json.dumps(request).encode() + b"\n")

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Reserve the child for this thread. Raises Busy."""
        if not self._turn.acquire(timeout=_TURN_SECONDS):
            raise Busy("the server is busy with other validations")
        try:
            yield
        finally:
            self._turn.release()

    def is_busy(self) -> bool:
        return self._turn.locked()

    def stop(self) -> None:
        """End the process; the next request starts another."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with contextlib.suppress(BrokenPipeError):
                        pipe.close()

    def _exchange(self, line: bytes) -> Any:
        process = self._running()
        requests = cast(IO[bytes], process.stdin)
        replies = cast(IO[bytes], process.stdout)
        try:
            with contextlib.suppress(BrokenPipeError):  # the exit status, read below, says why
                requests.write(line)
                requests.flush()
            ready, _, _ = select.select([replies], [], [], _WALL_SECONDS)
            reply = replies.readline() if ready else b""
            if reply.endswith(b"\n"):
                return json.loads(reply)
            status = process.wait(_WALL_SECONDS) if ready else -signal.SIGKILL
        except BaseException:
            self.stop()
            raise
        self.stop()
        if status in _LIMITED:
            raise ValidationLimitExceeded
        raise RuntimeError(f"the validating process ended with status {status}")

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is not None:
            self.stop()
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-c", f"{_START}({self._limits})"],
                cwd=_ROOT,
                env={"PYTHONPATH": str(_ROOT)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
        return self._process

    def _forget(self) -> None:
        """After a fork the child belongs to the parent."""
        self._turn = threading.Lock()
        self._process = None


CHILD: Final = Child()
