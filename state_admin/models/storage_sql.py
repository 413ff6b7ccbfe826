"""Counts everything that is stored, in many short statements, each of which reads a range of an
index. Nothing is locked and no transaction stays open, so that a walk may take long.

A walk counts each row that exists throughout once. Rows that are inserted or deleted meanwhile may
be included.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from datetime import date
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, NamedTuple

from state_admin.domain.storage import Counts

from . import hot

# Rows per statement, about 20 ms. Constants and not parameters, so that the planner knows them.
BATCH: Final = 10_000
# Rows of each table that a measurement on request reads.
MOST: Final = 100_000

_ENTRIES = """
SELECT max(id), count(*), namespace_id, count(*) FILTER (WHERE NOT deleted),
    coalesce(sum(size_bytes) FILTER (WHERE NOT deleted), 0)::bigint,
    coalesce(sum(estimated_tokens) FILTER (WHERE NOT deleted), 0)::bigint
FROM (SELECT id, namespace_id, deleted, size_bytes, estimated_tokens FROM entries
    WHERE id > %(after)s ORDER BY id LIMIT {batch}) e
GROUP BY namespace_id
"""

# A subquery for the namespace, because a join may read all entries each time.
_HISTORIES = """
SELECT max(entry_id), (array_agg(version ORDER BY entry_id DESC, version DESC))[1], count(*),
    namespace_id, sum(size_bytes)::bigint
FROM (SELECT entry_id, version, size_bytes,
        (SELECT e.namespace_id FROM entries e WHERE e.id = r.entry_id) AS namespace_id
    FROM entry_revisions r WHERE (entry_id, version) > (%(entry)s, %(version)s)
    ORDER BY entry_id, version LIMIT {batch}) r
GROUP BY namespace_id
"""

_THREADS = """
SELECT id, 1, workspace_id FROM threads WHERE id > %(after)s ORDER BY id LIMIT {batch}
"""

_MESSAGES = """
SELECT thread_id, max(seq), count(*), sum(octet_length(body::text))::bigint,
    sum(estimated_tokens)::bigint
FROM (SELECT thread_id, seq, body, estimated_tokens FROM messages
    WHERE (thread_id, seq) > (%(thread)s, %(seq)s) ORDER BY thread_id, seq LIMIT {batch}) m
GROUP BY thread_id ORDER BY thread_id
"""

_STATES = """
SELECT thread_id, max(key), (array_agg(valid_from ORDER BY key DESC, valid_from DESC))[1], count(*),
    count(*) FILTER (WHERE valid_to IS NULL),
    coalesce(sum(octet_length(value::text)) FILTER (WHERE valid_to IS NULL), 0)::bigint,
    coalesce(sum(octet_length(value::text)) FILTER (WHERE valid_to IS NOT NULL), 0)::bigint
FROM (SELECT thread_id, key, valid_from, valid_to, value FROM state_values
    WHERE (thread_id, key, valid_from) > (%(thread)s, %(key)s, %(valid_from)s)
    ORDER BY thread_id, key, valid_from LIMIT {batch}) s
GROUP BY thread_id ORDER BY thread_id
"""


def _walk(statement: str, **start: Any) -> Iterator[hot.Row]:
    """The rows of a statement, which is executed once per batch. The first columns of a row are where the
    next batch continues, named like the parameters `start`; the next one is how many rows of the table
    it summarizes."""
    place, seen = tuple(start.values()), BATCH
    while seen == BATCH:
        parameters = dict(zip(start, place, strict=True))
        rows = hot.fetch_all(statement.format(batch=BATCH), parameters)
        seen = sum(row[len(start)] for row in rows)
        place = max((row[: len(start)] for row in rows), default=place)
        yield from rows


def entries() -> Iterator[tuple[int, Counts]]:
    """Live entries by namespace, in parts: a namespace may occur several times."""
    for _, _, namespace, count, size, tokens in _walk(_ENTRIES, after=0):
        yield namespace, Counts(entries=count, entry_bytes=size, estimated_tokens=tokens)


def histories() -> Iterator[tuple[int, Counts]]:
    """Versions of entries by namespace, in parts."""
    for _, _, count, namespace, size in _walk(_HISTORIES, entry=0, version=0):
        yield namespace, Counts(history_rows=count, history_bytes=size)


class ThreadCounts(NamedTuple):
    thread_id: int
    workspace_id: int
    counts: Counts


def threads() -> Iterator[ThreadCounts]:
    """All threads with their counts, by id: three walks in parallel, each of which keeps at most a
    batch in memory."""
    walks = heapq.merge(_threads(), _messages(), _states(), key=itemgetter(0))
    for thread_id, pieces in groupby(walks, key=itemgetter(0)):
        workspace_id, counts = 0, Counts()
        for _, whose, piece in pieces:
            workspace_id = workspace_id or whose
            counts.add(piece)
        if workspace_id:  # otherwise the thread was created or deleted during the walk
            yield ThreadCounts(thread_id, workspace_id, counts)


_Piece = tuple[int, int, Counts]


def _threads() -> Iterator[_Piece]:
    for thread, _, workspace_id in _walk(_THREADS, after=0):
        yield thread, workspace_id, Counts(threads=1)


def _messages() -> Iterator[_Piece]:
    for thread, _, count, size, tokens in _walk(_MESSAGES, thread=0, seq=0):
        yield thread, 0, Counts(messages=count, message_bytes=size, estimated_tokens=tokens)


def _states() -> Iterator[_Piece]:
    walk = _walk(_STATES, thread=0, key="", valid_from=0)
    for thread, _, _, count, held, held_bytes, past_bytes in walk:
        counts = Counts(
            state_rows=held,
            state_bytes=held_bytes,
            history_rows=count - held,
            history_bytes=past_bytes,
        )
        yield thread, 0, counts


# Context compactions save tokens, the others remove rows. Undone ones do not count, and those from
# before a fork belong to the original thread.
_SETTLE = """
WITH done AS (
    SELECT workspace_id, namespace_id, thread_id, rows_removed,
        CASE WHEN kind = 'context' THEN tokens_before - tokens_after ELSE 0 END AS tokens
    FROM compactions c
    WHERE workspace_id = %(workspace)s AND status = 'done'
        AND finished_at >= %(day)s::date AND finished_at < %(day)s::date + 1
        AND NOT EXISTS (SELECT FROM threads t WHERE t.id = c.thread_id
            AND t.forked_from IS NOT NULL AND t.created_at > c.finished_at)
), saved AS (
    SELECT NULL::bigint AS namespace_id, NULL::bigint AS thread_id,
        coalesce(sum(tokens), 0)::bigint AS tokens, coalesce(sum(rows_removed), 0)::bigint AS rows
    FROM done
    UNION ALL
    SELECT namespace_id, thread_id, coalesce(sum(tokens), 0)::bigint, sum(rows_removed)::bigint
    FROM done WHERE namespace_id IS NOT NULL OR thread_id IS NOT NULL
    GROUP BY namespace_id, thread_id
)
UPDATE storage_samples s
SET tokens_saved = coalesce(saved.tokens, 0), rows_removed = coalesce(saved.rows, 0)
FROM storage_samples x
LEFT JOIN saved ON saved.namespace_id IS NOT DISTINCT FROM x.namespace_id
    AND saved.thread_id IS NOT DISTINCT FROM x.thread_id
WHERE s.id = x.id AND x.workspace_id = %(workspace)s AND x.day = %(day)s
    AND (s.tokens_saved, s.rows_removed) <> (coalesce(saved.tokens, 0), coalesce(saved.rows, 0))
RETURNING s.id
"""


def settle_savings(*, workspace_id: int, day: date) -> int:
    """Store the savings of a day's compactions in its samples; returns how many samples changed."""
    return len(hot.fetch_all(_SETTLE, {"workspace": workspace_id, "day": day}))


_NAMESPACE = f"""
SELECT e.seen, e.entries, e.bytes, e.tokens, h.seen, h.bytes
FROM (
    SELECT count(*) AS seen, count(*) FILTER (WHERE NOT deleted) AS entries,
        coalesce(sum(size_bytes) FILTER (WHERE NOT deleted), 0)::bigint AS bytes,
        coalesce(sum(estimated_tokens) FILTER (WHERE NOT deleted), 0)::bigint AS tokens
    FROM (SELECT deleted, size_bytes, estimated_tokens FROM entries
        WHERE namespace_id = %(namespace)s ORDER BY key LIMIT {MOST + 1}) e
) e, (
    SELECT count(*) AS seen, coalesce(sum(size_bytes), 0)::bigint AS bytes
    FROM (SELECT r.size_bytes
        FROM (SELECT id FROM entries WHERE namespace_id = %(namespace)s
            ORDER BY key LIMIT {MOST + 1}) e
        CROSS JOIN LATERAL (SELECT size_bytes FROM entry_revisions WHERE entry_id = e.id
            ORDER BY version) r
        LIMIT {MOST + 1}) r
) h
"""

_THREAD = f"""
SELECT m.seen, m.bytes, m.tokens, s.seen, s.held, s.held_bytes, s.past_bytes
FROM (
    SELECT count(*) AS seen, coalesce(sum(octet_length(body::text)), 0)::bigint AS bytes,
        coalesce(sum(estimated_tokens), 0)::bigint AS tokens
    FROM (SELECT body, estimated_tokens FROM messages
        WHERE thread_id = %(thread)s ORDER BY seq LIMIT {MOST + 1}) m
) m, (
    SELECT count(*) AS seen, count(*) FILTER (WHERE valid_to IS NULL) AS held,
        coalesce(sum(octet_length(value::text)) FILTER (WHERE valid_to IS NULL), 0)::bigint
            AS held_bytes,
        coalesce(sum(octet_length(value::text)) FILTER (WHERE valid_to IS NOT NULL), 0)::bigint
            AS past_bytes
    FROM (SELECT valid_to, value FROM state_values
        WHERE thread_id = %(thread)s ORDER BY key, valid_from LIMIT {MOST + 1}) s
) s
"""


def measure_namespace(namespace_id: int) -> Counts | None:
    """The exact size of a namespace now. None if it has more rows than one statement may read."""
    row = hot.fetch_row(_NAMESPACE, {"namespace": namespace_id})
    if max(row[0], row[4]) > MOST:
        return None
    return Counts(
        entries=row[1],
        entry_bytes=row[2],
        estimated_tokens=row[3],
        history_rows=row[4],
        history_bytes=row[5],
    )


def measure_thread(thread_id: int) -> Counts | None:
    """The exact size of a thread now. None if it has more rows than one statement may read."""
    row = hot.fetch_row(_THREAD, {"thread": thread_id})
    if max(row[0], row[3]) > MOST:
        return None
    return Counts(
        threads=1,
        messages=row[0],
        message_bytes=row[1],
        estimated_tokens=row[2],
        state_rows=row[4],
        state_bytes=row[5],
        history_rows=row[3] - row[4],
        history_bytes=row[6],
    )


_HELD = """
SELECT n.id, s.entry_bytes FROM unnest(%(ids)s::bigint[]) n(id)
CROSS JOIN LATERAL (
    SELECT entry_bytes FROM storage_samples s
    WHERE s.workspace_id = %(workspace)s AND s.namespace_id = n.id AND s.thread_id IS NULL
    ORDER BY s.day DESC LIMIT 1
) s
"""


def measured_bytes(workspace_id: int, namespace_ids: Sequence[int]) -> dict[int, int]:
    """The bytes of the entries of namespaces at their last measurement; without those never
    measured."""
    rows = hot.fetch_all(_HELD, {"workspace": workspace_id, "ids": list(namespace_ids)})
    return {row[0]: row[1] for row in rows}
