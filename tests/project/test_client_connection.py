"""Tests the limits of ClientConnection over sockets, and that valid requests still work."""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import uvicorn
from uvicorn.server import ServerState

from project.client_connection import ClientConnection
from tests.project.attacking import HEAD, LARGE, WITH_400_FILES, Connection, connections
from tests.project.conftest import temporary_folder
from tests.project.running import Running, free_port, wait_for

UPGRADE = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n"


def start_server(folder, *arguments: str) -> Running:
    server = Running(
        folder,
        *arguments,
        DJANGO_SETTINGS_MODULE="tests.project.sample",
        PORT=str(free_port()),
        HEADER_SECONDS="0.5",
    )
    server.wait_until_it_answers("/healthz")
    return server


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with temporary_folder() as folder:
        running = start_server(folder, "-m", "project.processes", "web")
        yield running
        running.kill_all()


def is_closed(connection: Connection) -> bool:
    """Whether the server has closed the connection."""
    poll = select.poll()
    poll.register(connection.socket, select.POLLRDHUP)
    return bool(poll.poll(0))


def is_open(server: Running, connection: Connection) -> bool:
    """Whether the server has the connection open, also if the client would not notice its end yet."""
    ends = [f":{port:04X}" for port in (server.port, connection.socket.getsockname()[1])]
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    inodes = [row[9] for row in rows if [row[1][-5:], row[2][-5:]] == ends]
    return inodes not in ([], ["0"])


def test_response__client_does_not_read__connection_is_closed(server: Running) -> None:
    connection = Connection(server)
    connection.send(b"GET /large HTTP/1.1\r\n" + HEAD + b"\r\n")
    wait_for(lambda: is_open(server, connection), "the server accepts the connection")
    wait_for(lambda: not is_open(server, connection), "the server closes the connection")
    assert len(connection.read()) < LARGE


def connection_of(transport: Any, loop: Any) -> ClientConnection:
    config = uvicorn.Config(Mock(), interface="asgi3", log_config=None, timeout_keep_alive=5)
    connection = ClientConnection(config, ServerState(), {}, loop, most=9, refuse=Mock())
    connection.transport = transport
    return connection


@pytest.mark.parametrize(
    ("sizes", "aborted"),
    [([0], True), ([9, 9, 9], True), ([9, 8, 8, 7], False), ([9, 9, 7, 0], True), ([9, 9], False)],
)
def test_response__client_reads_slowly__connection_is_closed_only_without_progress(
    sizes: list[int], aborted: bool
) -> None:
    transport, loop = Mock(), Mock()
    transport.get_write_buffer_size.side_effect = sizes
    connection = connection_of(transport, loop)
    for _ in sizes:
        assert not transport.abort.called
        connection.timeout_keep_alive_handler()
    assert transport.abort.called == aborted
    assert loop.call_later.call_count == len(sizes) - aborted


@pytest.mark.parametrize("cut", [0, 30, 150, 190, 205])
def test_upgrade__to_http2__is_ignored(server: Running, cut: int) -> None:
    """Java's HttpClient offers HTTP/2 this way in its first request, even in a POST."""
    request = b"POST /x HTTP/1.1\r\n" + HEAD + UPGRADE + b"Content-Length: 3\r\n\r\nabc"
    second = b"GET /second HTTP/1.1\r\n" + HEAD + b"Connection: close\r\n\r\n"
    connection = Connection(server)
    connection.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.send(request[:cut])
    time.sleep(0.01)
    connection.send(request[cut:] + second)
    answers = connection.read().split(b"HTTP/1.1 200 OK\r\n")
    assert [b'"body": "abc"' in answers[1], b'"/second"' in answers[2]] == [True, True]


def test_connection__only_empty_lines_after_a_request__is_closed(server: Running) -> None:
    connection = Connection(server)
    connection.send(b"GET /healthz HTTP/1.1\r\n" + HEAD + b"\r\n")
    answer = b""
    while not answer.endswith(b"ok"):
        answer += connection.socket.recv(65536)
    assert connection.trickle(b"\r\n") == b""


@pytest.mark.parametrize("extra", [b"", UPGRADE], ids=["plain", "with an upgrade"])
def test_requests__thousands_in_one_packet__connection_is_closed(
    server: Running, extra: bytes
) -> None:
    connection = Connection(server)
    connection.send((b"GET /x HTTP/1.1\r\n" + HEAD + extra + b"\r\n") * 1000)
    assert connection.read().count(b"HTTP/1.1 200 ") < 1000
    assert server.get("/healthz") == (200, b"ok")


def test_requests__ten_in_one_packet__are_served(server: Running) -> None:
    connection = Connection(server)
    one = b"GET /x HTTP/1.1\r\n" + HEAD
    connection.send((one + b"\r\n") * 9 + one + b"Connection: close\r\n\r\n")
    assert connection.read().count(b"HTTP/1.1 200 ") == 10


def test_connect__is_400(server: Running) -> None:
    connection = Connection(server)
    connection.send(b"CONNECT example.com:443 HTTP/1.1\r\n" + HEAD + b"\r\n")
    assert connection.read_problem()["status"] == 400


def test_connections__more_than_the_limit__are_closed_until_others_end() -> None:
    with temporary_folder() as folder:
        limited = start_server(folder, "-c", WITH_400_FILES)
        try:
            with connections(limited, 200) as opened:
                wait_for(lambda: sum(map(is_closed, opened)) >= 200 - 144, "some are closed")
            limited.wait_until_it_answers("/healthz")
        finally:
            limited.kill_all()


@pytest.mark.parametrize("sent", [b"GET /x HTTP/1.1\r\nHost: x\r\nX: ", b"GET /"])
def test_headers__without_end__are_431(server: Running, sent: bytes) -> None:
    connection = Connection(server)
    connection.send(sent, *[b"a" * 10_000] * 50)
    assert connection.read().startswith(b"HTTP/1.1 431 ")
