"""When what failed is tried again."""

from __future__ import annotations

from email.utils import parsedate_to_datetime

LONGEST_PAUSE = 3600.0


def pause_before_retry(
    attempt: int, *, base: float, chance: float, asked: float | None = None
) -> float:
    """Seconds until the attempt after number `attempt`: doubling from `base` to an hour, plus up
    to a half of it by `chance` in [0, 1), so that what failed together does not come back
    together. `asked` is the other side's Retry-After: honoured when longer, up to the hour."""
    pause = min(base * 2.0 ** min(attempt - 1, 40), LONGEST_PAUSE)
    pause *= 1 + chance / 2
    return min(max(pause, asked or 0.0), LONGEST_PAUSE * 1.5)


def requested_seconds(retry_after: str, now: float) -> float | None:
    """A Retry-After header in seconds from `now`: it is a number or a date. None: neither."""
    text = retry_after.strip()
    if text.isascii() and text.isdigit():
        # The first digits of a longer number are more than any pause, too.
        return float(text[:9])
    try:
        return parsedate_to_datetime(text).timestamp() - now
    except (ValueError, TypeError, OverflowError):
        return None
