"""Cuts long lists of rows so that the values of one slice fit into memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

MOST_ROWS = 500
MOST_BYTES = 16 * 1024 * 1024


def slices(sized: Iterable[tuple[T, int]], most: int = MOST_ROWS) -> Iterator[list[T]]:
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
