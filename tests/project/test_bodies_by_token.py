"""Large bodies with and without a token, on every path of the real application."""

from __future__ import annotations

import contextlib
import json
import select
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import override_settings

from project import settings as deployment
from project import startup
from tests.builders import Person, make_namespace, make_token
from tests.mcp.asking import MCP
from tests.patience import PATIENCE
from tests.project.attacking import (
    ELSEWHERE,
    Connection,
    announced,
    chunk,
    chunked,
    connections,
    resident_megabytes,
)
from tests.project.running import Running
from tests.streams.listening import run_web_process

pytestmark = pytest.mark.django_db(transaction=True)

MIB = 1024 * 1024
ENTRY, STORE = "/api/v1/state/notes/k", "/api/v1/agent-protocol/store/items"
LANES = ["/mcp", ENTRY, "/api/v1/changes/stream", "/login", "/nowhere"]


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, django_db_setup: None, django_db_blocker: Any
) -> Iterator[Running]:
    """One process: 4 MiB of bodies, of which a client may use 1 MiB."""
    # The error page of a refused form needs it.
    with override_settings(STATIC_ROOT=deployment.STATIC_ROOT, STORAGES=deployment.STORAGES):
        startup.collect_static()
    env = {
        "WEB_WORKERS": "1",
        "MAX_BODY_BYTES": str(MIB),
        "BODY_MEMORY_BYTES": str(4 * MIB),
        "BODY_IDLE_SECONDS": str(2 * PATIENCE),
    }
    with run_web_process(tmp_path_factory.mktemp("bodies"), django_db_blocker, **env) as web:
        # Imports what /mcp needs, which takes memory once.
        assert MCP(web.port).post(b"{}")[0] == 401
        yield web


def bearer(person: Person) -> str:
    return f"Authorization: Bearer {person.token}"


def ask(server: Running, head: bytes, body: bytes) -> tuple[int, bytes]:
    connection = Connection(server)
    connection.send(head, body)
    answer = connection.read()
    connection.close()
    return int(answer.split(b" ", 2)[1]), answer.partition(b"\r\n\r\n")[2]


def put_entry(server: Running, person: Person, size: int) -> int:
    head = announced(
        size, ENTRY, bearer(person), "Connection: close", "Content-Type: application/json"
    )
    return ask(server, head.replace(b"POST", b"PUT", 1), b'{"value":"%s"}' % (b"z" * (size - 12)))[
        0
    ]


def put_item(server: Running, person: Person, size: int) -> int:
    item = {"namespace": ["notes"], "key": "k", "value": {"text": "z" * size}}
    body = json.dumps(item).encode()
    key = f"x-api-key: {person.token}"
    head = announced(len(body), STORE, key, "Connection: close", "Content-Type: application/json")
    return ask(server, head.replace(b"POST", b"PUT", 1), body)[0]


def call_tool(server: Running, person: Person, size: int) -> bool:
    """Whether the tool was called; raises the refusal of /mcp."""
    arguments = {"namespace": "notes", "key": "m", "value": "z" * size}
    answer = MCP(server.port).raw(person.token, "put_state", json.dumps(arguments))
    return answer["key"] == "m"


@contextlib.contextmanager
def flood(server: Running, path: str, *headers: str, address: str = "127.0.0.1") -> Iterator[None]:
    """61 clients that send 900 kB without end. One fits into a client's share, the others get
    503."""
    sent = chunked(path, *headers), *[chunk(300_000)] * 3
    with connections(server, 61, *sent, address=address) as senders:
        by_socket = {sender.socket: sender for sender in senders}
        while len(by_socket) > 1:
            answered, _, _ = select.select(list(by_socket), [], [], PATIENCE)
            assert answered, f"{len(by_socket)} senders are left"
            for each in answered:
                assert by_socket.pop(each).read_problem()["status"] == 503
        yield


@pytest.mark.parametrize("lane", LANES)
def test_bodies__without_token__leave_memory_for_clients_with_one(
    server: Running, alice: Person, lane: str
) -> None:
    """All from one address: the token counts, not the address."""
    make_namespace(alice.actor, "notes")
    before = resident_megabytes(server)
    with flood(server, lane):
        assert put_entry(server, alice, 900_000) == 201
        assert put_item(server, alice, 900_000) == 204
        assert call_tool(server, alice, 900_000)
        assert resident_megabytes(server) < before + 100


@pytest.mark.parametrize("lane", LANES)
def test_bodies__announced_and_not_sent__use_no_memory(
    server: Running, alice: Person, lane: str
) -> None:
    make_namespace(alice.actor, "notes")
    before = resident_megabytes(server)
    with connections(server, 600, announced(MIB, lane)):
        assert put_entry(server, alice, 900_000) == 201
        assert call_tool(server, alice, 900_000)
        assert (
            ask(server, announced(20_000, "/login", "Connection: close"), b"z" * 20_000)[0] == 403
        )
        assert resident_megabytes(server) < before + 100


@pytest.mark.parametrize("lane", ["/mcp", ENTRY])
def test_bodies__of_one_token__leave_memory_for_others(
    server: Running, alice: Person, lane: str
) -> None:
    make_namespace(alice.actor, "notes")
    secret, _ = make_token(alice)
    with flood(server, lane, f"Authorization: Bearer {secret}"):
        assert put_entry(server, alice, 900_000) == 201
        assert call_tool(server, alice, 900_000)
        # Without a token. The login page refuses it for its missing CSRF token.
        login = announced(900_000, "/login", "Connection: close")
        assert ask(server, login, b"z" * 900_000)[0] == 403


@pytest.mark.parametrize("token", ["ch_0123456789ab_" + "0" * 64, "x", "\xe9"])
def test_bodies__with_an_invalid_token__count_against_the_address(
    server: Running, token: str
) -> None:
    with (
        flood(server, ENTRY),
        flood(server, "/login", address=ELSEWHERE),
        connections(server, 1, chunked(ENTRY, f"Authorization: Bearer {token}")) as (sender,),
    ):
        sender.send(*[chunk(300_000)] * 3)
        assert sender.read_problem()["status"] == 503
