"""Ids that we make. Those that clients choose are checked in scopes."""

from __future__ import annotations

import os
import secrets
import threading
import time
import uuid
from typing import Final

_TAIL_BITS: Final = 74  # what RFC 9562 leaves beside time, version and variant

_lock = threading.Lock()
_last = (0, 0)  # milliseconds, tail


def uuid7() -> str:
    """A UUIDv7 (RFC 9562), greater than every one this process made before.

    Within a millisecond the random tail is counted up by a random step (method 2 of §6.2), so
    ids stay hard to guess. A clock that goes back is waited out by counting on.
    """
    global _last
    with _lock:
        milliseconds, tail = time.time_ns() // 1_000_000, secrets.randbits(_TAIL_BITS)
        if milliseconds <= _last[0]:
            milliseconds, tail = _last[0], _last[1] + 1 + secrets.randbits(32)
            if tail >> _TAIL_BITS:
                milliseconds, tail = milliseconds + 1, secrets.randbits(_TAIL_BITS - 1)
        _last = milliseconds, tail
    high, low = tail >> 62, tail & ((1 << 62) - 1)
    return str(uuid.UUID(int=milliseconds << 80 | 7 << 76 | high << 64 | 2 << 62 | low))


def _forget() -> None:
    """A forked child must not count on from its parent's tail."""
    global _last, _lock
    _last, _lock = (0, 0), threading.Lock()


os.register_at_fork(after_in_child=_forget)
