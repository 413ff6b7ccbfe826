"""The statement that gives all changes of a transaction the same position in the feed."""

from __future__ import annotations

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
    row = hot.fetch_one(_GATHER, {"workspace": workspace_id})
    return row[0] if row else 0
