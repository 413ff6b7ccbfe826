"""Metrics over all workspaces, in two statements that read few rows: storage comes from the newest
samples, and no queue is counted beyond MOST."""

from __future__ import annotations

from typing import Final, NamedTuple

from django.conf import settings

from . import hot
from .counts import MOST

# By name: the description, and the name of its label.
METRICS: Final = {
    "commonhold_storage_bytes": ("Bytes of JSON text stored, as last measured", "part"),
    "commonhold_storage_rows": ("Rows stored, as last measured", "part"),
    "commonhold_compaction_tokens_saved_today": (
        "Tokens saved by context compaction today (UTC)",
        "",
    ),
    "commonhold_compaction_rows_removed_today": ("Rows removed today (UTC)", ""),
    "commonhold_dispatches": (
        f"Dispatches in mailboxes, at most {MOST:,} of each workspace and status. Queued and Claimed: without "
        "those of frozen workspaces",
        "status",
    ),
    "commonhold_new_dead_letters": (
        f"Dispatches that became dead letters within the last hour and were not requeued, at most {MOST:,}",
        "",
    ),
    "commonhold_compactions": (
        "Compactions. queued: those that are due, without those postponed to a later time or of frozen "
        "workspaces; running",
        "status",
    ),
    "commonhold_webhooks": ("Webhooks", "status"),
    "commonhold_calls_total": (
        "API requests of tokens of the present workspaces. failure: the response was 5xx; refused "
        "requests do not count. Lower after a workspace was deleted or a backup was restored",
        "outcome",
    ),
    "commonhold_sweep_age_seconds": (
        "Seconds since the sweep last ended, also with an error",
        "sweep",
    ),
    "commonhold_sweep_failed": (
        "1 if the last run of the sweep ended with an error, else 0",
        "sweep",
    ),
    "commonhold_frozen_seconds": (
        "Age in seconds of the longest write freeze of a workspace whose move has not ended; 0 if no "
        "workspace is frozen",
        "",
    ),
    "commonhold_audit_stream_lag_seconds": (
        "Age of the oldest audit row that was not sent to AUDIT_STREAM; 0: all were sent. Absent if "
        "AUDIT_STREAM is not set",
        "",
    ),
    "commonhold_audit_stream_lag_rows": (
        f"Audit rows that were not sent to AUDIT_STREAM, at most {MOST:,}. Absent if AUDIT_STREAM is "
        "not set",
        "",
    ),
    "commonhold_audit_stream_failures_total": (
        "Failed attempts to send to AUDIT_STREAM. Absent if AUDIT_STREAM is not set",
        "",
    ),
    "commonhold_database_connections": (
        "Connections of the primary. used: of all databases; limit: max_connections",
        "kind",
    ),
    "commonhold_standbys": (
        "Standbys to which the primary streams its WAL. 0 if the role of DATABASE_URL lacks pg_monitor",
        "",
    ),
    "commonhold_wal_archive_failing": (
        "1 if the last attempt to archive WAL failed, else 0. Absent if archive_mode is off",
        "",
    ),
    "commonhold_transaction_age": (
        "Transactions since the oldest row that is not frozen. PostgreSQL refuses writes at two billion",
        "",
    ),
    "commonhold_replica_used": (
        "1 if the read replica answers reads, 0 if the primary does in its place. Absent if "
        "DATABASE_REPLICA_URLS is not set",
        "replica",
    ),
    "commonhold_replica_lag_bytes": (
        "Bytes of WAL that the read replica has not replayed. Absent if the lag is unknown",
        "replica",
    ),
    "commonhold_replica_lag_seconds": (
        "Upper bound of the age of what the read replica returns. Absent if the lag is unknown",
        "replica",
    ),
}
STORAGE: Final = ("entries", "history", "messages", "state")


class MetricSample(NamedTuple):
    """One metric; `label` distinguishes it from others of the same name."""

    name: str
    label: str
    value: float


_STORAGE = """
SELECT coalesce(sum(entry_bytes), 0), coalesce(sum(history_bytes), 0),
    coalesce(sum(message_bytes), 0), coalesce(sum(state_bytes), 0),
    coalesce(sum(entries), 0), coalesce(sum(history_rows), 0),
    coalesce(sum(messages), 0), coalesce(sum(state_rows), 0),
    coalesce(sum(tokens_saved) FILTER (WHERE day = (now() AT TIME ZONE 'UTC')::date), 0),
    coalesce(sum(rows_removed) FILTER (WHERE day = (now() AT TIME ZONE 'UTC')::date), 0)
FROM workspaces w
CROSS JOIN LATERAL (
    SELECT * FROM storage_samples s
    WHERE s.workspace_id = w.id AND s.namespace_id IS NULL AND s.thread_id IS NULL
    ORDER BY s.day DESC LIMIT 1
) s
"""

# Statistics that PostgreSQL has in memory. All roles may read them, except those of standbys.
_SERVER = """
SELECT 'commonhold_database_connections', counted.kind, counted.value
FROM (VALUES ('used', (SELECT sum(numbackends) FROM pg_stat_database)),
    ('limit', current_setting('max_connections')::bigint)) counted(kind, value)
UNION ALL
SELECT 'commonhold_standbys', '', count(*) FROM pg_stat_replication WHERE state = 'streaming'
UNION ALL
SELECT 'commonhold_wal_archive_failing', '',
    coalesce(last_failed_time > coalesce(last_archived_time, '-infinity'), false)::int
FROM pg_stat_archiver WHERE current_setting('archive_mode') <> 'off'
UNION ALL
SELECT 'commonhold_transaction_age', '', max(age(datfrozenxid)) FROM pg_database
"""

_QUEUES = f"""
SELECT 'commonhold_dispatches', wanted.status, coalesce(sum(held.count), 0)
FROM unnest(ARRAY['Queued', 'Claimed', 'DeadLetter']) AS wanted(status)
LEFT JOIN workspaces w ON w.frozen_at IS NULL OR wanted.status = 'DeadLetter'
LEFT JOIN LATERAL (
    SELECT count(*) FROM (SELECT 1 FROM dispatches d
        WHERE d.workspace_id = w.id AND d.status = wanted.status LIMIT %(most)s) counted
) held ON true
GROUP BY wanted.status
UNION ALL
SELECT 'commonhold_new_dead_letters', '', (
    SELECT count(*) FROM (SELECT 1 FROM dispatches d
        WHERE d.status = 'DeadLetter' AND d.finished_at > statement_timestamp() - interval '1 hour'
        LIMIT %(most)s) counted
)
UNION ALL
SELECT 'commonhold_compactions', wanted.status, (
    SELECT count(*) FROM (SELECT 1 FROM compactions c
        WHERE c.status = wanted.status AND c.status IN ('queued', 'running')
            AND (c.status = 'running' OR c.available_at <= statement_timestamp() AND NOT EXISTS (
                SELECT FROM workspaces w WHERE w.id = c.workspace_id AND w.frozen_at IS NOT NULL))
        LIMIT %(most)s) counted
)
FROM unnest(ARRAY['queued', 'running']) AS wanted(status)
UNION ALL
SELECT 'commonhold_calls_total', counted.outcome, coalesce(counted.calls, 0)
FROM (
    SELECT sum(t.reads) AS reads, sum(t.writes) AS writes, sum(t.conflicts) AS conflicts,
        sum(t.failures) AS failures
    FROM workspaces w JOIN traffic t ON t.workspace_id = w.id AND t.minute = to_timestamp(0)
) ever
CROSS JOIN LATERAL (
    VALUES ('read', ever.reads), ('write', ever.writes), ('conflict', ever.conflicts),
        ('failure', ever.failures)
) counted(outcome, calls)
UNION ALL
SELECT 'commonhold_webhooks', wanted.status, count(h.id)
FROM unnest(ARRAY['active', 'paused', 'disabled']) AS wanted(status)
LEFT JOIN webhooks h ON h.status = wanted.status
GROUP BY wanted.status
UNION ALL
SELECT 'commonhold_sweep_age_seconds', name, extract(epoch FROM statement_timestamp() - finished_at)
FROM sweeps WHERE finished_at IS NOT NULL
UNION ALL
SELECT 'commonhold_sweep_failed', name, (error <> '')::int
FROM sweeps WHERE finished_at IS NOT NULL
UNION ALL
SELECT 'commonhold_frozen_seconds', '',
    coalesce(extract(epoch FROM statement_timestamp() - min(m.updated_at)), 0)
FROM workspace_moves m WHERE m.state IN ('frozen', 'closing')
UNION ALL
{_SERVER}UNION ALL
SELECT figure.name, '', figure.value
FROM (SELECT coalesce(max(position), 0) AS position, coalesce(max(failures), 0) AS failures
    FROM audit_streams WHERE destination = %(audit_stream)s) s
CROSS JOIN LATERAL (VALUES
    ('commonhold_audit_stream_lag_seconds', coalesce((
        SELECT extract(epoch FROM statement_timestamp() - a.at) FROM audit a
        WHERE a.id > s.position ORDER BY a.id LIMIT 1), 0)),
    ('commonhold_audit_stream_lag_rows', (SELECT count(*) FROM (
        SELECT 1 FROM audit a WHERE a.id > s.position ORDER BY a.id LIMIT %(most)s) counted)),
    ('commonhold_audit_stream_failures_total', s.failures)
) figure(name, value)
WHERE %(audit_stream)s <> ''
"""


def read_figures() -> list[MetricSample]:
    """Storage by part, queues and webhooks by status, the savings of compaction today, the total number of
    calls, the age and outcome of each sweep, the longest freeze, the state of the database server, and the
    lag of the audit stream."""
    row = hot.fetch_row(_STORAGE, {})
    sizes, rows = zip(STORAGE, row[:4], strict=True), zip(STORAGE, row[4:8], strict=True)
    return [
        *(MetricSample("commonhold_storage_bytes", part, float(value)) for part, value in sizes),
        *(MetricSample("commonhold_storage_rows", part, float(value)) for part, value in rows),
        MetricSample("commonhold_compaction_tokens_saved_today", "", float(row[8])),
        MetricSample("commonhold_compaction_rows_removed_today", "", float(row[9])),
        *read_queues(),
    ]


def read_queues() -> list[MetricSample]:
    """The length of the queues over all workspaces, the age and outcome of each sweep, the longest freeze,
    the state of the database server, and the lag of the audit stream."""
    destination = settings.AUDIT_STREAM.url if settings.AUDIT_STREAM else ""
    rows = hot.fetch_all(_QUEUES, {"most": MOST, "audit_stream": destination})
    return [MetricSample(name, label, float(value)) for name, label, value in rows]
