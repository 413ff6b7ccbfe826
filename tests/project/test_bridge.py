"""Real HTTP through the real server: what reaches a view, and what comes back."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.http import HttpResponse
from structlog.testing import capture_logs

from project import bridge as bridges
from project.bodies import Limits
from project.bridge import Bridge
from project.paths import RAW_PATH
from project.postgres.cluster import Cluster
from tests.loops import run
from tests.patience import PATIENCE
from tests.project.attacking import resident_megabytes
from tests.project.conftest import temporary_folder
from tests.project.running import Running, free_port, is_alive, wait_for

SAMPLE = "tests.project.sample"


def begin(start: Callable[..., Running], folder: Path, **env: str) -> Running:
    server = start(
        *("-m", "project.processes", "web"),
        DJANGO_SETTINGS_MODULE=SAMPLE,
        PORT=str(free_port()),
        NOTES=str(folder / "notes"),
        **env,
    )
    server.wait_until_it_answers("/healthz")
    return server


@pytest.fixture
def server(start: Callable[..., Running], folder: Path) -> Running:
    return begin(start, folder)


@pytest.fixture(scope="module")
def shared() -> Iterator[Running]:
    """One server for the tests that only look."""
    running: list[Running] = []

    def start(*arguments: str, **env: str) -> Running:
        running.append(Running(folder, *arguments, **env))
        return running[-1]

    with temporary_folder() as folder:
        yield begin(start, folder)
        for process in running:
            process.kill_all()


def echoed(server: Running, path: str, **headers: str) -> dict:
    status, body = server.get(path, **headers)
    assert status == 200, body
    return json.loads(body)


def exchange(server: Running, request: bytes) -> bytes:
    """Send bytes as they are and read until the server closes."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as connection:
        connection.sendall(request)
        answer = b""
        while part := connection.recv(65536):
            answer += part
        return answer


@pytest.mark.parametrize(
    ("sent", "seen"),
    [
        ("a%2F..%2Fb", "a/../b"),
        ("a/../b", "a/../b"),
        ("a//b/./c", "a//b/./c"),
        ("100%2525", "100%25"),
        ("thread%2F%2Fa", "thread//a"),
        ("%00", "\0"),
        ("line%0Abreak", "line\nbreak"),
        ("a%3Fb%23c", "a?b#c"),
        ("%20a%20", " a "),
        ("a+b", "a+b"),
        ("a%5Cb", "a\\b"),
        ("%C3%A9%F0%9F%99%82", "é🙂"),
        ("e%CC%81", "e\u0301"),
        ("x" * 512, "x" * 512),
        ("trailing/", "trailing/"),
        (";jsessionid=1", ";jsessionid=1"),
    ],
)
def test_path__any_key__decoded_once_and_nothing_else(shared, sent, seen):
    assert echoed(shared, f"/state/{sent}")["path"] == f"/state/{seen}"


@pytest.mark.parametrize("sent", ["/state/%FF", "/state/%C3", "/%ED%A0%80"])
def test_path__not_utf8__400(shared, sent):
    status, body = shared.get(sent)

    assert status == 400
    assert json.loads(body)["type"] == "/problems/bad-request"


def test_query__percent_encoded__untouched(shared):
    assert echoed(shared, "/x?q=1%202&q=%26")["query"] == "q=1%202&q=%26"


def test_header__with_underscore__cannot_pose_as_another(shared):
    answer = exchange(
        shared,
        b"GET /x HTTP/1.1\r\nHost: h\r\nX_Forwarded_For: evil\r\nX-Twice: 1\r\nX-Twice: 2\r\n"
        b"Cookie: a=1\r\nCookie: b=2\r\nConnection: close\r\n\r\n",
    )

    meta = json.loads(answer.partition(b"\r\n\r\n")[2])["meta"]
    assert "HTTP_X_FORWARDED_FOR" not in meta
    assert meta["HTTP_X_TWICE"] == "1,2"
    assert meta["HTTP_COOKIE"] == "a=1;b=2"


def test_address__header_of_a_stranger__is_not_believed(shared):
    meta = echoed(shared, "/x", X__Forwarded__For="1.2.3.4")["meta"]

    assert meta["REMOTE_ADDR"] == "127.0.0.1"


def test_address__behind_a_trusted_proxy__is_the_one_the_proxy_saw(start, folder):
    server = begin(start, folder, TRUST_PROXY_HEADERS="true")

    meta = echoed(server, "/x", X__Forwarded__For="6.6.6.6, 1.2.3.4")["meta"]

    assert meta["REMOTE_ADDR"] == "1.2.3.4"


@pytest.mark.parametrize("size", [0, 1, 65_537, 100_000])
def test_body__up_to_the_limit__arrives_whole(shared, size):
    answer = exchange(
        shared,
        b"POST /x HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % size
        + b"z" * size,
    )

    assert answer.startswith(b"HTTP/1.1 200")
    assert b"x-length: %d\r\n" % size in answer.lower()


def test_body__in_chunks__arrives_whole_with_its_length(shared):
    answer = exchange(
        shared,
        b"POST /x HTTP/1.1\r\nHost: h\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
    )

    echoed_body = json.loads(answer.partition(b"\r\n\r\n")[2])
    assert echoed_body["body"] == "abcde"
    assert echoed_body["meta"]["CONTENT_LENGTH"] == "5"


def test_body__declared_too_large__413_before_it_is_sent(shared):
    answer = exchange(
        shared, b"POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 100001\r\n\r\n" + b"only this"
    )

    assert answer.startswith(b"HTTP/1.1 413")
    problem = json.loads(answer.partition(b"\r\n\r\n")[2])
    assert problem["type"] == "/problems/too-large"
    assert problem["hint"].startswith("Send less in one request.")


def test_body__chunks_without_end__413_at_the_limit(shared):
    chunk = b"%x\r\n" % 60_000 + b"z" * 60_000 + b"\r\n"
    answer = exchange(
        shared,
        b"POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk + chunk,
    )

    assert answer.startswith(b"HTTP/1.1 413")


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
def test_healthz__response__is_that_of_the_view(shared, method):
    head = f"{method} /healthz HTTP/1.1\r\nHost: h\r\nX-Request-ID: probe-1\r\n".encode()
    answer = exchange(shared, head + b"Connection: close\r\n\r\n").decode()

    assert answer.startswith("HTTP/1.1 405" if method == "POST" else "HTTP/1.1 200")
    assert answer.endswith('{"status": "ok"}') == (method == "GET")
    expected = ["x-request-id: probe-1", "x-content-type-options: nosniff", "no-store"]
    assert all(text in answer for text in expected[: 2 if method == "POST" else 3])


def test_healthz__all_threads_wait__responds(server, folder):
    flag = folder / "flag"
    with ThreadPoolExecutor(8) as pool:
        waiting = [pool.submit(server.get, f"/wait?until={flag}") for _ in range(8)]
        notes = folder / "notes"
        wait_for(lambda: notes.exists() and len(notes.read_text().split()) >= 3, "threads wait")
        try:
            assert server.get("/healthz") == (200, b'{"status": "ok"}')
            assert not any(each.done() for each in waiting)
        finally:
            flag.touch()

    assert [each.result() for each in waiting] == [(200, b"done")] * 8


def test_head__no_body_but_its_length(shared):
    answer = exchange(shared, b"HEAD /ok HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")

    assert answer.startswith(b"HTTP/1.1 200")
    assert answer.endswith(b"\r\n\r\n")


def test_stream__many_parts__all_arrive_in_order(shared):
    status, body = shared.get("/stream?count=1000&size=300")

    assert status == 200
    lines = body.split(b"\n")[:-1]
    assert [int(line) for line in lines[::300]] == list(range(1000))


def test_stream__reader_leaves__generator_is_closed(server, folder):
    with socket.create_connection(("127.0.0.1", server.port)) as reader:
        reader.sendall(b"GET /stream?count=100000&size=8000 HTTP/1.1\r\nHost: h\r\n\r\n")
        assert reader.recv(10_000)
    notes = folder / "notes"

    wait_for(lambda: notes.exists() and notes.read_text(), "the generator is closed")
    assert 0 < int(notes.read_text().split()[-1]) < 99_999


def test_stream__slow_readers__others_are_served_and_memory_stays(server):
    """Each slow reader holds a thread and one part of the answer, not the answer."""
    readers = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(8)]
    for reader in readers:
        reader.sendall(b"GET /stream?count=100000&size=8000 HTTP/1.1\r\nHost: h\r\n\r\n")
        assert reader.recv(1000)

    assert server.get("/ok") == (200, b"ok")
    assert resident_megabytes(server) < 300
    for reader in readers:
        reader.close()


def test_requests__more_than_threads__all_answered(shared):
    with ThreadPoolExecutor(32) as pool:
        answers = list(pool.map(lambda _: shared.get("/raw"), range(300)))

    assert {status for status, _ in answers} == {200}
    assert len({pid for _, pid in answers}) <= 4  # one lasting connection for each thread


@pytest.mark.parametrize("view", ["/orm", "/raw"])
def test_database__killed_under_the_server__no_later_request_fails(server, folder, view):
    cluster = Cluster(folder / "data" / "postgres")
    with ThreadPoolExecutor(8) as pool:
        before = {pid for _, pid in pool.map(lambda _: server.get(view), range(100))}
        postmaster = cluster.postmaster()
        assert postmaster is not None
        os.kill(postmaster, signal.SIGKILL)
        wait_for(lambda: not any(is_alive(int(pid)) for pid in before), "all backends are gone")

        answers = list(pool.map(lambda _: server.get(view), range(100)))

    assert {status for status, _ in answers} == {200}
    assert cluster.postmaster() not in (None, postmaster)


def test_sigterm__request_under_way__is_finished_first(server, folder):
    flag = folder / "flag"
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(server.get, f"/wait?until={flag}")
        wait_for((folder / "notes").exists, "the request is under way")
        server.signal(signal.SIGTERM)
        wait_for(lambda: not accepts(server.port), "no new connection is accepted")
        flag.touch()

        assert answer.result() == (200, b"done")
    assert server.wait() == 0


def test_sigterm__body_that_does_not_arrive__is_not_waited_for(server):
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as client:
        client.sendall(b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf")
        server.wait_until_it_answers("/healthz")
        server.signal(signal.SIGTERM)
        assert server.wait() == 0
    # The limit of the body is shorter than that of the server (timeout_graceful_shutdown).
    assert "the server is shutting down" in server.output()


def accepts(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def test_worker__crashes_in_a_request__next_one_serves(server):
    with pytest.raises(ConnectionError):
        server.get("/crash")

    server.wait_until_it_answers("/healthz")


# Without a server ----------------------------------------------------------------------------


def ask(bridge: Bridge, scope: dict, *incoming: dict) -> list[dict]:
    sent: list[dict] = []
    messages = iter(incoming)

    async def receive() -> dict:
        return next(messages)

    async def send(message: dict) -> None:
        sent.append(message)

    run(bridge(scope, receive, send))
    return sent


async def nobody(_: Any) -> str:
    return ""


def bridge_of(wsgi: Any, **options: Any) -> Bridge:
    options = {"streams": {}, "threads": 1, "limits": Limits(one=1), "identify": nobody} | options
    return Bridge(wsgi, **options)


def silent_bridge(**streams: Any) -> Bridge:
    return bridge_of(lambda *_: [], streams={f"/{name}": s for name, s in streams.items()})


def test_stream__path_with_its_prefix__is_answered_natively():
    async def native(scope: dict, receive: Any, send: Any) -> None:
        await send({"type": "native", "path": scope["path"]})

    scope = {"type": "http", "path": "/events/7", "headers": []}
    sent = ask(silent_bridge(events=native), scope)

    assert sent == [{"type": "native", "path": "/events/7"}]


@pytest.mark.parametrize("declared", [b"2", b"1"])
def test_stream__body_too_large__413_and_the_application_is_not_asked(declared):
    async def native(scope: dict, receive: Any, send: Any) -> None:
        raise AssertionError

    scope = {"type": "http", "path": "/events", "headers": [(b"content-length", declared)]}
    sent = ask(silent_bridge(events=native), scope, {"type": "http.request", "body": b"xx"})

    assert sent[0]["status"] == 413


def test_stream__more_than_may_be_open__503(monkeypatch):
    """/mcp, streams and long polls together."""
    monkeypatch.setattr(bridges, "_MOST_CHANNELS", 1)

    async def native(scope: dict, receive: Any, send: Any) -> None:
        if scope["path"] == "/events/outer":
            await bridge({**scope, "path": "/events/inner"}, receive, send)
        else:
            raise AssertionError

    bridge = silent_bridge(events=native)
    sent = ask(bridge, {"type": "http", "path": "/events/outer", "headers": []})

    assert sent[0]["status"] == 503
    assert (b"retry-after", b"1") in sent[0]["headers"]


@pytest.mark.parametrize("fails", [False, True])
def test_chore__at_the_end__is_done_and_does_not_stop_it(fails, monkeypatch):
    monkeypatch.setattr(signal, "signal", lambda *_: None)  # this is not the main thread
    done: list[str] = []

    def chore() -> None:
        done.append(threading.current_thread().name)
        if fails:
            raise OSError

    bridge = bridge_of(lambda *_: [], chore=chore)
    phases = [{"type": f"lifespan.{phase}"} for phase in ("startup", "shutdown")]
    sent = ask(bridge, {"type": "lifespan"}, *phases)

    assert [message["type"] for message in sent] == [
        "lifespan.startup.complete",
        "lifespan.shutdown.complete",
    ]
    assert done == ["request"]


REQUEST = {
    "type": "http",
    "scheme": "http",
    "http_version": "1.1",
    "path": "/a/b",
    "raw_path": b"/a%2Fb",
    "query_string": b"",
    "headers": [],
}


def test_ask__by_a_native_application__django_answers_in_a_thread():
    def wsgi(environ: dict[str, Any], start_response: Any) -> HttpResponse:
        assert threading.current_thread().name == "request"
        start_response("201 Created", [("X-Path", f"{environ['PATH_INFO']} {environ[RAW_PATH]}")])
        return HttpResponse(environ["wsgi.input"].read())

    bridge = bridge_of(wsgi)

    answer = run(bridge.ask({**REQUEST, "method": "POST"}, b"body"))

    assert (answer.status, answer.body) == (201, b"body")
    assert (b"x-path", b"/a/b /a%2Fb") in answer.headers


@pytest.mark.parametrize(("method", "other"), [("PUT", "GET"), ("GET", "PATCH")])
def test_requests__more_of_a_kind_than_may_wait__503_and_the_other_kind_is_served(
    method, other, monkeypatch
):
    monkeypatch.setattr(bridges, "_MOST_REQUESTS", 1)
    held, released = threading.Event(), threading.Event()

    def wsgi(environ: dict[str, Any], start_response: Any) -> HttpResponse:
        start_response("200 OK", [])
        if not held.is_set():
            held.set()
            assert released.wait(PATIENCE)
        return HttpResponse()

    bridge = bridge_of(wsgi, threads=2)

    async def request(method: str) -> int:
        answer = await bridge.ask({**REQUEST, "method": method})
        return answer.status

    async def requests() -> list[int]:
        first = asyncio.create_task(request(method))
        await asyncio.to_thread(held.wait, PATIENCE)
        statuses = [await request(method), await request(other)]
        released.set()
        return [*statuses, await first, await request(method)]

    assert run(requests()) == [503, 200, 200, 200]


def test_refusals__many_within_a_second__two_lines_with_their_number(monkeypatch):
    monkeypatch.setattr(bridges, "_MOST_REQUESTS", 0)
    monkeypatch.setattr(bridges, "_REFUSAL_LOG_SECONDS", 0.05)
    bridge = silent_bridge()

    async def send(message: dict) -> None:
        pass

    async def refuse(count: int) -> None:
        for _ in range(count):
            await bridge({**REQUEST, "method": "GET"}, send, send)
        for _ in range(2):  # each request can be at fault in its own way
            await bridge({**REQUEST, "method": "GET", "raw_path": b"/%FF"}, send, send)
        while bridge._unlogged:
            await asyncio.sleep(0.01)
        await bridge({**REQUEST, "method": "GET"}, send, send)

    with capture_logs() as lines:
        run(refuse(4))

    assert [(line["event"], line["problem"], line.get("count")) for line in lines] == [
        ("request.refused", "unavailable", None),
        ("request.refused", "bad-request", None),
        ("request.refused", "bad-request", None),
        ("request.refused", "unavailable", 3),
        ("request.refused", "unavailable", None),
    ]


def test_websocket__nobody_speaks_it__is_closed():
    assert ask(silent_bridge(), {"type": "websocket", "path": "/"})[0]["type"] == "websocket.close"
