"""Rate limits: a token bucket per API token, in PostgreSQL, shared by all processes.

A process takes a second's worth at a time and spends it locally, so that a busy token costs one
statement a second and not one a call. What is not spent within that second is lost: the limit is
never exceeded, and kept to within a second's worth per process.
"""

from __future__ import annotations

import math
import threading
import time

from state_admin.models.limits import take_tokens

from .errors import RateLimited

_LEASE = 1.0

_lock = threading.Lock()
_leases: dict[int, tuple[int, float]] = {}  # calls left, until when


def spend(token_id: int, per_minute: int | None) -> None:
    """Count one call of a token. RateLimited: too many; try again after `retry_after` seconds."""
    if per_minute is None:
        return
    with _lock:
        left, until = _leases.get(token_id, (0, 0.0))
        if left > 0 and time.monotonic() < until:
            _leases[token_id] = (left - 1, until)
            return
    wanted = max(1, per_minute // 60)
    wait = take_tokens(token_id=token_id, per_minute=per_minute, wanted=wanted)
    if wait:
        raise RateLimited(
            f"more than {per_minute} calls in a minute",
            detail="Slow down, or ask an admin for a higher limit on the token.",
            retry_after=math.ceil(wait),
            limit=per_minute,
        )
    with _lock:
        _leases[token_id] = (wanted - 1, time.monotonic() + _LEASE)


def forget_leases() -> None:
    """Drop what this process holds in advance (a changed limit, a test)."""
    with _lock:
        _leases.clear()
