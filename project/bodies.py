"""Receives request bodies within limits of memory and time.

uvicorn has no limits: it passes on what arrives, and waits for the rest without a timeout. This
module counts the bytes as they arrive, whatever `Content-Length` says, so chunked bodies are
limited too. The bytes are charged to a client (the owner of a valid token, otherwise the IP
address) until the response is complete. Each client has a share of the memory; all clients without
a token together have half of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from project.channel import Receive
from state_admin.domain.networks import subscriber_of
from state_admin.services.errors import BadRequest, Problem, Unavailable
from state_admin.services.problem_statuses import RequestTimeout, body_too_large

Headers = Mapping[bytes, bytes]
# The owner of the valid token in the headers of a request, or "".
Identify = Callable[[Headers], Awaitable[str]]

# Bodies up to this size are not counted: the number of requests bounds them.
_UNCOUNTED = 4 * 1024
# Seconds that a body may still take to arrive once the process is shutting down.
_DRAIN_SECONDS = 2.0
# How much of a refused body is read, so that the client can finish sending and read the response.
_MOST_DISCARDED = 64 * 1024 * 1024
# When a refused body is discarded, each part counts as at least this many bytes, so that tiny parts end, too.
_LEAST_PART = 64
_DISCARD_SECONDS = 5.0
_DISCARD_PAUSE = 0.3


@dataclass(frozen=True)
class Limits:
    """Limits of the request bodies of one process."""

    one: int  # bytes of one body
    total: int = 64 * 1024 * 1024  # bytes of all bodies in memory
    idle_seconds: float = 15.0  # longest time without a byte; also the time before min_rate applies
    min_rate: int = 16 * 1024  # bytes per second, averaged over the whole body

    @property
    def share(self) -> int:
        """The bytes that one client may use."""
        return max(self.one, self.total // 4)

    @property
    def anonymous(self) -> int:
        """The bytes that all clients without a token may use together."""
        return max(self.one, self.total // 2)


class Client(NamedTuple):
    """The owner of a valid token, or an address."""

    name: str
    has_token: bool


class BodyBudget:
    """The bytes of request bodies in the memory of this process, by client."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.held = 0
        self.held_anonymously = 0
        self.held_by: Counter[Client] = Counter()

    def charge(self, client: Client, size: int) -> None:
        """Count `size` more bytes of a client. Raises Unavailable beyond a limit."""
        anonymous = 0 if client.has_token else size
        if (
            self.held_by[client] + size > self.limits.share
            or self.held_anonymously + anonymous > self.limits.anonymous
            or self.held + size > max(self.limits.one, self.limits.total)
        ):
            raise Unavailable(
                "too many large request bodies are being received",
                hint="Retry, with fewer large requests at the same time.",
            )
        self.held += size
        self.held_anonymously += anonymous
        self.held_by[client] += size

    def release(self, client: Client, size: int) -> None:
        self.held -= size
        self.held_anonymously -= 0 if client.has_token else size
        self.held_by[client] -= size
        if not self.held_by[client]:
            del self.held_by[client]


class Bodies:
    """All bodies of one process. `identify` is called at most once for each."""

    def __init__(self, limits: Limits, identify: Identify) -> None:
        self.limits, self.identify = limits, identify
        self.ledger = BodyBudget(limits)
        self.receiving: set[asyncio.Timeout] = set()
        # Deadline of all bodies, in the time of the event loop. Set when the process is shutting down.
        self.end = math.inf

    def drain(self) -> None:
        """Shut down: give the bodies that are arriving two more seconds."""
        self.end = asyncio.get_running_loop().time() + _DRAIN_SECONDS
        for timeout in self.receiving:
            with contextlib.suppress(RuntimeError):  # the timeout has just expired
                timeout.reschedule(self.end)


class Body:
    """The body of one request. Its bytes are counted until `release` is called."""

    def __init__(self, bodies: Bodies, headers: Headers, address: str, receive: Receive) -> None:
        self._bodies, self._headers, self._address = bodies, headers, address
        self._receive = receive
        self._content = bytearray()
        self._client: Client | None = None  # once bytes are counted
        self._charged = 0
        self._begun = False  # reading has begun, so uvicorn has sent `100 Continue`
        self._unread = True  # the client may still be sending

    async def read(self) -> bytes:
        """Return the whole body. Raises BadRequest, TooLarge, RequestTimeout or Unavailable."""
        self._check_headers()
        try:
            async with asyncio.timeout(None) as timeout:
                self._bodies.receiving.add(timeout)
                try:
                    await self._receive_parts(timeout)
                finally:
                    self._bodies.receiving.discard(timeout)
        except TimeoutError:
            self._unread = False
            if self._bodies.end < math.inf:
                raise Unavailable("the server is shutting down") from None
            raise RequestTimeout(
                "the request body arrived too slowly",
                hint=f"Send at least {self._bodies.limits.min_rate} bytes per second, with no"
                f" pause longer than {self._bodies.limits.idle_seconds:g} seconds.",
            ) from None
        content = bytes(self._content)
        self._content.clear()
        return content

    def release(self) -> None:
        """Stop counting the bytes of this body."""
        self._content.clear()
        if self._client is not None:
            self._bodies.ledger.release(self._client, self._charged)
            self._charged = 0

    async def discard(self) -> None:
        """Read the rest of a refused body and drop it. Most clients send the whole body before they
        read the response, and closing the connection earlier would reset it. A client that expects
        `100 Continue` has not sent the body, so nothing is read."""
        if not self._unread or (b"expect" in self._headers and not self._begun):
            return
        left = _MOST_DISCARDED
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_DISCARD_SECONDS):
                while left > 0:
                    message = await asyncio.wait_for(self._receive(), _DISCARD_PAUSE)
                    if message["type"] != "http.request" or not message.get("more_body"):
                        return
                    left -= max(len(message.get("body", b"")), _LEAST_PART)

    def _check_headers(self) -> None:
        codings = self._headers.get(b"transfer-encoding", b"chunked")
        if codings.strip().lower() != b"chunked":
            raise BadRequest(
                "Transfer-Encoding must be chunked",
                hint="This server decodes no other transfer coding.",
            )
        if (self._declared_size() or 0) > self._bodies.limits.one:
            raise self._too_large()

    async def _receive_parts(self, timeout: asyncio.Timeout) -> None:
        clock, limits = asyncio.get_running_loop().time, self._bodies.limits
        whole = self._declared_size()
        started = progress = clock()
        while True:
            slowest = started + limits.idle_seconds + len(self._content) / limits.min_rate
            timeout.reschedule(min(progress + limits.idle_seconds, slowest, self._bodies.end))
            self._begun = True
            message = await self._receive()
            if message["type"] == "http.disconnect":
                self._unread = False
                raise BadRequest("the request body is incomplete or its chunks are malformed")
            part: bytes = message.get("body", b"")
            size = len(self._content) + len(part)
            self._unread = message.get("more_body", False) and size != whole
            if size > limits.one:
                raise self._too_large()
            if size > _UNCOUNTED and self._client is None:
                timeout.reschedule(None)  # the client does not cause this delay
                before = clock()
                self._client = await self._identify()
                started += clock() - before
            if self._client is not None:
                self._bodies.ledger.charge(self._client, size - self._charged)
                self._charged = size
            self._content += part
            if not self._unread:
                return
            progress = clock() if part else progress

    def _declared_size(self) -> int | None:
        """Return the size of the whole body, or None if it is chunked. The end of a body may be reported in
        a message of its own, which need not be waited for."""
        length = self._headers.get(b"content-length")
        if length is None or b"transfer-encoding" in self._headers:
            return None
        return int(length.lstrip(b"0") or b"0")  # int() refuses thousands of zeros

    async def _identify(self) -> Client:
        owner = await self._bodies.identify(self._headers)
        return Client(owner or subscriber_of(self._address), bool(owner))

    def _too_large(self) -> Problem:
        return body_too_large(self._bodies.limits.one)
