"""The threads in which synchronous code handles requests. Each keeps its database connection.

Reads and writes wait in queues of their own, so that a read does not wait for hundreds of writes.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
import threading
from collections import deque
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from typing import TypeVar

from django.db import close_old_connections, connections

from state_admin.services.traffic import SAFE_METHODS

T = TypeVar("T")

# A stream with a slow reader occupies its thread, so a lent thread is replaced, up to this many.
_MOST_LENT = 32

_current = threading.local()

Job = Callable[[], None]


class RequestKind(enum.Enum):
    READ = "read"
    WRITE = "write"


def request_kind_of(method: str) -> RequestKind:
    """The kind of a request with this HTTP method."""
    return RequestKind.READ if method in SAFE_METHODS else RequestKind.WRITE


def lend_current_thread() -> None:
    """Replace the current thread by a new one, because the request starts to wait for long. Does
    nothing in a thread that does not belong to `Threads`."""
    threads: Threads | None = getattr(_current, "threads", None)
    if threads is not None:
        threads.lend()


class Threads:
    """`count` threads that take jobs from two queues, in turn. Jobs of one queue run in at most `count - 1`
    threads at a time, even if they wait for locks. With `count` 1, both queues use the only thread. A job
    that waits for long can lend its thread."""

    def __init__(self, count: int) -> None:
        self._limit_per_kind = max(1, count - 1)
        # Notified of each job. Protects everything below.
        self._condition = threading.Condition()
        self._waiting: dict[RequestKind, deque[Job]] = {kind: deque() for kind in RequestKind}
        self._running = dict.fromkeys(RequestKind, 0)
        # The kind whose turn it is.
        self._preferred, self._other = RequestKind
        self._lent = 0
        self._local = threading.local()
        for _ in range(count):
            self._add()

    async def run(self, work: Callable[[], T]) -> T:
        """Run `work`, which is short and may use the database, in a thread and await its
        result. It is queued as a read."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()

        def settle(conclude: Callable[[], None]) -> None:
            if not done.cancelled():
                conclude()

        def job() -> None:
            try:
                close_old_connections()  # as before a request: replaces a lost connection
                conclude = partial(done.set_result, work())
            except BaseException as raised:
                conclude = partial(done.set_exception, raised)
            with contextlib.suppress(RuntimeError):  # loop closed: nothing awaits the result
                loop.call_soon_threadsafe(settle, conclude)

        self.submit(job, RequestKind.READ)
        return await done

    def submit(self, job: Job, kind: RequestKind) -> None:
        """Run `job` in a thread, in a copy of the caller's context, so that it cannot change that
        context."""
        with self._condition:
            self._waiting[kind].append(partial(copy_context().run, job))
            self._condition.notify()

    def lend(self) -> None:
        """Called inside a job that will wait for long: a new thread replaces this one."""
        with self._condition:
            if self._lent >= _MOST_LENT or self._local.leaving:
                return
            self._lent += 1
            self._running[self._local.kind] -= 1
        self._local.leaving = True
        self._add()

    def _add(self) -> None:
        threading.Thread(target=self._work, name="request", daemon=True).start()

    def _work(self) -> None:
        _current.threads = self
        self._local.leaving = False
        while not self._local.leaving:
            job, self._local.kind = self._take()
            try:
                job()
            finally:
                del job  # release the last request's body while waiting
                if not self._local.leaving:
                    with self._condition:
                        self._running[self._local.kind] -= 1
        connections.close_all()
        with self._condition:
            self._lent -= 1

    def _take(self) -> tuple[Job, RequestKind]:
        """Wait for a job that may run."""
        with self._condition:
            while True:
                for kind in (self._preferred, self._other):
                    if self._waiting[kind] and self._running[kind] < self._limit_per_kind:
                        if kind is self._preferred:
                            self._preferred, self._other = self._other, self._preferred
                        self._running[kind] += 1
                        return self._waiting[kind].popleft(), kind
                self._condition.wait()
