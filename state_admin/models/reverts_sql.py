"""Locks the entries that one request wrote, and reads their versions from before the request."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from . import hot

# Locked in the order of all batches: by (namespace, key). If a row changes while this statement waits
# for its lock, its version differs, and the row is not returned.
_LOCK = """
SELECT e.id, e.tags, e.pinned, e.deleted, e.namespace_id, n.name, e.key, e.version,
    CASE WHEN NOT e.deleted AND (e.expires_at IS NULL OR e.expires_at > now())
        THEN e.value::text END,
    e.expires_at, r.version, r.value::text, r.expires_at, r.redacted_at IS NOT NULL
FROM unnest(%(namespaces)s::text[], %(keys)s::text[], %(firsts)s::bigint[], %(lasts)s::bigint[])
    AS want(namespace, key, first, last)
JOIN namespaces n ON n.workspace_id = %(workspace)s AND n.name = want.namespace
JOIN entries e ON e.namespace_id = n.id AND e.key = want.key
LEFT JOIN entry_revisions r ON r.entry_id = e.id AND r.version = want.first - 1
WHERE e.version = want.last AND n.unregistered_at IS NULL
ORDER BY n.name COLLATE "C", e.key COLLATE "C"
FOR UPDATE OF e
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
    had no value."""

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
