"""Runs a WSGI application under an ASGI server: one port for pages, API and streams.

Django's own ASGI handler costs four to five times more per request with synchronous views
(docs/adr/0002-one-port.md). Here the event loop only reads the body and sends the response. The
request itself runs in a thread, as under a WSGI server.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import io
import signal
import sys
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from types import FrameType
from typing import Any, TypeVar
from urllib.parse import unquote_to_bytes

import structlog
from django.http import HttpRequest

from project import log_context, tracing
from project.bodies import Bodies, Body, Identify, Limits
from project.channel import Answer, Channel, Message, OnLoop, Receive, Send, headers_of, send_answer
from project.exchange import Application, Exchange
from project.paths import RAW_PATH
from project.threads import RequestKind, Threads, request_kind_of
from state_admin.rest import problems
from state_admin.services.errors import BadRequest, Problem, Unavailable

log = structlog.get_logger(__name__)

Stream = Callable[[Message, Receive, Send], Awaitable[None]]
T = TypeVar("T")

# Seconds after which the last chore of a process is abandoned.
_LAST_SECONDS = 2.0
# Limit of the requests of one process that wait or run, for each kind, so that many writes do not cause
# reads to be refused. Beyond it, an immediate 503 is better than a late response.
_MOST_REQUESTS = 512
# Responses of one process that continue on the event loop, plus requests of native applications.
# The remaining connections (server.py) are for other requests.
_MOST_CHANNELS = 3072
_CHORE_SECONDS = 10.0
# Seconds between two log lines about refusals with 503. To write a line, the event loop waits for the
# request threads (GIL), so a line for each of hundreds of refusals would delay all other requests.
_REFUSAL_LOG_SECONDS = 1.0


class Bridge:
    """The ASGI application.

    `streams` maps path prefixes to native ASGI applications. `environ` is added to the environ of
    every request. `identify` returns the owner of the token in the headers of a request
    (project/bodies.py). `chore` runs every ten seconds, and once more at shutdown, in a request
    thread.
    """

    def __init__(
        self,
        wsgi: Application,
        *,
        streams: dict[str, Stream],
        threads: int,
        limits: Limits,
        identify: Identify,
        trust_proxy: bool = False,
        environ: Mapping[str, Any] | None = None,
        chore: Callable[[], None] | None = None,
    ) -> None:
        self.wsgi = wsgi
        self.chore = chore
        # Gets each request before Django does (project/lane.py).
        self.lane: Callable[[dict[str, Any], bytes], Awaitable[Answer | None]] | None = None
        self.environ = dict(environ or {})
        self.streams = streams
        # Path → native application that the limits on open requests do not apply to: it needs no thread and reads no body.
        self.probes: dict[str, Stream] = {}
        self.trust_proxy = trust_proxy
        self.threads = Threads(threads)
        self.draining = asyncio.Event()
        self.bodies = Bodies(limits, identify)
        self._channels: set[Channel] = set()
        # If a thousand long polls resume at once, threads must remain for other requests.
        self._turns = asyncio.Semaphore(max(1, threads // 2))
        self._requests: Counter[RequestKind] = Counter()
        self._native = 0
        # By reason: how many refusals with 503 were not logged since the last line, which was written
        # less than _REFUSAL_LOG_SECONDS ago.
        self._unlogged: dict[str, int] = {}

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            if probe := self.probes.get(scope["path"]):
                return await probe(scope, receive, send)
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
        """Handle startup and shutdown of the process. SIGTERM sets `draining`, so that streams can
        close, and then starts the shutdown of the server."""
        await receive()
        loop = asyncio.get_running_loop()
        shut_down = signal.getsignal(signal.SIGTERM)

        def drain(number: int, frame: FrameType | None) -> None:
            loop.call_soon_threadsafe(self._drain)
            if callable(shut_down):
                shut_down(number, frame)

        signal.signal(signal.SIGTERM, drain)
        await send({"type": "lifespan.startup.complete"})
        await self._run_chores(receive)
        await send({"type": "lifespan.shutdown.complete"})

    async def _run_chores(self, receive: Receive) -> None:
        """Run the chore periodically until the server shuts down."""
        if self.chore is None:
            await receive()
            return
        ending = asyncio.ensure_future(receive())
        while not ending.done():
            await asyncio.wait([ending], timeout=_CHORE_SECONDS)
            # A chore may neither delay the shutdown nor, if it fails, end the server.
            with contextlib.suppress(Exception):
                async with asyncio.timeout(_LAST_SECONDS):
                    await self.threads.run(self.chore)

    def _drain(self) -> None:
        self.draining.set()
        for channel in list(self._channels):
            channel.end("draining")
        self.bodies.drain()

    async def _serve(self, scope: Message, receive: Receive, send: Send) -> None:
        body: Body | None = None
        try:
            environ = self._environ(scope)
            content = b""
            if environ.get("CONTENT_LENGTH", "0") != "0" or "HTTP_TRANSFER_ENCODING" in environ:
                headers = dict(scope["headers"])
                body = Body(self.bodies, headers, environ["REMOTE_ADDR"], receive)
                content = await body.read()
                environ["CONTENT_LENGTH"] = str(len(content))
            environ["wsgi.input"] = io.BytesIO(content)
            with self._request(scope["method"]):
                answer = await self.lane(environ, content) if self.lane is not None else None
                if answer is None:
                    answer = await Exchange(self.wsgi, environ, receive, send).ask(self.threads)
            if answer is not None and answer.on_loop is not None:
                await self._continue(answer, answer.on_loop, environ, receive, send)
            elif answer is not None:
                await send_answer(answer, send)
        except Problem as problem:
            await self._refuse(problem, body, send)
        finally:
            if body is not None:
                body.release()

    async def _serve_natively(
        self, stream: Stream, scope: Message, receive: Receive, send: Send
    ) -> None:
        """Run a native application. Its body is limited and read here, as for Django."""
        body: Body | None = None
        try:
            headers = dict(scope["headers"])
            unread = [{"type": "http.request", "body": b"", "more_body": False}]
            if headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers:
                body = Body(self.bodies, headers, self._address(scope, headers), receive)
                unread[0]["body"] = await body.read()

            async def receive_rest() -> Message:
                return unread.pop() if unread else await receive()

            self._check_channels()
            self._native += 1
            try:
                await stream(scope, receive_rest, send)
            finally:
                self._native -= 1
        except Problem as problem:
            await self._refuse(problem, body, send)
        finally:
            if body is not None:
                body.release()

    @contextlib.contextmanager
    def _request(self, method: str) -> Iterator[None]:
        """Count a request that waits or runs. Raises Unavailable beyond the limit of its kind."""
        kind = request_kind_of(method)
        if self._requests[kind] >= _MOST_REQUESTS:
            raise _busy()
        self._requests[kind] += 1
        try:
            yield
        finally:
            self._requests[kind] -= 1

    async def ask(self, scope: Message, body: bytes = b"") -> Answer:
        """Return Django's response to a request of a native application. Raises TypeError if Django
        streams it."""
        try:
            environ = self._environ(scope)
            environ["wsgi.input"] = io.BytesIO(body)
            attributes = {"http.request.method": scope["method"]}
            with self._request(scope["method"]), tracing.span(scope["method"], attributes):
                answer = await Exchange(self.wsgi, environ, _receive_nothing, _receive_nothing).ask(
                    self.threads
                )
        except Problem as problem:
            return render_refusal(problem)
        if answer is None:
            raise TypeError("a native application must not ask for a stream")
        return answer

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Return the result of `work`, which may use the database."""
        return await self.threads.run(work)

    async def _refuse(self, problem: Problem, body: Body | None, send: Send) -> None:
        """Respond with a problem, without Django."""
        if body is not None:
            body.release()
            await body.discard()
        answer = render_refusal(problem)
        request_id = dict(answer.headers)[b"x-request-id"].decode()
        self._log_refusal(problem, request_id)
        await send_answer(answer, send)

    def _log_refusal(self, problem: Problem, request_id: str) -> None:
        """Log a refusal. Of refusals with 503, at most one line per reason in _REFUSAL_LOG_SECONDS. The
        next line has the `count` of refusals since the previous one."""
        reason = str(problem)
        if isinstance(problem, Unavailable):
            if reason in self._unlogged:
                self._unlogged[reason] += 1
                return
            self._start_refusal_timer(problem)
        log.info("request.refused", problem=problem.slug, reason=reason, request_id=request_id)

    def _start_refusal_timer(self, problem: Unavailable) -> None:
        self._unlogged[str(problem)] = 0
        asyncio.get_running_loop().call_later(_REFUSAL_LOG_SECONDS, self._log_unlogged, problem)

    def _log_unlogged(self, problem: Unavailable) -> None:
        reason = str(problem)
        if count := self._unlogged.pop(reason):
            self._start_refusal_timer(problem)
            log.info("request.refused", problem=problem.slug, reason=reason, count=count)

    async def _continue(
        self, first: Answer, on_loop: OnLoop, environ: dict[str, Any], receive: Receive, send: Send
    ) -> None:
        """Continue a response on the event loop, where it needs no thread while it waits."""
        self._check_channels()
        # Each request has a context of its own on the event loop.
        request_id = dict(first.headers).get(b"x-request-id", b"")
        log_context.begin(request_id=request_id.decode())

        async def ask(extra: Mapping[str, Any]) -> Answer:
            again = {**environ, "wsgi.input": io.BytesIO(), **extra}
            answer = await Exchange(self.wsgi, again, receive, send).ask(self.threads)
            if answer is None:
                raise TypeError("a view with on_loop must not stream")
            return answer

        channel = Channel(first, on_loop, ask, self.threads, self._turns, receive, send)
        self._channels.add(channel)
        try:
            if self.draining.is_set():
                channel.end("draining")
            await channel.run()
        finally:
            self._channels.discard(channel)

    def _check_channels(self) -> None:
        if len(self._channels) + self._native >= _MOST_CHANNELS:
            raise _busy()

    def _address(self, scope: Message, headers: Mapping[bytes, bytes]) -> str:
        """Return the client's address: behind a trusted proxy, the last one of X-Forwarded-For."""
        if self.trust_proxy and (forwarded := headers.get(b"x-forwarded-for")) is not None:
            return forwarded.decode("latin-1").rpartition(",")[2].strip()
        address: str = (scope.get("client") or ("", 0))[0]
        return address

    def _environ(self, scope: Message) -> dict[str, Any]:
        raw_path: bytes = scope["raw_path"]
        # Decoded once, byte for byte: no `..` and no `//` is resolved, because they may be keys.
        path = raw_path
        if b"%" in raw_path:
            path = unquote_to_bytes(raw_path)
            try:
                path.decode()
            except UnicodeDecodeError:  # Django would percent-encode it again: two names, one key
                raise BadRequest("the path is not percent-encoded UTF-8") from None
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
        if self.trust_proxy:
            environ["REMOTE_ADDR"] = self._address(scope, dict(scope["headers"]))
        return environ


@functools.lru_cache(maxsize=512)
def _environ_key(name: bytes) -> str | None:
    """Return the CGI name of a header; None for one with an underscore, which could collide with
    another header."""
    if b"_" in name:
        return None
    key = name.decode("latin-1").upper().replace("-", "_")
    return key if key in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{key}"


def _busy() -> Unavailable:
    return Unavailable("too many requests are waiting")


def render_refusal(problem: Problem) -> Answer:
    """Return the problem document. It closes the connection, because the body may not have been
    read."""
    request = HttpRequest()
    request.META["REQUEST_ID"] = uuid.uuid4().hex
    response = problems.answer_problem(problem, request)
    headers = {
        **response.headers,
        "Content-Length": str(len(response.content)),
        "X-Request-ID": request.META["REQUEST_ID"],
        "Connection": "close",
    }
    return Answer(response.status_code, headers_of(headers), response.content)


async def _receive_nothing(*_: Any) -> Any:
    """Replaces a client: never disconnects, and accepts no stream."""
    raise TypeError("there is no client")
