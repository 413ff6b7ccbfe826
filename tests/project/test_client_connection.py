"""Tests the limits of ClientConnection over sockets, and that valid requests still work."""

from __future__ import annotations

import json
import select
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import uvicorn
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.server import ServerState

from project.client_connection import ClientConnection
from tests.project.attacking import (
    HEAD,
    LARGE,
    WITH_400_FILES,
    Connection,
    announced,
    chunked,
    connections,
)
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


@pytest.mark.parametrize(
    "request_",
    [
        b"GET /large HTTP/1.1\r\n" + HEAD + b"\r\n",
        b"GET /large HTTP/1.1\r\n" + HEAD + b"Connection: close\r\n\r\n",
        b"GET /large HTTP/1.0\r\n\r\n",
        (b"GET /large HTTP/1.1\r\n" + HEAD + b"\r\n") * 3,
    ],
    ids=["keep-alive", "close", "HTTP/1.0", "pipelined"],
)
def test_response__client_does_not_read__connection_is_closed(
    server: Running, request_: bytes
) -> None:
    connection = Connection(server)
    connection.send(request_)
    wait_for(lambda: is_open(server, connection), "the server accepts the connection")
    wait_for(lambda: not is_open(server, connection), "the server closes the connection")
    assert len(connection.read()) < LARGE


def connection_of(transport: Any, loop: Any) -> ClientConnection:
    config = uvicorn.Config(Mock(), interface="asgi3", log_config=None, timeout_keep_alive=5)
    connection = ClientConnection(config, ServerState(), {}, loop, most=9, refuse=Mock())
    connection.transport, connection.flow = transport, FlowControl(transport)
    return connection


@pytest.mark.parametrize(
    ("sizes", "aborted"),
    [([9, 9], True), ([9, 8, 7], False), ([9, 8, 8], True), ([9, 0], False), ([9, "read", 12], False)],
)  # fmt: skip
def test_response__client_reads_slowly__connection_is_closed_only_without_progress(
    sizes: list[Any], aborted: bool
) -> None:
    transport, loop = Mock(), Mock()
    connection = connection_of(transport, loop)
    transport.get_write_buffer_size.return_value = sizes[0]
    connection.pause_writing()
    for size in sizes[1:]:
        if size == "read":
            connection.resume_writing()
            continue
        transport.get_write_buffer_size.return_value = size
        (_, check), _ = loop.call_later.call_args
        check()
    assert transport.abort.called == aborted
    assert (
        loop.call_later.call_count
        == 1 + sum(isinstance(size, int) and size > 0 for size in sizes[1:]) - aborted
    )


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
    connection.send(b"GET /ok HTTP/1.1\r\n" + HEAD + b"\r\n")
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
    assert server.get("/ok") == (200, b"ok")


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


@pytest.mark.parametrize("separately", [False, True])
def test_trailers__of_a_chunked_body__do_not_become_headers(
    server: Running, separately: bool
) -> None:
    connection = Connection(server)
    head = chunked("/x", "Connection: close") + b"1\r\na\r\n0\r\n"
    trailer = b"Host: evil\r\nAuthorization: Bearer x\r\n\r\n"
    if separately:
        connection.send(head)
        time.sleep(0.05)
        connection.send(trailer)
    else:
        connection.send(head + trailer)
    answer = connection.read()
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b"evil" not in answer
    assert b"Bearer" not in answer


def test_header__white_space_around_its_value__is_not_part_of_it(server: Running) -> None:
    connection = Connection(server)
    head = b"GET /x HTTP/1.1\r\n" + HEAD + b"Connection: close\r\n"
    connection.send(head + b'Run-Id: \t r1 \t \r\nIf-Match:"1" \r\nX-Empty: \t \r\n\r\n')
    meta = json.loads(connection.read().partition(b"\r\n\r\n")[2])["meta"]
    assert (meta["HTTP_RUN_ID"], meta["HTTP_IF_MATCH"], meta["HTTP_X_EMPTY"]) == ("r1", '"1"', "")


@pytest.mark.parametrize(
    "part", [b"X: " + b"a" * 10_000 + b"\r\n", b"a" * 10_000], ids=["many", "one without end"]
)
def test_trailers__without_end__are_refused(server: Running, part: bytes) -> None:
    connection = Connection(server)
    connection.send(chunked() + b"0\r\nT: ", *[part] * 1000)
    assert not connection.read().startswith(b"HTTP/1.1 200 ")


def test_chunks__thousands_with_long_sizes__are_accepted(server: Running) -> None:
    """What is around the parts of a body is limited by their number."""
    connection = Connection(server)
    part = b"0000000000000010\r\n" + b"a" * 16 + b"\r\n"
    connection.send(chunked("/x", "Connection: close"), part * 4000, b"0\r\n\r\n")
    assert connection.read().startswith(b"HTTP/1.1 200 ")


def test_request__followed_by_malformed_bytes__gets_its_response(server: Running) -> None:
    """The request has been executed: a 400 would say that it was not."""
    for junk in (b"}", b"GET / HTTP/9\r\n\r\n"):
        connection = Connection(server)
        connection.send(announced(3) + b"abc" + junk)
        answer = connection.read()
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert answer.count(b"HTTP/1.1 ") == 1


def test_requests__cut_after_a_large_body__are_served(server: Running) -> None:
    """The bytes of the first request do not count as headers of the second one."""
    connection = Connection(server)
    connection.send(announced(100_000) + b"a" * 100_000 + b"GET /second HT")
    time.sleep(0.1)
    connection.send(b"TP/1.1\r\n" + HEAD + b"Connection: close\r\n\r\n")
    assert connection.read().count(b"HTTP/1.1 200 ") == 2


def test_client__leaves_while_requests_wait__first_one_is_notified(server: Running) -> None:
    transport, loop = Mock(), Mock()
    connection = connection_of(transport, loop)
    running, waiting = (Mock(response_complete=False, disconnected=False) for _ in range(2))
    connection._start_asgi_task(running, Mock())
    connection.cycle = waiting
    connection.pipeline.appendleft((waiting, Mock()))
    connection.connection_lost(None)
    assert running.disconnected
    assert running.message_event.set.called
    assert not connection.pipeline


@pytest.mark.parametrize("host", [b"", b"Host: a\r\nHost: b\r\n"], ids=["none", "two"])
def test_host__not_exactly_one__is_400(server: Running, host: bytes) -> None:
    connection = Connection(server)
    connection.send(b"GET /x HTTP/1.1\r\n" + host + b"\r\n")
    assert connection.read_problem()["detail"] == "the request must have one Host header"


def test_content_length__thousands_of_zeros__is_read(server: Running) -> None:
    connection = Connection(server)
    connection.send(b"POST /x HTTP/1.1\r\n" + HEAD + b"Connection: close\r\n")
    connection.send(b"Content-Length: " + b"0" * 5000 + b"3\r\n\r\nabc")
    assert connection.read().startswith(b"HTTP/1.1 200 ")
