"""Ancestors and descendants of a thread: one statement each for any depth and size. The trees of
threads and of runs, as far as a page shows them."""

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


class TreeEdge(NamedTuple):
    """A thread or run of a tree, and the one that it comes from: None for the first."""

    id: int
    above: int | None


# A thread comes from its parent or, without one, from the thread that it was forked from. A run comes
# from the run that delegated to it. Each has one origin at most, so these are trees, unless clients
# declare a circle: then `<> start` ends the walk. The walks are breadth-first.
_TREE_ABOVE = """
WITH RECURSIVE above AS (
    SELECT start.*, 0 AS distance FROM {table} start WHERE start.id = %(start)s
    UNION ALL
    SELECT origin.*, above.distance + 1 FROM above CROSS JOIN LATERAL ({origin}) origin
    WHERE above.distance < %(most)s AND origin.id <> %(start)s
)
SELECT id FROM above ORDER BY distance
"""
_TREE_BELOW = """
WITH RECURSIVE below AS (
    SELECT start.id, start.public_id, NULL::bigint AS origin
    FROM {table} start WHERE start.id = %(start)s
    UNION ALL
    SELECT found.id, found.public_id, below.id FROM below CROSS JOIN LATERAL ({following}) found
    WHERE found.id <> %(start)s
)
SELECT id, origin FROM below LIMIT %(most)s
"""
_THREADS_ABOVE = _TREE_ABOVE.format(
    table="threads",
    origin="""
        SELECT t.* FROM threads t WHERE t.id = above.parent_id
        UNION ALL
        SELECT t.* FROM threads t
        WHERE above.parent_id IS NULL AND t.workspace_id = %(workspace)s
            AND t.public_id = above.forked_from ->> 'thread_id'
    """,
)
_THREADS_BELOW = _TREE_BELOW.format(
    table="threads",
    following="""
        (SELECT t.id, t.public_id FROM threads t
        WHERE t.parent_id = below.id ORDER BY t.id LIMIT %(most)s)
        UNION ALL
        (SELECT t.id, t.public_id FROM threads t
        WHERE t.workspace_id = %(workspace)s AND t.forked_from IS NOT NULL
            AND t.forked_from -> 'thread_id' = to_jsonb(below.public_id::text)
            AND t.parent_id IS NULL
        ORDER BY t.id LIMIT %(most)s)
    """,
)
_RUNS_ABOVE = _TREE_ABOVE.format(
    table="runs",
    origin="""
        SELECT r.* FROM runs r
        WHERE r.workspace_id = %(workspace)s AND r.public_id = above.parent_run_id
            AND above.parent_run_id <> ''
    """,
)
_RUNS_BELOW = _TREE_BELOW.format(
    table="runs",
    following="""
        SELECT r.id, r.public_id FROM runs r
        WHERE r.workspace_id = %(workspace)s AND r.parent_run_id = below.public_id
            AND r.parent_run_id <> ''
        ORDER BY r.id LIMIT %(most)s
    """,
)
_WALKS = {"threads": (_THREADS_ABOVE, _THREADS_BELOW), "runs": (_RUNS_ABOVE, _RUNS_BELOW)}


def read_origins(table: str, workspace: int, start: int, most: int) -> list[int]:
    """The row ids from `start` to the root of its tree, at most `most` above it. `table` is "threads"
    or "runs"."""
    statement = _WALKS[table][0]
    rows = hot.fetch_all(statement, {"workspace": workspace, "start": start, "most": most})
    # In a circle above `start`, the same ids follow again.
    return list(dict.fromkeys(row[0] for row in rows))


def read_tree(table: str, workspace: int, start: int, most: int) -> list[TreeEdge]:
    """The first `most` of a tree, from `start` downwards: each after the one that it comes from."""
    statement = _WALKS[table][1]
    rows = hot.fetch_all(statement, {"workspace": workspace, "start": start, "most": most})
    return [TreeEdge._make(row) for row in rows]
