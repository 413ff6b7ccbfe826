"""The lane answers what Django would, byte by byte, and leaves the same rows."""

from __future__ import annotations

import asyncio
import io
import json
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.conf import settings
from django.core import signals
from django.db import OperationalError, close_old_connections, connection, connections
from django.db.models import Sum
from hypothesis import HealthCheck, example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from project import lane
from project.bodies import Limits
from project.bridge import Bridge
from project.channel import Answer
from project.lane import Lane
from project.wsgi import application as django
from state_admin.domain.access import Role
from state_admin.models import Traffic
from state_admin.services import actors, quotas, tokens, traffic, workspaces
from state_admin.services.actors import system_actor
from state_admin.services.token_cache import Credential
from tests.builders import TEAM_SCHEMA, make_namespace

pytestmark = pytest.mark.django_db

JSON = ("Content-Type", "application/json")
Header = tuple[str, str]
Request = tuple[str, str, tuple[Header, ...], bytes]


def on_connection_of_test() -> Callable[[Callable[[], Any]], Any]:
    """Runs work on the connection that has the test's transaction; an event loop has its own."""
    ours = connections["default"]

    async def run(work: Callable[[], Any]) -> Any:
        connections["default"] = ours
        return work()

    return run


class Side:
    """A workspace and what answers its requests."""

    def __init__(self, slug: str, *, joins: bool) -> None:
        self.workspace, _ = workspaces.ensure_workspace(slug)
        self.actor = system_actor(self.workspace.pk, "builder")
        self.tokens = {
            name: tokens.create_token(actor=self.actor, name=name, role=role, **limits)[1]
            for name, role, limits in (
                ("editor", Role.EDITOR, {}),
                ("viewer", Role.VIEWER, {}),
                ("narrow", Role.EDITOR, {"namespaces": ["other"]}),
                ("slow", Role.EDITOR, {"rate_per_minute": 600}),
            )
        }
        make_namespace(self.actor, "notes")
        make_namespace(self.actor, "team", schema=TEAM_SCHEMA, default={})
        make_namespace(self.actor, "short", ttl_seconds=3600)
        self.lane = Lane(on_connection_of_test()) if joins else None
        self.joined = 0

    def send(self, method: str, path: str, headers: tuple[Header, ...], body: bytes) -> Answer:
        environ = self._environ(method, path, headers, body)
        if self.lane is not None:
            with ThreadPoolExecutor(1) as pool:  # a loop of the browser may run in this one
                answer = pool.submit(asyncio.run, self.lane.answer(environ, body)).result()
            if answer is not None:
                self.joined += 1
                return answer
        return ask_django(environ)

    def _environ(
        self, method: str, path: str, headers: tuple[Header, ...], body: bytes
    ) -> dict[str, Any]:
        raw_path, _, query = path.partition("?")
        sent = [("Host", "127.0.0.1"), ("X-Request-ID", "same-for-both"), *headers]
        if body:
            sent.append(("Content-Length", str(len(body))))
        named = [
            (name.lower().encode(), value.format(**self.tokens).encode()) for name, value in sent
        ]
        scope = {
            "type": "http", "method": method, "raw_path": raw_path.encode(), "path": raw_path,
            "query_string": query.encode(), "headers": named, "scheme": "http",
            "http_version": "1.1", "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80),
        }  # fmt: skip
        environ = BRIDGE._environ(scope)
        environ["wsgi.input"] = io.BytesIO(body)
        return environ


async def nobody(headers: object) -> str:
    return ""


BRIDGE = Bridge(
    django,
    streams={},
    threads=0,
    limits=Limits(one=1 << 20, total=1 << 20, idle_seconds=1.0, min_rate=0),
    identify=nobody,
)


def ask_django(environ: dict[str, Any]) -> Answer:
    start: dict[str, Any] = {"type": "http.response.start"}

    def start_response(status: str, headers: list[tuple[str, str]], *_: Any) -> None:
        start["status"] = int(status[:3])
        start["headers"] = [(name.lower().encode(), value.encode()) for name, value in headers]

    response: Any = django(environ, start_response)
    return Answer(start, response.content)


@pytest.fixture
def sides(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Side, Side]]:
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")

    ours = connections["default"]

    def find(presented: str) -> Credential | None:
        connections["default"] = ours
        return actors._find_credential(presented)

    monkeypatch.setattr(lane, "cached_credential", find)
    traffic.counter.flush()
    signals.request_started.disconnect(close_old_connections)  # the test's transaction is on it
    ours.inc_thread_sharing()
    yield Side("joined", joins=True), Side("apart", joins=False)
    ours.dec_thread_sharing()
    signals.request_started.connect(close_old_connections)


_TIME = re.compile(rb'"\d{4}-\d\d-\d\dT[\d:.]+Z"')


def shown(answer: Answer) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    headers = [each for each in answer.start["headers"] if each[0] != b"content-length"]
    return answer.start["status"], headers, _TIME.sub(b'"TIME"', answer.body)


ROWS = {
    "entries": """SELECT n.name, e.key, e.value::text, e.version, e.born_version, e.schema_version,
        e.deleted, e.expires_at - e.updated_at > interval '1 minute', e.tags, e.pinned,
        e.size_bytes, e.estimated_tokens, e.actor_kind, e.actor_name
        FROM entries e JOIN namespaces n ON n.id = e.namespace_id WHERE n.workspace_id = %s
        ORDER BY 1, 2""",
    "entry_revisions": """SELECT n.name, e.key, r.version, r.operation, r.value::text,
        r.schema_version, r.size_bytes, r.expires_at IS NULL, r.pinned, r.run, r.actor_kind,
        r.actor_name, r.reason, r.request_id, r.at >= e.created_at
        FROM entry_revisions r JOIN entries e ON e.id = r.entry_id
        JOIN namespaces n ON n.id = e.namespace_id WHERE n.workspace_id = %s ORDER BY 1, 2, 3""",
    "changes": """SELECT kind, namespace, key, run, version, actor_name FROM changes
        WHERE workspace_id = %s AND kind LIKE 'entry.%%' ORDER BY id""",
    "audit": """SELECT action, namespace, key, run, version, actor_kind, actor_name, reason,
        request_id FROM audit WHERE workspace_id = %s AND action LIKE 'entry.%%' ORDER BY id""",
}


def rows(side: Side) -> dict[str, list[Any]]:
    found = {}
    with connection.cursor() as cursor:
        for table, statement in ROWS.items():
            cursor.execute(statement, [side.workspace.pk])
            found[table] = cursor.fetchall()
    return found


def check_same(sides: tuple[Side, Side], requests: list[Request]) -> list[Answer]:
    """Both sides answer the same, and have the same rows after it."""
    answers = []
    for request in requests:
        joined, apart = (side.send(*request) for side in sides)
        assert shown(joined) == shown(apart), request
        answers.append(joined)
    assert rows(sides[0]) == rows(sides[1])
    return answers


def bearer(name: str = "editor") -> Header:
    return ("Authorization", f"Bearer {{{name}}}")


def get(path: str = "notes/k", *headers: Header, by: str = "editor") -> Request:
    return ("GET", f"/api/v1/state/{path}", (bearer(by), *headers), b"")


def put(
    path: str = "notes/k", body: Any = b'{"value": {"a": 1}}', *headers: Header, by: str = "editor"
) -> Request:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return ("PUT", f"/api/v1/state/{path}", (bearer(by), JSON, *headers), content)


def patch(
    path: str = "notes/k",
    body: Any = None,
    *headers: Header,
    kind: str = "merge-patch",
    by: str = "editor",
) -> Request:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    media_type = ("Content-Type", f"application/{kind}+json")
    return ("PATCH", f"/api/v1/state/{path}", (bearer(by), media_type, *headers), content)


UPDATE = "vnd.commonhold.update"

# What the lane takes -------------------------------------------------------------------------


def test_lane__plain_reads_and_writes__answers_like_django(sides: tuple[Side, Side]) -> None:
    requests = [
        get(),  # the default
        put(),
        put(body={"value": [1, 2.50, "ü\u2028", None], "ttl_seconds": 3600}),
        put("short/k"),
        put("short/k", {"value": 1, "ttl_seconds": None}),
        put("team/agent::a%2Fb", {"value": {"goal": "go"}}),
        put("team/agent::a/b", {"value": {"goal": "gone"}}),
        put("notes/k", {"value": 1}, ("If-Match", '"2"')),
        put("notes/k", {"value": 2}, ("If-Match", 'W/"3"'), ("Run-Id", "r-1")),
        put("notes/k", {"value": 3}, ("Change-Reason", "für später")),
        get(),
        get("notes/k", ("If-None-Match", '"5"')),
        get("notes/k", ("If-None-Match", 'W/"5", "5"')),
        get("notes/k", ("If-None-Match", '"4"')),
        get("notes/k", by="viewer"),
        get("notes/k", ("User-Agent", "x"), ("Traceparent", "00-0-0-00"), by="slow"),
        get("notes/k", ("Run-Id", "r-1")),
        patch("team/agent::a/b", {"goal": None, "count": 1}),
        patch("team/agent::a/b", [{"op": "add", "path": "/count", "value": 2}], kind=UPDATE),
        patch("team/agent::a/b", [{"op": "test", "path": "/count", "value": 3}], kind="json-patch"),
        patch("team/agent::a/b", {"count": 9}, ("If-Match", '"5"'), ("Run-Id", "r-1")),
        patch("short/k", {"a": 1}),
    ]
    answers = check_same(sides, requests)
    assert [answer.start["status"] for answer in answers] == (
        [200, 201, 200, 201, 200, 201, 200, 200, 200, 200, 200, 304, 304, *[200] * 9]
    )
    assert sides[0].joined == len(requests)


def test_lane__calls_it_answers__count_as_traffic_and_against_the_limit(
    sides: tuple[Side, Side],
) -> None:
    check_same(sides, [put(), get(), get(by="slow"), get(by="slow")])
    traffic.counter.flush()
    counted = [
        Traffic.objects.timed()
        .filter(workspace_id=side.workspace.pk)
        .aggregate(reads=Sum("reads"), writes=Sum("writes"))
        for side in sides
    ]
    assert counted == [{"reads": 3, "writes": 1}] * 2
    limited = sides[0].send(*get(by="slow"))
    assert dict(limited.start["headers"])[b"ratelimit"].startswith(b'"token";r=597')


def test_lane__cors_is_on__has_its_header(
    sides: tuple[Side, Side], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "CORS_ALLOWED_ORIGINS", ["https://app.example"])
    answer = sides[0].send(*get())
    assert sides[0].joined == 1
    assert (b"vary", b"origin") in answer.start["headers"]


# What it leaves to Django --------------------------------------------------------------------


@pytest.mark.parametrize(
    "request_",
    [
        get("nowhere/k"),
        get("notes/k?at_version=1"),
        get("notes/k?unknown=1"),
        get("notes/"),
        get("notes"),
        get("no%20tes/k"),
        get("notes/bad%00key"),
        get("notes/k", ("X-Unlisted", "1")),
        get("notes/k", ("Idempotency-Key", "1")),
        get("notes/k", ("Origin", "https://app.example")),
        get("notes/k", ("Cookie", "a=b")),
        get("notes/k", ("If-Match", '"1"')),
        get("notes/k", by="narrow"),
        ("GET", "/api/v1/state/notes/k", (), b""),
        ("GET", "/api/v1/state/notes/k", (("Authorization", "Basic x"),), b""),
        ("GET", "/api/v1/state/notes/k", (("Authorization", "Bearer ch_x_y"),), b""),
        ("GET", "/api/v1/state/notes/k", (bearer(), JSON), b"{}"),
        ("HEAD", "/api/v1/state/notes/k", (bearer(),), b""),
        ("DELETE", "/api/v1/state/notes/k", (bearer(),), b""),
        ("POST", "/api/v1/state/notes/k", (bearer(), JSON), b"{}"),
        patch("notes/absent", {"a": 1}),
        patch("notes/k", {"a": 1}, kind="unknown"),
        patch("notes/k", b"{"),
        patch("notes/k", {"a": 1}, by="viewer"),
        ("PATCH", "/api/v1/state/notes/k", (bearer(), JSON), b"{}"),
        put("nowhere/k"),
        put("config.models/k"),
        put("team/k", {"value": {"goal": 1}}),
        put("notes/k", b""),
        put("notes/k", b"{"),
        put("notes/k", b'{"value": 1, "value": 2}'),
        put("notes/k", b'{"value": "\\ud800"}'),
        put("notes/k", b'{"value": NaN}'),
        put("notes/k", {"value": 1, "extra": 2}),
        put("notes/k", {"values": 1}),
        put("notes/k", {"value": 1, "ttl_seconds": -1}),
        put("notes/k", {"value": 1, "tags": ["a"]}),
        put("notes/k", {"value": 1, "pinned": True}),
        put("notes/k", {"value": "x" * 70_000}),
        put("notes/k?dry_run=true"),
        put("notes/k", {"value": 1}, ("If-Match", '"7"')),
        put("notes/k", {"value": 1}, ("If-Match", '"0"')),
        put("notes/k", {"value": 1}, ("If-Match", "7")),
        put("notes/k", {"value": 1}, ("If-Match", '"1"'), ("On-Conflict", "merge")),
        put("notes/k", {"value": 1}, ("If-None-Match", "*")),
        put("notes/k", {"value": 1}, ("If-Changed", "true")),
        put("notes/k", {"value": 1}, ("Idempotency-Key", "one")),
        put("notes/k", {"value": 1}, ("Run-Id", "x" * 600)),
        put("notes/k", {"value": 1}, ("Change-Reason", "x" * 1001)),
        put("notes/k", {"value": 1}, by="viewer"),
        put("notes/k", {"value": 1}, by="narrow"),
        put("notes/k", {"value": 1}, by="slow"),
        (
            "PUT",
            "/api/v1/state/notes/k",
            (bearer(), ("Content-Type", "text/plain")),
            b'{"value":1}',
        ),
        ("PUT", "/api/v1/state/notes/k", (bearer(),), b'{"value":1}'),
    ],
    ids=lambda request: " ".join(map(str, request))[:120],
)
def test_lane__anything_unusual__is_django_s(sides: tuple[Side, Side], request_: Request) -> None:
    check_same(sides, [request_])
    assert sides[0].joined == 0


def test_lane__host_that_is_not_served__is_django_s(
    sides: tuple[Side, Side], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "ALLOWED_HOSTS", ["elsewhere"])
    assert [side.send(*get()).start["status"] for side in sides] == [421, 421]


def test_lane__quota__is_watched_by_django(sides: tuple[Side, Side]) -> None:
    for side in sides:
        quotas.set_quota(actor=side.actor, entries=1, bytes=None, threads=None)
    answers = check_same(sides, [put("notes/a"), put("notes/b")])
    assert [answer.start["status"] for answer in answers] == [201, 403]
    assert sides[0].joined == 0


# Generated requests ----------------------------------------------------------------------------

PATHS = st.sampled_from(
    ["notes/k", "notes/k", "notes/l", "team/k", "short/k", "nowhere/k", "notes/a%2Fb", "notes/a/b",
     "notes/%6b", "notes//k", "no~tes/k", "notes/k?at_version=1", "notes"]
)  # fmt: skip
HEADERS = st.lists(
    st.sampled_from(
        [("If-Match", '"1"'), ("If-Match", '"2"'), ("If-Match", "junk"), ("If-None-Match", "*"),
         ("If-None-Match", '"1"'), ("If-Changed", "true"), ("On-Conflict", "merge"),
         ("Run-Id", "r1"), ("Run-Id", "x" * 600), ("Change-Reason", "why"), ("Accept", "text/html"),
         ("Idempotency-Key", "same"), ("X-Unlisted", "1"), ("Cookie", "a=b")]
    ),
    max_size=2,
)  # fmt: skip
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
VALUES = st.recursive(
    SCALARS, lambda each: st.lists(each) | st.dictionaries(st.text(), each), max_leaves=5
)
BODIES = st.one_of(
    st.fixed_dictionaries(
        {"value": VALUES},
        optional={
            "ttl_seconds": st.sampled_from([None, 0, 60, -1, "x"]),
            "tags": st.just(["t"]),
            "other": SCALARS,
        },
    ).map(lambda body: json.dumps(body, ensure_ascii=False).encode(errors="replace")),
    st.binary(max_size=20),
)
OPERATIONS = st.lists(
    st.fixed_dictionaries(
        {
            "op": st.sampled_from(["add", "append", "union", "remove", "set", "test", "replace"]),
            "path": st.sampled_from(["", "/a", "/0", "/-", "a"]),
        },
        optional={"value": VALUES},
    ),
    max_size=3,
)
REQUESTS = st.one_of(
    st.builds(
        lambda path, body, kind, headers: patch(path, body, *headers, kind=kind),
        PATHS,
        OPERATIONS | VALUES,
        st.sampled_from(["merge-patch", "json-patch", UPDATE, "unknown"]),
        HEADERS,
    ),
    st.builds(
        lambda path, headers, by: get(path, *headers, by=by),
        PATHS,
        HEADERS,
        st.sampled_from(["editor", "viewer", "narrow"]),
    ),
    st.builds(
        lambda path, body, headers, by: put(path, body, *headers, by=by),
        PATHS,
        BODIES,
        HEADERS,
        st.sampled_from(["editor", "editor", "viewer", "narrow"]),
    ),
)


@pytest.mark.usefixtures("sides")
@hypothesis_settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(requests=st.lists(REQUESTS, min_size=1, max_size=6))
@example(requests=[put(), get(), put("notes/k", {"value": 1}, ("If-Match", '"1"'))])
def test_lane__generated_requests__are_answered_like_django(
    sides: tuple[Side, Side], requests: list[Request]
) -> None:
    """The examples share the two workspaces: what one leaves, the next meets on both sides."""
    check_same(sides, requests)


# Errors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [OperationalError("gone"), KeyError("bug")], ids=str)
def test_lane__write_whose_outcome_is_unknown__is_not_repeated(
    error: Exception, sides: tuple[Side, Side], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise error

    monkeypatch.setattr("state_admin.services.joined_writes.entries_sql.put_existing", fail)
    monkeypatch.setattr("state_admin.services.entries.entries_sql.put_entry", fail)
    joined, apart = (side.send(*put()) for side in sides)
    assert sides[0].joined == 1
    assert shown(joined) == shown(apart)
    assert joined.start["status"] == (503 if isinstance(error, OperationalError) else 500)


def test_lane__read_that_fails__is_django_s(
    sides: tuple[Side, Side], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise OperationalError("gone")

    monkeypatch.setattr("state_admin.services.entry_views.entries_sql.read_entries", fail)
    check_same(sides, [get()])
    assert sides[0].joined == 0
