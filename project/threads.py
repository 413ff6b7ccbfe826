"""The threads in which synchronous code answers requests; each keeps its database connection."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue

from django.db import connections

# A stuck reader holds a thread, so lent threads are replaced; beyond this many, they are not.
_MOST_LENT = 32


class Threads:
    """`count` threads take jobs from one queue. A job that turns long lends its thread away."""

    def __init__(self, count: int) -> None:
        self._jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._mutex = threading.Lock()
        self._lent = 0
        self._local = threading.local()
        for _ in range(count):
            self._add()

    def submit(self, job: Callable[[], None]) -> None:
        self._jobs.put(job)

    def lend(self) -> None:
        """Called inside a job that will take long: a new thread takes this one's place."""
        with self._mutex:
            if self._lent >= _MOST_LENT or getattr(self._local, "leaving", False):
                return
            self._lent += 1
        self._local.leaving = True
        self._add()

    def _add(self) -> None:
        threading.Thread(target=self._work, name="request", daemon=True).start()

    def _work(self) -> None:
        while not getattr(self._local, "leaving", False):
            job = self._jobs.get()
            job()
            del job  # do not keep the last request's body until the next one comes
        connections.close_all()
        with self._mutex:
            self._lent -= 1
