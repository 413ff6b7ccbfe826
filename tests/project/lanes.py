"""Two workspaces that get the same requests: the lane answers those of one, Django those of the other."""

from __future__ import annotations

import asyncio
import io
import re
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

import pytest
from django.core import signals
from django.db import close_old_connections, connection, connections
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings

from project import lane
from project.bodies import Limits
from project.bridge import Bridge
from project.channel import Answer, headers_of
from project.lane import Lane
from project.wsgi import application as django
from state_admin.domain.access import Role
from state_admin.services import (
    actors,
    joined_writes,
    namespaces,
    quotas,
    throttles,
    tokens,
    traffic,
    workspaces,
)
from state_admin.services.actors import system_actor
from state_admin.services.token_cache import Credential
from tests.builders import TEAM_SCHEMA, make_namespace, make_run, make_state_key, make_thread
from tests.sessions import DjangoSession

JSON = ("Content-Type", "application/json")
Header = tuple[str, str]
Request = tuple[str, str, tuple[Header, ...], bytes]


class TestSessions:
    """Gives every group the connection that has the test's transaction; an event loop has its own.
    `taken` are the sessions of all groups."""

    __test__ = False

    def __init__(self) -> None:
        self.taken: list[DjangoSession] = []
        self._ours = connections["default"]

    @asynccontextmanager
    async def take(self) -> AsyncIterator[DjangoSession]:
        connections["default"] = self._ours
        self.taken.append(DjangoSession())
        yield self.taken[-1]


# Of generated requests: the examples share the two workspaces.
GENERATED = hypothesis_settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


class LaneWorkspace:
    """A workspace with what the requests use."""

    def __init__(self, slug: str) -> None:
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
        make_state_key(self.actor, "plan")
        make_state_key(self.actor, "log", reducer="union", merge="commutative", default=[])
        make_state_key(self.actor, "text", schema={"type": "string", "pattern": "^[a-z]*$"})
        for number in range(3):
            make_thread(self.actor, f"t{number}")
            make_run(self.actor, f"t{number}", f"r{number}", lease_seconds=86_400)


class Side:
    """A workspace and what answers its requests."""

    def __init__(self, prepared: LaneWorkspace, *, joins: bool) -> None:
        self.workspace, self.actor = prepared.workspace, prepared.actor
        self.tokens = prepared.tokens
        for name in ("notes", "team", "short"):  # without these in memory, no write is joined
            namespaces.find_definition(self.actor, name, fresh=True)
        quotas.limited(self.actor)
        self.sessions = TestSessions()
        self.lane = Lane(self.sessions.take) if joins else None
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
    start: list[Any] = []
    response: Any = django(environ, lambda *given: start.extend(given))
    status, headers = start
    return Answer(int(status[:3]), headers_of(dict(headers)), response.content)


@pytest.fixture(scope="module")
def lane_workspaces(module_transaction: None) -> tuple[LaneWorkspace, LaneWorkspace]:
    """Created once for all tests of a module, which take longer to create them than for the rest."""
    return LaneWorkspace("joined"), LaneWorkspace("apart")


@pytest.fixture
def sides(
    lane_workspaces: tuple[LaneWorkspace, LaneWorkspace], monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Side, Side]]:
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
    monkeypatch.setattr(quotas, "_FRESH", 3600)

    ours = connections["default"]

    def find(presented: str) -> Credential | None:
        connections["default"] = ours
        return actors._find_credential(presented)

    monkeypatch.setattr(lane, "cached_credential", find)
    traffic.counter.flush()
    signals.request_started.disconnect(close_old_connections)  # the test's transaction is on it
    ours.inc_thread_sharing()
    # What the process remembers of the workspaces from the test before.
    quotas.forget_accounts()
    throttles._leases.clear()
    joined_writes._growing.clear()
    joined, apart = lane_workspaces
    yield Side(joined, joins=True), Side(apart, joins=False)
    traffic.counter.flush()  # in the transaction of this test
    ours.dec_thread_sharing()
    signals.request_started.connect(close_old_connections)


_TIME = re.compile(rb'"\d{4}-\d\d-\d\dT[\d:.]+Z"')


def shown(answer: Answer) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    headers = [each for each in answer.headers if each[0] != b"content-length"]
    return answer.status, headers, _TIME.sub(b'"TIME"', answer.body)


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
    "changes": """SELECT kind, namespace, key, thread, run, version, actor_name FROM changes
        WHERE workspace_id = %s AND (kind LIKE 'entry.%%' OR kind LIKE 'run.%%') ORDER BY id""",
    "audit": """SELECT action, namespace, key, thread, run, version, actor_kind, actor_name, reason,
        request_id FROM audit
        WHERE workspace_id = %s AND (action LIKE 'entry.%%' OR action LIKE 'run.%%') ORDER BY id""",
    "idempotency_records": r"""SELECT status, headers::text,
        regexp_replace(convert_from(body, 'UTF8'), '\d{4}-\d\d-\d\dT[\d:.]+Z', 'TIME', 'g')
        FROM idempotency_records WHERE workspace_id = %s ORDER BY created_at, 3""",
    "threads": """SELECT t.public_id, t.revision, t.message_count, t.context_tokens, r.status,
        r.last_revision, r.revision_count, r.flagged_at, r.step_count, r.input_tokens,
        round(extract(epoch FROM r.lease_expires_at - r.updated_at) / 60)
        FROM threads t JOIN runs r ON r.thread_id = t.id WHERE t.workspace_id = %s ORDER BY 1""",
    "state_values": r"""SELECT t.public_id, v.key, v.valid_from, v.valid_to,
        regexp_replace(v.value::text, '"updated_at":\d+', ''), v.scope, v.persistent FROM state_values v JOIN threads t ON t.id = v.thread_id
        WHERE t.workspace_id = %s ORDER BY 1, 2, 3""",
    "messages": """SELECT t.public_id, m.seq, m.role, m.visibility, m.body::text, m.opens::text,
        m.answers, m.estimated_tokens, r.public_id FROM messages m
        JOIN threads t ON t.id = m.thread_id LEFT JOIN runs r ON r.id = m.run_id
        WHERE t.workspace_id = %s ORDER BY 1, 2""",
    "revisions": """SELECT t.public_id, v.number, v.kind, r.public_id, v.step, v.touched,
        v.message_count, v.label, v.actor_kind, v.actor_name, v.reason, v.request_id
        FROM revisions v JOIN threads t ON t.id = v.thread_id LEFT JOIN runs r ON r.id = v.run_id
        WHERE t.workspace_id = %s ORDER BY 1, 2""",
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
    joined_rows, apart_rows = map(rows, sides)
    for table, found in joined_rows.items():
        assert found == apart_rows[table], (table, requests)
    return answers


def bearer(name: str = "editor") -> Header:
    return ("Authorization", f"Bearer {{{name}}}")
