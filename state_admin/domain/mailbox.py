"""Rules of the mailbox: the limits of a dispatch, and the pause before it is retried.

Not here: the order of dispatches and who gets one (models/dispatches_sql.py).
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from . import retries

LOWEST_PRIORITY: Final = 255
DEFAULT_PRIORITY: Final = 128
DEFAULT_MAX_ATTEMPTS: Final = 5
DEFAULT_LEASE_SECONDS: Final = 30

_FIRST_PAUSE: Final = 0.25
_LONGEST_PAUSE: Final = 30.0


def pause_after(failures: int) -> timedelta:
    """The pause after failure number `failures` (from 1): 250 ms, doubling up to 30 s."""
    pause = retries.exponential_pause(failures, first=_FIRST_PAUSE, longest=_LONGEST_PAUSE)
    return timedelta(seconds=pause)
