"""Which compaction runs next, and which threads are due by time: one statement each."""

from __future__ import annotations

from datetime import timedelta

from . import hot
from .compactions import CompactionQuerySet

# Workspaces take turns: the one with the fewest running jobs first, among equal ones the one served
# longest ago, so that a thousand jobs of one do not delay those of another. Workspaces are found by
# skipping through the index, not by reading each job; they are tried in this order until one has a
# job that no other worker is claiming.
_CLAIM_NEXT = f"""
WITH RECURSIVE waiting AS (
    (SELECT workspace_id FROM compactions WHERE status IN ('queued', 'running')
     ORDER BY workspace_id LIMIT 1)
    UNION ALL
    SELECT (SELECT c.workspace_id FROM compactions c
            WHERE c.status IN ('queued', 'running') AND c.workspace_id > w.workspace_id
            ORDER BY c.workspace_id LIMIT 1)
    FROM waiting w WHERE w.workspace_id IS NOT NULL
), turns AS MATERIALIZED (
    SELECT w.workspace_id,
        (SELECT count(*) FROM compactions c
         WHERE c.workspace_id = w.workspace_id AND c.status = 'running'
            AND c.lease_expires_at > statement_timestamp()) AS busy,
        (SELECT c.started_at FROM compactions c
         WHERE c.workspace_id = w.workspace_id AND c.started_at IS NOT NULL
         ORDER BY c.started_at DESC LIMIT 1) AS served
    FROM waiting w JOIN workspaces s ON s.id = w.workspace_id AND s.frozen_at IS NULL
    ORDER BY busy, served NULLS FIRST, workspace_id
), next AS MATERIALIZED (
    SELECT free.id FROM turns t CROSS JOIN LATERAL (
        SELECT c.id FROM compactions c
        WHERE c.workspace_id = t.workspace_id AND c.kind = 'context'
            AND {CompactionQuerySet.claimable_sql("c")}
        ORDER BY c.available_at, c.id LIMIT 1
        FOR UPDATE SKIP LOCKED
    ) free
    LIMIT 1
)
UPDATE compactions c
SET {CompactionQuerySet.claimed_sql("c")},
    phase = 'claimed', started_at = statement_timestamp()
FROM next n WHERE c.id = n.id
RETURNING c.public_id
"""

# Policies are combined as in domain/policies.py: field by field, and null counts.
_DUE = """
SELECT t.id
FROM threads t
JOIN workspaces s ON s.id = t.workspace_id AND s.frozen_at IS NULL
LEFT JOIN runs r ON r.id = t.latest_run_id
LEFT JOIN compaction_policies w ON w.workspace_id = t.workspace_id AND w.agent_id = ''
LEFT JOIN compaction_policies a
    ON a.workspace_id = t.workspace_id AND a.agent_id = r.agent_id AND a.agent_id <> ''
CROSS JOIN LATERAL (
    SELECT coalesce(w.body::jsonb, '{}') || coalesce(a.body::jsonb, '{}') || t.policy::jsonb AS policy
) p
CROSS JOIN LATERAL (
    SELECT max(c.created_at) AS asked_at,
        count(*) FILTER (WHERE c.status IN ('queued', 'running')) AS unfinished
    FROM compactions c
    WHERE c.thread_id = t.id AND c.kind = 'context'
) last
WHERE t.id > %(after)s AND p.policy ->> 'every_hours' IS NOT NULL
    AND t.context_tokens >= coalesce((p.policy ->> 'min_gain_tokens')::bigint, %(min_gain)s)
    AND last.unfinished = 0 AND coalesce(last.asked_at, t.created_at)
        <= statement_timestamp() - (p.policy ->> 'every_hours')::int * interval '1 hour'
    AND (last.asked_at IS NULL OR last.asked_at < (
        SELECT m.created_at FROM messages m
        WHERE m.thread_id = t.id AND m.folds_to IS NULL ORDER BY m.seq DESC LIMIT 1))
ORDER BY t.id LIMIT %(limit)s
"""


def claim_next(lease: timedelta) -> str | None:
    """Claim the next job for the duration `lease`: its id, or None if no job waits."""
    row = hot.fetch_one(_CLAIM_NEXT, {"lease": lease})
    return row[0] if row else None


def find_due_threads(*, after: int, min_gain: int, limit: int) -> list[int]:
    """Up to `limit` threads with an id above `after` whose policy has `every_hours`, which are long
    enough to summarize (`min_gain` if the policy has no limit), got messages since their last
    compaction was requested, and for which that is longer ago than so many hours."""
    parameters = {"after": after, "min_gain": min_gain, "limit": limit}
    return [row[0] for row in hot.fetch_all(_DUE, parameters)]
