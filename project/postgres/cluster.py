"""The embedded PostgreSQL: one server per folder, shared by every process that needs it.

There are two locks, which the kernel releases when their process ends, so that no count can be
wrong: `start.lock` (exclusive) serializes starting and stopping. `users.lock` is held shared by
each user; a process that gets it exclusively was the last user and stops the server. A server whose
users were all killed keeps running and is used by the next one.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import threading
from collections.abc import Iterator
from pathlib import Path

from project.postgres.server import Server


class Cluster(Server):
    """The server of `folder`, with the locks that let many processes share it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._users: int | None = None
        self._owner = 0
        self._mutex = threading.RLock()

    def acquire(self) -> None:
        """Make sure that the server accepts connections, and register this process as its user
        until it ends."""
        with self._mutex:
            if self._users is not None and self.is_up():
                return
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._starting():
                if self._users is None:
                    self._users = self._open("users.lock")
                    fcntl.flock(self._users, fcntl.LOCK_SH)
                    self._owner = os.getpid()
                    atexit.register(self.release)
                if not self.is_up():
                    self.start_or_wait()

    def release(self) -> None:
        """Unregister this process; the last user stops the server. A forked child was never
        registered."""
        with self._mutex:
            if self._users is None or self._owner != os.getpid():
                return
            users, self._users = self._users, None
            atexit.unregister(self.release)
            if not self.folder.exists():
                os.close(users)
                return
            with self._starting():
                try:
                    fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    return
                else:
                    self.stop()
                finally:
                    os.close(users)

    def _open(self, name: str) -> int:
        return os.open(self.folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    @contextlib.contextmanager
    def _starting(self) -> Iterator[None]:
        lock = self._open("start.lock")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)
