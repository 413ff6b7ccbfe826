"""The eras of the change feed's clock, which keep it increasing across restores and failovers.

The clock is derived from PostgreSQL's transaction ids, but these are lower in another server, and are
assigned again after a failover or restore that lost transactions. So the clock is `base` + the
transaction id. A database that finds itself on another server begins a new era with a higher base
(docs/adr/0019-eras-of-the-feed-clock.md). The SQL functions are in migration 0004.
"""

from __future__ import annotations

from django.db import connection, models
from django.db.models.functions import Now

from .fields import CurrentXid, Xid8


class FeedEra(models.Model):
    """One era. The newest one applies.

    `system` and `timeline` identify the server that it began on. `started_by` is the transaction that
    inserted the row: in a logical copy (pg_dump, logical replication), another one has written the
    row. A copy of the server's files in another place has the same identity: begin_era is for that.
    """

    system = models.BigIntegerField()
    timeline = models.IntegerField()
    started_by = Xid8(db_default=CurrentXid(), editable=False)
    started_at = models.DateTimeField(db_default=Now(), editable=False)
    base = models.BigIntegerField()
    # The newest position that survived from the earlier eras. The positions between this one and
    # the start were lost, or never existed.
    last_xid = models.BigIntegerField()
    last_id = models.BigIntegerField()

    class Meta:
        db_table = "feed_eras"

    @property
    def start(self) -> int:
        """The clock at its beginning: no change of the era has an earlier one."""
        return int(self.base + self.started_by)


def begin_era() -> FeedEra:
    """Begin a new era although the server appears to be the same one, as after a copy of its files
    was put in place. Every cursor that is newer than the newest change expires. Waits for running
    writers."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT begin_feed_era(false)")
    return FeedEra.objects.latest("id")
