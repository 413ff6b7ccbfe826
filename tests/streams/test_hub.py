"""The hub against a real PostgreSQL: fan-out, order, slow subscribers, lost connections."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from project.postgres.aio import connect
from project.postgres.replication import AsyncConnection
from state_admin.domain.access import Actor, Role
from state_admin.models import feed_sql
from state_admin.models.feed_sql import FeedFilter, FeedRow, Position
from state_admin.streams.hub import FeedUnavailable, Hub, Subscription
from tests.builders import Person
from tests.loops import run
from tests.patience import PATIENCE

pytestmark = pytest.mark.django_db(transaction=True)

EVERYTHING = FeedFilter()


async def open_hub(name: str = "test hub") -> AsyncConnection:
    return await connect(name)


class Writer:
    """A connection that writes changes as services do, and decides when to commit."""

    def __init__(self, connection: AsyncConnection, workspace: int) -> None:
        self.connection, self.workspace = connection, workspace

    async def change(self, *keys: str, workspace: int = 0, **columns: str) -> None:
        named = {"namespace": "notes", "thread": "", "kind": "entry.put"} | columns
        for key in keys:
            await self.connection.execute(
                "INSERT INTO changes (workspace_id, kind, namespace, key, thread)"
                " VALUES (%s, %s, %s, %s, %s)",
                (workspace or self.workspace, named["kind"], named["namespace"], key,
                 named["thread"]),
            )  # fmt: skip

    async def begin(self) -> None:
        await self.connection.execute("BEGIN")

    async def commit(self) -> None:
        await self.connection.execute("COMMIT")


async def writer(person: Person) -> Writer:
    return Writer(await connect("test writer"), person.workspace.pk)


async def keys_of(listener: Subscription, count: int) -> list[str]:
    """The next `count` keys; fewer if no more arrive in time."""
    found: list[str] = []
    while len(found) < count:
        rows = await listener.take(PATIENCE)
        if not rows:
            break
        found += [row.key for row in rows]
    return found


async def keys_of_now(hub: Hub, person: Person, listener: Subscription) -> list[str]:
    """The keys after another poll of the hub."""
    for _ in range(2):
        _, before = hub.reached(person.workspace.pk)
        while hub.reached(person.workspace.pk)[1] == before:
            await asyncio.sleep(0.005)
    return [row.key for row in await listener.take(0)]


async def close(*writers: Writer) -> None:
    for one in writers:
        await one.connection.close()


def narrowed(actor: Actor, **grant: Any) -> Actor:
    return Actor("token", "1", "narrow", actor.workspace_id, Role.VIEWER, **grant)


def test_hub__many_subscribers__each_gets_matching_permitted_changes(
    alice: Person, mallory: Person
) -> None:
    async def scene() -> None:
        hub, write = Hub(open_hub), await writer(alice)
        by_namespace = narrowed(alice.actor, namespaces=("team.*",))
        by_thread = narrowed(alice.actor, thread_prefixes=("a-",))
        async with (
            hub.subscribe(alice.actor, EVERYTHING) as everything,
            hub.subscribe(alice.actor, FeedFilter(prefix="b")) as prefix,
            hub.subscribe(by_namespace, EVERYTHING) as team,
            hub.subscribe(by_thread, EVERYTHING) as threads,
            hub.subscribe(mallory.actor, EVERYTHING) as foreign,
        ):
            await write.change("a", "b1")
            await write.change("b2", namespace="team.x")
            await write.change("m", workspace=mallory.workspace.pk)
            await write.change("", namespace="", thread="a-1", kind="thread.create")
            await write.change("", namespace="", thread="b-1", kind="thread.create")
            await write.change("end", namespace="")

            assert await keys_of(everything, 6) == ["a", "b1", "b2", "", "", "end"]
            assert await keys_of(prefix, 2) == ["b1", "b2"]
            assert await keys_of(team, 4) == ["b2", "", "", "end"]
            assert await keys_of(threads, 5) == ["a", "b1", "b2", "", "end"]
            assert await keys_of(foreign, 1) == ["m"]
        await close(write)

    run(scene())


def test_hub__subscribers_with_the_same_filters__examine_a_row_once(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    examined: list[str] = []
    matcher = feed_sql.matcher

    def counting(actor: Actor, filters: FeedFilter) -> Callable[[FeedRow], bool]:
        takes = matcher(actor, filters)
        if takes not in counted:
            counted[takes] = lambda row: examined.append(row.key) or takes(row)
        return counted[takes]

    counted: dict[Callable[[FeedRow], bool], Callable[[FeedRow], bool]] = {}
    monkeypatch.setattr(feed_sql, "matcher", counting)

    async def scene() -> None:
        hub, write = Hub(open_hub), await writer(alice)
        async with (
            hub.subscribe(narrowed(alice.actor), FeedFilter(namespace="a")) as first,
            hub.subscribe(alice.actor, FeedFilter(namespace="a")) as second,
            hub.subscribe(alice.actor, FeedFilter(namespace="b")) as other,
        ):
            await write.change("1", namespace="a")
            await write.change("2", namespace="b")
            assert await keys_of(first, 1) == await keys_of(second, 1) == ["1"]
            assert await keys_of(other, 1) == ["2"]
        await close(write)

    run(scene())
    assert sorted(examined) == ["1", "1", "2", "2"]


def test_hub__early_id_with_late_commit__is_delivered_in_order_and_not_skipped(
    alice: Person,
) -> None:
    async def scene() -> None:
        hub = Hub(open_hub)
        slow, fast = await writer(alice), await writer(alice)
        async with hub.subscribe(alice.actor, EVERYTHING) as listener:
            await fast.change("before")
            assert await keys_of(listener, 1) == ["before"]
            await slow.begin()
            await slow.change("took its id first")
            await fast.change("committed first")
            # Polls that see only the second must not deliver it.
            assert await keys_of_now(hub, alice, listener) == []
            await slow.commit()

            assert await keys_of(listener, 2) == ["took its id first", "committed first"]
        await close(slow, fast)

    run(scene())


def test_hub__one_transaction__is_delivered_together(alice: Person) -> None:
    async def scene() -> None:
        hub = Hub(open_hub)
        one, other = await writer(alice), await writer(alice)
        async with hub.subscribe(alice.actor, EVERYTHING) as listener:
            await one.begin()
            await one.connection.execute("SELECT pg_current_xact_id()")
            await other.change("before")
            await one.connection.execute(
                "INSERT INTO changes (workspace_id, kind, key) SELECT %s, 'entry.put', unnest(%s::text[])",
                (alice.workspace.pk, ["a1", "a2"]),
            )
            await other.change("after")
            assert await keys_of_now(hub, alice, listener) == []
            await one.commit()

            assert await keys_of(listener, 4) == ["before", "a1", "a2", "after"]
        await close(one, other)

    run(scene())


def test_hub__slow_subscriber__is_closed_alone_with_the_reason(alice: Person) -> None:
    async def scene() -> None:
        hub, write = Hub(open_hub), await writer(alice)
        async with (
            hub.subscribe(alice.actor, EVERYTHING, room=3) as slow,
            hub.subscribe(alice.actor, EVERYTHING) as fast,
        ):
            await write.change(*"abcdef")

            assert await keys_of(fast, 6) == list("abcdef")
            assert slow.closed == "slow"
            assert await slow.take(0) == []
        await close(write)

    run(scene())


def test_hub__later_subscriber__gets_only_changes_after_its_start(alice: Person) -> None:
    async def scene() -> None:
        hub, write = Hub(open_hub), await writer(alice)
        await write.change("long ago")
        async with hub.subscribe(alice.actor, EVERYTHING) as first:
            await write.change("a")
            assert await keys_of(first, 1) == ["a"]
            async with hub.subscribe(alice.actor, EVERYTHING) as second:
                assert second.start > first.start
                await write.change("b")

                assert await keys_of(second, 1) == await keys_of(first, 1) == ["b"]
        await close(write)

    run(scene())


def test_hub__connection_killed__has_no_gap_and_no_repeat(alice: Person) -> None:
    async def scene() -> None:
        opened: list[AsyncConnection] = []

        async def open_noted() -> AsyncConnection:
            opened.append(await open_hub())
            return opened[-1]

        hub, write = Hub(open_noted), await writer(alice)
        async with hub.subscribe(alice.actor, EVERYTHING) as listener:
            for turn in range(3):
                await write.change(f"{turn}a")
                assert await keys_of(listener, 1) == [f"{turn}a"]
                killed = await write.connection.execute(
                    "SELECT pg_terminate_backend(%s)", [opened[-1].info.backend_pid]
                )
                assert await killed.fetchall() == [(True,)]
                await write.change(f"{turn}b", f"{turn}c")

                assert await keys_of(listener, 2) == [f"{turn}b", f"{turn}c"]
        await close(write)

    run(scene())


def test_hub__many_pages_after_an_outage__are_all_delivered(alice: Person) -> None:
    async def scene() -> None:
        write = await writer(alice)
        down = asyncio.Event()

        async def flaky() -> AsyncConnection:
            if down.is_set():
                raise psycopg.OperationalError("down")
            return await open_hub()

        hub = Hub(flaky)
        async with hub.subscribe(alice.actor, EVERYTHING) as listener:
            down.set()
            await write.connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE application_name = 'test hub' AND datname = current_database()"
            )
            keys = [f"{n:04}" for n in range(1200)]
            await write.begin()
            await write.change(*keys)
            await write.commit()
            down.clear()

            assert await keys_of(listener, 1200) == keys
        await close(write)

    run(scene())


@pytest.mark.parametrize("lost", [True, False])
def test_hub__new_era_after_reconnection__closes_those_who_got_lost_changes(
    alice: Person, lost: bool
) -> None:
    async def scene() -> None:
        opened: list[AsyncConnection] = []

        async def open_noted() -> AsyncConnection:
            opened.append(await open_hub())
            return opened[-1]

        hub, write = Hub(open_noted), await writer(alice)
        async with hub.subscribe(alice.actor, EVERYTHING) as listener:
            await write.change("a")
            assert await keys_of(listener, 1) == ["a"]
            if lost:
                await write.connection.execute("DELETE FROM changes")
            await write.connection.execute("SELECT begin_feed_era(false)")
            await opened[0].close()
            if lost:
                assert await listener.take(10) == []
                assert listener.closed == "lost"
            else:
                await write.change("b")
                assert await keys_of(listener, 1) == ["b"]
        await close(write)

    run(scene())


def test_hub__no_subscribers__closes_its_connection(alice: Person) -> None:
    async def scene() -> None:
        name = "test hub to leave"  # connections of other tests may be about to end
        hub, write = Hub(lambda: open_hub(name), linger=0.0), await writer(alice)

        async def connections() -> int:
            found = await write.connection.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s", [name]
            )
            row = await found.fetchone()
            assert row is not None
            return int(row[0])

        for _ in range(2):  # it reconnects at the next subscription
            async with (
                hub.subscribe(alice.actor, EVERYTHING),
                hub.subscribe(alice.actor, EVERYTHING),
            ):
                assert await connections() == 1
            while await connections():
                await asyncio.sleep(0.01)
        await close(write)

    run(scene())


def test_hub__database_unavailable__subscription_is_refused(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never() -> AsyncConnection:
        raise psycopg.OperationalError("down")

    async def scene() -> None:
        with pytest.raises(FeedUnavailable):
            async with Hub(never).subscribe(alice.actor, EVERYTHING):
                pass

    monkeypatch.setattr("state_admin.streams.hub._READY", 0.05)
    run(scene())


def test_matcher__any_row_and_filter__matches_as_the_page(alice: Person) -> None:
    dice = random.Random(7)
    words = ("", "a", "ab", "b", "team.x", "team.y", "a-1")

    async def fill() -> None:
        write = await writer(alice)
        for _ in range(150):
            await write.change(
                dice.choice(words),
                namespace=dice.choice(words),
                thread=dice.choice(words),
                kind=dice.choice(("entry.put", "run.start")),
            )
        await close(write)

    run(fill())
    end = feed_sql.read_end(alice.workspace.pk).position

    def page(actor: Actor, filters: FeedFilter) -> list[FeedRow]:
        return list(
            feed_sql.read_page(actor, after=Position(), until=end, filters=filters, limit=1000)
        )

    rows = page(alice.actor, EVERYTHING)
    assert len(rows) >= 150
    for _ in range(150):
        actor = narrowed(
            alice.actor,
            namespaces=dice.choice(((), ("team.*",), ("a", "*x"), ("*",))),
            thread_prefixes=dice.choice(((), ("a",), ("a-", "b"))),
        )
        filters = FeedFilter(
            *(dice.choice(("", dice.choice(words))) for _ in range(4)),
            run=dice.choice(("", "", "", "r1")),
            kinds=dice.choice(((), (), ("entry.put",), ("entry.put", "run.start"))),
        )
        takes = feed_sql.matcher(actor, filters)
        assert page(actor, filters) == [row for row in rows if takes(row)], (actor, filters)
