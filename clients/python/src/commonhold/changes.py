"""Following the change feed: server-sent events, over any number of connections.

`Feed` implements the protocol and stores the position, without I/O. `Watch` and `AsyncWatch` have the connection.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from typing import Any, Self

import httpx2

from commonhold.answers import Change
from commonhold.calls import (
    Reply,
    Retries,
    not_of_commonhold,
    problem_in,
    reply_of,
    unreachable,
)
from commonhold.problems import Problem

HEARTBEAT_TIMEOUT = 40.0
"""Seconds of silence after which a connection counts as dead; the server's heartbeat is 15 s."""

_TRY_AGAIN = frozenset({429, 500, 502, 503, 504})


class _StreamEnded(Exception):
    """A stream that ended before it began."""


class Feed:
    def __init__(self, cursor: str, filters: dict[str, str], retries: Retries) -> None:
        self.cursor = cursor
        self._filters = filters
        self._retries = retries
        self._rest = 2.0
        self._failed = 0
        self._ever_open = False
        self._rest_of_line = b""
        self._block: dict[str, str] = {}

    def arguments(self) -> dict[str, Any]:
        """The headers of the request that opens a connection."""
        return {
            "params": self._filters,
            "headers": {"Last-Event-ID": self.cursor} if self.cursor else {},
        }

    def begins(self, answer: httpx2.Response) -> bool:
        """Whether the response is a stream, to which further `lines` belong."""
        self._rest_of_line = b""
        self._block = {}
        kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
        return answer.status_code == 200 and kind == "text/event-stream"

    def opened(self) -> None:
        """The stream has sent a position."""
        self._failed = 0
        self._ever_open = True

    def lines(self, part: bytes) -> list[str]:
        """The lines that this part completes. Only a line feed ends one: values may contain U+2028."""
        *whole, self._rest_of_line = (self._rest_of_line + part).split(b"\n")
        return [line.removesuffix(b"\r").decode(errors="replace") for line in whole]

    def closed(self) -> float:
        """Seconds to wait before reconnecting; random, so that not all clients of a restarted server
        reconnect at once."""
        return random.uniform(self._rest / 2, self._rest)

    def refused(self, answer: Reply) -> float:
        """Seconds to wait after a response that is not a stream. Raises the problem if reconnecting
        would not help, such as Gone for an expired cursor. If the server requests a longer pause than
        `patience`, the watch fails unless it was connected before."""
        if answer.status < 300:
            raise not_of_commonhold(answer, "a stream")
        problem = problem_in(answer)
        retry_after, patience = problem.retry_after or 0.0, self._retries.patience
        if answer.status not in _TRY_AGAIN or (retry_after > patience and not self._ever_open):
            raise problem
        return max(min(retry_after, patience), self.failed(problem))

    def failed(self, error: Exception) -> float:
        """Seconds to wait after no response or a refusal. Before the first connection, the attempts are limited."""
        self._failed += 1
        if not self._ever_open and self._failed >= self._retries.attempts:
            if isinstance(error, Problem):
                raise error
            raise unreachable("GET /changes/stream", error) from error
        return self._retries.pause(min(self._failed, 10))

    def take(self, line: str) -> Change | None:
        """The change that this line completes."""
        if line:
            name, _, value = line.partition(":")
            self._block[name] = value.removeprefix(" ")
            return None
        block, self._block = self._block, {}
        if block.get("retry", "").isdecimal():
            self._rest = int(block["retry"]) / 1000
        self.cursor = block.get("id") or self.cursor
        if block.get("event") != "change":
            return None
        return Change.read(json.loads(block["data"]))


class Watch:
    """Iterates over all changes after the cursor (or from now on), without end. It continues after
    lost connections and restarts of the server, without gaps or repetitions. Store `cursor` to
    continue later.

    "Now" is when the `with` block begins or, without a block, when the first change is requested.
    Raises Gone if the cursor has expired: watch from now on, then read the state. Use it in one
    thread at a time; any thread may close it.
    """

    def __init__(
        self, http: Callable[[], httpx2.Client], url: str, feed: Feed, heartbeat_timeout: float
    ) -> None:
        self._http, self._url, self._feed = http, url, feed
        self._timeout = httpx2.Timeout(heartbeat_timeout, pool=None)
        self._answer: httpx2.Response | None = None
        self._lines: Iterator[str] = iter(())
        self._busy = threading.RLock()
        self._reads = False
        self._stopped = False
        self._wake: SimpleQueue[None] = SimpleQueue()  # A signal handler may put something into it.
        self._thread = 0
        self._process = 0

    @property
    def cursor(self) -> str:
        return self._feed.cursor

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Change:
        with self._reading():
            while not self._is_stopped():
                if self._answer is None:
                    self._open()
                    continue
                try:
                    for line in self._lines:
                        change = self._feed.take(line)
                        if change is not None:
                            return change
                except httpx2.RequestError:
                    pass
                self._disconnect()
                self._pause(self._feed.closed())
            self._disconnect()
            self._stopped, self._wake = False, SimpleQueue()
            self._http()  # ClientClosed says more than the end of the loop.
            raise StopIteration

    @contextmanager
    def _reading(self) -> Iterator[None]:
        with self._busy:
            self._thread, self._reads = threading.get_ident(), True
            try:
                yield
            finally:
                self._reads = False

    def _open(self) -> None:
        while True:
            http = self._http()
            if self._is_stopped():
                return
            try:
                request = http.build_request(
                    "GET", self._url, timeout=self._timeout, **self._feed.arguments()
                )
                answer = http.send(request, stream=True)
                if self._feed.begins(answer):
                    self._process = os.getpid()
                    self._answer, self._lines = answer, self._read(answer)
                    if self._is_stopped():
                        return
                    # The first block contains the position: from then on no change is missed.
                    for line in self._lines:
                        self._feed.take(line)
                        if not line:
                            self._feed.opened()
                            return
                    raise _StreamEnded
                # A success that is not a stream may have no end.
                is_failure = answer.status_code >= 300
                part = answer.read() if is_failure else next(answer.iter_bytes(), b"")
                answer.close()
                pause = self._feed.refused(reply_of(answer, part))
            except (httpx2.RequestError, _StreamEnded) as error:
                self._disconnect()
                if self._is_stopped():
                    return
                pause = self._feed.failed(error)
            self._pause(pause)

    def _read(self, answer: httpx2.Response) -> Iterator[str]:
        for part in answer.iter_bytes():
            yield from self._feed.lines(part)

    def _pause(self, seconds: float) -> None:
        with suppress(Empty):
            self._wake.get(timeout=seconds)

    def _disconnect(self) -> None:
        if self._answer is not None:
            self._answer.close()
        self._answer = None

    def _is_stopped(self) -> bool:
        return self._stopped

    def close(self) -> None:
        """Close the connection. A loop over the watch in another thread ends, also if a signal handler
        calls this. `cursor` stays: a later iteration continues from it."""
        if self._reads or self._thread != threading.get_ident():
            self._stopped = True
            self._wake.put(None)
            if self._answer is not None and self._process == os.getpid():
                _hang_up(self._answer)
        # The thread that reads closes its connection itself.
        if not self._reads and self._busy.acquire(blocking=False):
            try:
                self._disconnect()
            finally:
                self._busy.release()

    def __enter__(self) -> Self:
        with self._reading():
            self._open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _hang_up(answer: httpx2.Response) -> None:
    """End the connection under the thread that reads from it: to close it would not wake the thread."""
    stream = answer.extensions.get("network_stream")
    connection = None if stream is None else stream.get_extra_info("socket")
    if isinstance(connection, socket.socket):
        with suppress(OSError):
            # `shutdown` of an SSLSocket would also remove the encryption.
            socket.socket.shutdown(connection, socket.SHUT_RDWR)


class AsyncWatch:
    """See Watch. Use it in one task at a time; any task of the same loop may close it."""

    def __init__(
        self,
        http: Callable[[], httpx2.AsyncClient],
        url: str,
        feed: Feed,
        heartbeat_timeout: float,
    ) -> None:
        self._http, self._url, self._feed = http, url, feed
        self._timeout = httpx2.Timeout(heartbeat_timeout, pool=None)
        self._answer: httpx2.Response | None = None
        self._lines: AsyncIterator[str]
        self._reads = False
        self._stopped = False
        self._wake: asyncio.Future[None] | None = None
        self._task: asyncio.Task[Any] | None = None

    @property
    def cursor(self) -> str:
        return self._feed.cursor

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Change:
        with self._reading():
            while not self._is_stopped():
                if self._answer is None:
                    await self._open()
                    continue
                try:
                    async for line in self._lines:
                        change = self._feed.take(line)
                        if change is not None:
                            return change
                except httpx2.RequestError:
                    pass
                await self._disconnect()
                self._http()  # Without a pause if the client was closed.
                await self._pause(self._feed.closed())
            await self._disconnect()
            self._stopped = False
            raise StopAsyncIteration

    @contextmanager
    def _reading(self) -> Iterator[None]:
        self._task, self._reads = asyncio.current_task(), True
        try:
            yield
        finally:
            self._reads = False

    async def _open(self) -> None:
        while True:
            http = self._http()
            if self._is_stopped():
                return
            try:
                request = http.build_request(
                    "GET", self._url, timeout=self._timeout, **self._feed.arguments()
                )
                answer = await http.send(request, stream=True)
                if self._feed.begins(answer):
                    self._answer, self._lines = answer, self._read(answer)
                    if self._is_stopped():
                        return
                    async for line in self._lines:
                        self._feed.take(line)
                        if not line:
                            self._feed.opened()
                            return
                    raise _StreamEnded
                is_failure = answer.status_code >= 300
                part = await (answer.aread() if is_failure else anext(answer.aiter_bytes(), b""))
                await answer.aclose()
                pause = self._feed.refused(reply_of(answer, part))
            except (httpx2.RequestError, _StreamEnded) as error:
                await self._disconnect()
                if self._is_stopped():
                    return
                pause = self._feed.failed(error)
            await self._pause(pause)

    async def _read(self, answer: httpx2.Response) -> AsyncIterator[str]:
        async for part in answer.aiter_bytes():
            for line in self._feed.lines(part):
                yield line

    async def _pause(self, seconds: float) -> None:
        if self._is_stopped():
            return
        self._wake = asyncio.get_running_loop().create_future()
        await asyncio.wait([self._wake], timeout=seconds)

    async def _disconnect(self) -> None:
        answer, self._answer = self._answer, None
        if answer is not None:
            await answer.aclose()

    def _is_stopped(self) -> bool:
        return self._stopped

    async def close(self) -> None:
        """Close the connection. A loop over the watch in another task ends. `cursor` stays: a later
        iteration continues from it."""
        if self._reads or self._task is not asyncio.current_task():
            self._stopped = True
            if self._wake is not None and not self._wake.done():
                self._wake.set_result(None)
        await self._disconnect()

    async def __aenter__(self) -> Self:
        with self._reading():
            await self._open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
