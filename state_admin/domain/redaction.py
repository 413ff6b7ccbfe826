"""Tombstones: what replaces permanently removed data."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from state_admin.domain import json_pointers, values
from state_admin.domain.values import JSON

TOMBSTONE: Final = {"$redacted": True}


def redact(value: JSON, pointers: Collection[str]) -> tuple[JSON, set[str]]:
    """The value with a tombstone at each pointer, and the pointers that exist.

    Without pointers the whole value is replaced. A pointer to a tombstone, or into one, counts as
    existing: its data was removed before. Raises json_pointers.Mismatch for a malformed pointer.
    """
    matched = set()
    for pointer in pointers or ("",):
        path = json_pointers.parts_of(pointer)
        try:
            part = json_pointers.find(value, path)
        except json_pointers.Mismatch:
            if _is_in_tombstone(value, path):
                matched.add(pointer)
            continue
        matched.add(pointer)
        if not values.same(part, TOMBSTONE):
            value = json_pointers.replace(value, path, TOMBSTONE)
    return value, matched


def holds_tombstone(text: str) -> bool:
    """Whether JSON text may contain a tombstone: a fast substring search, without parsing."""
    return '"$redacted"' in text


def is_tombstone(text: str | None) -> bool:
    """Whether JSON text is a tombstone and nothing else."""
    return text is not None and holds_tombstone(text) and values.same(values.load(text), TOMBSTONE)


def _is_in_tombstone(value: JSON, path: list[str]) -> bool:
    for length in range(len(path)):
        try:
            if values.same(json_pointers.find(value, path[:length]), TOMBSTONE):
                return True
        except json_pointers.Mismatch:
            return False
    return False
