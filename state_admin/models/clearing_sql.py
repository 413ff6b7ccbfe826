"""The statement that deletes many entries at once, with history, audit row and change of each. It
removes the rows of entries in untracked namespaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from . import hot
from .entries_sql import trail

# The rows are locked by (namespace, key), the order of all batches, before the first is changed, so
# that two batches cannot deadlock. A row that was changed while this statement waited for its lock
# is evaluated again.
_CLEAR = f"""
WITH held AS MATERIALIZED (
    SELECT e.id, n.name, n.tracked
    FROM unnest(%(namespaces)s::bigint[], %(keys)s::text[]) AS want(namespace_id, key)
    JOIN entries e ON e.namespace_id = want.namespace_id AND e.key = want.key
    JOIN namespaces n ON n.id = e.namespace_id
    WHERE NOT e.deleted
    ORDER BY n.name COLLATE "C", e.key COLLATE "C"
    FOR UPDATE OF e
), w AS (
    UPDATE entries e SET
        value = NULL, version = e.version + 1, deleted = true, expires_at = NULL, size_bytes = 0,
        estimated_tokens = 0, actor_kind = %(actor_kind)s, actor_name = %(actor_name)s,
        updated_at = clock_timestamp()
    FROM held
    WHERE e.id = held.id AND held.tracked AND NOT e.deleted
        AND coalesce(e.expires_at <= now(), false) = %(expired)s
    RETURNING e.*
), removed AS (
    DELETE FROM entries e USING held
    WHERE e.id = held.id AND NOT held.tracked AND NOT e.deleted
        AND coalesce(e.expires_at <= now(), false) = %(expired)s
    RETURNING e.id
){trail("w JOIN held ON held.id = w.id", "held.name")}
SELECT (SELECT count(*) FROM w) + (SELECT count(*) FROM removed)
"""


def clear_entries(parameters: Mapping[str, Any], addresses: Sequence[tuple[int, str]]) -> int:
    """Delete the entries at `addresses`, (id of the namespace, key): the live ones
    or, with `expired`, the expired ones. Returns their number."""
    arrays = hot.unzip(("namespaces", "keys"), addresses)
    return int(hot.fetch_row(_CLEAR, {**parameters, **arrays})[0])
