"""The values that revisions gave to state keys, and those before them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from . import hot

# Larger values (bytes) are not read, because a page shows many changes.
LARGEST = 4000

# LIMIT keeps PostgreSQL from joining all values of the thread, as it would in a plan for any arrays.
# The size as stored, which may be compressed, is known without reading the value.
_VALUE = f"""
    CASE WHEN pg_column_size(s.value) <= {LARGEST} AND octet_length(s.value::text) <= {LARGEST}
        THEN s.value::text END AS value
"""
_CHANGES = f"""
SELECT c.number, c.key, after.valid_from IS NOT NULL, after.value,
    coalesce(before.valid_to = c.number, false), before.value
FROM unnest(%(numbers)b::bigint[], %(keys)b::text[]) AS c(number, key)
LEFT JOIN LATERAL (
    SELECT s.valid_from, {_VALUE} FROM state_values s
    WHERE s.thread_id = %(thread)s AND s.key = c.key AND s.valid_from = c.number LIMIT 1
) after ON true
LEFT JOIN LATERAL (
    SELECT s.valid_to, {_VALUE} FROM state_values s
    WHERE s.thread_id = %(thread)s AND s.key = c.key AND s.valid_from < c.number
    ORDER BY s.valid_from DESC LIMIT 1
) before ON true
ORDER BY c.number, c.key
"""


class ValueChange(NamedTuple):
    """A key at a revision and at the one before: whether it has a value (`exists`, `existed`), and
    its JSON text, None if it is larger than LARGEST."""

    number: int
    key: str
    exists: bool
    after: str | None
    existed: bool
    before: str | None


def read_changes(thread_id: int, pairs: Sequence[tuple[int, str]]) -> list[ValueChange]:
    """The changes of keys: `pairs` of a revision and a key that it wrote. Meaningful only if neither
    that revision nor the one before was removed by snapshot compaction."""
    if not pairs:
        return []
    parameters = {"thread": thread_id, **hot.unzip(("numbers", "keys"), pairs)}
    return [ValueChange._make(row) for row in hot.fetch_all(_CHANGES, parameters)]
