"""The statements that give all changes of a transaction the same position in the feed, and that delete
old changes."""

from __future__ import annotations

from datetime import timedelta

from . import hot

# The rows of this transaction are those that are visible and whose writer is still in progress. A
# savepoint has its own number, greater than the transaction's, so comparing with the transaction's
# number would miss rows; xmin is the lower half of each number. The clock of these rows is at least
# the transaction's number: one range of changes_feed_order, which contains what was written since.
_GATHER = """
WITH me AS MATERIALIZED (
    SELECT pg_current_xact_id_if_assigned()::text::bigint AS xid
), mine AS MATERIALIZED (
    SELECT c.id, c.xid
    FROM me, changes c, LATERAL (SELECT (c.xmin::text::bigint - me.xid) & 4294967295) AS x(ahead)
    WHERE c.workspace_id = %(workspace)s AND c.xid >= feed_xid()
        AND CASE WHEN x.ahead < 2147483648
            THEN pg_xact_status((me.xid + x.ahead)::text::xid8) = 'in progress' END
), gathered AS (
    UPDATE changes c SET xid = newest.xid
    FROM mine, (SELECT xid FROM mine ORDER BY xid DESC LIMIT 1) newest
    WHERE c.id = mine.id AND mine.xid < newest.xid
    RETURNING 1
)
SELECT count(*) FROM gathered
"""


def align_feed_clock(workspace_id: int) -> int:
    """Set the clock of all changes that this transaction has written in a workspace to the newest
    of them; returns how many changed. Nothing may be written to the feed after this."""
    return int(hot.fetch_row(_GATHER, {"workspace": workspace_id})[0])


# By the primary key, because ids are assigned in the order of time. The block ranges of
# changes_at_brin would not do: rows that take the place of deleted ones widen them, until each range
# begins before the retention, and every search reads the whole table.
_PURGE = """
WITH page AS MATERIALIZED (
    SELECT id, at FROM changes WHERE id > %(after)s ORDER BY id LIMIT %(batch)s
), purged AS (
    DELETE FROM changes c USING page p
    WHERE c.id = p.id AND p.at < now() - %(age)s::interval
        AND c.workspace_id NOT IN (SELECT id FROM workspaces WHERE frozen_at IS NOT NULL)
    RETURNING 1
)
SELECT (SELECT max(id) FROM page), (SELECT count(*) FROM purged)
"""


def purge(*, age: timedelta, after: int, batch: int) -> tuple[int | None, int]:
    """Delete those of the next `batch` changes after the id `after` that are older than `age`.
    Returns the last id examined (None: no more) and the number of deleted changes."""
    last, purged = hot.fetch_row(_PURGE, {"age": age, "after": after, "batch": batch})
    return last, purged
