"""Rate limits: a token bucket per API token, in PostgreSQL, shared by all processes.

A process takes several calls from the bucket at a time and spends them locally within a second: one
call at first, then twice as many if the last ones were spent in time, at most those of one second.
So a busy token needs few statements, and a token with few calls is counted call by call. Unspent
calls are returned with the next statement. The limit is never exceeded. A call below the limit is
refused only if other processes hold the remaining calls.
"""

from __future__ import annotations

import math
import threading
import time
from dataclasses import dataclass

from state_admin.models.limits import take_tokens

from .errors import RateLimited

_LEASE = 1.0


@dataclass(frozen=True)
class Allowance:
    """The remaining calls of a token: `remaining` of `limit` calls per minute. The bucket is full
    again after `reset` seconds without calls."""

    limit: int
    remaining: int

    @property
    def reset(self) -> int:
        return math.ceil((self.limit - self.remaining) * 60 / self.limit)


@dataclass
class _Lease:
    """The calls that this process has taken from a token's bucket: `left` of the `size` calls taken
    at `at`, when `level` calls remained in the bucket."""

    size: int = 0
    left: int = 0
    level: float = 0.0
    at: float = 0.0
    taking: bool = False

    @property
    def is_valid(self) -> bool:
        return time.monotonic() - self.at < _LEASE


_lock = threading.Lock()
_leases: dict[int, _Lease] = {}


def spend_leased(token_id: int, per_minute: int) -> Allowance | None:
    """Count one call of a token without a query. None: this process has no calls of the token left,
    and nothing was counted."""
    with _lock:
        lease = _leases.get(token_id)
        if lease is None or not lease.left or not lease.is_valid:
            return None
        lease.left -= 1
        return Allowance(per_minute, int(lease.level) + lease.left)


def spend(token_id: int, per_minute: int | None) -> Allowance | None:
    """Count one call of a token. None: it has no limit.

    Raises RateLimited with `retry_after` in seconds.
    """
    if per_minute is None:
        return None
    leased = spend_leased(token_id, per_minute)
    if leased is not None:
        return leased
    with _lock:
        lease = _leases.setdefault(token_id, _Lease())
        was_valid = lease.is_valid
        # One thread takes calls for all threads; others take one call for themselves meanwhile.
        mine = not lease.taking
        requested, unspent = 1, 0
        if mine:
            lease.taking = True
            unspent, lease.left = lease.left, 0
            if was_valid:
                requested = max(1, min(lease.size * 2, per_minute // 60))
    taken, level, wait = 0, 0.0, 0.0
    try:
        for size in dict.fromkeys((requested, 1)):
            level, wait = take_tokens(
                token_id=token_id, per_minute=per_minute, requested=size - unspent
            )
            if not wait:
                taken = size
                break
    finally:
        if mine:
            with _lock:
                lease.size, lease.left, lease.level = taken, max(taken - 1, 0), level
                lease.at, lease.taking = time.monotonic(), False
    if not taken:
        raise RateLimited(
            f"more than {per_minute} requests in a minute",
            hint="Send fewer requests, or ask an admin to raise the limit of the token.",
            retry_after=math.ceil(wait),
            limit=per_minute,
            window=60,
        )
    return Allowance(per_minute, int(level) + max(taken - 1, 0))
