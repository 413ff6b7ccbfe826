"""Cuts long lists of rows so that the values of one slice fit into memory, and long sweeps so that
each transaction is short."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

MOST_ROWS = 500
MOST_BYTES = 16 * 1024 * 1024
# Seconds that one sweep goes on; the next one continues.
PATIENCE = 60.0


def split_by_size(sized: Iterable[tuple[T, int]], most: int = MOST_ROWS) -> Iterator[list[T]]:
    """The items of (item, bytes) in order: at most `most` and, but for a single item that is
    larger, MOST_BYTES at a time."""
    held: list[T] = []
    total = 0
    for item, size in sized:
        if held and (len(held) == most or total + size > MOST_BYTES):
            yield held
            held, total = [], 0
        held.append(item)
        total += size
    if held:
        yield held


def repeat_in_batches(work: Callable[[], int], most: int) -> int:
    """Repeat `work`, a short transaction that takes up to `most` rows and answers how many it took,
    until it takes fewer or PATIENCE is over; answers how many it took in all."""
    until = time.monotonic() + PATIENCE
    total = 0
    while True:
        taken = work()
        total += taken
        if taken < most or time.monotonic() >= until:
            return total
