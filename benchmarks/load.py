"""An HTTP load generator with persistent connections, each with one request at a time.

It measures all servers with the same requests per connection. `python -m benchmarks.load` measures
its own limit: the rate of requests to a server that does nothing.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import uvloop

from benchmarks.tables import Measurement, summarize

# Not counted: connections, caches and plans of the first requests.
WARM_UP_SECONDS = 0.3

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding: *chunked", re.IGNORECASE)
_ETAG = re.compile(rb"\r\netag: *([^\r]+)", re.IGNORECASE)

# (number of the connection, number of its request, ETag of its last response) -> request
MakeRequest = Callable[[int, int, bytes], bytes]


@dataclass(frozen=True)
class Work:
    """A row of the table: one operation of one server."""

    row: str
    make_request: MakeRequest
    # Entries per call.
    items: int = 1
    # Called before each round with the number of connections. Not measured.
    prepare: Callable[[int], None] | None = None


class Refused(Exception):
    """The server returned an error, so the measurement is not valid."""


def render_request(method: str, path: str, headers: dict[str, str], body: bytes = b"") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if method != "GET":
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body


def measure(port: int, work: Work, connections: int, seconds: float) -> Measurement:
    if work.prepare is not None:
        work.prepare(connections)
    return uvloop.run(_run(port, work, connections, seconds))


async def _run(port: int, work: Work, connections: int, seconds: float) -> Measurement:
    loop = asyncio.get_running_loop()
    start = time.perf_counter() + WARM_UP_SECONDS
    run = _Run(work.make_request, start, start + seconds)
    links = [_Link(run, number, loop.create_future()) for number in range(connections)]
    await asyncio.gather(
        *(loop.create_connection(lambda link=link: link, "127.0.0.1", port) for link in links)  # type: ignore[misc]
    )
    await asyncio.wait_for(asyncio.gather(*(link.done for link in links)), seconds + 120)
    # The last requests end after `seconds`; their time counts.
    return summarize(run.latencies, run.last - run.start)


@dataclass
class _Run:
    make_request: MakeRequest
    start: float
    end: float
    last: float = 0.0
    latencies: list[float] = field(default_factory=list)


@dataclass
class _Link(asyncio.Protocol):
    run: _Run
    number: int
    done: asyncio.Future[None]
    turn: int = -1
    etag: bytes = b""
    buffer: bytearray = field(default_factory=bytearray)
    # Bytes of the response, known when its headers have arrived. 0 before, -1 for chunked encoding.
    length: int = 0
    transport: Any = None
    sent: float = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self._send()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(exc or Refused("the server closed the connection"))

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        if not self._is_complete():
            return
        now = time.perf_counter()
        head = bytes(self.buffer[:512])
        if head[9:10] != b"2":
            self._fail(bytes(self.buffer[:2000]))
            return
        if etag := _ETAG.search(head):
            self.etag = etag[1]
        if self.sent >= self.run.start:
            self.run.latencies.append(now - self.sent)
            self.run.last = now
        self.buffer.clear()
        self.length = 0
        # A round that is shorter than one call still measures one call.
        if now < self.run.end or not self.run.latencies:
            self._send()
        else:
            self.done.set_result(None)
            self.transport.close()

    def _send(self) -> None:
        self.turn += 1
        request = self.run.make_request(self.number, self.turn, self.etag)
        self.sent = time.perf_counter()
        self.transport.write(request)

    def _is_complete(self) -> bool:
        if not self.length:
            end = self.buffer.find(b"\r\n\r\n")
            if end < 0:
                return False
            head = bytes(self.buffer[: end + 2])
            length = _LENGTH.search(head)
            self.length = end + 4 + int(length[1]) if length else end + 4
            if length is None and _CHUNKED.search(head):
                self.length = -1
        if self.length < 0:
            return self.buffer.endswith(b"\r\n0\r\n\r\n")
        return len(self.buffer) >= self.length

    def _fail(self, answer: bytes) -> None:
        if not self.done.done():
            self.done.set_exception(Refused(answer.decode(errors="replace")))
        self.transport.close()


# The limit of the generator itself -----------------------------------------------------------


class _Nothing(asyncio.Protocol):
    """Responds to each request immediately. Assumes that each request arrives in one piece."""

    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 1024\r\n\r\n" + b"x" * 1024

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport

    def data_received(self, data: bytes) -> None:
        self.transport.write(self.answer)


async def _serve_nothing(port: Any) -> None:
    server = await asyncio.get_running_loop().create_server(_Nothing, "127.0.0.1", 0)
    port.send(server.sockets[0].getsockname()[1])
    await server.serve_forever()


def measure_limit() -> dict[int, Measurement]:
    """Return the maximum of the generator on this machine, by number of connections."""
    import multiprocessing

    ours, theirs = multiprocessing.Pipe()
    fork = multiprocessing.get_context("fork")
    child = fork.Process(target=lambda: uvloop.run(_serve_nothing(theirs)), daemon=True)
    child.start()
    port = ours.recv()
    request = render_request("GET", "/", {"Authorization": "Bearer " + "x" * 40})
    work = Work("nothing", lambda *_: request)
    found = {count: measure(port, work, count, 2.0) for count in (1, 8, 32)}
    child.terminate()
    return found


if __name__ == "__main__":
    for count, limit in measure_limit().items():
        print(
            f"{count:3} connections: {limit.per_second:8,.0f} requests/s, p50 {limit.p50_ms:.3f} ms"
        )
