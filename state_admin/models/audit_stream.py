"""The audit stream: how far the audit was sent to a destination, and how far it is settled.

Rows are sent in the order of their ids. An id is assigned before its transaction commits, so a row may
appear below rows that are visible already. Ids up to a `barrier` are settled, that is, no further row
with such an id can appear, once each transaction that could have been assigned one has ended. These
are the transactions that hold the lock of writers on the table: a statement takes it before it assigns
an id, and its transaction releases it after its rows became visible or were rolled back. The
transaction id would not do, because a statement may have an id for its row before it has one.

This relies on a sequence without a cache, and on ids that only INSERT statements assign
(docs/adr/0023-audit-stream.md).
"""

from __future__ import annotations

from datetime import datetime
from typing import Final, NamedTuple

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from . import hot
from .counts import MOST


class AuditStream(models.Model):
    """The position of a destination. `position`: the id of the last row that the destination
    confirmed."""

    destination = models.TextField(primary_key=True)
    position = models.BigIntegerField(default=0)
    # All rows up to this id that will ever exist are visible.
    settled = models.BigIntegerField(default=0)
    # The next value of `settled`, which applies when the transactions `writers` have ended.
    barrier = models.BigIntegerField(default=0)
    writers = ArrayField(models.TextField(), default=list)
    sent_at = models.DateTimeField(null=True)
    # Attempts that failed: since the last one that succeeded, and ever.
    attempts = models.IntegerField(default=0)
    failures = models.BigIntegerField(default=0)
    failing_since = models.DateTimeField(null=True)
    last_error = models.TextField(default="")
    next_attempt_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "audit_streams"


# The transactions that may insert into the audit. A transaction that only waits for the lock has not
# been assigned an id.
_WRITERS: Final = """
SELECT DISTINCT virtualtransaction FROM pg_locks
WHERE locktype = 'relation' AND relation = 'audit'::regclass AND mode = 'RowExclusiveLock' AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""

# Only the newest row is compared: for any later one, PostgreSQL would expect to find one at once, and read
# the whole table when there is none.
_HAS_WORK: Final = """
SELECT coalesce(s.next_attempt_at <= statement_timestamp(), true)
    AND coalesce((SELECT max(a.id) FROM audit a) > coalesce(s.position, 0), false)
FROM (SELECT %(destination)s::text AS destination) d LEFT JOIN audit_streams s USING (destination)
"""

_HAS_UNSENT: Final = """
SELECT EXISTS (SELECT 1 FROM audit a WHERE a.workspace_id = %(workspace)s AND a.id > coalesce(
    (SELECT s.position FROM audit_streams s WHERE s.destination = %(destination)s), 0))
"""

_LAG: Final = """
SELECT (SELECT count(*) FROM (
        SELECT 1 FROM audit a WHERE a.id > coalesce(s.position, 0) ORDER BY a.id
        LIMIT %(most)s + 1) counted),
    (SELECT a.at FROM audit a WHERE a.id > coalesce(s.position, 0) ORDER BY a.id LIMIT 1),
    s.sent_at, s.failing_since, coalesce(s.last_error, '')
FROM (SELECT %(destination)s::text AS destination) d LEFT JOIN audit_streams s USING (destination)
"""


class Lag(NamedTuple):
    """What a destination has not got. `rows`: MOST + 1 means more than MOST. `oldest`: the time of the
    oldest of these rows. `error`: empty, or that of the last attempt."""

    rows: int
    oldest: datetime | None
    sent_at: datetime | None
    failing_since: datetime | None
    error: str

    @property
    def text(self) -> str:
        """The number of rows, for people."""
        return f"{min(self.rows, MOST):,}{'+' if self.rows > MOST else ''}"


def find_writers() -> set[str]:
    """The open transactions that may have been assigned an id, by their virtual ids."""
    return {str(name) for (name,) in hot.fetch_all(_WRITERS, {})}


def has_work(destination: str) -> bool:
    """Whether there are rows to send, and the pause after a failure is over."""
    return bool(hot.fetch_row(_HAS_WORK, {"destination": destination})[0])


def has_unsent(destination: str, workspace_id: int) -> bool:
    """Whether a destination lacks rows of a workspace that are committed."""
    parameters = {"destination": destination, "workspace": workspace_id}
    return bool(hot.fetch_row(_HAS_UNSENT, parameters)[0])


def read_lag(destination: str) -> Lag:
    """The lag of a destination, which may not have a position yet."""
    return Lag._make(hot.fetch_row(_LAG, {"destination": destination, "most": MOST}))
