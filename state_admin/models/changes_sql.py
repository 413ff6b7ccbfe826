"""The statement that lets the changes of one transaction come into the feed at one moment."""

from __future__ import annotations

from . import hot

# Which rows are this transaction's own: those that can be seen and whose writer is still under way.
# A savepoint has a number of its own, so the transaction's number alone would miss rows; theirs
# come after it, and xmin holds the lower half of each. Own rows have a clock of at least the
# transaction's number: one range of changes_feed_order, as long as what was written since.
_GATHER = """
WITH me AS MATERIALIZED (
    SELECT pg_current_xact_id_if_assigned()::text::bigint AS xid
), mine AS MATERIALIZED (
    SELECT c.id, c.xid
    FROM me, changes c, LATERAL (SELECT (c.xmin::text::bigint - me.xid) & 4294967295) AS x(ahead)
    WHERE c.workspace_id = %(workspace)s AND c.xid >= pg_current_xact_id_if_assigned()
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
    """Give the changes that this transaction has written in a workspace one clock, the newest of
    theirs; answers how many had another. Nothing more may be written to the feed behind it."""
    row = hot.fetch_one(_GATHER, {"workspace": workspace_id})
    return row[0] if row else 0
