"""The change feed through the client."""

from __future__ import annotations

import asyncio
import signal
import threading

import httpx2
import pytest
from commonhold import (
    AsyncCommonhold,
    AsyncWatch,
    BadRequest,
    ClientClosed,
    Commonhold,
    Gone,
    RateLimited,
    Retries,
    Unavailable,
    Unreachable,
    Watch,
)
from commonhold.calls import Reply
from commonhold.changes import Feed

from tests.builders import Person
from tests.clients.python.conftest import SWIFT
from tests.clients.python.responding import responding
from tests.loops import run
from tests.patience import PATIENCE
from tests.project.running import Running, free_port, wait_for


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


def test_feed__refused_in_all_attempts__raises_the_problem() -> None:
    feed, _ = taken()
    busy = Reply(429, {}, b'{"type": "/problems/rate-limited", "detail": "too many streams"}')
    for _ in range(5):
        feed.refused(busy)
    with pytest.raises(RateLimited, match=r"^too many streams$"):
        feed.refused(busy)


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


FIRST_BLOCK = b"retry: 100000\r\nid: c0\r\n\r\n"
HELLO = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"%x\r\n%s\r\n" % (len(FIRST_BLOCK), FIRST_BLOCK)
)


def looping(watch: Watch) -> tuple[threading.Thread, list[BaseException | None]]:
    """A thread that iterates over the watch, and how its loop ended: with an exception or without one."""
    ended: list[BaseException | None] = []

    def loop() -> None:
        try:
            for _ in watch:
                pass
        except BaseException as error:
            ended.append(error)
        else:
            ended.append(None)

    thread = threading.Thread(target=loop, daemon=True)
    thread.start()
    return thread, ended


@pytest.mark.parametrize("silent", [True, False])
def test_watch__closed_by_another_thread__ends_its_loop_at_once(silent: bool) -> None:
    """While it waits for data, and during the pause before it connects again."""
    with (
        responding(HELLO, end=not silent) as (url, requests),
        Commonhold(url, "t") as state,
    ):
        watch = state.watch()
        thread, ended = looping(watch)
        wait_for(lambda: watch.cursor == "c0", "connected")
        if not silent:
            wait_for(lambda: watch._answer is None, "disconnected")
        watch.close()
        thread.join(PATIENCE)
        assert ended == [None]
        # A later loop continues from the cursor.
        thread, _ = looping(watch)
        wait_for(lambda: len(requests) == 2, "connected again")
        assert b"Last-Event-ID: c0" in requests[1]
        watch.close()
        thread.join(PATIENCE)
        assert not thread.is_alive()


def test_watch__closed_by_a_signal_handler__ends_its_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with responding(HELLO, end=False) as (url, _), Commonhold(url, "t") as state:
        watch = state.watch()
        previous = signal.signal(signal.SIGUSR1, lambda *_: watch.close())
        try:
            main = threading.main_thread().ident or 0

            def send() -> None:
                wait_for(lambda: watch.cursor == "c0", "connected")
                signal.pthread_kill(main, signal.SIGUSR1)

            threading.Thread(target=send, daemon=True).start()
            assert list(watch) == []
        finally:
            signal.signal(signal.SIGUSR1, previous)


def test_client__closed_by_another_thread__ends_its_watches_at_once() -> None:
    with responding(HELLO, end=False) as (url, _), Commonhold(url, "t") as state:
        watch = state.watch()
        thread, ended = looping(watch)
        wait_for(lambda: watch.cursor == "c0", "connected")
        state.close()
        thread.join(PATIENCE)
        assert [type(each) for each in ended] == [ClientClosed]


@pytest.mark.parametrize("silent", [True, False])
def test_async_watch__closed_by_another_task__ends_its_loop_at_once(silent: bool) -> None:
    async def loop(watch: AsyncWatch) -> None:
        async for _ in watch:
            pass

    async def work(url: str) -> None:
        async with AsyncCommonhold(url, "t") as state:
            watch = state.watch()
            task = asyncio.create_task(loop(watch))
            while watch.cursor != "c0" or (not silent and watch._wake is None):
                await asyncio.sleep(0.001)
            await watch.close()
            await task
            if not silent:
                return
            closed = asyncio.create_task(loop(watch))
            while watch._answer is None:
                await asyncio.sleep(0.001)
            await state.close()
            with pytest.raises(ClientClosed):
                await closed

    with responding(HELLO, end=not silent) as (url, _):
        run(work(url))
