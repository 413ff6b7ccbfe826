"""Runs a WSGI application under an ASGI server: one port for pages, API and streams.

Django's own ASGI handler costs four to five times more per request with synchronous views
(docs/adr/0002-one-port.md). Here the event loop only reads the body and sends the answer; the
request itself runs in a thread, exactly as under a WSGI server.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import io
import json
import signal
import sys
import uuid
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import unquote_to_bytes

from project.channel import Answer, Channel, Message, OnLoop, Receive, Send
from project.exchange import STALLED, Application, Exchange
from project.paths import RAW_PATH
from project.threads import Threads
from state_admin.services.errors import MEDIA_TYPE, BadRequest, Problem, TooLarge, Unavailable

Stream = Callable[[Message, Receive, Send], Awaitable[None]]
T = TypeVar("T")

# How much of a body that is too large anyway is read to let the client finish.
_MOST_DISCARDED = 64 * 1024 * 1024
_DISCARD_SECONDS = 5.0
_DISCARD_PAUSE = 0.3
# How long a body may go on arriving when the process is told to end.
_LAST_SECONDS = 2.0
# Requests of one process waiting or running; beyond, 503 now is better than an answer too late.
_MOST_REQUESTS = 512
# Answers of one process that go on on the loop. Connections beyond (server.py) are for requests.
_MOST_CHANNELS = 3072
# Bodies held in memory by one process at once.
_MOST_BODY_BYTES = 64 * 1024 * 1024
_CHORE_SECONDS = 10.0


class Refused(Exception):
    """The bridge responds itself, without Django. `unread`: the client is still sending its body."""

    def __init__(self, problem: Problem, *, unread: bool = False) -> None:
        super().__init__(problem.detail)
        self.problem, self.unread = problem, unread

    def answer(self) -> Answer:
        request_id = uuid.uuid4().hex
        status = self.problem.status
        body = json.dumps(self.problem.document(request_id)).encode()
        headers = [
            (b"content-type", MEDIA_TYPE.encode()),
            (b"content-length", str(len(body)).encode()),
            (b"x-request-id", request_id.encode()),
            (b"connection", b"close"),  # the rest of the body is not read
        ]
        if status == 503:
            headers.append((b"retry-after", b"1"))
        start = {"type": "http.response.start", "status": status, "headers": headers}
        return Answer(start, body)


class Bridge:
    """The ASGI application. `streams` maps path prefixes to native ASGI applications; `environ` goes
    into the environ of every request. `chore` is done every ten seconds and once more at the end,
    in a thread of the requests."""

    def __init__(
        self,
        wsgi: Application,
        *,
        streams: dict[str, Stream],
        threads: int,
        max_body: int,
        trust_proxy: bool = False,
        environ: Mapping[str, Any] | None = None,
        chore: Callable[[], None] | None = None,
    ) -> None:
        self.wsgi = wsgi
        self.chore = chore
        self.environ = dict(environ or {})
        self.streams = streams
        self.max_body = max_body
        self.trust_proxy = trust_proxy
        self.threads = Threads(threads)
        self.draining = asyncio.Event()
        self._channels: set[Channel] = set()
        self._arriving: set[asyncio.Timeout] = set()
        # Waking a thousand parked polls must leave threads for everybody else.
        self._turns = asyncio.Semaphore(max(1, threads // 2))
        self._requests = 0
        self._body_bytes = 0

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            for prefix, stream in self.streams.items():
                if scope["path"].startswith(prefix):
                    return await self._serve_natively(stream, scope, receive, send)
            await self._serve(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._live(receive, send)
        else:
            await send({"type": "websocket.close", "code": 1000})
        return None

    async def _live(self, receive: Receive, send: Send) -> None:
        """Start and end of the process. On SIGTERM `draining` is set, so that streams may close.

        asyncio is woken by the signal's file descriptor, not by this handler: the server's own
        shutdown still happens.
        """
        await receive()
        loop = asyncio.get_running_loop()

        def drain(*_: Any) -> None:
            loop.call_soon_threadsafe(self._drain)

        signal.signal(signal.SIGTERM, drain)
        await send({"type": "lifespan.startup.complete"})
        await self._keep_house(receive)
        await send({"type": "lifespan.shutdown.complete"})

    async def _keep_house(self, receive: Receive) -> None:
        """Do the chore until the server says that it ends."""
        if self.chore is None:
            await receive()
            return
        ending = asyncio.ensure_future(receive())
        while not ending.done():
            await asyncio.wait([ending], timeout=_CHORE_SECONDS)
            # No chore holds up the end, and none that cannot be done ends the server.
            with contextlib.suppress(Exception):
                async with asyncio.timeout(_LAST_SECONDS):
                    await self.threads.run(self.chore)

    def _drain(self) -> None:
        self.draining.set()
        for channel in list(self._channels):
            channel.end("draining")
        soon = asyncio.get_running_loop().time() + _LAST_SECONDS
        for patience in self._arriving:
            patience.reschedule(soon)

    async def _serve(self, scope: Message, receive: Receive, send: Send) -> None:
        held = 0
        self._requests += 1
        try:
            if self._requests > _MOST_REQUESTS:
                raise Refused(Unavailable("too many requests are waiting"))
            environ = self._environ(scope)
            declared = environ.get("CONTENT_LENGTH", "0")
            body = b""
            if declared != "0" or "HTTP_TRANSFER_ENCODING" in environ:
                held = self._reserve(declared)
                body = await self._arrival(receive)
                environ["CONTENT_LENGTH"] = str(len(body))
            environ["wsgi.input"] = io.BytesIO(body)
            exchange = Exchange(self.wsgi, environ, receive, send)
            answer = await exchange.ask(self.threads)
            if answer is not None and answer.on_loop is not None:
                await self._go_on(answer, answer.on_loop, environ, receive, send)
            elif answer is not None:
                await exchange.answer(answer)
        except _Disconnected:
            return
        except Refused as refused:
            await self._refuse(refused, receive, send)
        finally:
            self._requests -= 1
            self._body_bytes -= held

    async def _serve_natively(
        self, stream: Stream, scope: Message, receive: Receive, send: Send
    ) -> None:
        """The body is bounded and awaited here, as for Django; the rest is the application's."""
        held = 0
        try:
            headers = dict(scope["headers"])
            declared = headers.get(b"content-length", b"0").decode("latin-1")
            unread = [{"type": "http.request", "body": b"", "more_body": False}]
            if declared != "0" or b"transfer-encoding" in headers:
                held = self._reserve(declared)
                unread[0]["body"] = await self._arrival(receive)

            async def receive_rest() -> Message:
                return unread.pop() if unread else await receive()

            await stream(scope, receive_rest, send)
        except _Disconnected:
            return
        except Refused as refused:
            await self._refuse(refused, receive, send)
        finally:
            self._body_bytes -= held

    async def ask(self, scope: Message, body: bytes = b"") -> Answer:
        """What Django says to a request that a native application makes. It must not stream."""
        self._requests += 1
        try:
            if self._requests > _MOST_REQUESTS:
                raise Refused(Unavailable("too many requests are waiting"))
            environ = self._environ(scope)
            environ["wsgi.input"] = io.BytesIO(body)
            answer = await Exchange(self.wsgi, environ, _nobody, _nobody).ask(self.threads)
        except Refused as refused:
            return refused.answer()
        finally:
            self._requests -= 1
        if answer is None:
            raise TypeError("a native application must not ask for a stream")
        return answer

    async def in_thread(self, work: Callable[[], T]) -> T:
        """The result of `work`, which may touch the database."""
        return await self.threads.run(work)

    async def _refuse(self, refused: Refused, receive: Receive, send: Send) -> None:
        if refused.unread:
            await self._discard(receive)
        answer = refused.answer()
        await send(answer.start)
        await send({"type": "http.response.body", "body": answer.body})

    async def _go_on(
        self,
        first: Answer,
        on_loop: OnLoop,
        environ: dict[str, Any],
        receive: Receive,
        send: Send,
    ) -> None:
        """The answer waits without a thread: it is none of the requests that wait for one."""
        if len(self._channels) >= _MOST_CHANNELS:
            raise Refused(Unavailable("too many requests are waiting"))

        async def ask(extra: Mapping[str, Any]) -> Answer:
            again = {**environ, "wsgi.input": io.BytesIO(), **extra}
            answer = await Exchange(self.wsgi, again, receive, send).ask(self.threads)
            if answer is None:
                raise TypeError("a view that lets its answer go on must not stream")
            return answer

        channel = Channel(first, on_loop, ask, self.threads, self._turns, receive, send)
        self._channels.add(channel)
        self._requests -= 1
        try:
            if self.draining.is_set():
                channel.end("draining")
            await channel.run()
        finally:
            self._requests += 1
            self._channels.discard(channel)

    def _reserve(self, declared: str) -> int:
        """Room for the body, or a refusal before a byte of it is read."""
        size = int(declared) if declared.isdecimal() else 0
        if size > self.max_body:
            raise self._too_large(unread=True)
        if self._body_bytes + size > max(_MOST_BODY_BYTES, self.max_body):
            raise Refused(Unavailable("too many large bodies at once"))
        self._body_bytes += size
        return size

    def _too_large(self, *, unread: bool) -> Refused:
        return Refused(
            TooLarge(f"the body has more than {self.max_body} bytes", limit=self.max_body),
            unread=unread,
        )

    async def _discard(self, receive: Receive) -> None:
        """Read on and forget. Most clients send all of a body before they look for the answer, and
        would meet a broken connection instead of the refusal. Who sends nothing waits for it."""
        left = _MOST_DISCARDED
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_DISCARD_SECONDS):
                while left > 0:
                    message = await asyncio.wait_for(receive(), _DISCARD_PAUSE)
                    if message["type"] != "http.request" or not message.get("more_body"):
                        return
                    left -= len(message.get("body", b""))

    async def _arrival(self, receive: Receive) -> bytes:
        """The whole body. _Disconnected also for who sends it too slowly."""
        try:
            async with asyncio.timeout(STALLED) as patience:
                self._arriving.add(patience)
                try:
                    return await self._body(receive)
                finally:
                    self._arriving.discard(patience)
        except TimeoutError:
            raise _Disconnected from None

    async def _body(self, receive: Receive) -> bytes:
        message = await receive()
        if message["type"] == "http.request" and not message.get("more_body"):
            body: bytes = message.get("body", b"")
            if len(body) > self.max_body:
                raise self._too_large(unread=False)
            return body
        parts = bytearray()
        while True:
            if message["type"] == "http.disconnect":
                raise _Disconnected
            parts += message.get("body", b"")
            if len(parts) > self.max_body:
                raise self._too_large(unread=bool(message.get("more_body")))
            if not message.get("more_body"):
                return bytes(parts)
            message = await receive()

    def _environ(self, scope: Message) -> dict[str, Any]:
        raw_path: bytes = scope["raw_path"]
        # Decoded once, byte for byte: no `..` and no `//` is resolved, because they may be keys.
        path = raw_path
        if b"%" in raw_path:
            path = unquote_to_bytes(raw_path)
            try:
                path.decode()
            except UnicodeDecodeError:  # Django would percent-encode it again: two names, one key
                raise Refused(BadRequest("the path is not percent-encoded UTF-8")) from None
        client, server = scope.get("client") or ("", 0), scope.get("server") or ("", 0)
        environ: dict[str, Any] = {
            "REQUEST_METHOD": scope["method"],
            "SCRIPT_NAME": "",
            "PATH_INFO": path.decode("latin-1"),
            RAW_PATH: raw_path.decode("latin-1"),
            "QUERY_STRING": scope["query_string"].decode("latin-1"),
            "SERVER_NAME": server[0],
            "SERVER_PORT": str(server[1]),
            "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
            "REMOTE_ADDR": client[0],
            "REMOTE_PORT": str(client[1]),
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": scope["scheme"],
            "wsgi.errors": sys.stderr,
            "wsgi.multithread": True,
            "wsgi.multiprocess": True,
            "wsgi.run_once": False,
            **self.environ,
        }
        for name, value in scope["headers"]:
            key = _environ_key(name)
            if key is None:
                continue
            text = value.decode("latin-1")
            if key in environ:
                text = environ[key] + (";" if key == "HTTP_COOKIE" else ",") + text
            environ[key] = text
        if self.trust_proxy and "HTTP_X_FORWARDED_FOR" in environ:
            # The last entry is the one our own proxy wrote.
            environ["REMOTE_ADDR"] = environ["HTTP_X_FORWARDED_FOR"].rpartition(",")[2].strip()
        return environ


@functools.lru_cache(maxsize=512)
def _environ_key(name: bytes) -> str | None:
    """CGI's name of a header. One with an underscore could pose as another's: it has none."""
    if b"_" in name:
        return None
    key = name.decode("latin-1").upper().replace("-", "_")
    return key if key in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{key}"


class _Disconnected(Exception):
    pass


async def _nobody(*_: Any) -> Any:
    """The client of a request that has none: it stays, and takes no stream."""
    raise TypeError("nobody is there")
