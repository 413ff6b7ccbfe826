"""The threads in which synchronous code handles requests. Each keeps its database connection."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from queue import SimpleQueue
from typing import TypeVar

from django.db import close_old_connections, connections

T = TypeVar("T")

# A stream with a slow reader occupies its thread, so a lent thread is replaced, up to this many.
_MOST_LENT = 32

_current = threading.local()


def lend_current_thread() -> None:
    """Replace the current thread by a new one, because the request starts to wait for long. Does
    nothing in a thread that does not belong to `Threads`."""
    threads: Threads | None = getattr(_current, "threads", None)
    if threads is not None:
        threads.lend()


class Threads:
    """`count` threads that take jobs from one queue. A job that waits for long can lend its
    thread."""

    def __init__(self, count: int) -> None:
        self._jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._mutex = threading.Lock()
        self._lent = 0
        self._local = threading.local()
        for _ in range(count):
            self._add()

    async def run(self, work: Callable[[], T]) -> T:
        """Run `work`, which may use the database, in a thread and await its result."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()

        def settle(conclude: Callable[[], None]) -> None:
            if not done.cancelled():
                conclude()

        def job() -> None:
            try:
                close_old_connections()  # as before a request: replaces a lost connection
                conclude = partial(done.set_result, work())
            except Exception as raised:
                conclude = partial(done.set_exception, raised)
            with contextlib.suppress(RuntimeError):  # loop closed: nothing awaits the result
                loop.call_soon_threadsafe(settle, conclude)

        self.submit(job)
        return await done

    def submit(self, job: Callable[[], None]) -> None:
        """Run `job` in a thread, in a copy of the caller's context, so that it cannot change that
        context."""
        self._jobs.put(partial(copy_context().run, job))

    def lend(self) -> None:
        """Called inside a job that will wait for long: a new thread replaces this one."""
        with self._mutex:
            if self._lent >= _MOST_LENT or getattr(self._local, "leaving", False):
                return
            self._lent += 1
        self._local.leaving = True
        self._add()

    def _add(self) -> None:
        threading.Thread(target=self._work, name="request", daemon=True).start()

    def _work(self) -> None:
        _current.threads = self
        while not getattr(self._local, "leaving", False):
            job = self._jobs.get()
            job()
            del job  # release the last request's body while waiting
        connections.close_all()
        with self._mutex:
            self._lent -= 1
