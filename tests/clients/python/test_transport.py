"""Broken networks and busy servers: every call has one effect, or reports that it is unknown."""

from __future__ import annotations

import asyncio
import copy
import gc
import http.server
import json
import os
import pickle
import re
import socket
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from commonhold import (
    AsyncCommonhold,
    Commonhold,
    CommonholdError,
    Conflict,
    InFlight,
    InvalidArgument,
    KeyDecode,
    MemoryBackend,
    MutationBaseRevisionMismatch,
    Problem,
    RateLimited,
    Retries,
    RevisionMismatch,
    Unavailable,
    UnknownKey,
    Unreachable,
    documents,
)
from commonhold.calls import Reply, Request, Sleep, exchange
from commonhold.entries import get_entry, list_entries, put_entry
from commonhold.problems import problem_of
from hypothesis import given
from hypothesis import strategies as some
from opentelemetry.sdk.trace import TracerProvider

from project.env import BASE_DIR
from state_admin.models import EntryRevision
from state_admin.services import errors
from tests.builders import Person
from tests.clients.python.conftest import SWIFT
from tests.loops import in_thread, run
from tests.patience import PATIENCE
from tests.project.proxying import Proxy
from tests.project.running import Running, free_port
from tests.streams.listening import web_on_this_database

BACKEND = MemoryBackend()
BACKEND.register("n")
ENTRY = BACKEND.put("n", "k", 1).document


def answer(status: int, slug: str = "", **headers: str) -> Reply:
    return Reply(status, headers, json.dumps({"type": f"/problems/{slug}"}).encode())


def drive(call: Any, *replies: Reply, retries: Retries | None = None) -> tuple[Any, list[Any]]:
    """The result of a call that gets these responses, and what it did meanwhile."""
    steps, done = exchange(call, retries or Retries()), []
    waiting = list(replies)
    try:
        step = next(steps)
        while True:
            done.append(step)
            step = steps.send(None if isinstance(step, Sleep) else waiting.pop(0))
    except StopIteration as end:
        return end.value, done
    except Problem as problem:
        return problem, done


OK = Reply(200, {}, json.dumps(ENTRY).encode())


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_busy_response__with_a_key__is_retried_with_the_same_key(status: int) -> None:
    entry, done = drive(put_entry("n", "k", 1), answer(status), answer(status), OK)
    assert entry.version == 1
    requests = [step for step in done if isinstance(step, Request)]
    assert [type(step) for step in done] == [Request, Sleep, Request, Sleep, Request]
    assert len({dict(each.headers)["Idempotency-Key"] for each in requests}) == 1
    assert len({tuple(each.headers) for each in requests}) == 1


def test_call__in_an_active_span__continues_its_trace() -> None:
    with TracerProvider().get_tracer("agent").start_as_current_span("step") as span:
        request = next(exchange(get_entry("n", "k"), Retries()))
    context = span.get_span_context()
    assert isinstance(request, Request)
    sent = dict(request.headers)["traceparent"].decode()
    assert sent.startswith(f"00-{context.trace_id:032x}-{context.span_id:016x}-")


def test_call__without_a_span__has_no_trace() -> None:
    request = next(exchange(get_entry("n", "k"), Retries()))
    assert isinstance(request, Request)
    assert "traceparent" not in dict(request.headers)


def test_call_in_progress__conflict__is_retried_and_other_conflicts_are_not() -> None:
    entry, _ = drive(put_entry("n", "k", 1), answer(409, "in-flight"), OK)
    assert entry.version == 1
    problem, done = drive(put_entry("n", "k", 1), answer(409, "conflict"), OK)
    assert type(problem) is Conflict
    assert len(done) == 1


def test_retry_after__any_delay__is_honoured_up_to_the_deadline() -> None:
    _, done = drive(get_entry("n", "k"), answer(429, **{"retry-after": "3"}), OK)
    assert 3 <= done[1].seconds <= 3.1
    problem, done = drive(get_entry("n", "k"), answer(429, **{"retry-after": "90"}), OK)
    assert type(problem) is RateLimited
    assert problem.retry_after == 90
    assert len(done) == 1


@pytest.mark.parametrize("spelled", ["Wed, 21 Oct 2015 07:28:00 -0000", "nan", "soon", "-5"])
def test_retry_after__malformed__is_ignored(spelled: str) -> None:
    entry, done = drive(get_entry("n", "k"), answer(503, **{"retry-after": spelled}), OK)
    assert entry.version == 1
    assert done[1].seconds <= 0.1


@pytest.mark.parametrize(
    "reply",
    [
        Reply(200, {}, b"<html>"),
        Reply(200, {}, b"[]"),
        Reply(200, {}, b'{"status": "ok"}'),
        Reply(200, {}, b""),
        Reply(302, {}, b""),
    ],
)
def test_response__not_from_this_server__is_an_error_of_the_client(reply: Reply) -> None:
    with pytest.raises(CommonholdError):
        raise drive(get_entry("n", "k"), reply)[0]


def test_conflict__with_large_values__contains_all() -> None:
    document = {"type": "/problems/version-conflict", "theirs": "x" * 200_000, "expected": 1}
    reply = Reply(412, {}, json.dumps(document).encode())
    problem, _ = drive(put_entry("n", "k", 1), reply)
    assert (problem.expected, len(problem.theirs)) == (1, 200_000)


def test_busy_response__until_the_deadline__raises_the_problem() -> None:
    problem, done = drive(get_entry("n", "k"), *[answer(503)] * 3, retries=Retries(attempts=3))
    assert type(problem) is Unavailable
    assert len([step for step in done if isinstance(step, Request)]) == 3


@given(attempt=some.integers(0, 500))
def test_pause__between_retries__is_jittered_and_bounded(attempt: int) -> None:
    retries = Retries(first=0.1, longest=5)
    assert 0 <= retries.pause(attempt) <= min(5, 0.1 * 2**attempt)


def test_problems__every_type_of_the_server__has_a_class() -> None:
    slugs = {
        kind.slug: kind.__name__
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.Problem) and kind != errors.Problem
    }
    made = {s: type(problem_of(499, {"type": f"/problems/{s}"})).__name__ for s in slugs}
    assert made == slugs


@pytest.mark.parametrize(("status", "kind"), [(502, Unavailable), (409, Conflict), (418, Problem)])
def test_problem_of__response_of_a_proxy__is_chosen_by_status(
    status: int, kind: type[Problem]
) -> None:
    assert type(problem_of(status, None)) is kind
    assert type(problem_of(409, {"type": "/problems/in-flight"})) is InFlight


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (
            Reply(
                502, {"content-type": "text/html"}, b"<html>\r\n <p>" + b"x" * 200, "http://h/me"
            ),
            r"^502 Bad Gateway\. The response of http://h/me is not from Commonhold \(502, text/html, "
            r"begins with '<html> <p>x{90}…'\): check the address",
        ),
        (
            Reply(599, {}, b"", "http://h/me"),
            r"^599\. The response of http://h/me is not from Commonhold \(599, no content type, empty\)",
        ),
        (
            Reply(301, {"location": "https://ch.example/api/v1/me"}, b"", "http://ch.example/api"),
            r"^301 Moved Permanently\. http://ch\.example/api redirects to https://ch\.example/api/v1/me,",
        ),
        (
            Reply(403, {"content-type": "application/json"}, b'{"error": "denied"}', "http://h/me"),
            r"^403 Forbidden\. The response of http://h/me is not from Commonhold \(403, "
            r"application/json, begins with '{\"error\": \"denied\"}'\)",
        ),
        (
            Reply(500, {}, b"[" * 200_000, "http://h/me"),
            r"^500 Internal Server Error\. The response of http://h/me is not from Commonhold",
        ),
    ],
)
def test_response_of_a_proxy__as_text__says_what_it_is(reply: Reply, message: str) -> None:
    problem, _ = drive(get_entry("n", "k"), reply, retries=Retries(attempts=1))
    with pytest.raises(Problem, match=message):
        raise problem


def test_success_of_something_else__as_text__says_what_it_is() -> None:
    page = Reply(200, {"content-type": "text/html"}, b"<!doctype html>", "http://h/state/n/k")
    message = (
        r"^the response of http://h/state/n/k is not JSON \(200, text/html, begins with "
        r"'<!doctype html>'\); is this the address of a Commonhold server\?$"
    )
    with pytest.raises(Unreachable, match=message):
        drive(get_entry("n", "k"), page)
    for content in (b"[" * 200_000, b'{"status": "ok"}'):
        with pytest.raises(Unreachable, match=r"^the response of http://h/me is not "):
            drive(get_entry("n", "k"), Reply(200, {}, content, "http://h/me"))


@pytest.mark.parametrize("errors", [["x"], "x", [{"code": 1, "message": "x"}], {"a": 1}])
def test_problem__with_errors_of_a_proxy__can_be_printed(errors: Any) -> None:
    assert str(problem_of(502, {"title": "bad gateway", "errors": errors})) == "bad gateway"
    document = {"title": "t", "detail": "bad value", "hint": "Correct it.", "errors": errors}
    assert str(problem_of(422, document)) == "bad value. Correct it."


def test_problem__as_text__contains_message_pointers_and_hint() -> None:
    errors = [{"pointer": "/n", "message": "is not a number"}, {"pointer": "", "message": "bad"}]
    document = {"title": "t", "detail": "bad value", "hint": "Correct it.", "errors": errors}
    problem = problem_of(422, document)
    assert (problem.title, problem.detail, problem.hint) == ("t", "bad value", "Correct it.")
    assert str(problem) == "bad value. /n is not a number; / bad. Correct it."


@pytest.mark.parametrize(
    "error",
    [
        problem_of(412, {"type": "/problems/version-conflict", "title": "t", "expected": 1}),
        problem_of(429, None, 3.0),
        KeyDecode("k", "m"),
        RevisionMismatch(1, 2),
        MutationBaseRevisionMismatch(1, 2),
        UnknownKey("k"),
    ],
)
def test_error__pickled__round_trips(error: CommonholdError) -> None:
    """A process pool breaks permanently if a worker's exception cannot be pickled."""
    for other in (pickle.loads(pickle.dumps(error)), copy.deepcopy(error)):  # our own
        assert type(other) is type(error)
        assert str(other) == str(error)
        assert vars(other) == vars(error)


def test_list__of_several_tags__repeats_the_parameter() -> None:
    _, done = drive(list_entries("n", tag=["a,b", "c"], limit=1), Reply(200, {}, b'{"items": []}'))
    assert done[0].query == [("tag", "a,b"), ("tag", "c"), ("limit", "1")]


def test_headers__text_with_line_breaks__is_sent_as_one_line() -> None:
    _, done = drive(put_entry("n", "k", 1, reason=" first\r\nsecond\x00\tü "), OK)
    assert ("Change-Reason", "first second \tü".encode()) in done[0].headers


@pytest.mark.parametrize("url", ["nonsense", "ftp://x", "http://[::1", "http://x:y"])
def test_client__invalid_address__is_refused_immediately(url: str) -> None:
    with pytest.raises(ValueError, match="not an address"):
        Commonhold(url, "t")


def test_token__read_from_a_file__is_stripped_and_never_printed(
    flaky: http.server.ThreadingHTTPServer,
) -> None:
    with Commonhold(f"http://127.0.0.1:{flaky.server_port}", "t0ken\n", retries=SWIFT) as state:
        assert state.put("n", "k", 1).version == 1


JSON = some.recursive(
    some.none()
    | some.booleans()
    | some.integers()
    | some.decimals(allow_nan=False, allow_infinity=False)
    | some.text(),
    lambda inner: some.lists(inner) | some.dictionaries(some.text(), inner),
)


@given(JSON)
def test_documents__written__can_be_read(value: Any) -> None:
    assert documents.load(documents.dump(value), decimals=True) == value


def test_documents__infinity__is_refused() -> None:
    with pytest.raises(InvalidArgument, match=r"^/0: -Infinity is not JSON"):
        documents.dump([Decimal("-Infinity")])


class Flaky(http.server.BaseHTTPRequestHandler):
    """503 twice, then an entry. Keeps connections open."""

    protocol_version = "HTTP/1.1"
    seen: list[tuple[str | None, tuple[str, int]]]

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.seen.append((self.headers["Idempotency-Key"], self.client_address))
        busy = len(self.seen) < 3
        body = json.dumps({"type": "/problems/unavailable"} if busy else ENTRY).encode()
        self.send_response(503 if busy else 201)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def flaky() -> Iterator[http.server.ThreadingHTTPServer]:
    Flaky.seen = []
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Flaky) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def test_503__is_retried_over_one_connection(flaky: http.server.ThreadingHTTPServer) -> None:
    with Commonhold(f"http://127.0.0.1:{flaky.server_port}", "t", retries=SWIFT) as state:
        assert state.put("n", "k", 1).version == 1
    assert len(Flaky.seen) == 3
    assert len(set(Flaky.seen)) == 1, "one key, one connection"


def test_server__no_listener__is_unreachable() -> None:
    address = f"http://127.0.0.1:{free_port()}"
    with (
        Commonhold(address, "t", retries=SWIFT) as state,
        pytest.raises(
            Unreachable, match=f"^no response from {re.escape(address)} to GET /me: ConnectError"
        ),
    ):
        state.me()


FORKING = """
import os, sys
from commonhold import Commonhold

state = Commonhold(sys.argv[1], "t")
state.put("n", "k", 1)
if (child := os.fork()) == 0:
    state.put("n", "k", 2)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
state.put("n", "k", 3)
"""


def test_client__in_a_forked_process__opens_its_own_connection(
    flaky: http.server.ThreadingHTTPServer,
) -> None:
    source = str(BASE_DIR / "clients" / "python" / "src")
    command = [sys.executable, "-c", FORKING, f"http://127.0.0.1:{flaky.server_port}"]
    subprocess.run(command, env={**os.environ, "PYTHONPATH": source}, timeout=PATIENCE, check=True)
    ports = [port for _, (_, port) in Flaky.seen]
    assert len(set(ports)) == 2, "the parent's, and the child's"
    assert ports[0] == ports[-1] != ports[-2]


def test_async_client__used_in_two_loops__opens_connections_in_each(
    flaky: http.server.ThreadingHTTPServer,
) -> None:
    state = AsyncCommonhold(f"http://127.0.0.1:{flaky.server_port}", "t", retries=SWIFT)

    def use_them() -> None:
        loops = [asyncio.new_event_loop() for _ in range(3)]
        try:
            for loop in (*loops[:2], loops[0]):
                assert loop.run_until_complete(state.put("n", "k", 1)).version == 1
            for loop in (*loops[:2], loops[0]):
                loop.run_until_complete(state.close())
            for loop in (loops[0], loops[2]):
                with pytest.raises(RuntimeError, match="closed"):
                    loop.run_until_complete(state.me())
        finally:
            for loop in loops:
                loop.close()

    in_thread(use_them)
    assert len({address for _, address in Flaky.seen}) == 2


def test_async_client__loop_was_closed__works_in_the_next(
    flaky: http.server.ThreadingHTTPServer,
) -> None:
    state = AsyncCommonhold(f"http://127.0.0.1:{flaky.server_port}", "t", retries=SWIFT)

    async def work() -> int:
        return (await state.put("n", "k", 1)).version

    async def end() -> None:
        assert await work() == 1
        await state.close()

    with warnings.catch_warnings():
        # The first loop ended without closing its connection; that is what is tested.
        warnings.simplefilter("ignore", ResourceWarning)
        assert run(work()) == 1
        run(end())
        gc.collect()


@pytest.mark.django_db(transaction=True)
def test_lost_response__retried_call__has_one_effect(web: Running, alice: Person) -> None:
    with (
        Proxy(lambda: socket.create_connection(("127.0.0.1", web.port))) as proxy,
        Commonhold(f"http://127.0.0.1:{proxy.port}", alice.token, retries=SWIFT) as state,
    ):
        state.namespaces.register("notes", default={"n": 0})
        proxy.lose_reply_to(b"PATCH /api/v1/state/notes/k")
        entry = state.update("notes", "k", {"op": "add", "path": "/n", "value": 1})
        assert proxy.lost.is_set()
        assert (entry.version, entry.value) == (1, {"n": 1})
    assert EntryRevision.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_watch__server_restarts__continues_without_gap_or_repeat(alice: Person, start: Any) -> None:
    first = web_on_this_database(start, WEB_WORKERS="1", WEB_THREADS="1")
    port = [first.port]
    with (
        Proxy(lambda: socket.create_connection(("127.0.0.1", port[0]))) as proxy,
        Commonhold(f"http://127.0.0.1:{proxy.port}", alice.token, retries=SWIFT) as state,
    ):
        state.namespaces.register("notes")
        with state.watch(namespace="notes") as changes:
            state.put("notes", "k", 1)
            seen = [next(changes).version]
            first.kill_all()
            second = web_on_this_database(start, WEB_WORKERS="1", WEB_THREADS="1")
            port[0] = second.port
            for value in (2, 3):
                state.put("notes", "k", value)
            seen += [next(changes).version for _ in range(2)]
            assert seen == [1, 2, 3]
            state.put("notes", "k", 4)
            cursor = changes.cursor
        with state.watch(namespace="notes", cursor=cursor) as later:
            assert next(later).version == 4
