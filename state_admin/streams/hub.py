"""One reader per process follows the change feed; everybody who listens gets the rows from it.

It polls on one connection of its own, and only while somebody listens. Writers know nothing of it:
a notification inside a write would serialise the commits.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import psycopg
import structlog

from project.failures import describe_error
from state_admin.domain.access import Actor
from state_admin.models import feed_sql
from state_admin.models.feed_sql import FeedFilter, FeedRow, Position

log = structlog.get_logger(__name__)

# Where a request's environ holds the process's hub (project/asgi.py).
ENVIRON = "commonhold.hub"

Connection = psycopg.AsyncConnection[Any]
Connect = Callable[[], Awaitable[Connection]]

# Seconds between two looks. Half of it is the mean delay that the hub adds to a change.
_INTERVAL = 0.025
# Rows of one workspace per look; more are read at once, without a pause.
_AT_ONCE = 500
# Rows that may wait for one listener; beyond, it is too slow.
_ROOM = 4096
# Seconds for which the connection is kept although nobody listens: polls come and go.
_LINGER = 3.0
# A statement that takes longer is no answer: the connection is given up.
_PATIENCE = 10.0
# Seconds until a new listener knows where the feed ends.
_READY = 5.0
_BACKOFF = (0.1, 0.2, 0.5, 1.0)


class Unready(Exception):
    """The database does not answer: nobody can listen now."""


class Subscription:
    """One listener: the rows it has not taken yet, in commit order, behind `start`."""

    def __init__(self, takes: Callable[[FeedRow], bool], room: int) -> None:
        self.start = Position()
        self.closed = ""  # why, once it is
        self._takes = takes
        self._room = room
        self._rows: list[FeedRow] = []
        self._awake = asyncio.Event()

    def offer(self, rows: list[FeedRow]) -> None:
        """From the hub. Never waits: who has no room left is dropped."""
        accepted = [row for row in rows if self._takes(row)]
        if not accepted or self.closed:
            return
        if len(self._rows) + len(accepted) > self._room:
            self.close("slow")
            return
        self._rows += accepted
        self._awake.set()

    def close(self, why: str) -> None:
        """No more rows, not even those that wait; the first reason stays."""
        self.closed = self.closed or why
        self._rows.clear()
        self._awake.set()

    async def take(self, patience: float) -> list[FeedRow]:
        """All that has come, waiting up to `patience` seconds for the first. Empty: nothing came,
        or it is closed. One task at a time."""
        if not self._rows and not self.closed:
            self._awake.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(patience):
                    await self._awake.wait()
        rows, self._rows = self._rows, []
        return rows


@dataclass
class _Room:
    """The listeners of one workspace, and how far its feed has been read for them."""

    position: Position = field(default_factory=Position)
    seen_at: datetime = datetime.min  # noqa: DTZ901  until it is ready
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    listeners: set[Subscription] = field(default_factory=set)


class Hub:
    """Belongs to one event loop. `connect` opens an autocommit connection."""

    def __init__(
        self, connect: Connect, *, interval: float = _INTERVAL, linger: float = _LINGER
    ) -> None:
        self._connect = connect
        self._interval = interval
        self._linger = linger
        self._rooms: dict[int, _Room] = {}
        self._reader: asyncio.Task[None] | None = None
        self._wanted = asyncio.Event()

    @contextlib.asynccontextmanager
    async def subscribe(
        self,
        actor: Actor,
        filters: FeedFilter,
        *,
        room: int = _ROOM,
        only: Callable[[FeedRow], bool] | None = None,
    ) -> AsyncIterator[Subscription]:
        """Listen: every change behind `start` that the actor may see and wants, and that `only` lets
        through. Unready when the database does not say in time where the feed ends."""
        place = self._rooms.setdefault(actor.workspace_id, _Room())
        sees = feed_sql.matcher(actor, filters)
        takes = sees if only is None else lambda row: only(row) and sees(row)
        listener = Subscription(takes, room)
        listener.start = place.position  # set again by the first look, if that is still to come
        place.listeners.add(listener)
        self._wake()
        try:
            try:
                async with asyncio.timeout(_READY):
                    await place.ready.wait()
            except TimeoutError:
                raise Unready from None
            yield listener
        finally:
            place.listeners.discard(listener)
            if not place.listeners and self._rooms.get(actor.workspace_id) is place:
                del self._rooms[actor.workspace_id]

    def reached(self, workspace_id: int) -> tuple[Position, datetime]:
        """How far a workspace with listeners has been read, and when."""
        place = self._rooms[workspace_id]
        return place.position, place.seen_at

    def _wake(self) -> None:
        self._wanted.set()
        if self._reader is None or self._reader.done():
            self._reader = asyncio.get_running_loop().create_task(self._read(), name="feed hub")

    async def _read(self) -> None:
        """Until nobody listens: connect, follow; after any failure connect again, later each time.

        The positions outlive the connection, so nothing is missed and nothing comes twice.
        """
        failures = 0
        while self._rooms:
            try:
                async with asyncio.timeout(_PATIENCE):
                    connection = await self._connect()
                try:
                    await self._look(connection)
                    if failures:
                        log.info("feed.back", failures=failures)
                    failures = 0
                    await self._follow(connection)
                finally:
                    await connection.close()
            except Exception as error:
                if not failures:
                    log.warning("feed.lost", error=describe_error(error))
                await asyncio.sleep(_BACKOFF[min(failures, len(_BACKOFF) - 1)])
                failures += 1

    async def _follow(self, connection: Connection) -> None:
        """Until nobody has listened for a while."""
        while True:
            if not self._rooms:
                self._wanted.clear()
                try:
                    async with asyncio.timeout(self._linger):
                        await self._wanted.wait()
                except TimeoutError:
                    return
            if not await self._look(connection):
                await asyncio.sleep(self._interval)

    async def _look(self, connection: Connection) -> bool:
        """Read what is new once. True: there may be more already."""
        async with asyncio.timeout(_PATIENCE):
            fresh = [key for key, place in self._rooms.items() if not place.ready.is_set()]
            if fresh:
                await self._find_ends(connection, fresh)
            return await self._read_news(connection)

    async def _find_ends(self, connection: Connection, workspaces: list[int]) -> None:
        cursor = await connection.execute(feed_sql.END.encode(), {"workspaces": workspaces})
        for row in await cursor.fetchall():
            place = self._rooms.get(row[0])
            if place is not None and not place.ready.is_set():
                end = feed_sql.end_of(row)
                place.position, place.seen_at = end.position, end.at
                for listener in place.listeners:
                    listener.start = end.position
                place.ready.set()

    async def _read_news(self, connection: Connection) -> bool:
        known = {key: place for key, place in self._rooms.items() if place.ready.is_set()}
        if not known:
            return False
        cursor = await connection.execute(
            feed_sql.NEWS.encode(),
            {
                "workspaces": list(known),
                "xids": [str(place.position.xid) for place in known.values()],
                "ids": [place.position.id for place in known.values()],
                "limit": _AT_ONCE,
            },
        )
        news: dict[int, list[FeedRow]] = {}
        for workspace, at, xid, *rest in await cursor.fetchall():
            known[workspace].seen_at = at
            if xid is not None:
                news.setdefault(workspace, []).append(FeedRow(xid, *rest))
        for workspace, rows in news.items():
            place = known[workspace]
            place.position = rows[-1].position
            if len(rows) == _AT_ONCE:
                place.seen_at = rows[-1].at  # behind them may be more, as old as this
            for listener in list(place.listeners):
                listener.offer(rows)
        return any(len(rows) == _AT_ONCE for rows in news.values())
