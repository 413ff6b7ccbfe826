"""What the cursor of a client means: a position in the change feed, or a problem."""

from __future__ import annotations

from datetime import datetime

from django.conf import settings

from state_admin.models.feed_sql import FeedEnd, Position
from state_admin.streams import cursors

from .errors import BadRequest, Gone


def open_cursor(cursor: str, end: FeedEnd) -> tuple[Position, datetime]:
    """The position from which a reader with `cursor` continues, and its time. Raises BadRequest if the
    cursor is invalid, Gone if it has expired."""
    try:
        return cursors.resume(cursor, end, settings.CHANGE_RETENTION), cursors.unseal(cursor)[1]
    except cursors.BadCursor:
        raise BadRequest("cursor must be a value that this API returned") from None
    except cursors.LostCursor:
        raise Gone(
            "the cursor is newer than the database",
            hint=(
                "The database was restored, or lost its newest changes in a failover. Changes that "
                "you have read may no longer exist. Read the state again, then follow the feed "
                "from the current position."
            ),
        ) from None
    except cursors.ExpiredCursor:
        raise Gone(
            "the cursor has expired",
            hint=(
                "Changes are retained for a limited time. Read the state, then follow the feed "
                "from the current position."
            ),
        ) from None
