"""`wait=` through the real server: waiting polls use no thread and no connection, and miss nothing.

The server of these tests has a single thread: a poll that kept it would block every other request.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection

from state_admin.domain.access import Role
from state_admin.models import ApiToken
from state_admin.services.entries import delete_entry
from state_admin.services.runs import RunChange
from state_admin.services.tokens import revoke_token
from tests.builders import (
    Person,
    commit,
    make_namespace,
    make_run,
    make_thread,
    make_token,
    put,
)
from tests.patience import PATIENCE
from tests.project.running import Running, wait_for
from tests.streams.listening import web_on_this_database

pytestmark = pytest.mark.django_db(transaction=True)

LONG = 30


class Poll:
    """A request in progress."""

    def __init__(self, port: int, token: str, path: str, **headers: str) -> None:
        self.client = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        sent = {"Authorization": f"Bearer {token}"} | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        self.client.request("GET", f"/api/v1{path}", headers=sent)

    def answer(self) -> tuple[int, Any]:
        answer = self.client.getresponse()
        body = answer.read()
        return answer.status, json.loads(body) if body else None

    def close(self) -> None:
        self.client.close()


@pytest.fixture
def poll(web: Running) -> Iterator[Callable[..., Poll]]:
    polls: list[Poll] = []

    def begin(person: Person | str, path: str, **headers: str) -> Poll:
        token = person if isinstance(person, str) else person.token
        polls.append(Poll(web.port, token, path, **headers))
        return polls[-1]

    yield begin
    for one in polls:
        one.close()


@pytest.fixture(autouse=True)
def notes(alice: Person) -> None:
    make_namespace(alice.actor, "notes")


def connections(name: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE application_name = %s AND datname = current_database()",
            [name],
        )
        return int(cursor.fetchone()[0])


def parked() -> bool:
    """Whether the hub follows the feed, which means that there is a subscriber, or was one within the
    last seconds: see `nobody_polls`."""
    return connections("commonhold feed") > 0


@pytest.fixture
def nobody_polls(web: Running) -> None:
    """The hub no longer follows the feed for the polls of earlier tests."""
    wait_for(lambda: not parked(), "the hub has closed its connection")


@pytest.mark.usefixtures("nobody_polls")
def test_entry_poll__written_while_it_waits__returns_the_new_version(poll, alice) -> None:
    put(alice.actor, "notes", "k", 1)
    one = poll(alice, f"/state/notes/k?wait={LONG}")
    wait_for(parked, "the poll is parked")
    put(alice.actor, "notes", "other", 1)
    put(alice.actor, "notes", "k", 2)

    status, body = one.answer()

    assert (status, body["version"], body["value"]) == (200, 2, 2)


def test_entry_poll__since_is_old__returns_at_once(poll, alice) -> None:
    put(alice.actor, "notes", "k", 1)

    assert poll(alice, f"/state/notes/k?wait={LONG}&since=0").answer()[1]["version"] == 1


@pytest.mark.usefixtures("nobody_polls")
def test_entry_poll__deleted_while_it_waits__returns_at_once(poll, alice) -> None:
    put(alice.actor, "notes", "k", 1)
    one = poll(alice, f"/state/notes/k?wait={LONG}&since=1")
    wait_for(parked, "the poll is parked")
    started = time.monotonic()
    delete_entry(actor=alice.actor, namespace="notes", key="k")

    status, body = one.answer()

    assert (status, body["version"], body["exists"]) == (200, 0, False)
    assert time.monotonic() - started < LONG - 2


def test_entry_poll__deleted_before__is_news_only_for_an_earlier_version(poll, alice) -> None:
    put(alice.actor, "notes", "k", 1)
    delete_entry(actor=alice.actor, namespace="notes", key="k")
    started = time.monotonic()
    assert poll(alice, f"/state/notes/k?wait={LONG}&since=1").answer()[1]["exists"] is False
    assert time.monotonic() - started < LONG - 2

    polls = [
        poll(alice, f"/state/notes/k?wait={LONG}{since}") for since in ("", "&since=0", "&since=2")
    ]
    wait_for(parked, "the polls are parked")
    put(alice.actor, "notes", "k", 2)

    assert [each.answer()[1]["version"] for each in polls] == [3, 3, 3]


def test_entry_poll__no_change__returns_the_current_entry(poll, alice) -> None:
    assert poll(alice, "/state/notes/k?wait=1").answer()[1]["version"] == 0


def test_entry_poll__current_etag__is_304_after_the_wait(poll, alice) -> None:
    put(alice.actor, "notes", "k", 1)

    assert poll(alice, "/state/notes/k?wait=1", If_None_Match='"1"').answer() == (304, None)


@pytest.fixture
def waiting(alice: Person) -> None:
    """r1 waits for k1, at revision 2."""
    make_thread(alice.actor, "t1")
    make_run(alice.actor, "t1", "r1")
    ticket = {"ticket_id": "k1", "tool_call_id": "c1", "tool_name": "refund"}
    wait = {"reason": "tool_permission", "tickets": [ticket]}
    commit(alice.actor, "r1", run=RunChange(status="waiting", waiting=wait))


@pytest.mark.usefixtures("waiting", "nobody_polls")
def test_ticket_poll__decided_while_it_waits__returns(poll, alice) -> None:
    one = poll(alice, f"/tickets/k1?wait={LONG}")
    wait_for(parked, "the poll is parked")
    alice.api("POST", "/tickets/k1/decision", {"action": "resume"})

    assert one.answer()[1]["status"] == "resumed"


@pytest.mark.usefixtures("waiting", "nobody_polls")
def test_run_poll__ticket_decided_while_it_waits__returns(poll, alice) -> None:
    one = poll(alice, f"/runs/r1?wait={LONG}")
    wait_for(parked, "the poll is parked")
    alice.api("POST", "/tickets/k1/decision", {"action": "resume"})

    status, body = one.answer()
    assert (status, body["status"], body["last_revision"]) == (200, "running", 3)


@pytest.mark.usefixtures("waiting", "nobody_polls")
def test_ticket_poll__run_ends_while_it_waits__returns_a_void_ticket(poll, alice) -> None:
    one = poll(alice, f"/tickets/k1?wait={LONG}")
    wait_for(parked, "the poll is parked")
    alice.api("POST", "/runs/r1/cancel")

    assert one.answer()[1]["status"] == "void"


@pytest.mark.usefixtures("waiting", "nobody_polls")
def test_ticket_poll__server_restarts__returns_a_decision_made_meanwhile(start, alice) -> None:
    server = web_on_this_database(start, WEB_WORKERS="1", WEB_THREADS="1")
    one = Poll(server.port, alice.token, f"/tickets/k1?wait={LONG}")
    wait_for(parked, "the poll is parked")
    server.signal(signal.SIGKILL)
    with contextlib.suppress(OSError, http.client.HTTPException):
        one.answer()
    one.close()
    server.kill_all()
    alice.api("POST", "/tickets/k1/decision", {"action": "resume"})
    again = web_on_this_database(start, WEB_WORKERS="1", WEB_THREADS="1")
    one = Poll(again.port, alice.token, f"/tickets/k1?wait={LONG}")

    assert one.answer()[1]["status"] == "resumed"
    one.close()


@pytest.mark.usefixtures("nobody_polls")
def test_change_poll__only_other_changes__continues_to_wait(poll, alice) -> None:
    start = alice.api("GET", "/changes?limit=200").json()["next_cursor"]
    one = poll(alice, f"/changes?wait={LONG}&cursor={start}&key=mine")
    wait_for(parked, "the poll is parked")
    put(alice.actor, "notes", "other", 1)
    put(alice.actor, "notes", "mine", 1)

    status, body = one.answer()

    assert (status, [item["key"] for item in body["items"]]) == (200, ["mine"])
    following = poll(alice, f"/changes?cursor={body['next_cursor']}&key=mine").answer()[1]
    assert following["items"] == []


def test_change_poll__no_changes__is_empty_with_a_cursor(poll, alice) -> None:
    start = alice.api("GET", "/changes?limit=200").json()["next_cursor"]

    body = poll(alice, f"/changes?wait=1&cursor={start}").answer()[1]

    assert body["items"] == []
    put(alice.actor, "notes", "k", 1)
    again = poll(alice, f"/changes?cursor={body['next_cursor']}").answer()[1]
    assert [item["key"] for item in again["items"]] == ["k"]


def test_polls__many_waiting__use_no_thread_and_no_connection(poll, web, alice) -> None:
    def read_plainly() -> int:
        path = "/api/v1/state/notes/plain"
        return web.get(path, Authorization=f"Bearer {alice.token}")[0]

    def is_ready() -> bool:
        """Whether the thread and the listener for revoked tokens, which begins with it, are connected."""
        return read_plainly() == 200 and connections("web") == 2

    wait_for(is_ready, "both are connected")
    start = alice.api("GET", "/changes?limit=200").json()["next_cursor"]
    polls = [poll(alice, f"/state/notes/k?wait={LONG}&since=0") for _ in range(60)]
    polls += [poll(alice, f"/changes?wait={LONG}&key=k&cursor={start}") for _ in range(60)]

    assert [read_plainly() for _ in range(20)] == [200] * 20  # each of them needs the thread
    assert connections("web") == 2
    wait_for(lambda: connections("commonhold feed") == 1, "the hub follows the feed for all")
    put(alice.actor, "notes", "k", 1)
    assert [one.answer()[0] for one in polls] == [200] * 120


def test_poll__written_at_any_moment__is_never_missed(poll, alice) -> None:
    """A change between the first read and the subscription, which a naive implementation misses."""
    for version in range(1, 25):
        one = poll(alice, f"/state/notes/k?wait={LONG}&since={version - 1}")
        writer = threading.Thread(target=_write_through, args=(alice, poll, version))
        writer.start()

        assert one.answer()[1]["version"] == version
        writer.join()


def _write_through(alice: Person, poll: Any, version: int) -> None:
    client = poll(alice, "/me").client
    client.getresponse().read()
    headers = {"Authorization": f"Bearer {alice.token}", "Content-Type": "application/json"}
    client.request("PUT", "/api/v1/state/notes/k", json.dumps({"value": version}), headers)
    assert client.getresponse().status in (200, 201)


@pytest.mark.usefixtures("nobody_polls")
def test_poll__token_revoked_while_it_waits__is_401(poll, alice) -> None:
    token, actor = make_token(alice, Role.VIEWER)
    one = poll(token, f"/state/notes/k?wait={LONG}")
    wait_for(parked, "the poll is parked")
    revoke_token(actor=alice.actor, token_id=int(actor.id))
    wait_for(lambda: poll(token, "/me").answer()[0] == 401, "the server refuses the token")
    put(alice.actor, "notes", "k", 1)

    assert one.answer()[0] == 401


def test_poll__checking_several_times__counts_as_one_call(poll, alice) -> None:
    token, actor = make_token(alice, Role.VIEWER)
    ApiToken.objects.filter(pk=actor.id).update(rate_per_minute=1)

    assert poll(token, "/state/notes/k?wait=1").answer()[0] == 200
    assert poll(token, "/state/notes/k").answer()[0] == 429


@pytest.mark.usefixtures("nobody_polls")
def test_sigterm__waiting_polls__return_at_once(start, alice) -> None:
    server = web_on_this_database(start, WEB_WORKERS="1", WEB_THREADS="1")
    polls = [Poll(server.port, alice.token, f"/state/notes/k?wait={LONG}") for _ in range(10)]
    wait_for(parked, "a poll is parked")
    assert server.answers("/healthz")  # the server has accepted the connections before this one
    server.signal(signal.SIGTERM)

    assert [one.answer()[0] for one in polls] == [200] * 10
    for one in polls:
        one.close()
    assert server.wait(PATIENCE) == 0


@pytest.mark.parametrize(("path", "version"), [("/state/notes/k?wait=20&since=0", 1)])
def test_poll__no_event_loop__waits_in_its_thread(alice, path, version) -> None:
    """As under Django's test client, or any other WSGI server."""
    writer = threading.Timer(0.2, _put_and_close, (alice,))
    writer.start()

    assert alice.api("GET", path).json()["version"] == version
    writer.join()


def _put_and_close(person: Person) -> None:
    try:
        put(person.actor, "notes", "k", 1)
    finally:
        connection.close()
