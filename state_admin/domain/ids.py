"""Ids that the server creates. Ids chosen by clients are validated in scopes."""

from __future__ import annotations

import os
import secrets
import threading
import time
import uuid
from typing import Final

_TAIL_BITS: Final = 74  # the bits of RFC 9562 that are neither time, version nor variant

_lock = threading.Lock()
_last = (0, 0)  # milliseconds, tail


def uuid7() -> str:
    """A UUIDv7 (RFC 9562), greater than all previous ones of this process.

    Within a millisecond the random part is increased by a random step (method 2 of §6.2), so ids
    remain hard to guess. If the clock goes back, the last timestamp is used until it has caught up.
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
    """A forked child must not continue its parent's sequence."""
    global _last, _lock
    _last, _lock = (0, 0), threading.Lock()


os.register_at_fork(after_in_child=_forget)
