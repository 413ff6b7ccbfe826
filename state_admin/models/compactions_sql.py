"""Whose compaction comes next, and which threads are due by the clock: one statement each."""

from __future__ import annotations

from datetime import timedelta

from . import hot
from .compactions import CompactionQuerySet

# Workspaces take turns: the one with the fewest at work first, among equals the one that was served
# longest ago, so that a thousand jobs of one hold up nobody else's only one. Workspaces are found by
# hops in the index, not by a look at each job; and looked into one after the other until one gives
# a job that nobody else is just taking.
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
    FROM waiting w WHERE w.workspace_id IS NOT NULL
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

# Policies are laid over each other as domain/policies.py does it: a field at a time, and null counts.
_DUE = """
SELECT t.id
FROM threads t
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
    """Take the job whose turn it is, for as long as `lease`: its id, or None when nobody waits."""
    row = hot.fetch_one(_CLAIM_NEXT, {"lease": lease})
    return row[0] if row else None


def find_due_threads(*, after: int, min_gain: int, limit: int) -> list[int]:
    """Threads above `after`, by their ids, whose policy has `every_hours`, which are long enough to
    fold (`min_gain` where the policy does not say), got messages since their last compaction was
    asked for, and when that was longer ago than so many hours."""
    parameters = {"after": after, "min_gain": min_gain, "limit": limit}
    return [row[0] for row in hot.fetch_all(_DUE, parameters)]
