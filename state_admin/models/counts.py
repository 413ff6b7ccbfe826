"""The numbers in the navigation: one statement, every count bounded, none over a whole table."""

from __future__ import annotations

from typing import NamedTuple

from state_admin.domain.access import Actor

from . import hot

MOST = 10_000


class Counts(NamedTuple):
    """What a workspace holds, with its name. MOST + 1 means "more than MOST"."""

    workspace: str
    entries: int
    namespaces: int
    threads: int
    active_runs: int
    stuck_runs: int
    unfinished_compactions: int
    failed_compactions: int
    pending_tickets: int
    tokens: int


_COUNTS = """
SELECT
    (SELECT slug FROM workspaces WHERE id = %(workspace)s),
    (SELECT count(*) FROM (SELECT 1 FROM namespaces n CROSS JOIN LATERAL (
            SELECT 1 FROM entries e WHERE e.namespace_id = n.id AND NOT e.deleted
            ORDER BY e.key LIMIT %(most)s) e
        WHERE n.workspace_id = %(workspace)s LIMIT %(most)s) counted),
    (SELECT count(*) FROM (SELECT 1 FROM namespaces
        WHERE workspace_id = %(workspace)s AND unregistered_at IS NULL LIMIT %(most)s) counted),
    (SELECT count(*) FROM (SELECT 1 FROM threads
        WHERE workspace_id = %(workspace)s ORDER BY id DESC LIMIT %(most)s) counted),
    (SELECT count(*) FROM (SELECT 1 FROM runs
        WHERE workspace_id = %(workspace)s AND status <> 'done' LIMIT %(most)s) counted),
    (SELECT count(*) FROM (SELECT 1 FROM runs
        WHERE workspace_id = %(workspace)s AND status <> 'done' AND (
            (status = 'running' AND lease_expires_at <= now())
            OR (status = 'waiting' AND deadline_at <= now())
            OR (max_rounds > 0 AND step_count >= max_rounds)
            OR times_out_at <= now()) LIMIT %(most)s) counted),
    (SELECT count(*) FROM (SELECT 1 FROM compactions
        WHERE workspace_id = %(workspace)s AND status IN ('queued', 'running')
        LIMIT %(most)s) counted),
    (SELECT count(*) FROM (SELECT 1 FROM (SELECT status FROM compactions
        WHERE workspace_id = %(workspace)s ORDER BY id DESC LIMIT 200) newest
        WHERE status = 'failed') counted),
    (SELECT count(*) FROM (SELECT 1 FROM tickets
        WHERE workspace_id = %(workspace)s AND status = 'pending' LIMIT %(most)s) counted),
    (SELECT count(*) FROM (SELECT 1 FROM api_tokens
        WHERE workspace_id = %(workspace)s AND revoked_at IS NULL
        AND (expires_at IS NULL OR expires_at > now()) LIMIT %(most)s) counted)
"""


def bounded_counts(actor: Actor) -> Counts:
    """The counts of the actor's workspace, for a member (no narrowed token reads pages).

    Failed compactions are those among the newest 200.
    """
    row = hot.fetch_one(_COUNTS, {"workspace": actor.workspace_id, "most": MOST + 1})
    if row is None:
        raise RuntimeError("a SELECT without FROM answers one row")
    return Counts._make(row)
