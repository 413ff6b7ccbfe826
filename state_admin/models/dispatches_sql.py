"""The statements of the mailbox: claim, requeue after an expired lease, and the order.

All compare with statement_timestamp(): the transaction may have waited for a mailbox, and now()
would be before what others did meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

from state_admin.domain.access import Actor

from . import hot
from .large_columns import stored_bytes_of


class ExpiredDispatch(NamedTuple):
    """A dispatch whose lease had expired, and its new status."""

    id: str
    thread: str
    run: str
    status: str
    claimed_by: str


# Settled mailboxes may be claimed in the same transaction, and the foreign keys of rows that it
# changes twice are checked again at commit. Therefore the thread is locked before its mailbox, as
# in open_mailbox. Skips rows that another transaction has locked.
_LOCK_DUE = """
SELECT m.thread_id FROM mailboxes m JOIN threads t ON t.id = m.thread_id
WHERE m.workspace_id = %(workspace)s AND m.due_at <= statement_timestamp()
ORDER BY m.due_at LIMIT %(limit)s
FOR KEY SHARE OF t SKIP LOCKED FOR UPDATE OF m SKIP LOCKED
"""

_LOCK_MAILBOX = """
SELECT m.thread_id FROM mailboxes m JOIN threads t ON t.id = m.thread_id
WHERE m.thread_id = %(thread)s
FOR KEY SHARE OF t FOR UPDATE OF m
"""

_WITH_DUE = """
SELECT w.id FROM workspaces w
WHERE w.frozen_at IS NULL AND EXISTS (
    SELECT 1 FROM mailboxes m
    WHERE m.workspace_id = w.id AND m.due_at <= statement_timestamp()
)
"""

_TAKE_BACK = """
WITH lapsed AS (
    SELECT d.id, d.claimed_by, CASE
        WHEN d.epoch < m.epoch THEN 'Superseded'
        WHEN d.attempts + 1 >= d.max_attempts THEN 'DeadLetter'
        ELSE 'Queued' END AS fate
    FROM mailboxes m JOIN dispatches d ON d.thread_id = m.thread_id
    WHERE m.thread_id = ANY(%(threads)s::bigint[])
        AND d.status = 'Claimed' AND d.lease_until <= statement_timestamp()
), returned AS (
    UPDATE dispatches d
    SET status = l.fate, attempts = d.attempts + 1, available_at = statement_timestamp(),
        last_error = 'the lease of ' || d.claimed_by || ' ended without an answer',
        claim_digest = '', claimed_by = '', claimed_at = NULL, lease_until = NULL,
        updated_at = statement_timestamp(),
        finished_at = CASE WHEN l.fate = 'Queued' THEN NULL ELSE statement_timestamp() END
    FROM lapsed l WHERE d.id = l.id
    RETURNING d.*, l.claimed_by AS held_by
)
SELECT r.public_id, t.public_id, coalesce(u.public_id, ''), r.status, r.held_by
FROM returned r JOIN threads t ON t.id = r.thread_id LEFT JOIN runs u ON u.id = r.run_id
ORDER BY r.id
"""

# The change `mailbox.ready` notifies clients that wait for work.
_REFRESH = """
WITH fresh AS (
    SELECT m.thread_id, m.next_id AS was, n.id, n.priority, n.agent_id, n.public_id,
        coalesce(c.lease_until, l.available_at) AS due_at
    FROM mailboxes m
    LEFT JOIN dispatches c ON c.thread_id = m.thread_id AND c.status = 'Claimed'
    LEFT JOIN LATERAL (
        SELECT d.id, d.priority, d.agent_id, d.public_id FROM dispatches d
        WHERE d.thread_id = m.thread_id AND d.status = 'Queued' AND c.id IS NULL
            AND d.available_at <= statement_timestamp()
        ORDER BY d.priority, d.id LIMIT 1
    ) n ON true
    LEFT JOIN LATERAL (
        SELECT d.available_at FROM dispatches d
        WHERE d.thread_id = m.thread_id AND d.status = 'Queued'
            AND d.available_at > statement_timestamp()
        ORDER BY d.available_at LIMIT 1
    ) l ON true
    WHERE m.thread_id = ANY(%(threads)s::bigint[])
), moved AS (
    UPDATE mailboxes m
    SET next_id = f.id, next_priority = f.priority, next_agent = coalesce(f.agent_id, ''),
        due_at = f.due_at
    FROM fresh f WHERE m.thread_id = f.thread_id
        AND (m.next_id, m.due_at) IS DISTINCT FROM (f.id, f.due_at)
    RETURNING m.workspace_id, m.thread_id
)
INSERT INTO changes (workspace_id, kind, thread, key, actor_name)
SELECT w.workspace_id, 'mailbox.ready', t.public_id, f.public_id, %(actor)s
FROM moved w JOIN fresh f USING (thread_id) JOIN threads t ON t.id = w.thread_id
WHERE f.id IS DISTINCT FROM f.was AND f.id IS NOT NULL
RETURNING id
"""

# Payloads beyond the limit are left to the next claim.
_CLAIM = f"""
WITH picked AS (
    SELECT m.thread_id, m.next_id, m.next_priority FROM mailboxes m
    WHERE m.workspace_id = %(workspace)s AND m.next_id IS NOT NULL{{narrowing}}
    ORDER BY m.next_priority, m.next_id
    LIMIT %(limit)s
    FOR UPDATE OF m SKIP LOCKED
), fitting AS (
    SELECT s.thread_id, s.next_id FROM (
        SELECT p.thread_id, p.next_id, row_number() OVER ordered AS place,
            sum({stored_bytes_of("d.payload")}) OVER ordered AS bytes
        FROM picked p JOIN dispatches d ON d.id = p.next_id
        WINDOW ordered AS (ORDER BY p.next_priority, p.next_id)
    ) s WHERE s.place = 1 OR s.bytes <= %(most)s
), claimed AS (
    UPDATE dispatches d
    SET status = 'Claimed', claim_digest = %(digest)s, claimed_by = %(consumer)s,
        claimed_at = statement_timestamp(), lease_until = statement_timestamp() + %(lease)s,
        updated_at = statement_timestamp()
    FROM fitting f WHERE d.id = f.next_id AND d.status = 'Queued'
    RETURNING d.id, d.thread_id, d.lease_until
), taken AS (
    UPDATE mailboxes m
    SET next_id = NULL, next_priority = NULL, next_agent = '', due_at = c.lease_until
    FROM claimed c WHERE m.thread_id = c.thread_id
)
SELECT id FROM claimed
"""
_OF_THREAD = " AND m.thread_id = %(thread)s"
_OF_AGENT = " AND m.next_agent = %(agent)s"
_WITHIN = """ AND EXISTS (
        SELECT 1 FROM threads t, unnest(%(prefixes)s::text[]) p
        WHERE t.id = m.thread_id AND starts_with(t.public_id, p))"""


def lock_due(workspace_id: int, limit: int) -> list[int]:
    """Lock mailboxes of a workspace whose time has come, those due longest first; skips locked
    ones."""
    rows = hot.fetch_all(_LOCK_DUE, {"workspace": workspace_id, "limit": limit})
    return [row[0] for row in rows]


def lock_mailbox(thread: int) -> list[int]:
    """Lock the mailbox of one thread, if it exists; waits for the lock."""
    return [row[0] for row in hot.fetch_all(_LOCK_MAILBOX, {"thread": thread})]


def workspaces_with_due() -> list[int]:
    return [row[0] for row in hot.fetch_all(_WITH_DUE, {})]


def requeue_expired(threads: Sequence[int]) -> list[ExpiredDispatch]:
    """Requeue dispatches whose lease has expired, or make them dead letters. The mailboxes must be
    locked."""
    return [
        ExpiredDispatch._make(row) for row in hot.fetch_all(_TAKE_BACK, {"threads": list(threads)})
    ]


def refresh(threads: Sequence[int], actor_name: str) -> bool:
    """Compute the next dispatch of locked mailboxes, and write a change where it has changed.
    Returns whether it did."""
    return bool(hot.fetch_all(_REFRESH, {"threads": list(threads), "actor": actor_name}))


def claim(
    actor: Actor,
    *,
    thread: int | None,
    agent: str,
    limit: int,
    most: int,
    lease: timedelta,
    consumer: str,
    digest: str,
) -> list[int]:
    """Claim the first dispatch of up to `limit` free threads that the actor may see; returns their
    ids. Their payloads have at most `most` bytes together, or only one is claimed."""
    narrowing = (
        (_OF_THREAD if thread is not None else "")
        + (_OF_AGENT if agent else "")
        + (_WITHIN if actor.thread_prefixes and thread is None else "")
    )
    rows = hot.fetch_all(
        _CLAIM.format(narrowing=narrowing),
        {
            "workspace": actor.workspace_id,
            "thread": thread,
            "agent": agent,
            "prefixes": list(actor.thread_prefixes),
            "limit": limit,
            "most": most,
            "lease": lease,
            "consumer": consumer,
            "digest": digest,
        },
    )
    return [row[0] for row in rows]


_OPEN_MAILBOX = """
WITH held AS (
    SELECT id, workspace_id FROM threads WHERE id = %(thread)s FOR KEY SHARE
), made AS (
    INSERT INTO mailboxes (thread_id, workspace_id, epoch, next_agent)
    SELECT id, workspace_id, 0, '' FROM held
    ON CONFLICT DO NOTHING
)
SELECT id FROM held
"""


def open_mailbox(thread: int) -> bool:
    """Create the thread's mailbox if it does not exist. False: the thread does not exist.

    The thread is locked first, with the weakest lock that prevents its deletion, because rows that
    refer to it are inserted later, and a transaction that has locked the thread may lock the
    mailbox next.
    """
    return hot.fetch_one(_OPEN_MAILBOX, {"thread": thread}) is not None
