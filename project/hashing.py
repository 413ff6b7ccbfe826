"""Hashes passwords in one thread of low priority, so that sign-ins cannot delay other requests.

A hash takes a CPU core for about half a second, and anyone can cause one. Every hash and every
check of a password uses this queue, because Django's hasher does: sign-in, a new password, the
confirmation of an action.
"""

from __future__ import annotations

import bisect
import contextlib
import functools
import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextvars import ContextVar
from dataclasses import dataclass, field

from django.contrib.auth.hashers import PBKDF2PasswordHasher

from project.threads import lend_current_thread

# The maximum number of waiting requests per process; equal to the number of hashes that a request
# waits for at most.
MOST_WAITING = 8
# Of the thread: other threads get CPU time first.
_NICENESS = 10

_rank: ContextVar[int] = ContextVar("rank", default=0)


class Busy(Exception):
    """Too many hashes are waiting. Try again in a few seconds."""


@contextlib.contextmanager
def ranked(rank: int) -> Iterator[None]:
    """Context manager: hashes inside it wait behind all of a lower rank. The default rank is 0."""
    token = _rank.set(rank)
    try:
        yield
    finally:
        _rank.reset(token)


@dataclass(order=True)
class _Job:
    rank: int
    number: int
    work: Callable[[], str] = field(compare=False)
    result: Future[str] = field(compare=False, default_factory=Future)


class HashingQueue:
    """A bounded queue in order of rank, then of arrival, and the one thread that processes it."""

    def __init__(self, most_waiting: int) -> None:
        self._most_waiting = most_waiting
        self._waiting: list[_Job] = []
        self._changed = threading.Condition()
        self._count = 0
        self._thread: threading.Thread | None = None

    def run(self, work: Callable[[], str], rank: int) -> str:
        """The result of `work`. Busy if the queue is full of jobs of the same or a lower rank, or
        if such jobs displaced this one."""
        with self._changed:
            self._count += 1
            job = _Job(rank, self._count, work)
            bisect.insort(self._waiting, job)
            if len(self._waiting) > self._most_waiting:
                self._waiting.pop().result.set_exception(Busy())
            if self._thread is None:  # not earlier: the web server forks before its first request
                self._thread = threading.Thread(target=self._work, name="hashing", daemon=True)
                self._thread.start()
            self._changed.notify_all()
        if not job.result.done():
            lend_current_thread()
        return job.result.result()

    def _work(self) -> None:
        if sys.platform == "linux":  # other systems have no priority per thread
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting)
                job = self._waiting.pop(0)
            try:
                job.result.set_result(job.work())
            except BaseException as error:
                job.result.set_exception(error)


QUEUE = HashingQueue(MOST_WAITING)


class QueuedPasswordHasher(PBKDF2PasswordHasher):
    """Django's default hasher, executed by the queue."""

    def encode(self, password: str, salt: str, iterations: int | None = None) -> str:
        work = functools.partial(super().encode, password, salt, iterations)
        return QUEUE.run(work, _rank.get())
