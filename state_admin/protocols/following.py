"""Streams a thread to one client in any protocol: the change feed triggers it, and a
ThreadEncoder encodes the events.

Changes that arrive together are encoded together, so that a slow client gets one state and not a
queue of them. The buffer in the hub is bounded; a client that exceeds it is disconnected and
reconnects.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Protocol

import django.db
from django.http import HttpResponse

from project.channel import Channel
from state_admin.domain.access import Actor
from state_admin.models import feed_sql
from state_admin.models.feed_sql import FeedFilter, FeedRow, Position
from state_admin.rest.endpoint import Endpoint
from state_admin.rest.event_streams import begin_stream, continue_stream
from state_admin.rest.long_polling import hub_of
from state_admin.services.errors import BadRequest, Gone, NotFound, TooLarge
from state_admin.services.feed_cursors import open_cursor
from state_admin.services.listeners import check_live
from state_admin.streams import cursors, events
from state_admin.streams.hub import FeedUnavailable, Hub
from state_admin.streams.stream import ListeningStream

_PAGE = 500
_LAST = Position(2**63 - 1)


class ThreadEncoder(Protocol):
    """Encodes the events about a thread for one client, and remembers what it has sent. Called in a
    thread that may query the database, one call at a time. Raises NotFound if the thread is
    deleted."""

    over: bool  # whether the stream is complete

    def begin(
        self, missed: Sequence[FeedRow], coming: Callable[[], Sequence[FeedRow]] = tuple
    ) -> bytes:
        """The current thread. `missed`: the changes since the client disconnected. `coming` returns
        those that it will get next, as far as they are committed."""

    def encode_changes(self, rows: Sequence[FeedRow]) -> bytes:
        """The events for new changes of the thread."""

    def close(self, why: str) -> bytes:
        """The closing event, for a reason in listeners.CLOSED."""


class ThreadStream(ListeningStream):
    """`after`: the position at which the client stopped, or None."""

    def __init__(
        self, hub: Hub, actor: Actor, thread_id: str, encoder: ThreadEncoder, after: Position | None
    ) -> None:
        self.hub, self.actor, self.encoder, self.after = hub, actor, encoder, after
        self.filters = FeedFilter(thread=thread_id)

    async def run(self, channel: Channel) -> None:
        """Stream until it is complete or closed. Raises FeedUnavailable, django.db.Error, NotFound and
        TooLarge only if nothing was sent yet."""
        channel.on_end(self.close)
        try:
            await self._stream(channel)
        except (FeedUnavailable, django.db.Error, NotFound, TooLarge) as error:
            if not channel.started:
                raise
            match error:
                case NotFound():
                    self.close("deleted")
                case TooLarge():
                    self.close("too large")
                case _:
                    self.close("unavailable")
        if self._closed == "gone":
            return
        if not self.encoder.over:
            await channel.send(self.encoder.close(self._closed))
        await channel.finish()

    async def _stream(self, channel: Channel) -> None:
        async with self.hub.subscribe(self.actor, self.filters) as listener:
            self._listener = listener
            if self._closed:  # closed while it was subscribing
                return
            start, at = listener.start, self.hub.reached(self.actor.workspace_id)[1]
            position = max(start, self.after or start)
            begin = partial(begin_at, start, self.encoder, self.actor, self.filters, self.after)
            await self._send(channel, begin, events.hello(position, at))
            while not self.encoder.over:
                rows = await self._next_rows(channel, listener, position)
                if not rows:
                    return
                position = rows[-1].position
                encode = partial(self.encoder.encode_changes, rows)
                await self._send(channel, encode, _mark(position, rows[-1].at))

    async def _send(self, channel: Channel, work: Callable[[], bytes], mark: bytes) -> None:
        """Send the events with their position after them: if the connection is lost in between,
        they are repeated."""
        await channel.send(await channel.in_thread(work) + mark)


def begin_at(
    position: Position,
    encoder: ThreadEncoder,
    actor: Actor,
    filters: FeedFilter,
    after: Position | None,
) -> bytes:
    """The first events for a client that has received the feed up to `after`, and gets it from
    `position` on."""
    coming = partial(missed, actor, filters, position if after is not None else None, _LAST)
    return encoder.begin(missed(actor, filters, after, position), coming)


def missed(
    actor: Actor, filters: FeedFilter, after: Position | None, until: Position
) -> list[FeedRow]:
    """The starts and ends of runs after `after`. The other changes are part of the current
    state."""
    rows: list[FeedRow] = []
    while after is not None:
        page = feed_sql.read_page(actor, after=after, until=until, filters=filters, limit=_PAGE)
        rows += [row for row in page if row.kind in ("run.start", "run.done")]
        after = page[-1].position if len(page) == _PAGE else None
    return rows


def answer_stream(
    view: Endpoint, thread_id: str, encoder: ThreadEncoder, *, headers: dict[str, str] | None = None
) -> HttpResponse:
    """A response that continues as server-sent events. A server that cannot stream sends the
    current state and ends."""
    actor = view.actor
    check_live(actor)
    after = _read_last_event_id(view)
    response = begin_stream(headers)
    hub = hub_of(view.request)
    if hub is None:
        end = feed_sql.read_end(actor.workspace_id)
        beginning = begin_at(end.position, encoder, actor, FeedFilter(thread=thread_id), after)
        last = b"" if encoder.over else encoder.close("page")
        response.content = beginning + events.hello(end.position, end.at) + last
    else:
        stream = ThreadStream(hub, actor, thread_id, encoder, after)
        continue_stream(view, response, stream)
    return response


def _read_last_event_id(view: Endpoint) -> Position | None:
    """The position in `Last-Event-ID`. Raises BadRequest or Gone, as open_cursor does."""
    cursor = view.request.META.get("HTTP_LAST_EVENT_ID")
    if not cursor:
        return None
    try:
        return open_cursor(cursor, feed_sql.read_end(view.actor.workspace_id))[0]
    except BadRequest:
        raise BadRequest("Last-Event-ID must be an id that this stream sent") from None
    except Gone as gone:  # the stream begins with the state, so there is nothing to read again
        raise Gone(gone.detail, hint="Connect again without Last-Event-ID.") from None


def event(data: str) -> bytes:
    """One server-sent event without a name, from one line of JSON."""
    return b"data: %b\n\n" % data.encode(errors="replace")


def _mark(position: Position, at: datetime) -> bytes:
    return b"id: %b\n\n" % cursors.seal(position, at).encode()
