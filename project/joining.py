"""Joins calls that arrive at the same moment into groups: one job in a thread handles a group.

A call starts at once, in a group of its own, unless a group is running. Calls that arrive meanwhile
form the next group. So groups only form under load, nothing waits for a timer, and the busier the
server is, the less a call costs. Beside a group that takes long, another one starts.
"""

from __future__ import annotations

import asyncio
import functools
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Generic, Protocol, TypeVar

C = TypeVar("C")
R = TypeVar("R")
T = TypeVar("T")


# Seconds after which the next group may start although this one is still running.
_SLOW = 0.05


class InThread(Protocol):
    """Runs a function in one of the threads that serve requests (Threads.run)."""

    def __call__(self, work: Callable[[], T]) -> Awaitable[T]: ...


class Joiner(Generic[C, R]):
    """`work` takes the calls of a group and returns a result for each, or None for a call that it
    does not handle. A group has at most `most_calls` calls. One group runs at a time. Another starts
    beside it, up to `most_groups`, if all running groups have run for `slow` seconds."""

    def __init__(
        self,
        work: Callable[[Sequence[C]], Sequence[R | None]],
        in_thread: InThread,
        *,
        most_groups: int = 2,
        most_calls: int = 64,
        slow: float = _SLOW,
    ) -> None:
        self._work, self._in_thread = work, in_thread
        self._most_groups, self._most_calls, self._seconds = most_groups, most_calls, slow
        # The groups that run: whether each has been running for long.
        self._running: dict[asyncio.Task[None], bool] = {}
        # By owner, so that an owner of many calls does not delay the others.
        self._waiting: dict[Hashable, deque[tuple[C, asyncio.Future[R | None]]]] = {}

    async def ask(self, call: C, owner: Hashable) -> R | None:
        """The result of `call`, or None if `work` does not handle it. Raises what `work` raises."""
        done: asyncio.Future[R | None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(owner, deque()).append((call, done))
        self._start()
        return await done

    def _start(self) -> None:
        """Start a group if calls wait and one may run."""
        if (
            not self._waiting
            or len(self._running) >= self._most_groups
            or not all(self._running.values())
        ):
            return
        loop = asyncio.get_running_loop()
        task = loop.create_task(self._run(self._next_group()))
        self._running[task] = False
        timer = loop.call_later(self._seconds, self._let_another_start, task)
        task.add_done_callback(functools.partial(self._end, timer))

    def _let_another_start(self, task: asyncio.Task[None]) -> None:
        self._running[task] = True
        self._start()

    def _end(self, timer: asyncio.TimerHandle, task: asyncio.Task[None]) -> None:
        timer.cancel()
        del self._running[task]
        self._start()

    def _next_group(self) -> list[tuple[C, asyncio.Future[R | None]]]:
        """Take calls of the owners in turn. The calls of an owner keep their order."""
        group: list[tuple[C, asyncio.Future[R | None]]] = []
        while self._waiting and len(group) < self._most_calls:
            owner, calls = next(iter(self._waiting.items()))
            del self._waiting[owner]
            group.append(calls.popleft())
            if calls:
                self._waiting[owner] = calls
        return group

    async def _run(self, group: list[tuple[C, asyncio.Future[R | None]]]) -> None:
        calls = [call for call, done in group]
        try:
            results = await self._in_thread(lambda: self._work(calls))
        except Exception as error:
            for _, done in group:
                if not done.done():
                    done.set_exception(error)
            return
        for (_, done), result in zip(group, results, strict=True):
            if not done.done():
                done.set_result(result)
