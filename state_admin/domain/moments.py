"""Moments as they arrive: RFC 3339 texts, in UTC."""

from __future__ import annotations

from datetime import UTC, datetime


def read(text: object, *, assume_utc: bool = False) -> datetime | None:
    """The moment that `text` names, in UTC: PostgreSQL takes no offset beyond 16 hours. None for
    what is no time, or has no offset unless `assume_utc`."""
    if not isinstance(text, str) or len(text) < len("2026-01-31T12:00"):
        return None
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            return moment.replace(tzinfo=UTC) if assume_utc else None
        return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def timestamp(moment: datetime) -> str:
    """RFC 3339 in UTC, always with microseconds."""
    return moment.astimezone(UTC).isoformat("T", "microseconds")[:-6] + "Z"


def milliseconds(moment: datetime) -> int:
    """A moment as the reference counts time: milliseconds since 1970."""
    return int(moment.timestamp() * 1000)
