"""An answer that goes on on the event loop: a stream, or a poll that waits without a thread.

A view gives its response an attribute `on_loop`, an async function of a Channel and the Answer. The
bridge calls it instead of sending the response. It may send parts as they come, ask Django again,
or send what Django said.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import structlog

from project.threads import Threads

log = structlog.get_logger(__name__)

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

T = TypeVar("T")

# A client that does not take a part of our answer for so long is gone.
_STALLED = 60.0


OnLoop = Callable[["Channel", "Answer"], Awaitable[None]]


@dataclass(frozen=True)
class Answer:
    """What Django said, whole."""

    start: Message
    body: bytes
    on_loop: OnLoop | None = None


class Channel:
    """One connection to a client while its answer goes on."""

    def __init__(
        self,
        first: Answer,
        go_on: OnLoop,
        ask: Callable[[Mapping[str, Any]], Awaitable[Answer]],
        threads: Threads,
        turns: asyncio.Semaphore,
        receive: Receive,
        send: Send,
    ) -> None:
        """`turns` is shared by all channels: how many threads they may take at once."""
        self.started = False
        self._first, self._go_on, self._ask = first, go_on, ask
        self._threads, self._turns = threads, turns
        self._receive, self._to_client = receive, send
        self._ended = ""
        self._closers: list[Callable[[str], None]] = []

    async def run(self) -> None:
        """Let the answer go on until it is through. An error cuts the connection."""
        watcher = asyncio.get_running_loop().create_task(self._watch())
        try:
            await self._go_on(self, self._first)
        except TimeoutError:
            log.info("channel.stalled")
        except Exception as error:
            log.exception("channel.failed", error=type(error).__name__)
            if not self.started:
                start = {"type": "http.response.start", "status": 500, "headers": []}
                await self.answer(Answer(start, b""))
        finally:
            watcher.cancel()

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.end("gone")

    def end(self, why: str) -> None:
        """Tell the answer that the client is "gone" or the server is "draining"."""
        self._ended = self._ended or why
        for close in self._closers:
            close(why)

    # What an answer may do -----------------------------------------------------------------

    def on_end(self, close: Callable[[str], None]) -> None:
        """Have `close` called when it must end; at once when that was before."""
        self._closers.append(close)
        if self._ended:
            close(self._ended)

    async def ask(self, extra: Mapping[str, Any]) -> Answer:
        """Ask Django the same request again, with `extra` in its environ."""
        async with self._turns:
            return await self._ask(extra)

    async def in_thread(self, work: Callable[[], T]) -> T:
        """The result of `work`, which may touch the database."""
        async with self._turns:
            return await self._threads.run(work)

    async def answer(self, answer: Answer) -> None:
        """Send a whole answer."""
        self.started = True
        await self._put(answer.start)
        await self._put({"type": "http.response.body", "body": answer.body})

    async def send(self, part: bytes) -> None:
        """Send a part of the body, after status and headers of the first answer. Returns when there
        is room for the next; TimeoutError when the client does not read for a minute."""
        if not self.started:
            self.started = True
            await self._put(self._first.start)
        await self._put({"type": "http.response.body", "body": part, "more_body": True})

    async def finish(self) -> None:
        """End the body."""
        await self._put({"type": "http.response.body", "body": b""})

    async def _put(self, message: Message) -> None:
        async with asyncio.timeout(_STALLED):
            await self._to_client(message)
