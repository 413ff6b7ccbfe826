"""The wire format: a change as JSON, and as a server-sent event."""

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

# Seconds of silence after which a comment shows that the connection lives.
HEARTBEAT = 15.0
# Milliseconds after which a client comes back on its own.
_RETRY = 2000


def show(row: FeedRow) -> Change:
    """A change as GET /changes and the streams show it."""
    return Change.of(row, cursors.seal(row.position, row.at))


@functools.lru_cache(maxsize=4096)
def change(row: FeedRow) -> bytes:
    """`event: change`. Made once for all listeners of the process."""
    document = show(row)
    return b"id: %b\nevent: change\ndata: %b\n\n" % (
        document.cursor.encode(),
        msgspec.json.encode(document),
    )


def hello(position: Position, at: datetime) -> bytes:
    """The first bytes: the answer has begun, and from where to resume if nothing follows."""
    return b"retry: %d\n" % _RETRY + heartbeat(position, at)


def heartbeat(position: Position, at: datetime) -> bytes:
    """A comment, and how far the stream has come: an `id` without data is no event, but a client
    that comes back after days of silence resumes from there instead of an expired cursor."""
    return b": heartbeat\nid: %b\n\n" % cursors.seal(position, at).encode()


def closed(problem: Mapping[str, Any]) -> bytes:
    """`event: closed`, the last of a stream, with a problem document. The random `retry` spreads
    the clients that reconnect."""
    retry = 500 + secrets.randbelow(2 * _RETRY - 500)
    return b"retry: %d\nevent: closed\ndata: %b\n\n" % (retry, orjson.dumps(problem))
