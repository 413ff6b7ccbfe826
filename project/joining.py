"""Joins calls that arrive at the same moment into groups: one task on the event loop handles a group.

A call starts at once, in a group of its own, unless a group is running. Calls that arrive meanwhile
form the next group. So groups only form under load, nothing waits for a timer, and the busier the
server is, the less a call costs. Beside a group that takes long, another one starts.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Generic, NamedTuple, TypeVar

from project import tracing

C = TypeVar("C")
R = TypeVar("R")
S = TypeVar("S")


# Seconds after which the next group may start although this one is still running.
_SLOW = 0.05


class _Waiting(NamedTuple, Generic[C, R]):
    """A call that waits for its group. `span`: that of its request (project/tracing.py)."""

    call: C
    done: asyncio.Future[R | None]
    span: Any


class Joiner(Generic[C, R, S]):
    """`work` takes the calls of a group and a session, and returns a result for each call, or None for
    one that it does not handle. `take` gives a session to each group. `name` is that of its span. The
    weights of the calls in a group sum to at most `most`, unless it is a single call. One group runs at
    a time. Another starts beside it, up to `most_groups`, if all running groups have run for `slow`
    seconds."""

    def __init__(
        self,
        work: Callable[[Sequence[C], S], Awaitable[Sequence[R | None]]],
        take: Callable[[], AbstractAsyncContextManager[S]],
        *,
        weigh: Callable[[C], int] = lambda call: 1,
        name: str = "joined calls",
        most: int = 64,
        most_groups: int = 2,
        slow: float = _SLOW,
    ) -> None:
        self._work, self._take, self._weigh, self._name = work, take, weigh, name
        self._most, self._most_groups, self._seconds = most, most_groups, slow
        # The groups that run: whether each has been running for long.
        self._running: dict[asyncio.Task[None], bool] = {}
        # By owner, so that an owner of many calls does not delay the others.
        self._waiting: dict[Hashable, deque[_Waiting[C, R]]] = {}

    async def ask(self, call: C, owner: Hashable) -> R | None:
        """The result of `call`, or None if `work` does not handle it. Raises what `work` raises."""
        done: asyncio.Future[R | None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(owner, deque()).append(_Waiting(call, done, tracing.current()))
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
        task = loop.create_task(self._run(), context=contextvars.Context())
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

    def _next_group(self) -> list[_Waiting[C, R]]:
        """Take calls of the owners in turn. The calls of an owner keep their order."""
        group: list[_Waiting[C, R]] = []
        room = self._most
        while self._waiting:
            owner, calls = next(iter(self._waiting.items()))
            room -= self._weigh(calls[0].call)
            if group and room < 0:
                break
            del self._waiting[owner]
            group.append(calls.popleft())
            if calls:
                self._waiting[owner] = calls
        return group

    async def _run(self) -> None:
        # The calls that arrive in the same turn of the event loop belong to the group.
        await asyncio.sleep(0)
        group = self._next_group()
        calls = [each.call for each in group]
        try:
            with tracing.group(self._name, [each.span for each in group]):
                async with self._take() as session:
                    results = await self._work(calls, session)
        except Exception as error:
            for each in group:
                if not each.done.done():
                    each.done.set_exception(error)
            return
        for each, result in zip(group, results, strict=True):
            if not each.done.done():
                each.done.set_result(result)
