"""Joins calls that arrive at the same moment into groups: one job in a thread handles a group.

There is no timer. A call starts at once, in a group of its own, unless the maximum number of groups is
running. Calls that arrive meanwhile form the next group. So groups only form under load, and the
busier the server is, the less a call costs.
"""

from __future__ import annotations

import asyncio
import functools
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

C = TypeVar("C")
R = TypeVar("R")
T = TypeVar("T")


class InThread(Protocol):
    """Runs a function in one of the threads that serve requests (Threads.run)."""

    def __call__(self, work: Callable[[], T]) -> Awaitable[T]: ...


class _Waiting(NamedTuple, Generic[C, R]):
    call: C
    target: Hashable
    done: asyncio.Future[R | None]


class Joiner(Generic[C, R]):
    """`work` takes the calls of a group and returns a result for each, or None for a call that it does
    not handle. A group has at most `most_calls`. At most `most_groups` run at a time."""

    def __init__(
        self,
        work: Callable[[Sequence[C]], Sequence[R | None]],
        in_thread: InThread,
        *,
        most_groups: int = 2,
        most_calls: int = 64,
    ) -> None:
        self._work, self._in_thread = work, in_thread
        self._most_groups, self._most_calls = most_groups, most_calls
        self._running = 0
        # By owner, so that an owner of many calls does not delay the others.
        self._waiting: dict[Hashable, deque[_Waiting[C, R]]] = {}
        # The targets of the groups that run.
        self._busy: set[Hashable] = set()

    async def ask(self, call: C, owner: Hashable, target: Hashable = None) -> R | None:
        """The result of `call`, or None if `work` does not handle it. Raises what `work` raises.

        A call waits while a running group has a call with the same `target`: both would need the same
        row lock. Calls without a target never wait for each other.
        """
        done: asyncio.Future[R | None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(owner, deque()).append(_Waiting(call, target, done))
        self._start()
        return await done

    def _start(self) -> None:
        """Start as many groups as may run."""
        while self._running < self._most_groups and (group := self._next_group()):
            targets = {each.target for each in group} - {None}
            self._busy |= targets
            self._running += 1
            task = asyncio.get_running_loop().create_task(self._run(group))
            task.add_done_callback(functools.partial(self._end, targets))

    def _end(self, targets: set[Hashable], task: asyncio.Task[None]) -> None:
        self._busy -= targets
        self._running -= 1
        self._start()

    def _next_group(self) -> list[_Waiting[C, R]]:
        """Take calls of the owners in turn. The calls of an owner with one target keep their order."""
        group: list[_Waiting[C, R]] = []
        owners = deque(self._waiting)
        while owners and len(group) < self._most_calls:
            owner = owners.popleft()
            calls = self._waiting.pop(owner)
            taken = self._take(calls)
            if calls:
                self._waiting[owner] = calls
            if taken is not None:
                group.append(taken)
                if calls:
                    owners.append(owner)
        return group

    def _take(self, calls: deque[_Waiting[C, R]]) -> _Waiting[C, R] | None:
        """Remove the first of `calls` that need not wait."""
        for place, each in enumerate(calls):
            if each.target is None or each.target not in self._busy:
                del calls[place]
                return each
        return None

    async def _run(self, group: list[_Waiting[C, R]]) -> None:
        calls = [each.call for each in group]
        try:
            results = await self._in_thread(lambda: self._work(calls))
        except Exception as error:
            for each in group:
                if not each.done.done():
                    each.done.set_exception(error)
            return
        for each, result in zip(group, results, strict=True):
            if not each.done.done():
                each.done.set_result(result)
