"""A connection of a client, with limits that uvicorn does not have."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import httptools
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

if TYPE_CHECKING:
    from uvicorn._types import ASGI3Application

    # It imports the apps of Django, which are not loaded yet.
    from project.channel import Answer

# Limits of the request line and the headers of a request together.
_HEADER_BYTES = 64 * 1024
_HEADERS = 100
_LARGE_HEADERS = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: text/plain\r\ncontent-length: 76\r\n"
    b"connection: close\r\n\r\nThe request has more than 64 KiB of headers, or more than 100 header fields."
)
# Maximum number of pipelined requests that wait on a connection. One packet can contain thousands.
_WAITING = 16
# Each part of a body is parsed in a callback, so a body of one-byte chunks is expensive. A body may have
# this many parts, and one more for every 64 bytes.
_FREE_PARTS = 4096
_BYTES_PER_PART = 64
# The sizes of chunks and their line ends take up to this many bytes per part of a body. More, such as
# extensions of chunks and trailers, counts as headers.
_CHUNK_BYTES = 16


class ClientConnection(HttpToolsProtocol):
    """An HTTP/1.1 connection.

    It is closed if the headers of a request do not arrive within `timeout_keep_alive` seconds, if the
    client reads nothing of a response for twice as long, or if the process has `most` connections already.
    Headers beyond the limits are refused with 431. Trailers are ignored. `refuse` builds the response to a
    malformed request from a reason. If earlier requests still wait for a response, they get it, the
    malformed request gets none, and the connection is closed; likewise if more than _WAITING requests wait
    behind the one that is being processed.
    """

    def __init__(
        self, *arguments: Any, most: int, refuse: Callable[[str], Answer], **named: Any
    ) -> None:
        super().__init__(*arguments, **named)
        self._most, self._refuse = most, refuse
        # Bytes of headers that have arrived; None from the end of a request's headers until the next request
        # begins.
        self._received: int | None = 0
        self._deadline: asyncio.TimerHandle | None = None
        self._too_large = False
        self._fault = "the request is not valid HTTP/1.1"
        # Bytes of the packet that is being parsed.
        self._packet = 0
        # Of the body of the current request: its parts, their bytes, and the bytes around them.
        self._parts = self._size = self._around = 0
        # The request that the application responds to, the first of those on this connection.
        self._running: RequestResponseCycle | None = None
        # Bytes of responses that the client had not read at the last check.
        self._unread: float = 0
        self._reader_check: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if len(self.connections) > self._most:
            transport.abort()
        else:
            self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._stop_timer()
        if self._reader_check is not None:
            self._reader_check.cancel()
        # uvicorn notifies only the last request that its client has disconnected.
        self.pipeline.clear()
        if self._running is not None and not self._running.response_complete:
            self._running.disconnected = True
            self._running.message_event.set()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def data_received(self, data: bytes) -> None:
        self._packet = len(data)
        if self._received is None:
            self._around += len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._parse_without_upgrade(data[upgrade.args[0] :])
            return
        except httptools.HttpParserError:
            self.send_400_response("")
            return
        if self._received is None:
            if self._around > _HEADER_BYTES + _CHUNK_BYTES * self._parts:
                self._too_large = True
                self.send_400_response("")
            return
        # A header that has not arrived completely is in the memory of the parser.
        self._received += len(data)
        if self._received > _HEADER_BYTES:
            self._too_large = True
            self.send_400_response("")
        elif self._deadline is None:
            self._start_timer()

    def _parse_without_upgrade(self, rest: bytes) -> None:
        """Parse the request again, without the header that asks for another protocol, such as HTTP/2:
        the parser skips the body of such a request."""
        version = self.parser.get_http_version().encode()
        line = b"%s %s HTTP/%s\r\n" % (self.parser.get_method(), self.url, version)
        lines = [b"%s: %s\r\n" % header for header in self.headers if header[0] != b"upgrade"]
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self.data_received(b"".join([line, *lines, b"\r\n", rest]))

    def on_message_begin(self) -> None:
        self._unset_keepalive_if_required()
        super().on_message_begin()
        # Where the request begins in this packet is not known, so the packet does not count.
        self._received = 1 - self._packet

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._received is not None:  # otherwise it is a trailer, which must not become a header
            # httptools removes only the white space before the value. RFC 9110, section 5.5: neither belongs to it.
            super().on_header(name, value.rstrip(b" \t"))

    def on_headers_complete(self) -> None:
        self._received = None
        self._parts = self._size = self._around = 0
        self._stop_timer()
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        self._too_large = size > _HEADER_BYTES or len(self.headers) > _HEADERS
        refused = self._too_large or len(self.pipeline) == _WAITING
        if refused or not self._is_served():
            raise ValueError("the request is refused")  # aborts the parser
        if not self.parser.should_upgrade():
            super().on_headers_complete()

    def _is_served(self) -> bool:
        version = self.parser.get_http_version()
        hosts = sum(name == b"host" for name, _ in self.headers)
        if version not in ("1.0", "1.1") or self.parser.get_method() == b"CONNECT":
            return False
        if hosts > 1 or (hosts == 0 and version == "1.1"):
            self._fault = "the request must have one Host header"
            return False
        return True

    def on_message_complete(self) -> None:
        if not self.parser.should_upgrade():
            super().on_message_complete()

    def on_body(self, body: bytes) -> None:
        self._parts += 1
        self._size += len(body)
        self._around -= len(body)
        if self._parts > _FREE_PARTS + self._size / _BYTES_PER_PART:
            self._fault = "the request body has too many small chunks"
            raise ValueError(self._fault)
        super().on_body(body)

    def eof_received(self) -> None:
        """Respond to a request that ends too early."""
        cycle: RequestResponseCycle | None = self.cycle
        if self._received or (cycle is not None and cycle.more_body):
            self._fault = "the request is incomplete"
            self.send_400_response("")

    def send_400_response(self, msg: str) -> None:
        """Refuse what the parser does not accept, and what is beyond the limits."""
        cycle: RequestResponseCycle | None = self.cycle
        if cycle and not cycle.response_complete and not cycle.more_body:
            cycle.keep_alive = False  # close after the responses to valid requests
            return
        if cycle and not cycle.response_complete:
            cycle.disconnected = True  # the application does not respond to this request
            cycle.message_event.set()
            if cycle.response_started or self.pipeline:
                self.transport.abort()
                return
        self.transport.write(_LARGE_HEADERS if self._too_large else self._render_refusal())
        self.transport.close()

    def _render_refusal(self) -> bytes:
        answer = self._refuse(self._fault)
        lines = [b"%s: %s\r\n" % header for header in answer.headers]
        return b"".join([STATUS_LINE[answer.status], *lines, b"\r\n", answer.body])

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection, unless the client is still reading the last response."""
        if self.transport.get_write_buffer_size() == 0:
            self.transport.abort()
            return
        self.timeout_keep_alive_task = self.loop.call_later(
            self.timeout_keep_alive, self.timeout_keep_alive_handler
        )

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_reader()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._unread = math.inf  # the client has read something

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.get_write_buffer_size():
            self._watch_reader()

    def _watch_reader(self) -> None:
        if self._reader_check is None:
            self._unread = self.transport.get_write_buffer_size()
            self._reader_check = self.loop.call_later(
                2 * self.timeout_keep_alive, self._check_reader
            )

    def _check_reader(self) -> None:
        """Close the connection if the client has read nothing since the last check."""
        self._reader_check = None
        size = self.transport.get_write_buffer_size()
        if size >= self._unread:
            self.transport.abort()
        elif size:
            self._watch_reader()

    def _start_timer(self) -> None:
        self._deadline = self.loop.call_later(self.timeout_keep_alive, self.transport.abort)

    def _stop_timer(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
