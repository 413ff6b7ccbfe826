"""Splits lists of rows into batches whose values fit into memory, and sweeps into short
transactions."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

MOST_ROWS = 500
MOST_BYTES = 16 * 1024 * 1024
# The maximum duration of one sweep in seconds. The next sweep continues.
PATIENCE = 60.0


def split_by_size(sized: Iterable[tuple[T, int]], most: int = MOST_ROWS) -> Iterator[list[T]]:
    """Yield the items of (item, bytes) in order, in batches of at most `most` items and MOST_BYTES.
    An item larger than that is a batch of its own."""
    batch: list[T] = []
    total = 0
    for item, size in sized:
        if batch and (len(batch) == most or total + size > MOST_BYTES):
            yield batch
            batch, total = [], 0
        batch.append(item)
        total += size
    if batch:
        yield batch


def repeat_in_batches(work: Callable[[], int], most: int) -> int:
    """Repeat `work`, a short transaction that processes up to `most` rows and returns their number,
    until it returns less than `most` or PATIENCE has passed. Returns the total."""
    until = time.monotonic() + PATIENCE
    total = 0
    while True:
        processed = work()
        total += processed
        if processed < most or time.monotonic() >= until:
            return total
