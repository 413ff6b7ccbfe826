"""Up to which position of the write-ahead log (WAL) a read replica must have replayed before it may
answer a client: the position after the client's newest write.

Positions are numbers of bytes since the beginning of the log. The table is unlogged: a crash or a
failover empties it, and then EVERYONE gets the current position. So it does after `expire`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple

from django.db import models
from django.db.models.functions import Now

from . import hot

# The client of the row that applies to all clients.
EVERYONE: Final = ""


class WritePosition(models.Model):
    # A hash of the token or of the session key (services/replicas.py).
    client = models.CharField(max_length=32, primary_key=True)
    position = models.BigIntegerField()
    written_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "write_positions"


class Primary(NamedTuple):
    """The primary, and what a replica needs to answer a client. `era`: the newest era of the feed's
    clock, with the server it began on and the oid of the database; None before the first. `required`
    None: unknown, because the table is empty, or older states have expired."""

    at: datetime
    position: int
    era: list[int] | None
    required: int | None


class Replica(NamedTuple):
    """`replayed_at`: the commit time of the newest transaction that the replica has."""

    is_standby: bool
    system: int
    position: int | None
    replayed_at: datetime | None
    era: list[int] | None


_CURRENT: Final = "pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint"
# A standby of another branch of the history may have replayed more than the primary has, but it has
# not replayed the era that began with the primary's branch (models/feed_eras.py).
# Two databases of one server may have equal eras, so the oid of the database is the last element: a
# standby has the same.
_ERA: Final = """
(SELECT ARRAY[id, system, timeline, base,
    (SELECT oid::bigint FROM pg_database WHERE datname = current_database())]
FROM feed_eras ORDER BY id DESC LIMIT 1)
"""

# The position is read after the row is locked, so it does not decrease. Sorted, so that two of these
# statements do not deadlock.
RECORD: Final = f"""
INSERT INTO write_positions (client, position)
SELECT client, {_CURRENT} FROM unnest(%(clients)s::text[]) AS written(client) ORDER BY client
ON CONFLICT (client) DO UPDATE SET position = {_CURRENT}, written_at = now()
RETURNING 1
"""
# In the place of the position of EVERYONE, which a transaction cannot know before its commit. A reader that
# finds it replaces it by the current one. An update, because a reader's position would be too low if it had
# been read before it waited for the end of a transaction that deletes the row.
_NO_POSITION: Final = 2**63 - 1
_EXPIRE: Final = f"""
INSERT INTO write_positions (client, position) VALUES ('{EVERYONE}', {_NO_POSITION})
ON CONFLICT (client) DO UPDATE SET position = excluded.position, written_at = now()
RETURNING 1
"""
# Other positions that the log has not reached come from another server (a restored dump).
_PRIMARY: Final = f"""
SELECT now(), pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0')::bigint, {_ERA},
    (SELECT least(greatest(max(c.position), e.position), {_CURRENT})
    FROM write_positions e LEFT JOIN write_positions c ON c.client = %(client)s
    WHERE e.client = '{EVERYONE}' AND e.position <= {_CURRENT} GROUP BY e.position)
"""
_REPLICA: Final = f"""
SELECT pg_is_in_recovery(), (SELECT system_identifier FROM pg_control_system()),
    pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0')::bigint, pg_last_xact_replay_timestamp(), {_ERA}
"""
# The position of a deleted row may still be needed: EVERYONE gets a later one.
_PURGE: Final = f"""
WITH purged AS (
    DELETE FROM write_positions
    WHERE client <> '{EVERYONE}' AND written_at < now() - interval '1 hour' RETURNING 1
), raised AS (
    UPDATE write_positions SET position = {_CURRENT}, written_at = now()
    WHERE client = '{EVERYONE}' AND EXISTS (SELECT FROM purged)
)
SELECT count(*) FROM purged
"""


def record(clients: Sequence[str]) -> None:
    """Record that the clients have written. Called after the commit, before the response."""
    hot.fetch_all(RECORD, {"clients": list(clients)})


def expire() -> None:
    """Called last in a transaction: from its commit on, no earlier state is enough for any client."""
    hot.fetch_all(_EXPIRE, {})


def read_primary(client: str) -> Primary:
    return Primary._make(hot.fetch_row(_PRIMARY, {"client": client}))


def read_replica() -> Replica:
    """The state of the server of the current connection."""
    return Replica._make(hot.fetch_row(_REPLICA, {}))


def purge() -> int:
    """Delete the positions of clients that have not written for an hour."""
    return int(hot.fetch_row(_PURGE, {})[0])
