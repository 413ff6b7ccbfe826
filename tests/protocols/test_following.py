"""One client's stream without a server: waiting, disconnection of slow clients, its end."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from state_admin.domain.access import Actor, Role
from state_admin.models.feed_sql import FeedRow, Position
from state_admin.protocols import following
from state_admin.protocols.following import ThreadStream
from state_admin.services.errors import NotFound
from state_admin.services.listeners import CLOSED
from state_admin.streams import events
from state_admin.streams.hub import FeedUnavailable, Subscription
from tests.loops import run

ACTOR = Actor(kind="token", id="1", name="x", workspace_id=1, role=Role.VIEWER)
NOW = datetime(2020, 1, 1, tzinfo=UTC)


def row(number: int) -> FeedRow:
    return FeedRow(number, number, NOW, "run.commit", "", "", "t1", "r1", number, "x")


class Hub:
    """One subscription with a small buffer; `missing` simulates a database that does not
    respond."""

    def __init__(self, room: int = 3, missing: bool = False) -> None:
        self.listener = Subscription(lambda row: True, room)
        self.missing = missing

    @contextlib.asynccontextmanager
    async def subscribe(self, *_: Any) -> AsyncIterator[Subscription]:
        if self.missing:
            raise FeedUnavailable
        yield self.listener

    def reached(self, workspace_id: int) -> tuple[Position, datetime]:
        return Position(), NOW


class Channel:
    def __init__(self, on_send: Callable[[bytes], Any] = lambda part: None) -> None:
        self.started, self.parts, self.finished = False, [], False
        self.on_send, self.end = on_send, lambda why: None

    def on_end(self, close: Callable[[str], None]) -> None:
        self.end = close

    async def in_thread(self, work: Callable[[], bytes]) -> bytes:
        return work()

    async def send(self, part: bytes) -> None:
        self.started = True
        self.parts.append(part)
        await asyncio.sleep(0)
        self.on_send(part)

    async def finish(self) -> None:
        self.finished = True


class ThreadEncoder:
    def __init__(self, told_before_over: int = 99) -> None:
        self.over, self.left, self.seen = False, told_before_over, []

    def begin(self, *_: Any) -> bytes:
        return b"begin\n"

    def encode_changes(self, rows: Sequence[FeedRow]) -> bytes:
        self.seen.append([row.xid for row in rows])
        self.left -= 1
        self.over = self.left == 0
        return b"news\n"

    def close(self, why: str) -> bytes:
        assert why in CLOSED
        return f"closed: {why}\n".encode()


def follow(hub: Hub, channel: Channel, encoder: Any, after: Position | None = None) -> None:
    stream = ThreadStream(hub, ACTOR, "t1", encoder, after)  # type: ignore[arg-type]
    run(stream.run(channel))  # type: ignore[arg-type]


def test_stream__slow_client__is_disconnected_with_the_reason() -> None:
    hub = Hub(room=3)
    channel = Channel(lambda part: hub.listener.offer([row(n) for n in range(1, 5)]))
    encoder = ThreadEncoder()
    follow(hub, channel, encoder)
    assert channel.parts[-1] == b"closed: slow\n"
    assert (channel.finished, encoder.seen) == (True, [])


def test_stream__changes_during_a_send__are_encoded_together() -> None:
    hub = Hub(room=9)
    batches = iter([[row(1)], [row(2), row(3)]])
    channel = Channel(lambda part: hub.listener.offer(next(batches, [])))
    encoder = ThreadEncoder(told_before_over=2)
    follow(hub, channel, encoder)
    assert encoder.seen == [[1], [2, 3]]
    assert channel.finished
    assert not any(part.startswith(b"closed") for part in channel.parts)


def test_stream__ids__follow_the_events_they_cover() -> None:
    hub = Hub()
    channel = Channel(lambda part: hub.listener.offer([row(1)]))
    follow(hub, channel, ThreadEncoder(told_before_over=1))
    first, second = channel.parts
    assert first.startswith(b"begin\nretry: ")
    assert second.startswith(b"news\nid: ")


def test_stream__change_before_the_position__is_not_sent_again() -> None:
    hub = Hub()
    rows = iter([[row(5)], [row(6)]])
    channel = Channel(lambda part: hub.listener.offer(next(rows, [])))
    hub.listener.offer([row(4)])
    encoder = ThreadEncoder(told_before_over=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(following, "missed", lambda *_: [])
        follow(hub, channel, encoder, Position(5, 5))
    assert encoder.seen == [[6]]


def test_stream__silence__sends_a_heartbeat_with_an_id(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "HEARTBEAT", 0.01)
    hub = Hub()

    def leave(part: bytes) -> None:
        if part.startswith(b": heartbeat"):
            channel.end("gone")

    channel = Channel(leave)
    follow(hub, channel, ThreadEncoder())
    assert b"\nid: " in channel.parts[1]
    assert not channel.finished  # no client is connected


@pytest.mark.parametrize("why", ["draining", "unauthenticated"])
def test_stream__closed_by_the_server__sends_the_reason(why: str) -> None:
    channel = Channel(lambda part: channel.end(why))
    follow(Hub(), channel, ThreadEncoder())
    assert channel.parts[-1] == f"closed: {why}\n".encode()


def test_stream__thread_deleted_before_the_first_event__raises() -> None:
    def gone(*_: Any) -> bytes:
        raise NotFound("thread not found: t1")

    encoder = SimpleNamespace(over=False, begin=gone)
    with pytest.raises(NotFound):
        follow(Hub(), Channel(), encoder)


def test_stream__database_unavailable_before_the_first_event__raises() -> None:
    with pytest.raises(FeedUnavailable):
        follow(Hub(missing=True), Channel(), ThreadEncoder())
