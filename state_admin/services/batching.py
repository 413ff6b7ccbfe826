"""Splits lists of rows into batches whose values fit into memory, and sweeps into short
transactions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from math import ceil
from time import monotonic
from typing import Any, TypeVar

from django.db import OperationalError, transaction
from django.db.models import QuerySet

from state_admin.models import freezing_sql

T = TypeVar("T")

MOST_ROWS = 500
MOST_BYTES = 16 * 1024 * 1024
# The maximum duration of one sweep in seconds. The next sweep continues.
PATIENCE = 60.0

Report = dict[str, int]


class Rest:
    """Gives a sweep that reads everything at most a thirtieth of the time: after each run, this process
    skips it for 30 times its duration, at most an hour (`rest_after`)."""

    def __init__(self) -> None:
        self._until = 0.0

    def run(self, work: Callable[[], Report]) -> Report:
        """Call `work`, unless it ran recently: then the report is empty. A report that is not gets the
        duration in `seconds`."""
        started = monotonic()
        if started < self._until:
            return {}
        report = work()
        ended = monotonic()
        self._until = ended + rest_after(ended - started)
        return {**report, "seconds": ceil(ended - started)} if any(report.values()) else report


def rest_after(seconds: float) -> float:
    """The seconds of rest after a run that took `seconds`."""
    return min(30 * seconds, 3600)


def split_by_size(
    sized: Iterable[tuple[T, int]], most: int = MOST_ROWS, most_bytes: int | None = None
) -> Iterator[list[T]]:
    """Yield the items of (item, bytes) in order, in batches of at most `most` items and `most_bytes`
    (default MOST_BYTES). An item larger than that is a batch of its own."""
    most_bytes = MOST_BYTES if most_bytes is None else most_bytes
    batch: list[T] = []
    total = 0
    for item, size in sized:
        if batch and (len(batch) == most or total + size > most_bytes):
            yield batch
            batch, total = [], 0
        batch.append(item)
        total += size
    if batch:
        yield batch


@contextmanager
def skip_frozen() -> Iterator[None]:
    """Leave the block if its workspace was frozen since the sweep found work there, so that the sweep
    continues with the others."""
    try:
        yield
    except OperationalError as error:
        if not freezing_sql.is_refusal(error):
            raise


def repeat_in_batches(work: Callable[[], int], most: int) -> int:
    """Repeat `work`, a short transaction that processes up to `most` rows and returns their number,
    until it returns less than `most` or PATIENCE has passed. Returns the total."""
    until = monotonic() + PATIENCE
    total = 0
    while True:
        processed = work()
        total += processed
        if processed < most or monotonic() >= until:
            return total


def delete_in_batches(rows: QuerySet[Any, Any], column: str, most: int) -> int:
    """Delete `rows`, which have an index that ends with `column`, in its order and in transactions of up
    to `most` rows, until PATIENCE has passed. Returns the number of deleted rows.

    Without the order, PostgreSQL would expect to find enough rows anywhere, and read the whole table
    when there are none. The condition is in both queries: the outer one is evaluated again for a row
    that another transaction changed meanwhile. Locked rows are left to the next time, because others,
    such as an erasure, lock them in another order.
    """

    def delete_oldest() -> int:
        with transaction.atomic():
            free = rows.select_for_update(skip_locked=True, of=("self",))
            oldest = free.order_by(column).values("pk")[:most]
            deleted, _ = rows.filter(pk__in=oldest).delete()
        return deleted

    return repeat_in_batches(delete_oldest, most)
