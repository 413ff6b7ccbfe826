"""Lost acknowledgements: the work is done, and its response is lost.

Real connections through a real proxy, closed between server and PostgreSQL, and between client and
server, and PostgreSQL that hangs.
"""

from __future__ import annotations

import http.client
import json
import socket
from typing import Any

import pytest

from state_admin.models import AuditRow, Change, EntryRevision, Message
from tests.builders import Person, make_namespace, make_run, make_state_key, make_thread
from tests.patience import PATIENCE
from tests.project.conftest import Start
from tests.project.proxying import Connect, Proxy
from tests.project.running import Running
from tests.streams.listening import this_database, web_on_this_database

pytestmark = pytest.mark.django_db(transaction=True)


def ask(
    person: Person, port: int, method: str, path: str, body: Any, key: str = ""
) -> tuple[int, http.client.HTTPMessage, Any]:
    """One call on its own connection. OSError or HTTPException: no response arrived."""
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    headers = {"Authorization": f"Bearer {person.token}", "Content-Type": "application/json"}
    if key:
        headers["Idempotency-Key"] = key
    try:
        client.request(method, f"/api/v1{path}", json.dumps(body), headers)
        answer = client.getresponse()
        return answer.status, answer.headers, json.loads(answer.read())
    finally:
        client.close()


def to_postgresql() -> Connect:
    where = this_database()
    host, port = where["host"], where.get("port", "5432")

    def connect() -> socket.socket:
        if not host.startswith("/"):
            return socket.create_connection((host, int(port)))
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(f"{host}/.s.PGSQL.{port}")
        return connection

    return connect


def serve_through(proxy: Proxy, start: Start, **env: str) -> Running:
    where = {**this_database(), "host": "127.0.0.1", "port": str(proxy.port), "sslmode": "disable"}
    return web_on_this_database(start, where, **{"WEB_WORKERS": "1", "WEB_THREADS": "1", **env})


def test_commit__response_lost__repeat_with_the_key_finds_one_effect(
    alice: Person, start: Start
) -> None:
    make_namespace(alice.actor)
    with Proxy(to_postgresql()) as proxy:
        server = serve_through(proxy, start)
        proxy.lose_reply_to(b"COMMIT")
        status, _, problem = ask(alice, server.port, "PUT", "/state/notes/k", {"value": 1}, "once")
        assert proxy.lost.is_set()
        assert (status, problem["type"]) == (503, "/problems/unavailable")
        assert "Idempotency-Key" in problem["hint"]
        assert EntryRevision.objects.count() == 1, "the row changed although nobody heard of it"

        status, headers, entry = ask(
            alice, server.port, "PUT", "/state/notes/k", {"value": 1}, "once"
        )
        assert (status, entry["version"], headers["Idempotent-Replayed"]) == (201, 1, "true")
    for trail in (AuditRow, Change):
        assert trail.objects.filter(key="k").count() == 1
    assert EntryRevision.objects.count() == 1


def test_step__response_lost__repeat_with_the_key_makes_no_second_revision(
    alice: Person, start: Start
) -> None:
    make_thread(alice.actor, "t")
    make_run(alice.actor, "t", "r")
    make_state_key(alice.actor, "count", reducer="add", default=0)
    step = {
        "updates": [{"key": "count", "update": 1}],
        "messages": [{"role": "user", "content": "once"}],
    }
    with Proxy(to_postgresql()) as proxy:
        server = serve_through(proxy, start)
        proxy.lose_reply_to(b"COMMIT")
        status, _, _ = ask(alice, server.port, "POST", "/runs/r/commits", step, "once")
        assert (status, proxy.lost.is_set()) == (503, True)
        status, _, committed = ask(alice, server.port, "POST", "/runs/r/commits", step, "once")
    assert (status, committed["revision"]) == (200, 2)
    assert Message.objects.filter(thread__public_id="t").count() == 1
    state = alice.api("GET", "/threads/t/state").json()
    assert (state["revision"], state["extensions"]["count"]) == (2, 1)


def test_write__response_of_its_statement_lost__is_503_and_the_version_shows_the_outcome(
    alice: Person, start: Start
) -> None:
    """Without a key the client cannot know the outcome; `If-Match` keeps a repeat from writing
    twice."""
    make_namespace(alice.actor)
    with Proxy(to_postgresql()) as proxy:
        server = serve_through(proxy, start)
        ask(alice, server.port, "PUT", "/state/notes/warm", {"value": 0})
        proxy.lose_reply_to(b"ghost")
        status, _, _ = ask(alice, server.port, "PUT", "/state/notes/k", {"value": "ghost"})
        assert (status, proxy.lost.is_set()) == (503, True)
        status, headers, entry = ask(alice, server.port, "GET", "/state/notes/k", None)
    assert (status, headers["ETag"], entry["value"]) == (200, '"1"', "ghost")
    again = alice.api("PUT", "/state/notes/k", {"value": "ghost"}, If_None_Match="*")
    assert again.status_code == 412
    assert EntryRevision.objects.filter(entry__key="k").count() == 1


def test_postgresql__hangs__requests_get_503_and_succeed_afterwards(
    alice: Person, start: Start
) -> None:
    make_namespace(alice.actor)
    with Proxy(to_postgresql()) as proxy:
        server = serve_through(proxy, start, WEB_THREADS="2", STANDBY_TIMEOUT_MS="1000")
        put = "PUT", "/state/notes/k", {"value": 1}
        register = "PUT", "/namespaces/other", {"schema": True}
        for call in (put, register):
            assert ask(alice, server.port, *call)[0] in (200, 201)
        proxy.hang()
        for call in (put, register):  # in the lane and in Django
            status, _, problem = ask(alice, server.port, *call)
            assert (status, problem["detail"]) == (503, "the database did not respond in time")
        assert server.get("/healthz")[0] == 200
        assert server.get("/readyz")[0] == 503
        assert "database.silent" in server.output()
        proxy.resume()
        for call in (put, register):
            assert ask(alice, server.port, *call)[0] == 200


def test_response__lost_on_its_way_to_the_client__is_returned_to_a_repeat_with_the_key(
    alice: Person, start: Start
) -> None:
    make_namespace(alice.actor)
    server = web_on_this_database(start, WEB_WORKERS="1")

    def to_server() -> socket.socket:
        return socket.create_connection(("127.0.0.1", server.port))

    with Proxy(to_server) as proxy:
        proxy.lose_reply_to(b"once")
        with pytest.raises((OSError, http.client.HTTPException)):
            ask(alice, proxy.port, "PUT", "/state/notes/k", {"value": 1}, "once")
        assert proxy.lost.is_set()
        status, headers, entry = ask(
            alice, proxy.port, "PUT", "/state/notes/k", {"value": 1}, "once"
        )
    assert (status, entry["version"], headers["Idempotent-Replayed"]) == (201, 1, "true")
    assert EntryRevision.objects.count() == 1
