"""Cursors of clients: the position that each means, or the problem that says what to do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.conf import settings

from state_admin.models.feed_sql import FeedEnd, Position
from state_admin.services.errors import BadRequest, Gone
from state_admin.services.feed_cursors import open_cursor
from state_admin.streams import cursors

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
END = FeedEnd(horizon=1000, at=NOW, position=Position(990, 77))


def test_cursor__within_retention__is_its_position_and_time() -> None:
    assert open_cursor(cursors.seal(Position(9, 9), NOW), END) == (Position(9, 9), NOW)


def test_cursor__malformed__is_refused() -> None:
    with pytest.raises(BadRequest, match="cursor must be a value that this API returned"):
        open_cursor("x", END)


def test_cursor__older_than_retention__is_gone() -> None:
    old = NOW - settings.CHANGE_RETENTION - timedelta(seconds=1)
    with pytest.raises(Gone, match="the cursor has expired"):
        open_cursor(cursors.seal(Position(9, 9), old), END)


def test_cursor__newer_than_the_database__is_gone_for_another_reason() -> None:
    with pytest.raises(Gone, match="newer than the database"):
        open_cursor(cursors.seal(Position(1000, 1), NOW), END)
