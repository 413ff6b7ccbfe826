"""One request of the bridge: Django runs in a thread, and the event loop sends the response."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable, Iterable, Iterator
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any

import structlog

from project.channel import STALLED_SECONDS, Answer, Receive, Send
from project.threads import Threads, request_kind_of

log = structlog.get_logger(__name__)

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

_CHUNK = 64 * 1024


class Exchange:
    """One request: Django in a thread, the response on the event loop."""

    def __init__(
        self, application: Application, environ: dict[str, Any], receive: Receive, send: Send
    ) -> None:
        self.application, self.environ = application, environ
        self.receive, self.send = receive, send
        self.loop = asyncio.get_running_loop()
        self.done: asyncio.Future[Answer | None] = self.loop.create_future()
        self.gone = False

    async def ask(self, threads: Threads) -> Answer | None:
        """Return Django's response, or None if it was streamed and has been sent already."""
        self.threads = threads
        threads.submit(self._in_thread, request_kind_of(self.environ["REQUEST_METHOD"]))
        return await self.done

    def _in_thread(self) -> None:
        try:
            self._ask()
        except BaseException as error:
            log.exception("bridge.failed", error=type(error).__name__)
            self._finish(Answer(500, [], b""))

    def _finish(self, answer: Answer | None) -> None:
        def settle() -> None:
            if not self.done.done():
                self.done.set_result(answer)

        self.loop.call_soon_threadsafe(settle)

    def _ask(self) -> None:
        response: Any = self.application(self.environ, self._start_response)
        try:
            if getattr(response, "streaming", True):
                self._stream(response)
            else:
                on_loop = getattr(response, "on_loop", None)
                self._finish(Answer(self._status, self._headers, response.content, on_loop))
        finally:
            close = getattr(response, "close", None)
            if close is not None:
                close()

    def _start_response(self, status: str, headers: list[tuple[str, str]], *_: Any) -> None:
        self._status = int(status[:3])
        self._headers = [
            (name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers
        ]

    def _stream(self, response: Any) -> None:
        chunks = _chunks(response)
        first = next(chunks, b"")
        second = next(chunks, None) if len(first) < _CHUNK else b""
        answer = Answer(self._status, self._headers, first)
        if second is None:
            return self._finish(answer)
        self.threads.lend()
        self._wait(self._watch())
        self._wait(self.send(answer.start()))
        for chunk in (first, second):
            self._put(chunk)
        for chunk in chunks:
            if self.gone:
                break
            self._put(chunk)
        self._wait(self.send({"type": "http.response.body", "body": b""}))
        return self._finish(None)

    def _put(self, chunk: bytes) -> None:
        if chunk:
            self._wait(self.send({"type": "http.response.body", "body": chunk, "more_body": True}))

    def _wait(self, work: Awaitable[None]) -> None:
        """Backpressure: the thread continues when the loop has passed the chunk to the socket."""

        async def step() -> None:
            await work

        try:
            asyncio.run_coroutine_threadsafe(step(), self.loop).result(STALLED_SECONDS)
        except FutureTimeout:
            self.gone = True

    async def _watch(self) -> None:
        async def until_gone() -> None:
            while (await self.receive())["type"] != "http.disconnect":
                pass
            self.gone = True

        self._watcher = self.loop.create_task(until_gone())
        self.done.add_done_callback(lambda _: self._watcher.cancel())


def _chunks(response: Any) -> Iterator[bytes]:
    """The parts of a response; of a file in large chunks rather than Django's 4 KB."""
    file = getattr(response, "file_to_stream", None)
    if file is not None:
        return iter(functools.partial(file.read, _CHUNK), b"")
    return iter(response)
