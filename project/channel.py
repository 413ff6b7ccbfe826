"""Responses that continue on the event loop: a stream, or a long poll that waits without a thread.

A view gives its response the attribute `on_loop`, an async function of a Channel and the Answer.
The bridge calls it instead of sending the response. It may send parts as they are ready, call
Django again with the same request, or send the response unchanged.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import structlog

from project.threads import Threads

log = structlog.get_logger(__name__)

Header = tuple[bytes, bytes]
Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

T = TypeVar("T")

# Seconds after which a client that does not read is disconnected.
STALLED_SECONDS = 60.0
# Statuses of responses that have no body.
_BODILESS = (204, 304)


OnLoop = Callable[["Channel", "Answer"], Awaitable[None]]


@dataclass(frozen=True)
class Answer:
    """A complete response of Django."""

    status: int
    headers: list[Header]
    body: bytes
    on_loop: OnLoop | None = None

    def start(self) -> Message:
        """The message that begins it."""
        return {"type": "http.response.start", "status": self.status, "headers": self.headers}


def headers_of(headers: Mapping[str, str]) -> list[Header]:
    """As ASGI sends them."""
    return [(name.lower().encode(), text.encode()) for name, text in headers.items()]


async def send_answer(answer: Answer, send: Send) -> None:
    """Send a complete response. Without its length, the server would send it in chunks."""
    headers = answer.headers
    if answer.status not in _BODILESS and all(n != b"content-length" for n, _ in headers):
        headers.append((b"content-length", b"%d" % len(answer.body)))
    await send(answer.start())
    await send({"type": "http.response.body", "body": answer.body})


class Channel:
    """The connection to a client whose response continues on the event loop."""

    def __init__(
        self,
        first: Answer,
        on_loop: OnLoop,
        ask: Callable[[Mapping[str, Any]], Awaitable[Answer]],
        threads: Threads,
        turns: asyncio.Semaphore,
        receive: Receive,
        send: Send,
    ) -> None:
        """`turns` is shared by all channels and limits the threads that they use at once."""
        self.started = False
        self._first, self._on_loop, self._ask = first, on_loop, ask
        self._threads, self._turns = threads, turns
        self._receive, self._to_client = receive, send
        self._ended = ""
        self._closers: list[Callable[[str], None]] = []
        self._loop = asyncio.get_running_loop()
        # When the send that is in progress began; 0 between sends.
        self._sending_since = 0.0

    async def run(self) -> None:
        """Call `on_loop` and wait until the response is complete. An error closes the
        connection."""
        watcher = self._loop.create_task(self._watch())
        try:
            async with asyncio.timeout(None) as limit:
                self._check_progress(limit)
                await self._on_loop(self, self._first)
        except TimeoutError:
            log.info("channel.stalled")
        except Exception as error:
            log.exception("channel.failed", error=type(error).__name__)
            if not self.started:
                await self.answer(Answer(500, [], b""))
        finally:
            watcher.cancel()
            self._next_check.cancel()

    def _check_progress(self, limit: asyncio.Timeout) -> None:
        """End `run` if a send takes too long. A timer for each send would be the largest part of
        its cost."""
        now = self._loop.time()
        if self._sending_since and now - self._sending_since > STALLED_SECONDS:
            limit.reschedule(now)
        self._next_check = self._loop.call_later(STALLED_SECONDS / 4, self._check_progress, limit)

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.end("gone")

    def end(self, why: str) -> None:
        """End the response because the client is "gone" or the server is "draining"."""
        self._ended = self._ended or why
        for close in self._closers:
            close(why)

    # Methods for `on_loop` functions ----------------------------------------------------------

    def on_end(self, close: Callable[[str], None]) -> None:
        """Call `close` when the response must end; immediately if it must end already."""
        self._closers.append(close)
        if self._ended:
            close(self._ended)

    async def ask(self, extra: Mapping[str, Any]) -> Answer:
        """Call Django again with the same request, and with `extra` added to its environ."""
        async with self._turns:
            return await self._ask(extra)

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Return the result of `work`, which may use the database."""
        async with self._turns:
            return await self._threads.run(work)

    async def answer(self, answer: Answer) -> None:
        """Send a complete response."""
        self.started = True
        await send_answer(answer, self._put)

    async def send(self, part: bytes) -> None:
        """Send a part of the body, before the first one also status and headers. Returns when there
        is room for the next part; TimeoutError if the client does not read for a minute."""
        if not self.started:
            self.started = True
            await self._put(self._first.start())
        await self._put({"type": "http.response.body", "body": part, "more_body": True})

    async def finish(self) -> None:
        """End the body."""
        await self._put({"type": "http.response.body", "body": b""})

    async def _put(self, message: Message) -> None:
        self._sending_since = self._loop.time()
        try:
            await self._to_client(message)
        finally:
            self._sending_since = 0.0
