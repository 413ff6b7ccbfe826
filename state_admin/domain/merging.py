"""Merging the batches of parallel branches into one.

Not here: what an update does to a value (reducers), and the commit itself (services).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from state_admin.domain.values import JSON, Raw


@dataclass(frozen=True)
class Update:
    """An update of one state key, or its removal. `update` is JSON, or Raw with its text; `pointer`
    is its place in the body of the request."""

    key: str
    update: JSON | Raw = None
    clear: bool = False
    pointer: str = field(default="", compare=False)


@dataclass(frozen=True)
class Batch:
    """Updates in order, and the revision that they are based on, if any."""

    updates: tuple[Update, ...] = ()
    base_revision: int | None = None


class ParallelMergeConflict(ValueError):
    """Two batches update a key that only one may update."""


class BaseRevisionMismatch(ValueError):
    """Two batches are based on different revisions."""


def merge_batches(batches: Sequence[Batch], is_commutative: Callable[[str], bool]) -> Batch:
    """One batch with the updates of all, in the order of the batches.

    A key in two batches must be commutative (`is_commutative` is False for unknown keys), and
    clearing a key counts as an update; one conflict refuses the merge. A base revision applies to
    all; if several batches have one, they must be equal, which is checked before the keys of each
    further batch. Raises BaseRevisionMismatch, ParallelMergeConflict.
    """
    base: int | None = None
    touched: set[str] = set()
    for batch in batches:
        other = batch.base_revision
        if base is not None and other is not None and base != other:
            raise BaseRevisionMismatch(f"patch base revision mismatch: {base} vs {other}")
        base = other if base is None else base
        for update in batch.updates:
            if update.key in touched and not is_commutative(update.key):
                raise ParallelMergeConflict(
                    f"parallel merge conflict on exclusive key: {update.key}"
                )
        touched.update(update.key for update in batch.updates)
    return Batch(tuple(update for batch in batches for update in batch.updates), base)


def clashes(
    batches: Sequence[Batch], is_commutative: Callable[[str], bool]
) -> dict[str, list[int]]:
    """The keys for which `merge_batches` refuses, with the indexes of the batches that update
    each."""
    places: dict[str, list[int]] = {}
    for place, batch in enumerate(batches):
        for key in {update.key for update in batch.updates}:
            places.setdefault(key, []).append(place)
    return {key: at for key, at in places.items() if len(at) > 1 and not is_commutative(key)}
