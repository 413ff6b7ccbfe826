"""Compares entries now with their state at a point in time: for a restore of many entries to a moment, and
for a revert of everything that was written since."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from state_admin.domain.access import Actor

from . import hot
from .browsing import EntryFilter, entries_after
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


# Examines the next entries that match the filters for those that EntryQuerySet.touched_since would
# select. No index has the time, so all must be examined.
_EXAMINED = """
WITH examined AS MATERIALIZED (
    SELECT n.name AS namespace, e.key, e.version,
        e.updated_at > %(at)s OR (
            NOT e.deleted AND e.expires_at > %(at)s AND e.expires_at <= now()
        ) AS touched
    {entries}
)"""
_STORE = """, stored AS (
    INSERT INTO revert_entries (workspace_id, revert_id, namespace, key, version, tag_change, why)
    SELECT %(workspace)s, %(revert)s::bigint, namespace, key, version, '', ''
    FROM examined WHERE touched ORDER BY namespace, key
)"""
_LAST = """
SELECT last.namespace, last.key FROM examined last ORDER BY namespace DESC, key DESC
LIMIT CASE WHEN (SELECT count(*) FROM examined) = %(window)s THEN 1 ELSE 0 END
"""
_NAMES = """
SELECT (SELECT count(*) FROM examined) = %(window)s,
    ARRAY(SELECT namespace || '/' || key FROM examined WHERE touched ORDER BY namespace, key)
"""


def store_touched(
    actor: Actor, revert_id: int, at: datetime, filters: EntryFilter, *, rows: int
) -> tuple[str, str] | None:
    """Store those of the next `rows` entries that may differ from their state at that time, with their
    versions. Returns the last of the examined ones as (namespace, key), None if there are no further
    ones."""
    entries, parameters = entries_after(actor, filters, rows)
    statement = _EXAMINED.format(entries=entries) + _STORE + _LAST
    row = hot.fetch_one(statement, {**parameters, "at": at, "revert": revert_id})
    return (row[0], row[1]) if row else None


def find_touched(
    actor: Actor, at: datetime, filters: EntryFilter, *, rows: int
) -> tuple[list[str], bool]:
    """The addresses of the entries that store_touched would store, and whether there may be more."""
    entries, parameters = entries_after(actor, filters, rows)
    statement = _EXAMINED.format(entries=entries) + _NAMES
    more, names = hot.fetch_row(statement, {**parameters, "at": at})
    return names, more
