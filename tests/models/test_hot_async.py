"""Statements on a connection of the event loop: rows, transactions, errors and lost connections."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
import uvloop
from django.db import DatabaseError, DataError, OperationalError, connection

from project.postgres.aio import connect
from project.postgres.base import is_dead
from project.postgres.sessions import Sessions
from state_admin.models import hot
from state_admin.models.hot_async import Session
from tests import loops
from tests.loops import in_thread
from tests.sessions import run_on_loop

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def table() -> Iterator[None]:
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE notes_of_test (name text)")
        yield
        cursor.execute("DROP TABLE notes_of_test")


COUNT = ("SELECT count(*) FROM notes_of_test", {})


def insert(name: str) -> hot.Call:
    return "INSERT INTO notes_of_test (name) VALUES (%(name)s::text) RETURNING name", {"name": name}


def text(value: str) -> hot.Call:
    return "SELECT x FROM unnest(%(values)b::text[]) AS x", {"values": [value]}


@pytest.mark.parametrize("texts", [[], ["x"], ["", None, "ü\u2028", "NULL", "x" * 70_000], [None]])
@pytest.mark.parametrize("numbers", [[], [7], [None, -(1 << 63), (1 << 63) - 1, 0], [None]])
def test_fetch_all__arrays__have_the_members_that_were_passed(
    texts: list[str | None], numbers: list[int | None]
) -> None:
    select = "SELECT %(texts)b::text[], %(numbers)b::bigint[], %(numbers)b::bigint[] = %(literal)s::bigint[]"
    literal = "{" + ",".join("NULL" if each is None else str(each) for each in numbers) + "}"
    row = hot.fetch_one(select, {"texts": texts, "numbers": numbers, "literal": literal})
    assert row == (texts, numbers, True)


def test_fetch_each__rows__are_those_of_a_synchronous_connection() -> None:
    moment = datetime(2026, 1, 2, tzinfo=UTC)
    calls: list[hot.Call] = [
        (
            """SELECT %(number)s::bigint, %(text)s::text, (%(at)b::timestamptz[])[1], a, '{}'::text[], NULL,
            true, timestamptz '2026-01-02 03:04:05.6+07', 100 %% 7
            FROM unnest(%(names)b::text[]) AS a""",
            {"number": 1 << 40, "text": "ü\u2028", "at": [moment], "names": ["x", "", 'q"\\,']},
        ),
        ("SELECT 1 WHERE false", {}),
        ("UPDATE notes_of_test SET name = name WHERE false RETURNING name", {}),
    ]

    async def fetch(session: Session) -> Any:
        # Twice: the second time, the statements are prepared.
        return [await session.fetch_each(calls) for _ in range(2)]

    found = run_on_loop(fetch)
    assert found == [hot.fetch_each(calls)] * 2
    assert [len(rows) for rows in found[0]] == [3, 0, 0]
    assert found[0][0][0][7].isoformat() == "2026-01-01T20:04:05.600000+00:00"


def test_fetch_each__much_in_both_directions__arrives_whole() -> None:
    values = [str(n) * 3_000_000 for n in range(5)]

    async def fetch(session: Session) -> Any:
        return await session.fetch_each([text(value) for value in values])

    assert run_on_loop(fetch) == [[(value,)] for value in values]


def test_transaction__committed_or_not__is_in_the_table_or_not() -> None:
    async def work(session: Session) -> list[Any]:
        async with session.transaction():
            await session.fetch_each([insert("test rolled back")])
            within = await session.fetch_each([COUNT])
        after = await session.fetch_each([COUNT])
        async with session.transaction():
            await session.fetch_each([insert("test one")])
            await session.fetch_each([insert("test two")], commit=True)
        async with session.transaction():
            await session.fetch_each([insert("test three")], commit=True)
        await session.fetch_each([insert("test four")])  # a transaction of its own
        return [within, after]

    assert run_on_loop(work) == [[[(1,)]], [[(0,)]]]
    assert hot.fetch_all(*COUNT) == [(4,)]


def test_fetch_each__statement_fails__nothing_is_stored_and_the_session_is_closed() -> None:
    async def work(session: Session) -> tuple[Any, bool]:
        failing = ("SELECT 1 / %(zero)s::int", {"zero": 0})
        with pytest.raises(DataError, match="division by zero") as raised:
            async with session.transaction():
                await session.fetch_each([insert("test one"), failing, COUNT], commit=True)
        return raised.value.__cause__, session.closed

    cause, closed = run_on_loop(work)
    assert cause.sqlstate == "22012"
    assert closed
    assert hot.fetch_all(*COUNT) == [(0,)]


def test_fetch_each__statement_takes_too_long__raises_operational_error() -> None:
    async def work(session: Session) -> None:
        await session.fetch_each([("SELECT set_config('statement_timeout', '20', false)", {})])
        with pytest.raises(OperationalError, match="statement timeout"):
            await session.fetch_each([("SELECT pg_sleep(60)", {})])

    run_on_loop(work)


def test_fetch_each__task_cancelled__rolls_back_and_closes_the_session() -> None:
    async def work(session: Session) -> bool:
        async def wait() -> None:
            async with session.transaction():
                await session.fetch_each([insert("test one"), ("SELECT pg_sleep(60)", {})])

        task = asyncio.ensure_future(wait())
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return session.closed

    assert run_on_loop(work)
    terminate("test")  # it does not look at its socket while it sleeps
    assert hot.fetch_all(*COUNT) == [(0,)]


def terminate(name: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s",
            [name],
        )
        return len(cursor.fetchall())


def test_fetch_each__connection_lost__raises_an_error_without_a_state_of_its_own() -> None:
    async def work(session: Session) -> BaseException | None:
        running = asyncio.ensure_future(session.fetch_each([("SELECT pg_sleep(60)", {})]))
        await asyncio.sleep(0.05)
        assert await asyncio.to_thread(terminate, "test")
        with pytest.raises(DatabaseError) as raised:
            await running
        assert session.closed
        return raised.value.__cause__

    cause = run_on_loop(work)
    assert getattr(cause, "sqlstate", None) in (None, "57P01")


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_fetch_each__server_process_killed__raises_on_every_event_loop(
    new_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    """Data that the server has not read resets the socket, which uvloop does not report."""

    async def work() -> None:
        session = Session(await connect("test killed"))
        waiting = [("SELECT pg_sleep(60)", {}), text("x" * 3_000_000)]
        running = asyncio.ensure_future(session.fetch_each(waiting))
        await asyncio.sleep(0.05)
        assert await asyncio.to_thread(terminate, "test killed")
        with pytest.raises(OperationalError):
            await asyncio.wait_for(running, 60)
        assert is_dead(session.connection)

    def run() -> None:
        with asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(work())

    in_thread(run)


def test_transaction__connection_lost_before_the_rollback__closes_the_session() -> None:
    """A session that seems open would later take the socket's number away from another one."""

    async def work(session: Session) -> None:
        async def lose() -> None:
            async with session.transaction():
                await session.fetch_each([COUNT])
                assert in_thread(lambda: terminate("test"))

        with pytest.raises(OperationalError):
            await lose()
        assert session.closed

    run_on_loop(work)


def test_sessions__idle_one_ended_by_the_server__is_replaced() -> None:
    async def work() -> list[Any]:
        sessions = Sessions("test sessions")
        found = []
        taken: list[Session] = []
        for _ in range(3):
            async with sessions.take() as session:
                taken.append(session)
                found.append(await session.fetch_each([("SELECT pg_backend_pid()", {})]))
            if len(taken) == 2:
                assert await asyncio.to_thread(terminate, "test sessions") == 1
                while not is_dead(session.connection):
                    await asyncio.sleep(0.01)
        assert taken[0] is taken[1]
        taken[2].close()
        return [each[0][0][0] for each in found]

    first, second, third = loops.run(work())
    assert first == second != third


def test_sessions__one_that_failed__is_not_used_again() -> None:
    async def work() -> None:
        sessions = Sessions("test sessions")
        with pytest.raises(DataError):
            async with sessions.take() as broken:
                await broken.fetch_each([("SELECT 1 / %(zero)s::int", {"zero": 0})])
        async with sessions.take() as session:
            assert session is not broken
            assert await session.fetch_each([("SELECT 1", {})]) == [[(1,)]]
        session.close()

    loops.run(work())


def test_sessions__statement__is_planned_once_for_all_parameters() -> None:
    async def work() -> list[Any]:
        sessions = Sessions("test sessions")
        plans = "SELECT generic_plans, custom_plans FROM pg_prepared_statements WHERE statement = %(of)s"
        async with sessions.take() as session:
            for number in range(3):
                await session.fetch_each([("SELECT %(number)s::int", {"number": number})])
            found = await session.fetch_each([(plans, {"of": "SELECT $1::int"})])
        session.close()
        return found

    assert loops.run(work()) == [[(3, 0)]]


def test_notification__behind_the_results__is_heard_at_once() -> None:
    """A session that is then idle would not look for it again."""

    async def main() -> list[bytes]:
        heard: list[bytes] = []
        session = Session(await connect("test"), heard.append)
        try:
            await session.fetch_each([("LISTEN notes_of_test", {})])
            await session.fetch_each([("SELECT pg_notify('notes_of_test', 'news')", {})])
            return heard
        finally:
            session.close()

    assert loops.run(main()) == [b"news"]
