"""Tombstones: what replaces permanently removed data."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from state_admin.domain import values
from state_admin.domain.json_pointers import WorkingCopy, look_up, parts_of
from state_admin.domain.values import JSON

TOMBSTONE: Final = {"$redacted": True}


def redact(value: JSON, pointers: Collection[str]) -> tuple[JSON, set[str]]:
    """The value with a tombstone at each pointer, and the pointers that exist.

    Without pointers the whole value is replaced. A pointer to a tombstone, or into one, counts as
    existing: its data was removed before. Raises json_pointers.Mismatch for a malformed pointer.
    """
    copy, matched = WorkingCopy(value), set()
    for pointer in pointers or ("",):
        path = parts_of(pointer)
        part = look_up(copy.document, path)
        if part is not values.MISSING or _is_in_tombstone(copy.document, path):
            matched.add(pointer)
        if part is not values.MISSING and not values.same(part, TOMBSTONE):
            copy.replace(path, TOMBSTONE)
    return copy.document, matched


def holds_tombstone(text: str) -> bool:
    """Whether JSON text may contain a tombstone: a fast substring search, without parsing."""
    return '"$redacted"' in text


def is_tombstone(text: str | None) -> bool:
    """Whether JSON text is a tombstone and nothing else."""
    return text is not None and holds_tombstone(text) and values.same(values.load(text), TOMBSTONE)


def _is_in_tombstone(value: JSON, path: list[str]) -> bool:
    parents = (look_up(value, path[:length]) for length in range(len(path)))
    return any(values.same(parent, TOMBSTONE) for parent in parents)
