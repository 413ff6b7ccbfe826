"""The change feed's one read: a workspace in commit order, up to what can no longer change."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from state_admin.domain.access import Actor

from . import hot
from .namespaces import glob_regex


class FeedRow(NamedTuple):
    xid: int
    id: int
    at: datetime
    kind: str
    namespace: str
    key: str
    thread: str
    run: str
    version: int
    actor_name: str


class FeedFilter(NamedTuple):
    """What a reader wants. Empty: everything it may see."""

    namespace: str = ""
    key: str = ""
    prefix: str = ""
    thread: str = ""
    run: str = ""
    kind: str = ""


# A row is shown when its transaction is older than every transaction still open: whoever commits
# late has a smaller xid than the horizon had, so the horizon waited for it. Ids alone would skip.
_FEED = """
SELECT c.xid::text::bigint, c.id, c.at, c.kind, c.namespace, c.key, c.thread, c.run, c.version,
    c.actor_name
FROM changes c
WHERE c.workspace_id = %(workspace)s
    AND (c.xid, c.id) > (%(xid)s::text::xid8, %(id)s)
    AND c.xid < %(horizon)s::text::xid8
    AND (%(namespace)s::text = '' OR c.namespace = %(namespace)s)
    AND (%(key)s::text = '' OR c.key = %(key)s)
    AND (%(prefix)s::text = '' OR starts_with(c.key, %(prefix)s))
    AND (%(thread)s::text = '' OR c.thread = %(thread)s)
    AND (%(run)s::text = '' OR c.run = %(run)s)
    AND (%(kind)s::text = '' OR c.kind = %(kind)s)
    AND (%(namespaces)s::text = '' OR c.namespace = '' OR c.namespace ~ %(namespaces)s)
    AND (%(threads)s::text[] IS NULL OR c.thread = ''
        OR EXISTS (SELECT 1 FROM unnest(%(threads)s::text[]) p WHERE starts_with(c.thread, p)))
ORDER BY c.xid, c.id
LIMIT %(limit)s
"""

_HORIZON = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint"


def read_horizon() -> int:
    """The first transaction id that may still be open: everything below it is final."""
    row = hot.fetch_one(_HORIZON, {})
    return int(row[0]) if row else 0


def read_feed(
    actor: Actor, *, after: tuple[int, int], horizon: int, wanted: FeedFilter, limit: int
) -> Sequence[FeedRow]:
    """Up to `limit` changes behind the position `after`, in commit order, below `horizon`."""
    rows = hot.fetch_all(
        _FEED,
        {
            **wanted._asdict(),
            "workspace": actor.workspace_id,
            "xid": str(after[0]),
            "id": after[1],
            "horizon": str(horizon),
            "namespaces": glob_regex(actor.namespaces) if actor.namespaces else "",
            "threads": list(actor.thread_prefixes) or None,
            "limit": limit,
        },
    )
    return [FeedRow._make(row) for row in rows]
