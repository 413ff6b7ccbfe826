"""GET /changes/stream through the real server: permissions, resuming, and how it ends."""

from __future__ import annotations

import http.client
import json
import signal
import socket
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.test import Client

from state_admin.domain.access import Role
from state_admin.models import ApiToken, Membership, UserSession, Workspace
from state_admin.models.feed_sql import Position
from state_admin.services import listeners as limits
from state_admin.services.tokens import change_token, revoke_token
from state_admin.streams import cursors
from state_admin.web.actors import WORKSPACE
from tests.builders import Person, make_namespace, make_thread, make_token, put
from tests.patience import PATIENCE
from tests.project.running import Running, wait_for
from tests.streams.listening import Listener, web_on_this_database

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def listen(web: Running) -> Iterator[Callable[..., Listener]]:
    opened: list[Listener] = []

    def begin(token: str, **options: Any) -> Listener:
        opened.append(Listener(web.port, token, **options))
        return opened[-1]

    yield begin
    for listener in opened:
        listener.close()


@pytest.fixture(autouse=True)
def notes(alice: Person) -> None:
    make_namespace(alice.actor, "notes")


def write(person: Person, *keys: str, namespace: str = "notes") -> None:
    for key in keys:
        put(person.actor, namespace, key, 1)


def test_stream__from_now__sends_each_change_as_the_list_returns_it(listen, alice) -> None:
    write(alice, "before")
    stream = listen(alice.token)
    write(alice, "a", "b")

    events = stream.take(2)

    assert [(event.name, event.data["key"]) for event in events] == [
        ("change", "a"),
        ("change", "b"),
    ]
    listed = alice.api("GET", "/changes?limit=200").json()["items"]
    assert [event.data for event in events] == listed[-2:]
    assert [event.id for event in events] == [item["cursor"] for item in listed[-2:]]
    assert stream.answer.headers["Content-Type"] == "text/event-stream; charset=utf-8"
    assert stream.answer.headers["Cache-Control"] == "no-store"


def test_stream__last_event_id__resumes_without_gap_or_repeat(listen, alice) -> None:
    stream = listen(alice.token)
    write(alice, "a", "b", "c")
    first = stream.take(2)
    stream.close()
    write(alice, "d")

    again = listen(alice.token, last_event_id=first[-1].id, cursor="ignored")
    write(alice, "e")

    assert [event.data["key"] for event in again.take(3)] == ["c", "d", "e"]


def test_stream__disconnected_before_any_event__resumes_from_the_first_id(listen, alice) -> None:
    stream = listen(alice.token)
    stream.close()
    write(alice, "a")

    assert listen(alice.token, last_event_id=stream.last_id).take(1)[0].data["key"] == "a"


def test_stream__many_pages_of_missed_changes__are_sent_before_live_ones(listen, alice) -> None:
    start = listen(alice.token).last_id
    operations = [
        {"op": "put", "namespace": "notes", "key": f"{n:04}", "value": n} for n in range(1000)
    ]
    for _ in range(2):
        assert alice.api("POST", "/state/batch", {"operations": operations}).status_code == 200

    stream = listen(alice.token, cursor=start, kind="entry.put")
    backlog = stream.take(2000)
    write(alice, "live")

    assert [e.seen for e in backlog] == [(f"{n:04}", v) for v in (1, 2) for n in range(1000)]
    assert stream.take(1)[0].data["key"] == "live"


@pytest.mark.parametrize(
    ("filters", "seen"),
    [
        ({"namespace": "notes"}, ["a", "ab", "b", "end"]),
        ({"key": "a"}, ["a", "end"]),
        ({"prefix": "a", "namespace": "notes"}, ["a", "ab", "end"]),
        ({"thread_id": "t1"}, [None]),
        ({"kind": "thread.create"}, [None]),
        ({"kind": "thread.*"}, [None]),
        ({"kind": "*.put"}, ["a", "ab", "b", "end"]),
    ],
)
def test_stream__filters__sends_only_matches(listen, alice, filters, seen) -> None:
    stream = listen(alice.token, **filters)
    write(alice, "a", "ab")
    make_namespace(alice.actor, "other")
    write(alice, "b")
    make_thread(alice.actor, "t1")
    write(alice, "end")

    found = [event.data["key"] for event in stream.take(len(seen) - ("end" in seen))]

    assert found == [key for key in seen if key != "end"]


def test_stream__restricted_token__sends_only_permitted_changes(listen, alice, mallory) -> None:
    make_namespace(alice.actor, "team.x")
    make_namespace(mallory.actor, "notes")
    by_namespace, _ = make_token(alice, Role.VIEWER, namespaces=["team.*"])
    by_thread, _ = make_token(alice, Role.VIEWER, thread_prefixes=["mine-"])
    streams = [listen(token) for token in (by_namespace, by_thread, mallory.token)]
    write(alice, "hidden")
    make_thread(alice.actor, "theirs-1")
    write(alice, "seen", namespace="team.x")
    make_thread(alice.actor, "mine-1")
    write(mallory, "foreign")

    def about(event: Any) -> tuple[str | None, str | None]:
        return event.data["key"], event.data["thread_id"]

    team, threads, foreign = (
        stream.take(count) for stream, count in zip(streams, (3, 3, 1), strict=True)
    )
    assert [about(event) for event in team] == [
        (None, "theirs-1"),
        ("seen", None),
        (None, "mine-1"),
    ]
    assert [about(event) for event in threads] == [
        ("hidden", None),
        ("seen", None),
        (None, "mine-1"),
    ]
    assert [about(event) for event in foreign] == [("foreign", None)]


def test_stream__restricted_token_resumes__missed_changes_are_restricted_too(listen, alice) -> None:
    make_namespace(alice.actor, "team.x")
    token, _ = make_token(alice, Role.VIEWER, namespaces=["team.*"])
    start = listen(token).last_id
    write(alice, "hidden")
    write(alice, "seen", namespace="team.x")

    assert [e.data["key"] for e in listen(token, cursor=start).take(1)] == ["seen"]


# Refusals ------------------------------------------------------------------------------------


def test_stream__expired_cursor__is_410_before_it_starts(listen, alice) -> None:
    old = datetime.now(UTC) - settings.CHANGE_RETENTION - timedelta(minutes=1)
    refused = listen(alice.token, cursor=cursors.seal(Position(5, 5), old))

    assert (refused.status, refused.problem()["type"]) == (410, "/problems/gone")


@pytest.mark.parametrize(
    "options",
    [{"cursor": "nonsense"}, {"last_event_id": "x"}, {"kinds": "x"}, {"kind": "entry.puts"}],
)
def test_stream__bad_cursor_unknown_parameter_or_kind__is_400(listen, alice, options) -> None:
    refused = listen(alice.token, **options)

    assert (refused.status, refused.problem()["type"]) == (400, "/problems/bad-request")


@pytest.mark.parametrize("token", ["", "ch_0123456789ab_" + "0" * 64, "nonsense"])
def test_stream__no_valid_token__is_401(listen, token) -> None:
    refused = listen(token)

    assert (refused.status, refused.problem()["type"]) == (401, "/problems/unauthenticated")
    assert refused.answer.headers["WWW-Authenticate"] == 'Bearer realm="commonhold"'


def test_stream__too_many_with_one_token__is_429_until_one_ends(listen, alice, bob) -> None:
    many = [listen(alice.token) for _ in range(limits.MOST_OF_ONE)]

    refused = listen(alice.token)
    assert (refused.status, refused.problem()["type"]) == (429, "/problems/rate-limited")
    assert int(refused.answer.headers["Retry-After"]) > 0
    assert refused.answer.headers["X-Request-ID"]
    assert listen(bob.token).status == 200
    many[0].close()
    wait_for(lambda: listen(alice.token).status == 200, "its place is free again")


def test_stream__head__has_the_headers_and_no_body(web, alice) -> None:
    client = http.client.HTTPConnection("127.0.0.1", web.port, timeout=PATIENCE)
    headers = {"Authorization": f"Bearer {alice.token}"}
    client.request("HEAD", "/api/v1/changes/stream", headers=headers)

    answer = client.getresponse()

    assert (answer.status, answer.read()) == (200, b"")
    client.close()


def test_stream__no_event_loop__sends_existing_changes_and_ends(alice) -> None:
    start = alice.api("GET", "/changes?limit=200").json()["next_cursor"]
    write(alice, "a")

    answer = alice.api("GET", f"/changes/stream?cursor={start}")

    blocks = answer.content.decode().split("\n\n")
    assert answer.headers["Content-Type"] == "text/event-stream; charset=utf-8"
    assert [block for block in blocks if "event: change" in block and '"a"' in block]
    assert "event: closed" in blocks[-2]


# How it ends ---------------------------------------------------------------------------------


def test_stream__opened_just_after_the_move_of_its_workspace__is_closed(listen, alice) -> None:
    """The change that ends the streams of a moved workspace was before this one began."""
    stream = listen(alice.token)
    Workspace.objects.filter(pk=alice.workspace.pk).update(moved_to="eu2")

    events = list(stream)

    assert events[-1].name == "closed"
    assert events[-1].data["detail"] == "the workspace was moved to another cell"
    again = listen(alice.token, last_event_id=stream.last_id)
    assert (again.status, again.problem()["type"]) == (503, "/problems/workspace-moved")


def test_stream__token_revoked__is_closed(listen, alice) -> None:
    token, actor = make_token(alice, Role.VIEWER)
    stream, other = listen(token), listen(alice.token)
    revoke_token(actor=alice.actor, token_id=int(actor.id))

    events = list(stream)

    assert (events[-1].name, events[-1].data["type"]) == ("closed", "/problems/unauthenticated")
    wait_for(lambda: listen(token).status == 401, "the server refuses the token")
    write(alice, "still here")
    assert any(event.data["key"] == "still here" for event in other)


def test_stream__permissions_of_the_token_changed__is_closed_and_opens_again(listen, alice) -> None:
    token, actor = make_token(alice, Role.VIEWER)
    stream = listen(token)
    change = partial(change_token, actor=alice.actor, token_id=int(actor.id))
    change(changes={"name": "renamed"})
    change(changes={"namespaces": ["others"]})

    events = list(stream)

    assert (events[-1].name, events[-1].data["type"]) == ("closed", "/problems/unavailable")
    assert events[-1].data["detail"] == "the permissions of the token were changed"
    assert listen(token, last_event_id=stream.last_id).status == 200


def test_stream__token_expires__is_closed(listen, alice) -> None:
    token, actor = make_token(alice, Role.VIEWER)
    stream = listen(token)
    ApiToken.objects.filter(pk=actor.id).update(expires_at=datetime.now(UTC))

    assert list(stream)[-1].name == "closed"


def test_stream__client_disconnects__releases_everything(listen, web, alice) -> None:
    """The hub closes its connection when the last subscriber has disconnected."""
    for _ in range(5):
        stream = listen(alice.token)
        assert feed_connections() == 1
        stream.close()

    wait_for(lambda: feed_connections() == 0, "the hub has nobody left")


def feed_connections() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE application_name = 'commonhold feed' AND datname = current_database()"
        )
        return int(cursor.fetchone()[0])


def test_stream__client_does_not_read__is_disconnected_and_resumes(web, alice) -> None:
    slow = socket.socket()
    slow.connect(("127.0.0.1", web.port))
    slow.settimeout(PATIENCE)
    request = f"GET /api/v1/changes/stream HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {alice.token}"
    slow.sendall(f"{request}\r\n\r\n".encode())
    assert slow.recv(10) == b"HTTP/1.1 2"
    fast = Listener(web.port, alice.token, key="after")
    with connection.cursor() as cursor:  # more than the buffers of sockets and queues
        cursor.execute(
            "INSERT INTO changes (workspace_id, kind, key)"
            " SELECT %s, 'entry.put', repeat('x', 2000) FROM generate_series(1, 12000)",
            [alice.workspace.pk],
        )
    write(alice, "after")
    assert fast.take(1)[0].name == "change"  # other clients are not delayed
    fast.close()

    got = b""
    while b"event: closed" not in got[-2000:]:
        part = slow.recv(1 << 20)
        assert part, "the stream ended without a word"
        got += part
    slow.close()

    assert b"/problems/too-slow" in got[-2000:]
    last = got.rpartition(b"id: ")[2].partition(b"\n")[0].decode()
    with Listener(web.port, alice.token, last_event_id=last) as again:
        assert again.take(1)[0].name == "change"


def test_sigterm__open_streams__end_with_retry_and_the_server_in_time(start, alice) -> None:
    server = web_on_this_database(start, WEB_WORKERS="2")
    streams = [Listener(server.port, alice.token) for _ in range(20)]
    server.signal(signal.SIGTERM)

    for stream in streams:
        (event,) = list(stream)
        assert (event.name, event.data["type"]) == ("closed", "/problems/unavailable")
        assert 500 <= stream.retry < 4000
        stream.close()
    assert server.wait(PATIENCE) == 0
    assert "killing" not in server.output().lower()


# Live pages ----------------------------------------------------------------------------------


@pytest.fixture
def cookie(alice) -> str:
    client = Client()
    client.force_login(alice.user)
    return f"{settings.SESSION_COOKIE_NAME}={client.cookies[settings.SESSION_COOKIE_NAME].value}"


@pytest.mark.parametrize(
    "evidence",
    [
        {"Sec-Fetch-Site": "same-origin"},
        {"Origin": "http://127.0.0.1:{port}"},
        {"Referer": "http://127.0.0.1:{port}/state/notes"},
    ],
)
def test_stream__session_on_own_page__has_the_permissions_of_the_member(
    listen, web, alice, cookie, evidence
) -> None:
    headers = {name: text.format(port=web.port) for name, text in evidence.items()}
    stream = listen("", headers={"Cookie": cookie, **headers})
    write(alice, "a")

    assert stream.take(1)[0].data["key"] == "a"


@pytest.mark.parametrize(
    "evidence",
    [
        {},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site", "Origin": "http://127.0.0.1:{port}"},
        {"Origin": "https://evil.example"},
        {"Referer": "https://evil.example/127.0.0.1:{port}"},
    ],
)
def test_stream__session_from_another_site__is_403(listen, web, cookie, evidence) -> None:
    headers = {name: text.format(port=web.port) for name, text in evidence.items()}
    refused = listen("", headers={"Cookie": cookie, **headers})

    assert (refused.status, refused.problem()["type"]) == (403, "/problems/forbidden")


def test_stream__session_without_user__is_401(listen) -> None:
    headers = {"Cookie": f"{settings.SESSION_COOKIE_NAME}=gone", "Sec-Fetch-Site": "same-origin"}

    assert listen("", headers=headers).status == 401


def test_stream__session_with_a_workspace__uses_it(listen, alice, mallory, cookie) -> None:
    Membership.objects.create(user=alice.user, workspace=mallory.workspace, role="viewer")
    make_namespace(mallory.actor, "notes")
    key = cookie.partition("=")[2]
    session = Client().session.__class__(key)
    session[WORKSPACE] = mallory.workspace.slug
    session.save()
    stream = listen("", headers={"Cookie": cookie, "Sec-Fetch-Site": "same-origin"})
    write(alice, "hers")
    write(mallory, "theirs")

    assert stream.take(1)[0].data["key"] == "theirs"


@pytest.mark.parametrize("end", ["log out", "leave", "deactivate"])
def test_stream__session_ends__is_closed(listen, alice, cookie, end) -> None:
    stream = listen("", headers={"Cookie": cookie, "Sec-Fetch-Site": "same-origin"})
    if end == "log out":
        UserSession.objects.all().delete()
    elif end == "leave":
        Membership.objects.filter(user=alice.user).delete()
    else:
        alice.user.is_active = False
        alice.user.save()

    events = list(stream)

    assert (events[-1].name, events[-1].data["type"]) == ("closed", "/problems/unauthenticated")


def test_session__on_other_api_paths__is_401(web, cookie) -> None:
    status, body = web.get("/api/v1/changes", Cookie=cookie, **{"Sec-Fetch-Site": "same-origin"})

    assert (status, json.loads(body)["status"]) == (401, 401)
