"""The claims of deliveries: each is one statement, so that a race has one winner."""

from __future__ import annotations

from datetime import timedelta
from typing import NamedTuple

from . import hot
from .webhooks import DeliveryQuerySet


class ClaimedDelivery(NamedTuple):
    """A delivery that only this worker may send until its lease ends. `now` is the database's
    time."""

    id: int
    claim: int
    attempts: int
    public_id: str
    event_id: str
    body: str
    test: bool
    webhook_id: int
    webhook_public_id: str
    workspace_id: int
    url: str
    now: int


_UNFINISHED = "('queued', 'delivering', 'failed')"
_FREE = DeliveryQuerySet.claimable_sql("d")
_OPEN = "(SELECT frozen_at FROM workspaces s WHERE s.id = w.workspace_id) IS NULL"
_ROOM = "d.attempts < CASE WHEN d.test THEN 1 ELSE %(most)s END"

# Only the first unfinished delivery of a webhook can be claimed. If two workers claim two of them
# at once, one violates the unique index webhook_deliveries_in_flight.
_CLAIM = f"""
UPDATE webhook_deliveries d
SET {DeliveryQuerySet.claimed_sql("d")}, attempted_at = statement_timestamp()
FROM webhooks w
WHERE d.public_id = %(delivery)s AND w.id = d.webhook_id AND {_OPEN}
    AND {_FREE} AND {_ROOM}
    AND (d.test OR (
        w.status = 'active'
        AND NOT EXISTS (
            SELECT 1 FROM webhook_deliveries e
            WHERE e.webhook_id = d.webhook_id AND e.id < d.id AND NOT e.test
                AND e.status IN {_UNFINISHED}
        )
    ))
RETURNING d.id, d.claim, d.attempts, d.public_id, d.event_id, d.body, d.test,
    w.id, w.public_id, w.workspace_id, w.url, extract(epoch FROM statement_timestamp())::bigint
"""

# A worker died during the last attempt. Locked rows are left to the next time: an erasure locks them in
# another order.
_GIVE_UP = f"""
WITH lost AS MATERIALIZED (
    SELECT d.id FROM webhook_deliveries d JOIN webhooks w ON w.id = d.webhook_id AND {_OPEN}
    WHERE d.status = 'delivering' AND d.lease_expires_at <= statement_timestamp() AND NOT ({_ROOM})
    FOR UPDATE OF d SKIP LOCKED
)
UPDATE webhook_deliveries d
SET status = 'dead', claim = d.claim + 1, lease_expires_at = NULL, finished_at = statement_timestamp(),
    error = 'the worker stopped during the last attempt; the event may have arrived'
FROM lost WHERE d.id = lost.id
RETURNING d.id
"""

# The first unfinished delivery of each active webhook, if it is not claimed.
_HEADS = f"""
SELECT w.public_id, d.public_id
FROM webhooks w
CROSS JOIN LATERAL (
    SELECT * FROM webhook_deliveries e
    WHERE e.webhook_id = w.id AND NOT e.test AND e.status IN {_UNFINISHED}
    ORDER BY e.id LIMIT 1
) d
WHERE w.status = 'active' AND {_OPEN} AND (%(webhook)s::text = '' OR w.public_id = %(webhook)s)
    AND {_FREE}
ORDER BY d.next_attempt_at
"""

_TESTS = f"""
SELECT d.public_id FROM webhook_deliveries d JOIN webhooks w ON w.id = d.webhook_id AND {_OPEN}
WHERE d.test AND d.status IN {_UNFINISHED} AND {_FREE} AND {_ROOM}
ORDER BY d.id LIMIT 100
"""

_ANYTHING = f"""
SELECT EXISTS (SELECT 1 FROM webhooks w WHERE w.status = 'active' AND {_OPEN}) OR EXISTS ({_TESTS})
"""


def claim(delivery: str, *, lease: timedelta, most: int) -> ClaimedDelivery | None:
    """Claim a delivery. None: it is not due, is claimed, or does not exist.
    django.db.IntegrityError: another one of the same webhook was claimed at the same moment."""
    row = hot.fetch_one(_CLAIM, {"delivery": delivery, "lease": lease, "most": most})
    return ClaimedDelivery._make(row) if row else None


def bury_lost_deliveries(*, most: int) -> int:
    """Make deliveries dead letters whose worker died during the last attempt."""
    return len(hot.fetch_all(_GIVE_UP, {"most": most}))


def find_due_deliveries(webhook: str = "") -> list[tuple[str, str]]:
    """(webhook, delivery) of each active webhook whose next delivery is due."""
    return [(row[0], row[1]) for row in hot.fetch_all(_HEADS, {"webhook": webhook})]


def has_work() -> bool:
    """Whether a webhook is active or a test delivery is due."""
    return bool(hot.fetch_row(_ANYTHING, {"most": 1})[0])


def find_due_tests() -> list[str]:
    """Test deliveries that no worker has begun."""
    return [row[0] for row in hot.fetch_all(_TESTS, {"most": 1})]
