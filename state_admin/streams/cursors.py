"""Cursors: a position in the change feed, opaque to the client, the same over all processes.

A cursor also holds a time of the database: behind the position lies no change older than that. When
the retention time has passed since, some may be gone, and the cursor is refused.
"""

from __future__ import annotations

import base64
import binascii
from datetime import UTC, datetime, timedelta

import orjson

from state_admin.models.feed_sql import FeedEnd, Position

# Far beyond what PostgreSQL hands out, and within its types.
_MOST = 2**62


class BadCursor(ValueError):
    """Not one that we gave out."""


class ExpiredCursor(Exception):
    """Changes behind it may be gone."""


def seal(position: Position, at: datetime) -> str:
    """The cursor for `position`. `at`: of the change itself, or when the feed's end was seen."""
    raw = orjson.dumps([*position, int(at.timestamp())])
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def unseal(cursor: str) -> tuple[Position, datetime]:
    """The position and time of a cursor. BadCursor for anything else."""
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), b"-_", validate=True)
        numbers = orjson.loads(raw)
        if not all(type(number) is int and 0 <= number < _MOST for number in numbers):
            raise BadCursor(cursor)
        xid, identity, seconds = numbers
        return Position(xid, identity), datetime.fromtimestamp(seconds, UTC)
    except (ValueError, TypeError, OverflowError, OSError, binascii.Error):
        raise BadCursor(cursor) from None


def resume(cursor: str, end: FeedEnd, retention: timedelta) -> Position:
    """Where a reader with this cursor goes on. BadCursor, or ExpiredCursor when it would miss
    changes: too old, or of another life of this database (restored from a backup)."""
    position, at = unseal(cursor)
    if at < end.at - retention or position.xid >= end.horizon:
        raise ExpiredCursor(cursor)
    return position
