"""Compares entries now with their state at a point in time: for a bulk restore."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from . import hot
from .entries import EntryQuerySet

# Entries with their revisions at that time.
_THEN = """
FROM entries e
JOIN namespaces n ON n.id = e.namespace_id
LEFT JOIN LATERAL (
    SELECT * FROM entry_revisions r
    WHERE r.entry_id = e.id AND r.at <= %(at)s ORDER BY r.version DESC LIMIT 1
) r ON true
WHERE e.id = ANY(%(ids)s)
ORDER BY n.name COLLATE "C", e.key COLLATE "C"
"""

# An entry that was not written since that time is unchanged, unless it has expired since: it may be
# expired before the sweep has deleted it.
_TOUCHED = f"SELECT e.id, e.size_bytes + coalesce(r.size_bytes, 0) {_THEN}"

_COMPARE = f"""
SELECT e.id, e.namespace_id, n.name, e.key, e.version,
    CASE WHEN NOT e.deleted AND (e.expires_at IS NULL OR e.expires_at > now())
        THEN e.value::text END,
    r.version,
    CASE WHEN r.expires_at IS NULL OR r.expires_at > %(at)s THEN r.value::text END,
    NOT EXISTS (
        SELECT 1 FROM entry_revisions next
        WHERE next.entry_id = e.id AND next.version = coalesce(r.version, 0) + 1
    ) AND coalesce(r.version, 0) < e.version,
    r.redacted_at IS NOT NULL
{_THEN}"""

_LOCK = """
SELECT e.id FROM entries e JOIN namespaces n ON n.id = e.namespace_id
WHERE e.id = ANY(%(ids)s)
ORDER BY n.name COLLATE "C", e.key COLLATE "C"
FOR UPDATE OF e
"""


class EntryAtMoment(NamedTuple):
    """An entry now and at the requested time. A value is JSON text, or None without one. `lost`:
    history compaction removed the version of that time."""

    entry_id: int
    namespace_id: int
    namespace: str
    key: str
    version: int
    value: str | None
    then_version: int | None
    then_value: str | None
    lost: bool
    redacted: bool


def touched_since(rows: EntryQuerySet, at: datetime, most: int) -> Sequence[tuple[int, int]]:
    """Up to `most` of `rows` that may differ from their state at that time, as (id, bytes of both
    values), by (namespace, key)."""
    ids = list(rows.touched_since(at).values_list("id", flat=True)[:most])
    return [(row[0], row[1]) for row in hot.fetch_all(_TOUCHED, {"ids": ids, "at": at})]


def lock_entries(ids: Sequence[int]) -> None:
    """Lock rows in the order of all batches, until the end of the transaction."""
    hot.fetch_all(_LOCK, {"ids": list(ids)})


def compare(ids: Sequence[int], at: datetime) -> Sequence[EntryAtMoment]:
    """The entries now and at that time, by (namespace, key)."""
    rows = hot.fetch_all(_COMPARE, {"ids": list(ids), "at": at})
    return [EntryAtMoment._make(row) for row in rows]
