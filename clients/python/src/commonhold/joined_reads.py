"""Sends reads of entries that are started in the same turn of an event loop in one request.

`asyncio.gather` starts all of its calls in one turn. The first of them schedules a function that runs after
this turn and sends what has come together as batches. A batch is sent by a task of its own, so that a call
that is cancelled leaves the others alone. If the result in a batch can differ from
that of a separate request, the call sends a separate request.
"""

from __future__ import annotations

import asyncio
import copy
import itertools
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from commonhold.answers import BatchResult, Entry
from commonhold.calls import Call, is_transient
from commonhold.entries import MOST_OPERATIONS, run_batch
from commonhold.problems import Problem, TooLarge, Unauthenticated, Unreachable, problem_of

# None: the call must be sent on its own.
Reply: TypeAlias = "asyncio.Future[Entry | None]"


@dataclass(frozen=True, eq=False)
class _Read:
    call: Call[Any]
    reply: Reply


class ReadJoiner:
    """`send` makes one call, retries included. There is one list of waiting reads for each event loop."""

    def __init__(self, send: Callable[[Call[Any]], Awaitable[Any]]) -> None:
        self._send = send
        self._waiting: dict[asyncio.AbstractEventLoop, list[_Read]] = {}
        self._batches: set[asyncio.Task[None]] = (
            set()
        )  # The event loop itself keeps only weak ones.

    async def read(self, call: Call[Any]) -> Any:
        """The result of `call`, which has an `operation`. Raises what it raises on its own."""
        loop = asyncio.get_running_loop()
        own = _Read(call, loop.create_future())
        if loop not in self._waiting:
            self._waiting[loop] = []
            loop.call_soon(self._start, loop)
        self._waiting[loop].append(own)
        entry = await own.reply
        return await self._send(call) if entry is None else entry

    def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        reads = [each for each in self._waiting.pop(loop) if not each.reply.done()]
        for first in range(0, len(reads), MOST_OPERATIONS):
            part = reads[first : first + MOST_OPERATIONS]
            if len(part) == 1:
                part[0].reply.set_result(None)
                continue
            batch = loop.create_task(self._fetch(part))
            self._batches.add(batch)
            batch.add_done_callback(self._batches.discard)
            _cancel_with(batch, part)

    async def _fetch(self, reads: Sequence[_Read]) -> None:
        operations = [each.call.operation or {} for each in reads]
        try:
            results = await self._send(run_batch(operations, atomic=False))
            for read, result in zip(reads, results, strict=True):
                _settle(read.reply, result)
        except Exception as error:
            for read in reads:
                _refuse(read.reply, error)
        finally:
            for read in reads:  # Of a loop that ends.
                read.reply.cancel()


def _cancel_with(batch: asyncio.Task[None], reads: Sequence[_Read]) -> None:
    """Cancel the batch when all of its calls are cancelled."""
    cancelled = itertools.count(1)

    def on_done(reply: Reply) -> None:
        if reply.cancelled() and next(cancelled) == len(reads):
            batch.cancel()

    for each in reads:
        each.reply.add_done_callback(on_done)


def _settle(reply: Reply, result: BatchResult) -> None:
    if reply.done():  # It was cancelled.
        return
    if result.problem is None:
        reply.set_result(result.entry)
        return
    problem = problem_of(result.status, result.problem)
    if is_transient(problem) or isinstance(problem, TooLarge):  # The values of a batch are limited.
        reply.set_result(None)
    else:
        reply.set_exception(problem)


def _refuse(reply: Reply, error: Exception) -> None:
    """After a failed batch: what every single call would raise too is not requested again. A refusal may be
    due to one of the operations, or to their number."""
    if reply.done():
        return
    if isinstance(error, Unreachable | Unauthenticated) or (
        isinstance(error, Problem) and is_transient(error)
    ):
        own = copy.copy(error)  # Each has a traceback of its own.
        own.__cause__ = error
        reply.set_exception(own)
    else:
        reply.set_result(None)
