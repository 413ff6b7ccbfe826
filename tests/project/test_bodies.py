"""Request bodies through the real server: slow, endless, malformed, and too many of them."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from project.bodies import Bodies, Body, BodyBudget, Client, Limits
from state_admin.services.errors import (
    Problem,
    TooLarge,
    Unavailable,
)
from state_admin.services.problem_statuses import RequestTimeout
from tests.loops import run
from tests.patience import PATIENCE
from tests.project.attacking import (
    ELSEWHERE,
    HEAD,
    WITH_400_FILES,
    Connection,
    announced,
    chunk,
    chunked,
    connections,
    post,
    resident_megabytes,
)
from tests.project.running import Running, free_port, wait_for

Start = Callable[..., Running]
MIB = 1024 * 1024


def begin(start: Start, **env: str) -> Running:
    server = start(
        *("-m", "project.processes", "web"),
        DJANGO_SETTINGS_MODULE="tests.project.sample",
        PORT=str(free_port()),
        **env,
    )
    server.wait_until_it_answers("/healthz")
    return server


@pytest.fixture(scope="module")
def patient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server of one process with a long timeout for bodies, and 8 MiB for them."""
    running: list[Running] = []

    def start(*arguments: str, **env: str) -> Running:
        running.append(Running(tmp_path_factory.mktemp("bodies"), *arguments, **env))
        return running[-1]

    yield begin(
        start,
        MAX_BODY_BYTES=str(MIB),
        BODY_MEMORY_BYTES=str(8 * MIB),
        BODY_IDLE_SECONDS=str(2 * PATIENCE),
    )
    for process in running:
        process.kill_all()


def ledger(server: Running) -> dict[str, int]:
    status, body = server.get("/bodies")
    assert status == 200
    found: dict[str, int] = json.loads(body)
    return found


def wait_for_bodies(server: Running, count: int) -> None:
    wait_for(lambda: ledger(server)["receiving"] == count, f"{count} bodies are being received")


# Memory --------------------------------------------------------------------------------------


@pytest.mark.parametrize("sent", [b"", b"z"])
def test_announced_bodies__hundreds_do_not_arrive__use_no_memory(
    patient: Running, sent: bytes
) -> None:
    before = resident_megabytes(patient)
    with connections(patient, 600, announced(MIB), sent):
        wait_for_bodies(patient, 600)

        assert ledger(patient)["held"] == 0
        assert {post(patient, size) for size in (1, 5_000, MIB) for _ in range(10)} == {200}
        assert resident_megabytes(patient) < before + 100
    wait_for_bodies(patient, 0)


@pytest.mark.parametrize("head", [announced(MIB), chunked()], ids=["announced", "chunked"])
def test_bodies__of_one_address__are_limited_to_its_share(patient: Running, head: bytes) -> None:
    """60 clients send 900 kB each: two fit into a quarter of 8 MiB."""
    before = resident_megabytes(patient)
    part = chunk(300_000) if head == chunked() else b"z" * 300_000
    with connections(patient, 2, head, part, part, part):
        wait_for(lambda: ledger(patient)["held"] == 1_800_000, "two have sent all they will")
        with connections(patient, 58, head, part, part, part) as others:
            problems = [other.read_problem() for other in others]

            assert {problem["status"] for problem in problems} == {503}
            assert ledger(patient) == {"held": 1_800_000, "receiving": 2}
            assert post(patient, MIB) == 503
            assert post(patient, 4_000) == 200  # small ones are not counted
            assert post(patient, MIB, address=ELSEWHERE) == 200
            assert resident_megabytes(patient) < before + 100
    wait_for(lambda: ledger(patient)["held"] == 0, "the bytes are released")
    assert post(patient, MIB) == 200


def test_ledger__many_addresses__leave_half_to_tokens() -> None:
    ledger = BodyBudget(Limits(one=10, total=80))
    for number in range(4):
        ledger.charge(Client(f"10.0.0.{number}", has_token=False), 10)
    with pytest.raises(Unavailable):
        ledger.charge(Client("10.0.0.9", has_token=False), 1)

    for owner in ("token:1", "token:2"):
        ledger.charge(Client(owner, has_token=True), 20)
        with pytest.raises(Unavailable):
            ledger.charge(Client(owner, has_token=True), 1)
    with pytest.raises(Unavailable):
        ledger.charge(Client("token:3", has_token=True), 1)
    assert (ledger.held, ledger.held_anonymously) == (80, 40)

    ledger.release(Client("10.0.0.0", has_token=False), 10)
    ledger.release(Client("token:1", has_token=True), 20)
    ledger.charge(Client("token:3", has_token=True), 20)
    assert (ledger.held, ledger.held_anonymously) == (70, 30)


def test_ledger__body_larger_than_a_quarter__one_is_accepted() -> None:
    ledger = BodyBudget(Limits(one=100, total=80))
    ledger.charge(Client("10.0.0.1", has_token=False), 100)
    with pytest.raises(Unavailable):
        ledger.charge(Client("token:1", has_token=True), 1)


# Without a server ----------------------------------------------------------------------------


def receive(
    *parts: bytes,
    limits: Limits,
    owner: str = "",
    address: str = "10.0.0.1",
    ends: bool = True,
    **headers: str,
) -> tuple[bytes | Problem, Bodies]:
    """The result of receiving these parts, and where they are counted. `ends`: the last part is known to
    be the last; otherwise nothing arrives after it."""

    async def identify(_: object) -> str:
        return owner

    async def go() -> tuple[bytes | Problem, Bodies]:
        messages = [
            {"type": "http.request", "body": part, "more_body": not (ends and number == len(parts))}
            for number, part in enumerate(parts, 1)
        ]

        async def take() -> dict[str, object]:
            if not messages:
                await asyncio.sleep(60)
            return messages.pop(0)

        bodies = Bodies(limits, identify)
        sent = {name.replace("_", "-").encode(): text.encode() for name, text in headers.items()}
        try:
            return await Body(bodies, sent, address, take).read(), bodies
        except Problem as problem:
            return problem, bodies

    return run(go())


def client_of(bodies: Bodies) -> tuple[str, bool]:
    (client,) = bodies.ledger.held_by
    return client.name, client.has_token


@pytest.mark.parametrize(
    ("owner", "address", "client"),
    [
        ("token:7", "10.0.0.1", ("token:7", True)),
        ("", "10.0.0.1", ("10.0.0.1", False)),
        ("", "2001:db8:0:7:1:2:3:4", ("2001:db8:0:7::", False)),
        ("", "::ffff:10.0.0.1", ("10.0.0.1", False)),
        ("", "not an address", ("not an address", False)),
    ],
)
def test_body__large__counts_against_the_owner_of_the_token_or_the_address(
    owner: str, address: str, client: tuple[str, bool]
) -> None:
    content, bodies = receive(
        *[b"z" * 5000] * 3, limits=Limits(one=MIB), owner=owner, address=address
    )
    assert content == b"z" * 15_000
    assert bodies.ledger.held == 15_000
    assert client_of(bodies) == client


@pytest.mark.parametrize("parts", [[b"12", b"345"], [b"12345"]])
def test_body__more_than_the_limit__is_413(parts: list[bytes]) -> None:
    refused, _ = receive(*parts, limits=Limits(one=4))
    assert isinstance(refused, TooLarge)
    assert (refused.detail, refused.data) == ("the body has more than 4 bytes", {"limit": 4})
    assert "MAX_BODY_BYTES" in refused.hint


def test_body__few_large_chunks__are_accepted() -> None:
    content, _ = receive(*[b"z" * 64] * 10_000, limits=Limits(one=MIB))
    assert content == b"z" * 640_000


def test_body__as_long_as_declared__is_complete_without_another_message() -> None:
    content, _ = receive(b"1234", b"56", ends=False, limits=Limits(one=MIB), content_length="6")
    assert content == b"123456"


@pytest.mark.parametrize(
    "headers",
    [{}, {"content_length": "7"}, {"content_length": "6", "transfer_encoding": "chunked"}],
)
def test_body__end_is_not_known__waits_for_it(headers: dict[str, str]) -> None:
    limits = Limits(one=MIB, idle_seconds=0.05)
    refused, _ = receive(b"1234", b"56", ends=False, limits=limits, **headers)
    assert isinstance(refused, RequestTimeout)


# Time ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server that waits half a second for the next byte, and for the next request."""
    running: list[Running] = []

    def start(*arguments: str, **env: str) -> Running:
        running.append(Running(tmp_path_factory.mktemp("bodies"), *arguments, **env))
        return running[-1]

    yield begin(start, BODY_IDLE_SECONDS="0.5", BODY_MIN_RATE="1000000", HEADER_SECONDS="0.5")
    for process in running:
        process.kill_all()


@pytest.mark.parametrize(
    "sent",
    [announced(9), announced(9) + b"z", chunked(), chunked() + chunk(5000), chunked() + b"5\r\nz"],
)
def test_body__no_byte_for_long__is_408(impatient: Running, sent: bytes) -> None:
    connection = Connection(impatient)
    connection.send(sent)
    assert connection.read_problem()["type"] == "/problems/request-timeout"
    wait_for_bodies(impatient, 0)
    assert ledger(impatient)["held"] == 0


def test_body__byte_by_byte__is_408(impatient: Running) -> None:
    """Never half a second without a byte, but far below the minimum rate."""
    connection = Connection(impatient)
    connection.send(announced(50_000))
    assert connection.trickle(b"z").startswith(b"HTTP/1.1 408 ")


def test_chunk__extension_without_end__is_408(impatient: Running) -> None:
    connection = Connection(impatient)
    connection.send(chunked(), b"3;")
    assert connection.trickle(b"x" * 100).startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"G",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n",
        b"PRI * HTTP/2.0\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ],
    ids=["nothing", "a letter", "half a head", "an HTTP/2 preface", "one request"],
)
def test_connection__next_request_head_does_not_arrive__is_closed(
    impatient: Running, sent: bytes
) -> None:
    connection = Connection(impatient)
    connection.send(sent)
    connection.read()  # fails if the server does not close


def test_sigterm__body_still_arriving__is_503(start: Start) -> None:
    server = begin(start)
    connection = Connection(server)
    connection.send(announced(9), b"half")
    wait_for_bodies(server, 1)
    server.signal(signal.SIGTERM)
    assert connection.read_problem()["type"] == "/problems/unavailable"
    assert server.wait() == 0


# Framing -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        b"zz\r\nabc\r\n",
        b"3\r\nabcXX\r\n0\r\n\r\n",
        b"-1\r\nabc\r\n",
        b"ffffffffffffffffff\r\nabc",
    ],
    ids=["no size", "too long", "negative", "overflow"],
)
def test_chunks__malformed__is_400(patient: Running, body: bytes) -> None:
    connection = Connection(patient)
    connection.send(chunked(), body)
    assert connection.read_problem()["type"] == "/problems/bad-request"


def test_body__ends_early__is_400(patient: Running) -> None:
    connection = Connection(patient)
    connection.send(announced(9), b"half")
    connection.socket.shutdown(1)
    assert connection.read_problem()["type"] == "/problems/bad-request"


def test_chunks__too_many_small_ones__is_400(patient: Running) -> None:
    connection = Connection(patient)
    connection.send(chunked(), chunk(1) * 10_000)
    assert connection.read_problem()["detail"] == "the request body has too many small chunks"


def test_transfer_coding__unknown__is_400(patient: Running) -> None:
    connection = Connection(patient)
    connection.send(
        b"POST /x HTTP/1.1\r\n" + HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n" + chunk(3)
    )
    assert connection.read_problem()["type"] == "/problems/bad-request"


@pytest.mark.parametrize(
    "lengths",
    [["Content-Length: 3", "Content-Length: 4"], ["Content-Length: -3"], ["Content-Length: 3x"]],
)
def test_length__ambiguous__is_400_and_the_connection_is_closed(
    patient: Running, lengths: list[str]
) -> None:
    connection = Connection(patient)
    head = "".join(f"{line}\r\n" for line in lengths).encode()
    connection.send(b"POST /x HTTP/1.1\r\n" + HEAD + head + b"\r\nabcd")
    answer = connection.read()
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1 ") == 1


SMUGGLED = b"GET /smuggled HTTP/1.1\r\n" + HEAD + b"\r\n"


@pytest.mark.parametrize(
    "sent",
    [
        announced(2 * MIB) + SMUGGLED,
        chunked() + b"zz\r\n" + SMUGGLED,
        chunked() + chunk(1) * 10_000 + SMUGGLED,
        b"POST /x HTTP/1.1\r\n" + HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n" + SMUGGLED,
        b"POST /%FF HTTP/1.1\r\n" + HEAD + b"Content-Length: 9999\r\n\r\n" + SMUGGLED,
    ],
    ids=["too large", "bad chunk", "small chunks", "unknown coding", "bad path"],
)
def test_refused__unread_body__is_not_parsed_as_the_next_request(
    patient: Running, sent: bytes
) -> None:
    connection = Connection(patient)
    connection.send(sent)
    connection.read_problem()  # asserts that there is only one answer


def test_length_and_chunks__both__is_400(patient: Running) -> None:
    connection = Connection(patient)
    both = (
        b"POST /x HTTP/1.1\r\n" + HEAD + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    connection.send(both, chunk(5), b"0\r\n\r\n", SMUGGLED)
    assert connection.read_problem()["type"] == "/problems/bad-request"


def test_requests__pipelined__are_answered_in_order(patient: Running) -> None:
    connection = Connection(patient)
    connection.send(
        announced(3, "/first"), b"abc", announced(2, "/second", "Connection: close"), b"de"
    )
    first, second = connection.read().split(b"HTTP/1.1 200 OK\r\n")[1:]
    assert (b'"/first"' in first, b'"abc"' in first) == (True, True)
    assert (b'"/second"' in second, b'"de"' in second) == (True, True)


def test_expect__acceptable_body__is_100_then_200(patient: Running) -> None:
    connection = Connection(patient)
    connection.send(announced(3, "/x", "Expect: 100-continue", "Connection: close"))
    assert connection.socket.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
    connection.send(b"abc")
    assert connection.read().startswith(b"HTTP/1.1 200 ")


def test_expect__body_too_large__is_413_without_100(patient: Running) -> None:
    connection = Connection(patient)
    connection.send(announced(2 * MIB, "/x", "Expect: 100-continue"))
    assert connection.read_problem()["status"] == 413


@pytest.mark.parametrize(
    "lines",
    [b"X: " + b"a" * 200_000 + b"\r\n", b"".join(b"X-%d: 1\r\n" % n for n in range(200))],
    ids=["large", "many"],
)
def test_headers__too_large_or_too_many__is_431(patient: Running, lines: bytes) -> None:
    connection = Connection(patient)
    connection.send(b"GET /x HTTP/1.1\r\n" + HEAD + lines + b"\r\n")
    assert connection.read().startswith(b"HTTP/1.1 431 ")


def test_path__with_the_longest_key__is_served(patient: Running) -> None:
    connection = Connection(patient)
    connection.send(
        b"GET /" + b"%F0%9F%99%82" * 2000 + b" HTTP/1.1\r\n" + HEAD + b"Connection: close\r\n\r\n"
    )
    assert connection.read().startswith(b"HTTP/1.1 200 ")


def test_connections__at_the_limit_of_open_files__the_database_is_still_reachable(
    start: Start, folder: Path
) -> None:
    server = start(
        *("-c", WITH_400_FILES),
        DJANGO_SETTINGS_MODULE="tests.project.sample",
        PORT=str(free_port()),
    )
    server.wait_until_it_answers("/healthz")
    kept = Connection(server)
    with connections(server, 500, announced(MIB)):
        kept.send(b"GET /orm HTTP/1.1\r\n" + HEAD + b"Connection: close\r\n\r\n")
        assert kept.read().startswith(b"HTTP/1.1 200 ")
