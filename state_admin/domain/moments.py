"""Timestamps from outside: RFC 3339 texts, converted to UTC."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

FIRST = datetime.min.replace(tzinfo=UTC)
LAST = datetime.max.replace(tzinfo=UTC)


def read(text: object, *, assume_utc: bool = False) -> datetime | None:
    """The timestamp in `text`, in UTC, because PostgreSQL accepts no offset beyond 16 hours. None
    if it is not a timestamp, or has no offset without `assume_utc`. An offset that leads out of
    the years 1 to 9999 gives their beginning or end."""
    if not isinstance(text, str) or len(text) < len("2026-01-31T12:00"):
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        return moment.replace(tzinfo=UTC) if assume_utc else None
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        return FIRST if moment.year == 1 else LAST


def timestamp(moment: datetime) -> str:
    """RFC 3339 in UTC, always with microseconds."""
    # msgspec takes a third of the time of isoformat, but leaves out microseconds of zero.
    text: str = msgspec.to_builtins(moment.astimezone(UTC))
    return text if moment.microsecond else f"{text[:-1]}.000000Z"


def readable(moment: datetime) -> str:
    """For people: in UTC, to the second."""
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def milliseconds(moment: datetime) -> int:
    """The timestamp in milliseconds since 1970, the unit of the reference implementation."""
    return int(moment.timestamp() * 1000)
