"""When what failed is tried again."""

from __future__ import annotations

import secrets
from email.utils import parsedate_to_datetime
from typing import Final

LONGEST_PAUSE: Final = 3600.0


def double_pause(failures: int, *, first: float, longest: float) -> float:
    """Seconds to wait after failure number `failures` (from 1): `first`, doubling up to `longest`."""
    return min(first * 2.0 ** min(failures - 1, 40), longest)


def pause_before_retry(
    attempt: int, *, base: float, asked: float | None = None, chance: float | None = None
) -> float:
    """Seconds until the attempt after number `attempt`: doubling from `base` to an hour, plus up to
    half of that by `chance` in [0, 1) (None: random), so that attempts that failed together are not
    repeated together. A Retry-After (`asked`) is honoured when it is longer, up to 1.5 hours."""
    pause = double_pause(attempt, first=base, longest=LONGEST_PAUSE)
    pause *= 1 + (secrets.SystemRandom().random() if chance is None else chance) / 2
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
