"""Ancestors and descendants of a thread: one statement each for any depth and size."""

from __future__ import annotations

from typing import NamedTuple

from . import hot


class Ancestor(NamedTuple):
    id: int
    public_id: str


_ABOVE = """
WITH RECURSIVE above AS (
    SELECT parent_id, 1 AS distance FROM threads WHERE id = %(thread)s
    UNION ALL
    SELECT t.parent_id, above.distance + 1 FROM above JOIN threads t ON t.id = above.parent_id
)
SELECT t.id, t.public_id FROM above JOIN threads t ON t.id = above.parent_id
ORDER BY above.distance
"""

_BELOW = """
WITH RECURSIVE below AS (
    SELECT id FROM threads WHERE parent_id = %(thread)s
    UNION ALL
    SELECT t.id FROM below JOIN threads t ON t.parent_id = below.id
)
SELECT id FROM below
"""


def read_ancestors(thread: int) -> list[Ancestor]:
    """The parent, its parent, and so on up to the root."""
    return [Ancestor._make(row) for row in hot.fetch_all(_ABOVE, {"thread": thread})]


def read_descendants(thread: int) -> list[int]:
    """The row ids of all descendants, in no particular order."""
    return [row[0] for row in hot.fetch_all(_BELOW, {"thread": thread})]
