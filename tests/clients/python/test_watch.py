"""The change feed through the client."""

from __future__ import annotations

import httpx2
import pytest
from commonhold import (
    AsyncCommonhold,
    BadRequest,
    Commonhold,
    Gone,
    Retries,
    Unavailable,
    Unreachable,
)
from commonhold.calls import Reply
from commonhold.changes import Feed

from tests.builders import Person
from tests.clients.python.conftest import SWIFT
from tests.loops import run
from tests.project.running import Running, free_port


def taken(*lines: str) -> tuple[Feed, list[str]]:
    feed = Feed("", {}, Retries())
    found = [feed.take(line) for line in lines]
    return feed, [change.kind for change in found if change is not None]


CHANGE = (
    'data: {"cursor":"b","kind":"entry.put","namespace":"n","key":"k","thread_id":null,"run_id":null,'
    '"version":1,"actor":"alice","at":"2026-01-01T00:00:00Z"}'
)


def test_feed__block_with_data__is_a_change() -> None:
    feed, kinds = taken("retry: 1500", ": heartbeat", "id: a", "", "id: b", "event: change", CHANGE)
    assert (feed.cursor, kinds) == ("a", []), "not before its block is complete"
    assert feed.take("") is not None
    assert feed.cursor == "b"
    assert 0.75 <= feed.closed() <= 1.5


def test_feed__heartbeats_and_closing_events__are_not_changes_but_advance_the_cursor() -> None:
    feed, kinds = taken(": heartbeat", "id: c", "", "event: closed", 'data: {"type":"x"}', "")
    assert (feed.cursor, kinds) == ("c", [])
    assert feed.arguments()["headers"] == {"Last-Event-ID": "c"}


def test_feed__expired_cursor__is_gone_and_a_busy_server_is_not() -> None:
    feed, _ = taken()
    with pytest.raises(Gone):
        feed.refused(Reply(410, {}, b'{"type": "/problems/gone"}'))
    assert feed.refused(Reply(503, {"retry-after": "4"}, b"")) >= 4


def test_feed__retry_after_beyond_the_deadline__is_not_waited_for() -> None:
    feed, _ = taken()
    away = Reply(503, {"retry-after": "86400"}, b"")
    with pytest.raises(Unavailable):
        feed.refused(away)
    feed.opened()
    assert feed.refused(away) == 30


def test_feed__response_of_another_type__is_not_a_stream() -> None:
    feed, _ = taken()
    assert not feed.begins(httpx2.Response(200, headers={"content-type": "text/html"}))
    assert feed.begins(httpx2.Response(200, headers={"content-type": "text/event-stream; a=b"}))
    with pytest.raises(Unreachable, match="the address of a Commonhold"):
        feed.refused(Reply(200, {}, b"<html>"))


def test_feed__lines__end_only_at_a_line_feed() -> None:
    feed, _ = taken()
    assert feed.lines("data: a\u2028b\x85\r\nid: ".encode()) == ["data: a\u2028b\x85"]
    assert feed.lines(b"7\n\n") == ["id: 7", ""]


def test_watch__no_listener__is_unreachable() -> None:
    with (
        Commonhold(f"http://127.0.0.1:{free_port()}", "t", retries=SWIFT) as state,
        pytest.raises(Unreachable),
    ):
        next(state.watch())


@pytest.mark.django_db(transaction=True)
def test_watch__malformed_cursor__is_refused(state: Commonhold) -> None:
    with pytest.raises(BadRequest):
        next(state.watch(cursor="nonsense"))


@pytest.mark.django_db(transaction=True)
def test_watch__silence__is_treated_as_a_dead_connection(state: Commonhold) -> None:
    """A connection without data for longer than the heartbeat is closed; nothing is missed."""
    state.namespaces.register("notes")
    with state.watch(namespace="notes", heartbeat_timeout=0.2) as changes:
        answers = []
        changes._feed.closed = lambda: answers.append(state.put("notes", "k", 1)) or 0.0  # type: ignore[method-assign, func-returns-value]
        assert next(changes).kind == "entry.put"
        assert answers


@pytest.mark.django_db(transaction=True)
def test_watch__key_with_a_line_separator__is_an_ordinary_change(state: Commonhold) -> None:
    state.namespaces.register("notes")
    with state.watch(namespace="notes") as changes:
        state.put("notes", "a\u2028b", 1)
        assert next(changes).key == "a\u2028b"


@pytest.mark.django_db(transaction=True)
def test_watch__async__filters_and_follows(web: Running, alice: Person) -> None:
    async def work() -> list[tuple[str | None, int]]:
        async with AsyncCommonhold(
            f"http://127.0.0.1:{web.port}", alice.token, retries=SWIFT
        ) as state:
            await state.namespaces.register("notes")
            async with state.watch(namespace="notes", key="b") as changes:
                for key in ("a", "b", "b"):
                    await state.put("notes", key, 1)
                seen = []
                async for change in changes:
                    seen.append((change.key, change.version))
                    if len(seen) == 2:
                        return seen
        raise AssertionError

    assert run(work()) == [("b", 1), ("b", 2)]
