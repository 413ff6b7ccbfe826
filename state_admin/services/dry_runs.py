"""Dry runs: the work of an operation, done in a transaction that is rolled back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction

from . import quotas


@contextmanager
def discard_writes() -> Iterator[None]:
    """Discard the effects of the block: its rows, what it registered with `transaction.on_commit`
    (job notifications), and what it added to the usage of quotas in memory."""
    with quotas.undo_additions() as undo, transaction.atomic():
        yield
        transaction.set_rollback(True)
        undo()
