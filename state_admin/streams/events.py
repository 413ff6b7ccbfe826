"""The wire format of the feed: a change as JSON, and as a server-sent event."""

from __future__ import annotations

import functools
import secrets
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec
import orjson

from state_admin.contract.changes import Change
from state_admin.models.feed_sql import FeedRow, Position

from . import cursors

# Seconds without a change after which a comment keeps the connection alive.
HEARTBEAT = 15.0
# Milliseconds after which a client reconnects.
_RETRY = 2000


def show(row: FeedRow) -> Change:
    """A change as GET /changes and the streams return it."""
    return Change.of(row, cursors.seal(row.position, row.at))


@functools.lru_cache(maxsize=4096)
def change(row: FeedRow) -> bytes:
    """`event: change`. Encoded once for all subscribers of the process."""
    document = show(row)
    return b"id: %b\nevent: change\ndata: %b\n\n" % (
        document.cursor.encode(),
        msgspec.json.encode(document),
    )


def hello(position: Position, at: datetime) -> bytes:
    """The first bytes of a stream: they confirm it, and contain the position to resume from."""
    return b"retry: %d\n" % _RETRY + heartbeat(position, at)


def heartbeat(position: Position, at: datetime) -> bytes:
    """A comment with the current position: an `id` without data is not an event, but a client that
    reconnects after days without changes resumes from there and not with an expired cursor."""
    return b": heartbeat\nid: %b\n\n" % cursors.seal(position, at).encode()


def closed(problem: Mapping[str, Any]) -> bytes:
    """`event: closed`, the last event of a stream, with a problem document. The random `retry`
    spreads the reconnections of clients."""
    retry = 500 + secrets.randbelow(2 * _RETRY - 500)
    return b"retry: %d\nevent: closed\ndata: %b\n\n" % (retry, orjson.dumps(problem))
