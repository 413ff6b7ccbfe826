"""One client's stream of changes: those since its cursor, then new ones."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

import django.db

from state_admin.domain.access import Actor
from state_admin.models import feed_sql
from state_admin.models.feed_sql import FeedFilter, FeedRow, Position

from . import events
from .hub import FeedUnavailable, Hub, Subscription

if TYPE_CHECKING:
    from project.channel import Channel

_PAGE = 500


class ListeningStream:
    """A stream to one client that listens to the hub, and can be closed at any time."""

    hub: Hub
    actor: Actor
    _listener: Subscription | None = None
    _closed = ""

    def close(self, why: str) -> None:
        """End it soon, with a closing event that contains the reason. The first reason is kept."""
        self._closed = self._closed or why
        if self._listener is not None:
            self._listener.close(why)

    async def _next_rows(
        self, channel: Channel, listener: Subscription, position: Position
    ) -> list[FeedRow]:
        """The next rows after `position`, with heartbeats until there are some; [] when the stream is
        closed."""
        while True:
            # A cursor of another process may be ahead of this process's reader.
            taken = await listener.take(events.HEARTBEAT)
            if rows := [row for row in taken if row.position > position]:
                return rows
            if listener.closed:
                self.close(listener.closed)
                return []
            reached, seen_at = self.hub.reached(self.actor.workspace_id)
            position = max(position, reached)
            await channel.send(events.heartbeat(position, seen_at))


class ChangeStream(ListeningStream):
    """`after`: the client's cursor, or None for "from now". `describe` returns the problem document
    for the reason why the stream is closed."""

    def __init__(
        self,
        hub: Hub,
        actor: Actor,
        filters: FeedFilter,
        after: tuple[Position, datetime] | None,
        describe: Callable[[str], Mapping[str, Any]],
    ) -> None:
        self.hub, self.actor, self.filters, self.after = hub, actor, filters, after
        self.describe = describe

    async def run(self, channel: Channel) -> None:
        """Stream until it is closed. Raises FeedUnavailable and django.db.Error only if nothing has
        been sent yet."""
        channel.on_end(self.close)
        try:
            await self._stream(channel)
        except (FeedUnavailable, django.db.Error):
            if not channel.started:
                raise
            self.close("unavailable")
        if self._closed != "gone":
            await channel.send(events.closed(self.describe(self._closed)))
            await channel.finish()

    async def _stream(self, channel: Channel) -> None:
        position = None
        if self.after is not None:
            position = await self._catch_up(channel, self.after[0])
        async with self.hub.subscribe(self.actor, self.filters) as listener:
            self._listener = listener
            if self._closed:  # closed while it was catching up
                return
            if position is None:
                position = listener.start
            else:
                position = await self._catch_up(channel, position, until=listener.start)
            if not channel.started:
                seen_at = self.hub.reached(self.actor.workspace_id)[1]
                await channel.send(events.hello(*(self.after or (position, seen_at))))
            while rows := await self._next_rows(channel, listener, position):
                await self._send(channel, rows)
                position = rows[-1].position

    async def _catch_up(
        self, channel: Channel, position: Position, *, until: Position | None = None
    ) -> Position:
        """Send the changes after `position`, page by page, up to `until` or the current end of the
        feed. Returns the position reached."""
        while not self._closed and (until is None or position < until):
            page = functools.partial(self._page, position, until)
            rows, end = await channel.in_thread(page)
            if rows:
                await self._send(channel, rows)
                position = rows[-1].position
            if len(rows) < _PAGE:
                return max(position, end)
        return position

    def _page(self, after: Position, until: Position | None) -> tuple[list[FeedRow], Position]:
        end = until or feed_sql.read_end(self.actor.workspace_id).position
        rows = feed_sql.read_page(
            self.actor, after=after, until=end, filters=self.filters, limit=_PAGE
        )
        return list(rows), end

    async def _send(self, channel: Channel, rows: list[FeedRow]) -> None:
        if not channel.started and self.after is not None:
            await channel.send(events.hello(*self.after))
        for start in range(0, len(rows), _PAGE):
            await channel.send(b"".join(map(events.change, rows[start : start + _PAGE])))
