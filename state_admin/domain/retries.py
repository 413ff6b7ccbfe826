"""How long to wait before a failed attempt is repeated: exponential backoff with jitter."""

from __future__ import annotations

import secrets
from email.utils import parsedate_to_datetime
from typing import Final

LONGEST_PAUSE: Final = 3600.0


def exponential_pause(failures: int, *, first: float, longest: float) -> float:
    """Seconds to wait after failure number `failures`, from 1: `first`, doubling up to
    `longest`."""
    return min(first * 2.0 ** min(failures - 1, 40), longest)


def pause_before_retry(
    attempt: int, *, base: float, retry_after: float | None = None, jitter: float | None = None
) -> float:
    """Seconds until the attempt after number `attempt`: doubling from `base` to an hour, plus up to
    half of that by `jitter` in [0, 1) (None: random), so that attempts that failed together are not
    repeated together. A `retry_after` in seconds is honoured if it is longer, up to 1.5 hours."""
    pause = exponential_pause(attempt, first=base, longest=LONGEST_PAUSE)
    pause *= 1 + (secrets.SystemRandom().random() if jitter is None else jitter) / 2
    return min(max(pause, retry_after or 0.0), LONGEST_PAUSE * 1.5)


def requested_seconds(retry_after: str, now: float) -> float | None:
    """The seconds from `now` that a Retry-After header requests, as a number or a date. None if it
    is neither."""
    text = retry_after.strip()
    if text.isascii() and text.isdigit():
        # The first nine digits of a longer number already exceed every pause.
        return float(text[:9])
    try:
        return parsedate_to_datetime(text).timestamp() - now
    except (ValueError, TypeError, OverflowError):
        return None
