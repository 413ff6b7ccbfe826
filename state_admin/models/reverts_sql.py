"""The statements of reverts: find the entries that a request wrote, choose the next ones, and lock them
with their versions from before the request. The search of a revert to a moment is in moments_sql.py."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from state_admin.domain.access import Actor

from . import hot
from .entries import Operation
from .reverts import MIXED
from .visibility import glob_regex

_WRITES: Final = [f"entry.{operation.value}" for operation in Operation]

# `rows` of the audit log of a workspace on one side of a position, and those among them that a request
# wrote to entries. An id is not a row: ids belong to all workspaces, and a restore skips many.
_EXAMINED = """
WITH examined AS MATERIALIZED (
    SELECT a.id, a.action, a.namespace, a.key, a.version, a.detail,
        a.request_id = %(target)s AND a.action = ANY(%(writes)s::text[])
            AND (%(globs)s::text IS NULL OR a.namespace ~ %(globs)s) AS written
    FROM audit a WHERE a.workspace_id = %(workspace)s AND {side}
    LIMIT %(rows)s
)"""
_UP: Final = "a.id > %(position)s ORDER BY a.id"
_DOWN: Final = "a.id <= %(position)s ORDER BY a.id DESC"
_SUMMARY = """
SELECT count(*), count(*) FILTER (WHERE written), min(id), max(id) FROM examined
"""
# A key may be in several batches: the newest version counts.
_STORE = f""", stored AS (
    INSERT INTO revert_entries AS r
        (workspace_id, revert_id, namespace, key, version, tag_change, why)
    SELECT %(workspace)s, %(revert)s::bigint, namespace, key, max(version),
        CASE WHEN min(tag_change) = max(tag_change) THEN min(tag_change) ELSE '{MIXED}' END, ''
    FROM (
        SELECT namespace, key, version,
            coalesce('-' || (detail ->> 'tagged'), '+' || (detail ->> 'untagged'), '') AS tag_change
        FROM examined WHERE written
    ) changed
    GROUP BY namespace, key
    ORDER BY namespace, key
    ON CONFLICT (revert_id, namespace, key) DO UPDATE
        SET version = greatest(r.version, excluded.version),
            tag_change = CASE WHEN r.tag_change = excluded.tag_change THEN r.tag_change
                ELSE '{MIXED}' END
)"""
_NAMES = """
SELECT DISTINCT namespace, key, (SELECT count(*) FROM examined) FROM examined WHERE written
"""


class Examined(NamedTuple):
    """A part of the audit log: its rows, those of the request, and the lowest and highest id (None:
    there are no rows)."""

    rows: int
    found: int
    low: int | None
    high: int | None


def _search(actor: Actor, target: str, position: int, rows: int) -> dict[str, Any]:
    return {
        "workspace": actor.workspace_id,
        "target": target,
        "position": position,
        "rows": rows,
        "writes": _WRITES,
        "globs": glob_regex(actor.namespaces) if actor.namespaces else None,
    }


def store_written(
    actor: Actor, revert_id: int, target: str, *, position: int, up: bool, rows: int
) -> Examined:
    """Search `rows` rows of the audit log, after `position` or, without `up`, at it and before. Store
    the entries that `target` wrote, as far as `actor` sees them."""
    statement = _EXAMINED.format(side=_UP if up else _DOWN) + _STORE + _SUMMARY
    parameters = {**_search(actor, target, position, rows), "revert": revert_id}
    (row,) = hot.fetch_all(statement, parameters)
    return Examined._make(row)


def find_names(
    actor: Actor, target: str, *, position: int, rows: int
) -> tuple[list[tuple[str, str]], bool]:
    """The entries that `target` wrote, in order, as far as they are in `rows` rows of the audit log on
    each side of `position`; and whether there may be more."""
    parameters = _search(actor, target, position, rows)
    names: set[tuple[str, str]] = set()
    more = False
    for side in (_UP, _DOWN):
        found = hot.fetch_all(_EXAMINED.format(side=side) + _NAMES, parameters)
        names.update((namespace, key) for namespace, key, _ in found)
        more = more or (bool(found) and found[0][2] == rows)
    return sorted(names), more


# The first version that the request created follows the newest one by another request, and the first one
# since a moment follows the newest one at that moment. If a version between them was removed, or belonged to another
# request, it is unknown which version was there before. OFFSET 0: otherwise, with statistics of an almost
# empty table, the join reads all entries of the namespace for each row.
_NEXT = """
SELECT p.id, e.id, p.namespace, p.key, p.tag_change,
    CASE WHEN own.versions = p.version - coalesce(prior.version, 0)
        THEN coalesce(prior.version, 0) + 1 ELSE %(unknown)s END,
    p.version, coalesce(e.size_bytes, 0) + coalesce(prior.size_bytes, 0)
FROM (
    SELECT * FROM revert_entries
    WHERE revert_id = %(revert)s AND (namespace, key) > (%(namespace)s, %(key)s)
    ORDER BY namespace, key LIMIT %(rows)s
) p
LEFT JOIN LATERAL (
    SELECT e.id, e.size_bytes FROM entries e
    WHERE e.key = p.key AND e.namespace_id = (
        SELECT n.id FROM namespaces n WHERE n.workspace_id = p.workspace_id AND n.name = p.namespace
    )
    OFFSET 0
) e ON true
LEFT JOIN LATERAL (
    SELECT r.version, r.size_bytes FROM entry_revisions r
    WHERE r.entry_id = e.id AND r.version < p.version AND {earlier}
    ORDER BY r.version DESC LIMIT 1
) prior ON true
LEFT JOIN LATERAL (
    SELECT count(*) AS versions FROM entry_revisions r
    WHERE r.entry_id = e.id AND r.version > coalesce(prior.version, 0) AND r.version <= p.version
) own ON true
ORDER BY p.namespace, p.key
"""
_OF_ANOTHER: Final = "r.request_id <> %(target)s"
_OF_THE_TIME: Final = "r.at <= %(at)s"
# As `first`: no version precedes it.
_UNKNOWN: Final = 2**62


class NextEntry(NamedTuple):
    """A row of revert_entries. `entry_id`: None if the entry was removed. `first` and `last`: as in
    WrittenEntry. `size`: bytes of the values that its revert reads and writes."""

    row_id: int
    entry_id: int | None
    namespace: str
    key: str
    tag_change: str
    first: int
    last: int
    size: int


def next_entries(
    revert_id: int, target: str | datetime, *, after: tuple[str, str], rows: int
) -> list[NextEntry]:
    """The next entries of a job after this address, in the order of all batches. `target`: the request
    whose writes it reverts, or the moment since which it reverts all."""
    since = isinstance(target, datetime)
    parameters = {
        "revert": revert_id, "at" if since else "target": target, "namespace": after[0],
        "key": after[1], "rows": rows, "unknown": _UNKNOWN,
    }  # fmt: skip
    statement = _NEXT.format(earlier=_OF_THE_TIME if since else _OF_ANOTHER)
    return [NextEntry._make(row) for row in hot.fetch_all(statement, parameters)]


_SETTLE_DONE = "DELETE FROM revert_entries WHERE id = ANY(%(done)b::bigint[]) RETURNING id"
_SETTLE_SKIPPED = """
UPDATE revert_entries r SET why = x.why
FROM unnest(%(ids)b::bigint[], %(reasons)b::text[]) AS x(id, why)
WHERE r.id = x.id RETURNING r.id
"""


def settle(done: Sequence[int], skipped: Sequence[tuple[int, str]]) -> None:
    """Remove the rows of reverted entries, and record why the others were skipped."""
    if done:
        hot.fetch_all(_SETTLE_DONE, {"done": list(done)})
    if skipped:
        hot.fetch_all(_SETTLE_SKIPPED, hot.unzip(("ids", "reasons"), skipped))


# Locked in the order of all batches: by (namespace, key). If a row changes while this statement waits
# for its lock, its version differs, and the row is not returned. Subqueries as in _NEXT, so that the
# plan does not depend on statistics. A version that had expired before the request, which no sweep may
# have recorded, has no value: the request created the entry.
_LOCK = """
SELECT e.id, e.tags, e.pinned, e.deleted, e.namespace_id, want.namespace, e.key, e.version,
    CASE WHEN NOT e.deleted AND (e.expires_at IS NULL OR e.expires_at > now())
        THEN e.value::text END,
    e.expires_at, r.version, r.value, r.expires_at, coalesce(r.expires_at <= now(), false),
    r.redacted_at IS NOT NULL
FROM (
    SELECT * FROM unnest(
        %(namespaces)s::text[], %(keys)s::text[], %(firsts)s::bigint[], %(lasts)s::bigint[]
    ) AS x(namespace, key, first, last)
    ORDER BY namespace COLLATE "C", key COLLATE "C" OFFSET 0
) want
CROSS JOIN LATERAL (
    SELECT e.* FROM entries e
    WHERE e.key = want.key AND e.version = want.last AND e.namespace_id = (
        SELECT n.id FROM namespaces n
        WHERE n.workspace_id = %(workspace)s AND n.name = want.namespace
            AND n.unregistered_at IS NULL
    )
    FOR UPDATE
) e
LEFT JOIN LATERAL (
    SELECT r.version, r.redacted_at,
        CASE WHEN r.expires_at <= own.at THEN NULL ELSE r.value::text END AS value,
        CASE WHEN r.expires_at <= own.at THEN NULL ELSE r.expires_at END AS expires_at
    FROM entry_revisions r
    LEFT JOIN entry_revisions own ON own.entry_id = r.entry_id AND own.version = want.first
    WHERE r.entry_id = e.id AND r.version = want.first - 1
    OFFSET 0
) r ON true
"""


class WrittenEntry(NamedTuple):
    """An entry that a request wrote, with the first and the last version it created."""

    namespace: str
    key: str
    first: int
    last: int


class RevertibleEntry(NamedTuple):
    """An entry as a request left it, and its version before the request (`then_…`). `then_version` is
    None if that version is not stored or did not exist. A value is JSON text, or None if the entry
    had no value or it had expired."""

    entry_id: int
    tags: Sequence[str]
    pinned: bool
    deleted: bool
    namespace_id: int
    namespace: str
    key: str
    version: int
    value: str | None
    expires_at: datetime | None
    then_version: int | None
    then_value: str | None
    then_expires_at: datetime | None
    then_expired: bool
    redacted: bool


def lock_entries(workspace_id: int, written: Sequence[WrittenEntry]) -> list[RevertibleEntry]:
    """Lock, until the end of the transaction, the entries whose version is still `last`."""
    columns = hot.unzip(("namespaces", "keys", "firsts", "lasts"), written)
    rows = hot.fetch_all(_LOCK, {"workspace": workspace_id, **columns})
    return [RevertibleEntry._make(row) for row in rows]


# The row of a deleted entry keeps its tags and pin. A write that creates the entry again clears them.
_RESTORE_MARKS = """
UPDATE entries e SET tags = x.tags, pinned = x.pinned
FROM json_to_recordset(%(rows)s::json) AS x(id bigint, tags varchar[], pinned boolean)
WHERE e.id = x.id
RETURNING e.id
"""


def restore_marks(rows: Sequence[RevertibleEntry]) -> None:
    """Give restored entries the tags and pins they had. The caller holds their locks."""
    marks = [{"id": r.entry_id, "tags": list(r.tags), "pinned": r.pinned} for r in rows]
    hot.fetch_all(_RESTORE_MARKS, {"rows": json.dumps(marks)})
