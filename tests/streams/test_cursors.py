"""Cursors: round trips, and what is refused."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta

import orjson
import pytest

from state_admin.models.feed_sql import FeedEnd, Gap, Position
from state_admin.streams import cursors

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
WEEK = timedelta(days=7)
END = FeedEnd(horizon=1000, at=NOW, position=Position(990, 77))


def encoded(value: object) -> str:
    return base64.urlsafe_b64encode(orjson.dumps(value)).decode().rstrip("=")


def test_cursor__sealed_and_opened__has_the_same_position_and_second() -> None:
    position = Position(2**40, 2**41)

    assert cursors.unseal(cursors.seal(position, NOW)) == (position, NOW)


def test_cursor__same_position__has_the_same_text_in_every_process() -> None:
    assert cursors.seal(Position(5, 6), NOW) == cursors.seal(Position(5, 6), NOW)


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "é",
        "AAAA",
        "=",
        "\0",
        encoded(None),
        encoded({}),
        encoded([1, 2]),
        encoded([1, 2, 3, 4]),
        encoded([1, -2, 3]),
        encoded([True, 2, 3]),
        encoded([1.5, 2, 3]),
        encoded(["1", 2, 3]),
        encoded([2**63, 2, 3]),
        encoded([1, 2**63, 3]),
        encoded([1, 2, 2**61]),
    ],
)
def test_cursor__malformed__is_refused(text: str) -> None:
    with pytest.raises(cursors.BadCursor):
        cursors.unseal(text)


def test_resume__within_retention__returns_the_position() -> None:
    fresh = cursors.seal(Position(9, 9), NOW - WEEK + timedelta(seconds=1))

    assert cursors.resume(fresh, END, WEEK) == Position(9, 9)


def test_resume__older_than_retention__is_expired() -> None:
    old = cursors.seal(Position(9, 9), NOW - WEEK - timedelta(seconds=1))

    with pytest.raises(cursors.ExpiredCursor):
        cursors.resume(old, END, WEEK)


def test_resume__transaction_unknown_to_the_database__is_lost() -> None:
    """A cursor from before a restore is in the future: without an error it would hide new
    changes."""
    with pytest.raises(cursors.LostCursor):
        cursors.resume(cursors.seal(Position(1000, 1), NOW), END, WEEK)


@pytest.mark.parametrize(
    ("position", "is_lost"),
    [
        (Position(1, 1), False),
        (Position(100, 7), False),  # the last that survived
        (Position(100, 8), True),
        (Position(101, 1), True),
        (Position(499, 9), True),
        (Position(500, 1), False),
        (Position(700, 3), False),
        (Position(700, 4), True),
        (Position(899, 1), True),
        (Position(900, 1), False),
    ],
)
def test_resume__after_restores__refuses_what_did_not_survive(
    position: Position, is_lost: bool
) -> None:
    end = END._replace(gaps=(Gap(Position(100, 7), 500), Gap(Position(700, 3), 900)))
    cursor = cursors.seal(position, NOW)

    if is_lost:
        with pytest.raises(cursors.LostCursor):
            cursors.resume(cursor, end, WEEK)
    else:
        assert cursors.resume(cursor, end, WEEK) == position
