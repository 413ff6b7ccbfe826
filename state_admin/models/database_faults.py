"""Queries that find faults of the database server, for `manage.py doctor`. All read the catalogue
and statistics only."""

from __future__ import annotations

from typing import NamedTuple

from django.apps import apps

from . import hot

_CLOCK = "SELECT extract(epoch FROM clock_timestamp())::float8"


def read_clock() -> float:
    """The time of the server, in seconds since 1970."""
    row = hot.fetch_one(_CLOCK, {})
    return float(row[0]) if row else 0.0


class LongTransaction(NamedTuple):
    """A transaction that delays the change feed and keeps vacuum from removing dead rows. `pid`: 0
    for a prepared transaction, whose name is then in `who`."""

    pid: int
    who: str
    seconds: int


_LONG = """
SELECT pid, application_name, extract(epoch FROM now() - xact_start)::int FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
    AND xact_start < now() - %(seconds)s * interval '1 second'
UNION ALL
SELECT 0, gid, extract(epoch FROM now() - prepared)::int FROM pg_prepared_xacts
WHERE database = current_database() AND prepared < now() - %(seconds)s * interval '1 second'
ORDER BY 3 DESC LIMIT 20
"""


def find_long_transactions(seconds: int) -> list[LongTransaction]:
    """The transactions that are older than so many seconds, the oldest first."""
    return [LongTransaction._make(row) for row in hot.fetch_all(_LONG, {"seconds": seconds})]


class Slot(NamedTuple):
    """A replication slot without a reader, for which WAL is kept."""

    name: str
    retained_bytes: int


_SLOTS = """
SELECT slot_name, pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::bigint
FROM pg_replication_slots WHERE NOT active AND restart_lsn IS NOT NULL
ORDER BY 2 DESC
"""


def find_abandoned_slots() -> list[Slot]:
    return [Slot._make(row) for row in hot.fetch_all(_SLOTS, {})]


class Standbys(NamedTuple):
    """`required`: whether commits wait for a standby. `confirming`: the standbys for which they can
    wait. `waiting`: the commits that wait now. `lag`: bytes that the slowest standby has not replayed."""

    required: bool
    connected: int
    confirming: int
    waiting: int
    lag: int


_STANDBYS = """
SELECT current_setting('synchronous_standby_names') <> '', count(*),
    count(*) FILTER (WHERE sync_state IN ('sync', 'quorum')),
    (SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'),
    coalesce(max(pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn)), 0)::bigint
FROM pg_stat_replication WHERE state = 'streaming'
"""


def read_standbys() -> Standbys:
    """The state of streaming replication. A role without the rights of pg_monitor sees none."""
    row = hot.fetch_one(_STANDBYS, {})
    return Standbys._make(row or (False, 0, 0, 0, 0))


_AGE = "SELECT max(age(datfrozenxid))::bigint FROM pg_database"


def read_transaction_age() -> int:
    """The number of transactions since the oldest row that is not frozen; the server stops at two
    billion."""
    row = hot.fetch_one(_AGE, {})
    return int(row[0]) if row else 0


class DeadRows(NamedTuple):
    table: str
    live: int
    dead: int


_DEAD = """
SELECT relname, n_live_tup, n_dead_tup FROM pg_stat_user_tables
WHERE schemaname = current_schema() AND n_dead_tup > 100000 AND n_dead_tup > n_live_tup
ORDER BY n_dead_tup DESC
"""


def find_bloated_tables() -> list[DeadRows]:
    """The tables with more dead rows than live ones, and more than 100,000."""
    return [DeadRows._make(row) for row in hot.fetch_all(_DEAD, {})]


_INDEXES = """
SELECT c.relname, i.indisvalid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE c.relnamespace = current_schema()::regnamespace
"""


def find_broken_indexes() -> tuple[list[str], list[str]]:
    """The indexes that are missing although a model declares them, and those that are invalid, as
    after a CREATE INDEX CONCURRENTLY that failed."""
    present = {name: bool(valid) for name, valid in hot.fetch_all(_INDEXES, {})}
    declared = {
        index.name
        for model in apps.get_app_config("state_admin").get_models()
        for index in model._meta.indexes
    }
    invalid = [name for name, is_valid in present.items() if not is_valid]
    return sorted(declared - set(present)), sorted(invalid)
