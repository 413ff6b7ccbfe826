"""The wire format: a change as JSON, and as a server-sent event."""

from __future__ import annotations

import functools
import random
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import orjson

from state_admin.models.feed_sql import FeedRow, Position

from . import cursors

# Seconds of silence after which a comment shows that the connection lives.
HEARTBEAT = 15.0
# Milliseconds after which a client comes back on its own.
_RETRY = 2000


def show(row: FeedRow) -> dict[str, Any]:
    """A change as GET /changes and the streams show it."""
    return {
        "cursor": cursors.seal(row.position, row.at),
        "kind": row.kind,
        "namespace": row.namespace or None,
        "key": row.key or None,
        "thread_id": row.thread or None,
        "run_id": row.run or None,
        "version": row.version,
        "actor": row.actor_name,
        "at": row.at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
    }


@functools.lru_cache(maxsize=4096)
def change(row: FeedRow) -> bytes:
    """`event: change`. Made once for all listeners of the process."""
    shown = show(row)
    return b"id: %b\nevent: change\ndata: %b\n\n" % (shown["cursor"].encode(), orjson.dumps(shown))


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
    retry = random.randrange(500, 2 * _RETRY)  # noqa: S311
    return b"retry: %d\nevent: closed\ndata: %b\n\n" % (retry, orjson.dumps(problem))
