"""Connections that misuse HTTP: many at once, slow, endless, malformed."""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.patience import PATIENCE
from tests.project.running import Running, children

HEAD = b"Host: localhost\r\n"
# Bytes of a response that do not fit into the buffers of a socket.
LARGE = 20_000_000
# Another client than 127.0.0.1: the whole network 127/8 is this machine.
ELSEWHERE = "127.0.0.2"
# Limits open files, and with them connections: 256 of the files are for other purposes.
WITH_400_FILES = (
    "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (400, 400));"
    "from project import processes; processes.main('web')"
)


class Connection:
    """One connection. `address` is its source address."""

    def __init__(self, server: Running, address: str = "127.0.0.1") -> None:
        self.socket = socket.create_connection(
            ("127.0.0.1", server.port), timeout=PATIENCE, source_address=(address, 0)
        )

    def send(self, *parts: bytes) -> None:
        """Send until the server stops reading."""
        with contextlib.suppress(OSError):
            for part in parts:
                self.socket.sendall(part)

    def trickle(self, part: bytes) -> bytes:
        """Send `part` every 50 ms until the server responds or closes. Returns the beginning of the
        response, b"" if there is none."""
        self.socket.settimeout(0.05)
        while True:
            self.send(part)
            try:
                return self.socket.recv(65536)
            except TimeoutError:
                continue
            except ConnectionError:
                return b""

    def read(self) -> bytes:
        """Everything until the server closes."""
        answer = b""
        with contextlib.suppress(ConnectionResetError):
            while part := self.socket.recv(65536):
                answer += part
        return answer

    def read_problem(self) -> dict[str, Any]:
        """The problem document of the only response, after which the server closes."""
        answer = self.read()
        head, _, body = answer.partition(b"\r\n\r\n")
        assert answer.count(b"HTTP/1.1 ") == 1, answer[:1000]
        assert b"content-type: application/problem+json" in head.lower(), answer[:1000]
        assert b"connection: close" in head.lower()
        problem: dict[str, Any] = json.loads(body)
        assert head.startswith(b"HTTP/1.1 %d " % problem["status"])
        return problem

    def close(self) -> None:
        self.socket.close()


def announced(size: int, path: str = "/x", *headers: str) -> bytes:
    """The head of a request with a body of `size` bytes."""
    lines = "".join(f"{line}\r\n" for line in headers)
    return b"POST %s HTTP/1.1\r\n%s%sContent-Length: %d\r\n\r\n" % (
        *(path.encode(), HEAD, lines.encode()),
        size,
    )


def chunked(path: str = "/x", *headers: str) -> bytes:
    """The head of a request with a chunked body."""
    lines = "".join(f"{line}\r\n" for line in headers)
    return b"POST %s HTTP/1.1\r\n%s%sTransfer-Encoding: chunked\r\n\r\n" % (
        *(path.encode(), HEAD, lines.encode()),
    )


def chunk(size: int) -> bytes:
    return b"%x\r\n" % size + b"z" * size + b"\r\n"


@contextlib.contextmanager
def connections(
    server: Running, count: int, *sent: bytes, address: str = "127.0.0.1"
) -> Iterator[list[Connection]]:
    """`count` connections that have sent this and send nothing more."""
    opened: list[Connection] = []
    try:
        for _ in range(count):
            opened.append(Connection(server, address))
            opened[-1].send(*sent)
        yield opened
    finally:
        for connection in opened:
            connection.close()


def post(
    server: Running, size: int, path: str = "/x", *headers: str, address: str = "127.0.0.1"
) -> int:
    """The status of a well-behaved request with a body of `size` bytes."""
    connection = Connection(server, address)
    try:
        connection.send(announced(size, path, "Connection: close", *headers), b"z" * size)
        return int(connection.read().split(b" ", 2)[1])
    finally:
        connection.close()


def resident_megabytes(server: Running) -> float:
    """The resident memory of the largest process of the server."""
    pids = [server.pid, *children(server.pid)]
    pages = [int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in pids]
    return max(pages) * os.sysconf("SC_PAGESIZE") / 1e6
