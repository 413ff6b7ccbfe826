"""Sends concurrent writes in one request.

LangGraph stores the writes of the tasks of a step and, about a millisecond later (on a busy machine, several) and
in another thread, the next checkpoint. So the writes wait a moment for a checkpoint and are sent with it: one
request per step. Every call returns when its entries are stored. If the request of several calls fails, each call
is repeated on its own.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from commonhold.calls import Call

# How long the writes of a task wait for a checkpoint, in seconds.
MOMENT: Final = 0.01

E = TypeVar("E", threading.Event, asyncio.Event)


@dataclass(frozen=True)
class StoreEntries:
    """A step of a plan: store these entries. `render` returns the call that stores them, alone or with
    others. `waits`: whether to wait a moment for others."""

    operations: Sequence[dict[str, Any]]
    render: Callable[[Sequence[dict[str, Any]]], Call[Any]]
    waits: bool

    @property
    def call(self) -> Call[Any]:
        return self.render(self.operations)


@dataclass(eq=False)
class _Waiting(Generic[E]):
    puts: StoreEntries
    done: E
    stored: bool = False


class _Queue(Generic[E]):
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[_Waiting[E]] = []

    def add(self, own: _Waiting[E]) -> None:
        with self._lock:
            self._waiting.append(own)

    def take(self, own: _Waiting[E]) -> list[_Waiting[E]]:
        """All waiting calls, for one request. Empty if another call has taken `own` already."""
        with self._lock:
            if own not in self._waiting:
                return []
            taken, self._waiting = self._waiting, []
            return taken

    def remove(self, own: _Waiting[E]) -> None:
        """Remove a call that was cancelled or interrupted. The others continue to wait."""
        with self._lock, suppress(ValueError):
            self._waiting.remove(own)


def _join(taken: Sequence[_Waiting[E]]) -> Call[Any]:
    return taken[0].puts.render([each for one in taken for each in one.puts.operations])


def _finish(taken: Sequence[_Waiting[E]], *, stored: bool) -> None:
    for each in taken:
        each.stored = stored
        each.done.set()


class Joiner(_Queue[threading.Event]):
    """For threads."""

    def store(self, puts: StoreEntries, send: Callable[[Call[Any]], Any]) -> None:
        own = _Waiting(puts, threading.Event())
        taken: list[_Waiting[threading.Event]] = []
        stored = False
        try:
            self.add(own)
            if puts.waits:
                own.done.wait(MOMENT)
            taken = self.take(own)
            if len(taken) > 1:
                with suppress(Exception):
                    send(_join(taken))
                    stored = True
        finally:
            self.remove(own)
            _finish(taken, stored=stored)
        if not taken:
            own.done.wait()
        if not own.stored:
            send(puts.call)


class AsyncJoiner(_Queue[asyncio.Event]):
    """For the tasks of an event loop."""

    async def store(self, puts: StoreEntries, send: Callable[[Call[Any]], Awaitable[Any]]) -> None:
        own = _Waiting(puts, asyncio.Event())
        taken: list[_Waiting[asyncio.Event]] = []
        stored = False
        try:
            self.add(own)
            if puts.waits:
                with suppress(TimeoutError):
                    await asyncio.wait_for(own.done.wait(), MOMENT)
            taken = self.take(own)
            if len(taken) > 1:
                with suppress(Exception):
                    await send(_join(taken))
                    stored = True
        finally:
            self.remove(own)
            _finish(taken, stored=stored)
        if not taken:
            await own.done.wait()
        if not own.stored:
            await send(puts.call)
