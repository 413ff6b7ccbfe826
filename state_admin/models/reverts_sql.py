"""Finds what one request wrote, and locks it beside the versions from before."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from . import hot

# Ordered and locked as in all batches: by (namespace, key). A row that was changed while this statement
# waited for its lock has another version and is left out.
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
    """An entry as a request left it, and its version before (`then_version` None: it is not stored,
    or did not exist). A value is JSON text, None without one."""

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
    """Lock, until the end of the transaction, those that were not written since then."""
    columns = hot.unzip(("namespaces", "keys", "firsts", "lasts"), written)
    rows = hot.fetch_all(_LOCK, {"workspace": workspace_id, **columns})
    return [RevertibleEntry._make(row) for row in rows]


# A deleted entry keeps its tags and pin; a write that creates it again starts without them.
_RESTORE_MARKS = """
UPDATE entries e SET tags = x.tags, pinned = x.pinned
FROM json_to_recordset(%(rows)s::json) AS x(id bigint, tags varchar[], pinned boolean)
WHERE e.id = x.id
RETURNING e.id
"""


def restore_marks(rows: Sequence[RevertibleEntry]) -> None:
    """Give entries that were just created again the tags and pins they had. They are locked."""
    marks = [{"id": r.entry_id, "tags": list(r.tags), "pinned": r.pinned} for r in rows]
    hot.fetch_all(_RESTORE_MARKS, {"rows": json.dumps(marks)})
