"""A connection of a client, with limits that uvicorn does not have."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import httptools
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

if TYPE_CHECKING:  # it imports the apps of Django, which are not loaded yet
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


class ClientConnection(HttpToolsProtocol):
    """An HTTP/1.1 connection.

    It is closed if the headers of a request do not arrive within `timeout_keep_alive` seconds, if the
    client reads nothing of a response for twice as long, if the process has `most` connections already, or
    if more than _WAITING requests wait for a response. Headers beyond the limits are refused with 431.
    `refuse` returns the response to a malformed request, from the reason.
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
        # Of the body of the current request.
        self._parts = self._size = 0
        # Bytes of the last response that were not sent at the last check, and the checks without progress.
        self._unsent = self._idle = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self._most:
            transport.abort()
        else:
            self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._stop_timer()

    def data_received(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._parse_without_upgrade(data[upgrade.args[0] :])
            return
        except httptools.HttpParserError:
            self.send_400_response("")
            return
        if self._received is None:
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
        line = b"%s %s HTTP/1.1\r\n" % (self.parser.get_method(), self.url)
        lines = [b"%s: %s\r\n" % header for header in self.headers if header[0] != b"upgrade"]
        self.parser = httptools.HttpRequestParser(self)
        self.data_received(b"".join([line, *lines, b"\r\n", rest]))

    def on_message_begin(self) -> None:
        self._unset_keepalive_if_required()
        super().on_message_begin()
        self._received = 0

    def on_headers_complete(self) -> None:
        self._received = None
        self._parts = self._size = 0
        self._stop_timer()
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        self._too_large = size > _HEADER_BYTES or len(self.headers) > _HEADERS
        connects = self.parser.get_method() == b"CONNECT"
        if self._too_large or connects or len(self.pipeline) == _WAITING:
            raise ValueError("the request is refused")  # aborts the parser
        if not self.parser.should_upgrade():
            super().on_headers_complete()

    def on_message_complete(self) -> None:
        if not self.parser.should_upgrade():
            super().on_message_complete()

    def on_body(self, body: bytes) -> None:
        self._parts += 1
        self._size += len(body)
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
        lines = [b"%s: %s\r\n" % header for header in answer.start["headers"]]
        return b"".join([STATUS_LINE[answer.start["status"]], *lines, b"\r\n", answer.body])

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection, unless the client is still reading the last response."""
        before, self._unsent = self._unsent, self.transport.get_write_buffer_size()
        self._idle = self._idle + 1 if self._unsent == before else 0
        if self._unsent == 0 or self._idle > 1:
            self.transport.abort()
            return
        self.timeout_keep_alive_task = self.loop.call_later(
            self.timeout_keep_alive, self.timeout_keep_alive_handler
        )

    def _start_timer(self) -> None:
        self._deadline = self.loop.call_later(self.timeout_keep_alive, self.transport.abort)

    def _stop_timer(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
