"""Cursors: a position in the change feed, opaque to clients and valid in all processes.

A cursor also contains a time of the database: no change after the position is older than that. Once
the retention time has passed since then, such changes may have been deleted, and the cursor is
refused.
"""

from __future__ import annotations

import base64
import binascii
from datetime import UTC, datetime, timedelta

import orjson

from state_admin.models.feed_sql import FeedEnd, Position

# Greater than all numbers of PostgreSQL, and within its types.
_MOST = 2**62


class BadCursor(ValueError):
    """The cursor is not valid."""


class ExpiredCursor(Exception):
    """Changes after the cursor may have been deleted."""


class LostCursor(ExpiredCursor):
    """The cursor is newer than the database, which was restored or lost its newest changes in a
    failover."""


def seal(position: Position, at: datetime) -> str:
    """The cursor for `position`. `at`: the time of the change, or when the end of the feed was
    read."""
    raw = orjson.dumps([*position, int(at.timestamp())])
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def unseal(cursor: str) -> tuple[Position, datetime]:
    """The position and time of a cursor. Raises BadCursor for anything else."""
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
    """The position from which a reader with this cursor continues. Raises BadCursor, ExpiredCursor
    if it would miss changes, or LostCursor if its reader has read changes that were lost."""
    position, at = unseal(cursor)
    position = end.translate(position)
    if at < end.at - retention:
        raise ExpiredCursor(cursor)
    if end.lost(position):
        raise LostCursor(cursor)
    return position
