"""The statements that change many entries at once, each only if it still has the expected
version."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple

from . import hot
from .entries_sql import NO_DETAIL, trail

Action = Literal["delete", "tag", "untag", "expire"]

# Locks in the order of all batches (clearing_sql.py): (namespace, key).
_HELD = """
WITH held AS MATERIALIZED (
    SELECT e.id, n.name, n.tracked, e.expires_at AS expired_at, want.expires_at
    FROM unnest(%(namespaces)s::bigint[], %(keys)s::text[], %(versions)s::bigint[],
        %(moments)s::timestamptz[]) AS want(namespace_id, key, version, expires_at)
    JOIN entries e ON e.namespace_id = want.namespace_id AND e.key = want.key
    JOIN namespaces n ON n.id = e.namespace_id
    WHERE e.version = want.version AND NOT e.deleted
        AND (e.expires_at IS NULL OR e.expires_at > now())
    ORDER BY n.name COLLATE "C", e.key COLLATE "C"
    FOR UPDATE OF e
), w AS (
    UPDATE entries e SET
        version = e.version + 1, actor_kind = %(actor_kind)s, actor_name = %(actor_name)s,
        updated_at = clock_timestamp(), """

_SET: Final[Mapping[Action, str]] = {
    "delete": """value = NULL, deleted = true, expires_at = NULL, size_bytes = 0,
        estimated_tokens = 0
    FROM held WHERE e.id = held.id AND held.tracked""",
    "tag": """tags = array_append(e.tags, %(tag)s::varchar)
    FROM held WHERE e.id = held.id AND NOT %(tag)s::varchar = ANY(e.tags)
        AND cardinality(e.tags) < %(most_tags)s""",
    "untag": """tags = array_remove(e.tags, %(tag)s::varchar)
    FROM held WHERE e.id = held.id AND %(tag)s::varchar = ANY(e.tags)""",
    "expire": """expires_at = held.expires_at
    FROM held WHERE e.id = held.id AND e.expires_at IS DISTINCT FROM held.expires_at""",
}

# A deleted entry of an untracked namespace leaves no row.
_REMOVED = """, removed AS (
    DELETE FROM entries e USING held
    WHERE %(operation)s::text = 'delete' AND e.id = held.id AND NOT held.tracked
    RETURNING e.namespace_id, e.key, e.version + 1, held.expired_at
)"""

# The history does not contain tags: a revert reads their changes from the audit log (reverts_sql.py).
_DETAIL: Final[Mapping[Action, str]] = {
    "tag": "jsonb_build_object('tagged', %(tag)s::text)",
    "untag": "jsonb_build_object('untagged', %(tag)s::text)",
}
_CHANGE: Final[Mapping[Action, str]] = {
    action: _HELD
    + change
    + "\n    RETURNING e.*\n)"
    + _REMOVED
    + trail("w JOIN held ON held.id = w.id", "held.name", detail=_DETAIL.get(action, NO_DETAIL))
    + "SELECT w.namespace_id, w.key, w.version, held.expired_at FROM w JOIN held ON held.id = w.id"
    " UNION ALL SELECT * FROM removed"
    for action, change in _SET.items()
}


class Changed(NamedTuple):
    """An entry that was changed: its new version, and its previous expiry."""

    namespace_id: int
    key: str
    version: int
    expired_at: datetime | None


def change_entries(action: Action, parameters: Mapping[str, Any]) -> list[Changed]:
    """Change the entries of `namespaces` (ids), `keys` and `versions`, arrays of one length, that
    exist, have that version, and do not have the requested state already. `moments` are the new
    expiries."""
    return [Changed._make(row) for row in hot.fetch_all(_CHANGE[action], parameters)]
