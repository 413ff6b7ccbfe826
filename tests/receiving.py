"""Receivers of webhooks: real HTTP servers in threads, each with its own behaviour."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import json
import socketserver
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.patience import PATIENCE

Manners = Callable[["Handler", int], None]


@dataclass(frozen=True)
class Received:
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def event(self) -> Any:
        return json.loads(self.body)

    @property
    def key(self) -> str:
        key: str = self.event["data"]["key"]
        return key


class Handler(BaseHTTPRequestHandler):
    """Records the request, then does what the receiver's behaviour says."""

    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        number = self.server.note(Received(self.path, headers, body))
        with contextlib.suppress(OSError):
            self.server.manners(self, number)

    def do_GET(self) -> None:
        self.server.note(Received(self.path, {}, b""))
        answer(200)(self, 0)

    def log_message(self, *args: Any) -> None:
        pass


class Receiver(ThreadingHTTPServer):
    """`manners(handler, number)` responds to the request with that number; 1 is the first."""

    daemon_threads = True
    request_queue_size = 50

    def __init__(self, manners: Manners, host: str = "127.0.0.1", port: int = 0) -> None:
        super().__init__((host, port), Handler)
        self.manners = manners
        self.received: list[Received] = []
        self.over = threading.Event()  # for behaviours that hang
        self._noted = threading.Condition()

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    @property
    def url(self) -> str:
        return f"http://{self.server_address[0]!s}:{self.port}/hook"

    @property
    def keys(self) -> list[str]:
        return [received.key for received in self.received]

    def note(self, received: Received) -> int:
        with self._noted:
            self.received.append(received)
            self._noted.notify_all()
            return len(self.received)

    def wait_for(self, number: int, seconds: float = PATIENCE) -> None:
        with self._noted:
            came = self._noted.wait_for(lambda: len(self.received) >= number, seconds)
            assert came, f"{len(self.received)} of {number} requests came"


@contextlib.contextmanager
def receiving(
    manners: Manners | None = None, host: str = "127.0.0.1", port: int = 0
) -> Iterator[Receiver]:
    receiver = Receiver(manners or answer(204), host, port)
    with serving(receiver):
        try:
            yield receiver
        finally:
            receiver.over.set()


@contextlib.contextmanager
def serving(server: socketserver.BaseServer) -> Iterator[None]:
    """Run the server in a thread until the end of the block."""
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def answer(status: int, body: bytes = b"", **headers: str) -> Manners:
    def manners(handler: Handler, number: int) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return manners


def hang(handler: Handler, number: int) -> None:
    """Read the request and never respond."""
    handler.server.over.wait(60)


def drip(handler: Handler, number: int) -> None:
    """A header without end, a byte at a time: every single wait is short."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    while not handler.server.over.wait(0.02):
        handler.wfile.write(b"a")


def flood(handler: Handler, number: int) -> None:
    """200 and a body without end."""
    handler.send_response(200)
    handler.end_headers()
    while not handler.server.over.is_set():
        handler.wfile.write(b"x" * 65536)


def nonsense(handler: Handler, number: int) -> None:
    handler.wfile.write(b"\x16\x03\x01 this is not HTTP\r\n\r\n")


def is_signed(received: Received, secret: str) -> bool:
    """Verified by an implementation that shares no code with the server."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    headers = received.headers
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + received.body
    digest = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return f"v1,{digest}" in headers["webhook-signature"].split(" ")
