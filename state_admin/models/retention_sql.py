"""The statements of snapshot and history compaction, in batches, and of their previews.

tests/domain/reference_retention.py states the rules in Python. No statement reads more than its
`batch`, and none changes a row that writers change: those update current rows and insert new ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from django.db import connection, transaction

from . import hot

# A revision that may be removed. Numbers are consecutive, so the newest `keep_last` are those above
# `until`. The condition on the runs' thread keeps PostgreSQL from reading all runs.
_MAY_GO = """
    NOT r.dropped AND NOT r.pinned AND r.label = '' AND r.number <= %(until)s
    AND (%(keep_every)s::bigint IS NULL OR r.number %% %(keep_every)s <> 0)
    AND NOT EXISTS (SELECT FROM runs WHERE runs.thread_id = %(thread)s AND runs.id = r.run_id
        AND runs.last_revision = r.number)
"""

_DROP = f"""
WITH gone AS (
    UPDATE revisions r SET dropped = true
    WHERE r.thread_id = %(thread)s AND r.number > %(after)s AND r.number <= %(after)s::bigint + %(batch)s
        AND {_MAY_GO}
    RETURNING 1
)
SELECT count(*) FROM gone
"""

_KEPT = """
SELECT coalesce(array_agg(number ORDER BY number), '{}') FROM revisions
WHERE thread_id = %(thread)s AND number <= %(until)s AND NOT dropped
"""

# No retained revision is in [a, b) if as many of them are below a as are below b. A row that is
# valid beyond `until` is valid at the first of the newest revisions, which is retained.
_SPAN_GOES = """
    {row}.valid_to <= %(until)s::bigint + 1 AND
    width_bucket({row}.valid_from - 1, {kept}) = width_bucket({row}.valid_to - 1, {kept})
"""

_REMOVE_VALUES = f"""
WITH page AS MATERIALIZED (
    SELECT key, valid_from, valid_to, pg_column_size(value) AS bytes FROM state_values
    WHERE thread_id = %(thread)s AND (key, valid_from) > (%(key)s::text COLLATE "C", %(from)s)
    ORDER BY key, valid_from LIMIT %(batch)s
), gone AS (
    DELETE FROM state_values s USING page p
    WHERE s.thread_id = %(thread)s AND s.key = p.key AND s.valid_from = p.valid_from
        AND {_SPAN_GOES.format(row="p", kept="%(kept)s::bigint[]")}
    RETURNING p.bytes
)
SELECT last.key, last.valid_from,
    (SELECT count(*) FROM page), (SELECT coalesce(sum(bytes), 0)::bigint FROM page),
    (SELECT count(*) FROM gone), (SELECT coalesce(sum(bytes), 0)::bigint FROM gone)
FROM (SELECT key, valid_from FROM page ORDER BY key DESC, valid_from DESC LIMIT 1) last
"""

_PREVIEW_VALUES = f"""
WITH fate AS MATERIALIZED (
    SELECT r.number, r.dropped, {_MAY_GO} AS goes FROM revisions r WHERE r.thread_id = %(thread)s
), kept AS MATERIALIZED (
    SELECT coalesce(array_agg(number ORDER BY number), '{{}}') AS numbers FROM fate
    WHERE NOT dropped AND NOT goes
), sizes AS (
    SELECT pg_column_size(s.value)::bigint AS bytes,
        coalesce({_SPAN_GOES.format(row="s", kept="kept.numbers")}, false) AS goes
    FROM state_values s CROSS JOIN kept WHERE s.thread_id = %(thread)s
)
SELECT (SELECT count(*) FILTER (WHERE NOT dropped) FROM fate),
    (SELECT count(*) FILTER (WHERE goes) FROM fate),
    count(*), count(*) FILTER (WHERE goes),
    coalesce(sum(bytes), 0)::bigint, coalesce(sum(bytes) FILTER (WHERE goes), 0)::bigint
FROM sizes
"""


class StoredSize(NamedTuple):
    """Rows and the bytes of their values as stored, and the part of both that is removed."""

    rows: int = 0
    rows_removed: int = 0
    bytes: int = 0
    bytes_removed: int = 0

    def plus(self, other: StoredSize) -> StoredSize:
        return StoredSize(*map(sum, zip(self, other, strict=True)))


class Page(NamedTuple):
    """What one batch examined, and the position after which the next one begins."""

    after: tuple[str, int]
    weight: StoredSize


def drop_revisions(
    *, thread_id: int, after: int, until: int, keep_every: int | None, batch: int
) -> int:
    """Mark those of the next `batch` revisions after `after` that may be removed; returns how
    many."""
    parameters = {
        "thread": thread_id,
        "after": after,
        "until": until,
        "keep_every": keep_every,
        "batch": batch,
    }
    dropped: int = hot.fetch_row(_DROP, parameters)[0]
    return dropped


def kept_revisions(*, thread_id: int, until: int) -> list[int]:
    """The numbers up to `until` that are not dropped, in order."""
    kept: list[int] = hot.fetch_row(_KEPT, {"thread": thread_id, "until": until})[0]
    return kept


def remove_values(
    *, thread_id: int, kept: Sequence[int], until: int, after: tuple[str, int], batch: int
) -> Page | None:
    """Delete those of the next `batch` values after `after`, a (key, valid_from), that no retained
    revision reads. None: there are no more values."""
    row = hot.fetch_one(
        _REMOVE_VALUES,
        {
            "thread": thread_id,
            "kept": list(kept),
            "until": until,
            "key": after[0],
            "from": after[1],
            "batch": batch,
        },
    )
    if row is None:
        return None
    key, valid_from, rows, size, rows_removed, bytes_removed = row
    return Page((key, valid_from), StoredSize(rows, rows_removed, size, bytes_removed))


def preview_values(
    *, thread_id: int, until: int, keep_every: int | None
) -> tuple[int, int, StoredSize]:
    """The number of retained snapshots, how many of them would be removed, and their size."""
    parameters = {"thread": thread_id, "until": until, "keep_every": keep_every}
    held, going, *weight = hot.fetch_row(_PREVIEW_VALUES, parameters)
    return held, going, StoredSize(*weight)


# keep_last from the policies of the thread, its agent and the workspace. A thread is due if as many
# snapshots can be removed as it keeps, or `most`, so that not every commit creates a job.
_DUE_THREADS = """
SELECT t.id FROM threads t
JOIN workspaces s ON s.id = t.workspace_id AND s.frozen_at IS NULL
LEFT JOIN runs r ON r.id = t.latest_run_id
LEFT JOIN compaction_policies a ON a.workspace_id = t.workspace_id AND a.agent_id = r.agent_id
    AND a.agent_id <> ''
LEFT JOIN compaction_policies w ON w.workspace_id = t.workspace_id AND w.agent_id = ''
CROSS JOIN LATERAL (
    SELECT (CASE WHEN t.policy::jsonb ? 'snapshot_keep_last' THEN t.policy
        WHEN a.body::jsonb ? 'snapshot_keep_last' THEN a.body ELSE w.body END
        ->> 'snapshot_keep_last')::bigint AS keep_last
) said
WHERE t.revision > said.keep_last
    AND t.revision - said.keep_last - coalesce((
        SELECT max(c.to_revision) FROM compactions c
        WHERE c.thread_id = t.id AND c.kind = 'snapshot' AND c.status IN ('queued', 'running', 'done')
    ), 0) >= least(said.keep_last, %(most)s::bigint)
ORDER BY t.id LIMIT %(limit)s
"""


def due_threads(*, most: int, limit: int) -> list[int]:
    """Threads whose policy limits snapshots, and which have enough beyond that limit."""
    return [row[0] for row in hot.fetch_all(_DUE_THREADS, {"most": most, "limit": limit})]


# The versions of each entry below the newest `keep_last` that are old enough and not pinned. A
# namespace without either limit keeps all.
_OLD_VERSIONS = """
    CROSS JOIN LATERAL (
        SELECT version FROM entry_revisions WHERE entry_id = e.id
        ORDER BY version DESC OFFSET greatest(coalesce(%(keep_last)s::bigint, 1), 1) - 1 LIMIT 1
    ) edge
    JOIN entry_revisions r ON r.entry_id = e.id AND r.version < edge.version
        AND NOT r.pinned AND (%(keep_seconds)s::bigint IS NULL
            OR r.at < now() - %(keep_seconds)s * interval '1 second')
        AND num_nonnulls(%(keep_last)s::bigint, %(keep_seconds)s::bigint) > 0
"""

_PAGE = """
WITH page AS MATERIALIZED (
    SELECT id, key FROM entries
    WHERE namespace_id = %(namespace)s AND key > %(key)s::text COLLATE "C"
    ORDER BY key LIMIT %(batch)s
)"""

# A version that another transaction is pinning or redacting is skipped until the next time.
_REMOVE_VERSIONS = f"""
{_PAGE}, old AS MATERIALIZED (
    SELECT r.entry_id, r.version, r.size_bytes FROM page e {_OLD_VERSIONS}
    LIMIT %(batch)s FOR UPDATE OF r SKIP LOCKED
), gone AS (
    DELETE FROM entry_revisions r USING old o
    WHERE r.entry_id = o.entry_id AND r.version = o.version
    RETURNING o.size_bytes
)
SELECT (SELECT max(key) FROM page), count(*), (SELECT count(*) FROM gone),
    coalesce(sum(size_bytes), 0)::bigint,
    (SELECT coalesce(sum(size_bytes), 0)::bigint FROM gone)
FROM page JOIN entry_revisions r ON r.entry_id = page.id
"""

_COUNT_VERSIONS = """
SELECT count(*), coalesce(sum(r.size_bytes), 0)::bigint
FROM entries e JOIN entry_revisions r ON r.entry_id = e.id
WHERE e.namespace_id = %(namespace)s
"""

_COUNT_OLD_VERSIONS = f"""
SELECT count(*), coalesce(sum(r.size_bytes), 0)::bigint
FROM (SELECT id FROM entries WHERE namespace_id = %(namespace)s) e {_OLD_VERSIONS}
"""

_COUNT_BATCH = f"""
{_PAGE}, old AS MATERIALIZED (
    SELECT r.size_bytes FROM page e {_OLD_VERSIONS}
)
SELECT (SELECT CASE WHEN count(*) = %(batch)s THEN max(key) END FROM page), count(*), (SELECT count(*) FROM old),
    coalesce(sum(size_bytes), 0)::bigint, (SELECT coalesce(sum(size_bytes), 0)::bigint FROM old)
FROM page JOIN entry_revisions r ON r.entry_id = page.id
"""

_ANY_OLD_VERSION = f"""
{_PAGE} SELECT (SELECT max(key) FROM page), EXISTS (SELECT FROM page e {_OLD_VERSIONS})
"""


class History(NamedTuple):
    """A namespace and the limits of its entries' history."""

    namespace: int
    keep_last: int | None
    keep_seconds: int | None


def remove_versions(history: History, *, after: str, batch: int) -> tuple[str | None, StoredSize]:
    """Delete up to `batch` old versions of the next `batch` entries after the key `after`. Returns
    the last of these keys (None: no more), and the size of their versions before."""
    parameters = {**history._asdict(), "key": after, "batch": batch}
    key, *weight = hot.fetch_row(_REMOVE_VERSIONS, parameters)
    return key, StoredSize(*weight)


def measure_versions(history: History) -> StoredSize:
    """All versions of a namespace's entries, and those that would be removed."""
    rows, size = hot.fetch_row(_COUNT_VERSIONS, history._asdict())
    rows_removed, bytes_removed = hot.fetch_row(_COUNT_OLD_VERSIONS, history._asdict())
    return StoredSize(rows, rows_removed, size, bytes_removed)


def count_versions(history: History, *, after: str, batch: int) -> tuple[str | None, StoredSize]:
    """As measure_versions, of the next `batch` entries after the key `after`. Returns the last of
    these keys too (None: no more)."""
    key, *weight = hot.fetch_row(_COUNT_BATCH, {**history._asdict(), "key": after, "batch": batch})
    return key, StoredSize(*weight)


@contextmanager
def limited_statements(milliseconds: int) -> Iterator[None]:
    """A transaction with this statement timeout."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SHOW statement_timeout")
        before = cursor.fetchone()
        cursor.execute("SET LOCAL statement_timeout = %s", [milliseconds])
        yield
        cursor.execute("SET LOCAL statement_timeout = %s", before)


def any_old_version(history: History, *, batch: int) -> bool:
    """Whether any version would be removed. Examines `batch` entries at a time."""
    key: str | None = ""
    found = False
    while key is not None and not found:
        parameters = {**history._asdict(), "key": key, "batch": batch}
        key, found = hot.fetch_row(_ANY_OLD_VERSION, parameters)
    return found
