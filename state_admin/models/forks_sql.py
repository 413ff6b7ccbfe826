"""Copies messages inside the database, with constant memory."""

from __future__ import annotations

from . import hot

# The marks of summaries are copied too: a summary covers messages before itself only, so those
# within the first messages cover nothing beyond them. Runs remain with the original thread.
_COPY = """
WITH made AS (
    INSERT INTO messages (thread_id, seq, public_id, role, visibility, body, opens, answers,
        estimated_tokens, folds_from, folds_to, fold_carries, fold_lifted_at, created_at)
    SELECT %(fork)s, seq, public_id, role, visibility, body, opens, answers,
        estimated_tokens, folds_from, folds_to, fold_carries, fold_lifted_at, created_at
    FROM messages WHERE thread_id = %(source)s AND seq <= %(count)s
    ORDER BY seq
    RETURNING 1
)
SELECT count(*) FROM made
"""


def copy_messages(*, source: int, fork: int, count: int) -> int:
    """Copy the first `count` messages of a thread into an empty one; returns their number."""
    return int(hot.fetch_row(_COPY, {"source": source, "fork": fork, "count": count})[0])
