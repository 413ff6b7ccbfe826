"""The values of versions of entries, and of the versions before them."""

from __future__ import annotations

from collections.abc import Sequence

from . import hot
from .state_changes_sql import LARGEST, ValueChange

# A deleted version has no value. Version 1 follows no value.
_CHANGES = f"""
SELECT want.number, '', r.value IS NOT NULL,
    CASE WHEN r.size_bytes <= {LARGEST} THEN r.value::text END,
    p.value IS NOT NULL,
    CASE WHEN p.size_bytes <= {LARGEST} THEN p.value::text END
FROM unnest(%(numbers)b::bigint[], %(namespaces)b::text[], %(keys)b::text[], %(versions)b::bigint[])
    AS want(number, namespace, key, version)
JOIN namespaces n ON n.workspace_id = %(workspace)s AND n.name = want.namespace
JOIN entries e ON e.namespace_id = n.id AND e.key = want.key
JOIN entry_revisions r ON r.entry_id = e.id AND r.version = want.version
LEFT JOIN entry_revisions p ON p.entry_id = e.id AND p.version = want.version - 1
WHERE want.version = 1 OR p.version IS NOT NULL
"""


def read_entry_changes(
    workspace_id: int, versions: Sequence[tuple[str, str, int]]
) -> dict[tuple[str, str, int], ValueChange]:
    """What versions of entries changed, by (namespace, key, version). Without those that are no longer
    stored, or whose previous version is not."""
    if not versions:
        return {}
    addresses = [(number, *each) for number, each in enumerate(versions)]
    arrays = hot.unzip(("numbers", "namespaces", "keys", "versions"), addresses)
    rows = hot.fetch_all(_CHANGES, {"workspace": workspace_id, **arrays})
    return {versions[row[0]]: ValueChange._make(row) for row in rows}
