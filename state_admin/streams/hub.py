"""One reader per process follows the change feed and passes its rows to all subscribers.

It polls on its own connection, and only while there are subscribers. Writers do not notify it: a
NOTIFY in a write would serialize the commits.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

import structlog

from project.failures import describe_error
from project.postgres.replication import AsyncConnection
from state_admin.domain.access import Actor
from state_admin.models import feed_sql
from state_admin.models.feed_sql import FeedFilter, FeedRow, Position
from state_admin.models.hot_async import Session

from . import client_counts

log = structlog.get_logger(__name__)

# The key of the process's hub in the environ of a request (project/asgi.py).
ENVIRON = "commonhold.hub"

# The last change of a workspace that continues in another cell (services/workspace_moves.py).
MOVED = "workspace.move"

Connect = Callable[[], Awaitable[AsyncConnection]]

# Seconds between two polls. On average the hub delays a change by half of this.
_INTERVAL = 0.015
# Rows of one workspace per poll; if there are more, the next poll follows without a pause.
_AT_ONCE = 500
# Rows that may be buffered for one subscriber; beyond, it is closed as too slow.
_ROOM = 4096
# Seconds for which the connection is kept without subscribers, since long polls are short.
_LINGER = 3.0
# Timeout of a statement, after which the connection is closed.
_PATIENCE = 10.0
# Seconds until the end of the feed is known for a new subscriber.
_READY = 5.0
_BACKOFF = (0.1, 0.2, 0.5, 1.0)
# The `seen_at` of a feed that is not ready.
_NOT_READY = datetime.min.replace(tzinfo=UTC)


class FeedUnavailable(Exception):
    """The database does not respond: no subscription is possible now."""


class Subscription:
    """One subscriber: the rows that it has not taken yet, in commit order, from after `start`. `reader`:
    the kind of its actor, such as token."""

    def __init__(self, takes: Callable[[FeedRow], bool], room: int, reader: str = "") -> None:
        self.start = Position()
        self.reader = reader
        self.closed = ""  # the reason, once it is closed
        self.takes = takes
        self._room = room
        self._rows: list[FeedRow] = []
        self._awake = asyncio.Event()

    def offer(self, rows: list[FeedRow]) -> None:
        """Called by the hub with new rows for which `takes` is true. Never waits: a subscriber whose buffer is
        full is closed."""
        if not rows or self.closed:
            return
        if len(self._rows) + len(rows) > self._room:
            self.close("slow")
            return
        self._rows += rows
        self._awake.set()

    def close(self, why: str) -> None:
        """Close the subscription and drop buffered rows; the first reason is kept."""
        self.closed = self.closed or why
        self._rows.clear()
        self._awake.set()

    async def take(self, patience: float) -> list[FeedRow]:
        """All buffered rows, after waiting up to `patience` seconds for the first. Empty if there
        are none, or if it is closed. Only one task may call it at a time."""
        if not self._rows and not self.closed:
            self._awake.clear()
            # Cheaper than asyncio.timeout, which is noticeable with hundreds of subscribers.
            timer = asyncio.get_running_loop().call_later(patience, self._awake.set)
            try:
                await self._awake.wait()
            finally:
                timer.cancel()
        rows, self._rows = self._rows, []
        return rows


@dataclass
class _WorkspaceFeed:
    """The subscribers of one workspace, and the position up to which its feed was read for them."""

    position: Position = field(default_factory=Position)
    seen_at: datetime = _NOT_READY
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    listeners: set[Subscription] = field(default_factory=set)


class Hub:
    """Belongs to one event loop. `connect` opens an autocommit connection."""

    def __init__(self, connect: Connect, *, linger: float = _LINGER) -> None:
        self._connect = connect
        self._linger = linger
        self._feeds: dict[int, _WorkspaceFeed] = {}
        self._reader: asyncio.Task[None] | None = None
        self._awake = asyncio.Event()
        self._questions: list[bytes] = []

    @contextlib.asynccontextmanager
    async def subscribe(
        self,
        actor: Actor,
        filters: FeedFilter,
        *,
        room: int = _ROOM,
        only: Callable[[FeedRow], bool] | None = None,
    ) -> AsyncIterator[Subscription]:
        """Subscribe to every change after `start` that the actor may see, that matches the filters,
        and for which `only` is true. Raises FeedUnavailable if the database does not return the end
        of the feed in time."""
        feed = self._feeds.setdefault(actor.workspace_id, _WorkspaceFeed())
        sees = feed_sql.matcher(actor, filters)
        takes = sees if only is None else lambda row: only(row) and sees(row)
        listener = Subscription(takes, room, actor.kind)
        listener.start = feed.position  # set again by the first poll, if that has not happened yet
        feed.listeners.add(listener)
        self._wake()
        try:
            try:
                async with asyncio.timeout(_READY):
                    await feed.ready.wait()
            except TimeoutError:
                raise FeedUnavailable from None
            yield listener
        finally:
            feed.listeners.discard(listener)
            if not feed.listeners and self._feeds.get(actor.workspace_id) is feed:
                del self._feeds[actor.workspace_id]

    def reached(self, workspace_id: int) -> tuple[Position, datetime]:
        """The position up to which a workspace with subscribers was read, and when."""
        feed = self._feeds[workspace_id]
        return feed.position, feed.seen_at

    def _wake(self) -> None:
        self._awake.set()
        if self._reader is None or self._reader.done():
            self._reader = asyncio.get_running_loop().create_task(
                self._read(), name="feed hub", context=contextvars.Context()
            )

    async def _read(self) -> None:
        """While there are subscribers: connect and follow the feed; after a failure reconnect, with
        increasing pauses.

        The positions are kept when the connection is lost, so no change is missed or repeated. If
        the database has lost changes that were already passed on, subscribers are closed ("lost").
        """
        failures = 0
        while self._feeds:
            try:
                async with asyncio.timeout(_PATIENCE):
                    session = Session(await self._connect(), self._hear)
                try:
                    await self._resume(session)
                    if failures:
                        log.info("feed.reconnected", failures=failures)
                    failures = 0
                    await self._follow(session)
                finally:
                    session.close()
            except Exception as error:
                if not failures:
                    log.warning("feed.disconnected", error=describe_error(error))
                await asyncio.sleep(_BACKOFF[min(failures, len(_BACKOFF) - 1)])
                failures += 1

    async def _follow(self, session: Session) -> None:
        """Poll until there have been no subscribers for a while."""
        while True:
            if not self._feeds and not self._questions:
                self._awake.clear()
                try:
                    async with asyncio.timeout(self._linger):
                        await self._awake.wait()
                except TimeoutError:
                    return
            if not await self._poll(session):
                await asyncio.sleep(_INTERVAL)

    async def _resume(self, session: Session) -> None:
        async with asyncio.timeout(_PATIENCE):
            await session.fetch_each([client_counts.LISTEN])
            await self._find_ends(session, list(self._feeds))
            await self._read_news(session)

    async def _poll(self, session: Session) -> bool:
        """Read new changes once. True if there may be more already."""
        async with asyncio.timeout(_PATIENCE):
            fresh = [key for key, feed in self._feeds.items() if not feed.ready.is_set()]
            if fresh:
                await self._find_ends(session, fresh)
            if self._questions:
                await self._answer(session)
            return await self._read_news(session)

    def _hear(self, question: bytes) -> None:
        self._questions.append(question)
        self._awake.set()

    async def _answer(self, session: Session) -> None:
        questions = [client_counts.read_question(payload) for payload in self._questions]
        self._questions.clear()
        await session.fetch_each(
            [question.answer(self._count_matching_clients(question)) for question in questions]
        )

    def _count_matching_clients(self, question: client_counts.Question) -> int:
        """How many clients with a token would get the change now."""
        feed, change = self._feeds.get(question.workspace_id), question.change
        return sum(
            listener.reader == "token" and not listener.closed and listener.takes(change)
            for listener in (feed.listeners if feed else ())
        )

    async def _find_ends(self, session: Session, workspaces: list[int]) -> None:
        (ends,) = await session.fetch_each([(feed_sql.END, {"workspaces": workspaces})])
        for row in ends:
            feed = self._feeds.get(row[0])
            if feed is None:
                continue
            end = feed_sql.read_row(*row[1:])
            if end.lost(feed.position):
                for listener in feed.listeners:
                    listener.close("lost")
            elif feed.ready.is_set():
                continue
            feed.position, feed.seen_at = end.position, end.at
            for listener in feed.listeners:
                listener.start = end.position
            feed.ready.set()

    async def _read_news(self, session: Session) -> bool:
        ready = {key: feed for key, feed in self._feeds.items() if feed.ready.is_set()}
        if not ready:
            return False
        parameters = {
            "workspaces": list(ready),
            "xids": [str(feed.position.xid) for feed in ready.values()],
            "ids": [feed.position.id for feed in ready.values()],
            "limit": _AT_ONCE,
        }
        (found,) = await session.fetch_each([(feed_sql.NEWS, parameters)])
        news: dict[int, list[FeedRow]] = {}
        for workspace, at, xid, *rest in found:
            ready[workspace].seen_at = at
            if xid is not None:
                news.setdefault(workspace, []).append(FeedRow(xid, *rest))
        for workspace, rows in news.items():
            feed = ready[workspace]
            feed.position = rows[-1].position
            if len(rows) == _AT_ONCE:
                feed.seen_at = rows[-1].at  # later changes may be as old as this one
            # Most subscribers share their filters, so a row is examined once for all of them.
            taken: dict[Callable[[FeedRow], bool], list[FeedRow]] = {}
            for listener in list(feed.listeners):
                if listener.takes not in taken:
                    taken[listener.takes] = [row for row in rows if listener.takes(row)]
                listener.offer(taken[listener.takes])
                if rows[-1].kind == MOVED:
                    listener.close("moved")
        return any(len(rows) == _AT_ONCE for rows in news.values())
