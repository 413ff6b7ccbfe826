"""Imported by Python at its start, in processes whose clock tests set. libfaketime refuses the system call of
time.sleep (clock_nanosleep) if it does not fake the monotonic clock."""

from __future__ import annotations

import select
import time


def _sleep(seconds: float) -> None:
    select.select([], [], [], seconds)


time.sleep = _sleep
