"""What the cursor of a client means: a position in the change feed, or a problem."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from django.conf import settings

from state_admin.models.feed_sql import FeedEnd, Position
from state_admin.streams import cursors

from .errors import BadRequest, Gone

# In this order no change is missed: what happens while the state is read is in the feed.
RESTART_FEED: Final = "Start to follow the feed without a cursor, then read the state again."


def bad_cursor() -> BadRequest:
    """The refusal of a cursor, of the feed or of a list, that no response contained."""
    return BadRequest(
        "cursor must be a value that this API returned",
        hint="Send the cursor of a response unchanged, or none to start again.",
        parameter="cursor",
    )


def open_cursor(cursor: str, end: FeedEnd) -> tuple[Position, datetime]:
    """The position from which a reader with `cursor` continues, and its time. Raises BadRequest if the
    cursor is invalid, Gone if it has expired."""
    try:
        return cursors.resume(cursor, end, settings.CHANGE_RETENTION), cursors.unseal(cursor)[1]
    except cursors.BadCursor:
        raise bad_cursor() from None
    except cursors.LostCursor:
        raise Gone(
            "the cursor is newer than the database",
            hint="The database was restored, or lost its newest changes in a failover. Changes "
            f"that you have read may no longer exist. {RESTART_FEED}",
        ) from None
    except cursors.ExpiredCursor:
        raise Gone(
            "the cursor has expired",
            hint=f"Changes are retained for a limited time. {RESTART_FEED}",
        ) from None
