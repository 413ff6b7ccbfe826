"""Queries that find faults of the database server, for `manage.py doctor`. All read the catalogue
and statistics only."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from django.apps import apps
from django.db.models import UniqueConstraint

from . import hot


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
    """The state of streaming replication. A role without the privileges of pg_monitor sees none."""
    return Standbys._make(hot.fetch_row(_STANDBYS, {}))


_AGE = "SELECT max(age(datfrozenxid))::bigint FROM pg_database"


def read_transaction_age() -> int:
    """The number of transactions since the oldest row that is not frozen; the server stops at two
    billion."""
    return int(hot.fetch_row(_AGE, {})[0])


class DeadRows(NamedTuple):
    table: str
    live: int
    dead: int


# More dead rows than live ones. Fewer than `least` do not require an action.
_DEAD = """
SELECT relname, n_live_tup, n_dead_tup FROM pg_stat_user_tables
WHERE schemaname = current_schema() AND n_dead_tup > %(least)s AND n_dead_tup > n_live_tup
ORDER BY n_dead_tup DESC
"""


def find_bloated_tables(least: int) -> list[DeadRows]:
    """The tables with more dead rows than live ones, and more than `least`."""
    return [DeadRows._make(row) for row in hot.fetch_all(_DEAD, {"least": least})]


class IndexBloat(NamedTuple):
    """The bytes of an index, and the estimated bytes after a rebuild."""

    name: str
    size: int
    needed: int


# An estimate from statistics, because to measure an index (pgstatindex) reads all its pages. Both numbers of
# pg_class are from the same VACUUM or ANALYZE. A tuple has a header of 8 bytes, 8 more if a column is null, the columns,
# padding and a pointer of 4 bytes; a page has 40 bytes of headers. Equal values may need less space (deduplication), and so may
# expressions, so the estimate may be too high: bloat is found later then, but never where there is none.
_BLOATED = """
SELECT * FROM (
    SELECT c.relname, c.relpages::bigint * size.page AS bytes,
        (ceil(c.reltuples * (size.head + ceil(columns.width / 8) * 8 + 4)
            / ((size.page - 40) * size.fill)) * size.page)::bigint AS needed
    FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am m ON m.oid = c.relam
    CROSS JOIN LATERAL (
        SELECT count(s.avg_width) = i.indnatts AS complete, least(sum(s.null_frac), 1) AS nulls,
            sum(s.avg_width * (1 - s.null_frac)) AS width
        FROM unnest(i.indkey) WITH ORDINALITY AS k(attnum, place)
        JOIN pg_attribute a ON (a.attrelid, a.attnum) = CASE k.attnum WHEN 0
            THEN (i.indexrelid, k.place::int2) ELSE (i.indrelid, k.attnum) END
        JOIN pg_class o ON o.oid = a.attrelid
        JOIN pg_stats s ON NOT s.inherited AND s.schemaname = current_schema()
            AND s.tablename = o.relname AND s.attname = a.attname
    ) columns
    CROSS JOIN LATERAL (
        SELECT current_setting('block_size')::int AS page, 8 + 8 * columns.nulls AS head,
            coalesce((SELECT option_value FROM pg_options_to_table(c.reloptions)
                WHERE option_name = 'fillfactor'), '90')::int / 100.0 AS fill
    ) size
    WHERE c.relnamespace = current_schema()::regnamespace AND m.amname = 'btree' AND i.indisvalid
        AND c.reltuples >= 0 AND columns.complete
) estimated
WHERE bytes - needed > %(least)s AND needed < %(part)s * bytes
ORDER BY bytes - needed DESC
"""


def find_bloated_indexes(least: int, part: float) -> list[IndexBloat]:
    """The B-tree indexes that would be `least` bytes smaller after a rebuild, and smaller than this
    part of their size. Estimated from statistics."""
    rows = hot.fetch_all(_BLOATED, {"least": least, "part": part})
    return [IndexBloat._make(row) for row in rows]


# The columns in their order, an expression as ''; not those that INCLUDE adds.
_INDEXES = """
SELECT t.relname, c.relname, i.indisvalid, i.indisunique, i.indpred IS NULL,
    ARRAY(SELECT coalesce(a.attname::text, '')
        FROM unnest(i.indkey) WITH ORDINALITY AS k(attnum, place)
        LEFT JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = k.attnum AND k.attnum <> 0
        WHERE k.place <= i.indnkeyatts ORDER BY k.place)
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_class t ON t.oid = i.indrelid
WHERE c.relnamespace = current_schema()::regnamespace
"""


def find_broken_indexes() -> tuple[list[str], list[str]]:
    """The indexes that are missing although a model declares them, with those of unique constraints,
    primary keys and columns, and those that are invalid, as after a CREATE INDEX CONCURRENTLY that
    failed."""
    names, invalid = set[str](), list[str]()
    indexed, unique = set[tuple[str, str]](), set[tuple[str, str]]()
    for table, name, is_valid, is_unique, is_whole, columns in hot.fetch_all(_INDEXES, {}):
        names.add(name)
        if is_whole:
            indexed.add((table, columns[0]))
            if is_unique and len(columns) == 1:
                unique.add((table, columns[0]))
        if not is_valid:
            invalid.append(name)
    missing = list[str]()
    for model in apps.get_app_config("state_admin").get_models():
        meta = model._meta
        constraints = [each for each in meta.constraints if isinstance(each, UniqueConstraint)]
        missing += {each.name for each in (*meta.indexes, *constraints)} - names
        # Django chooses the names of the others.
        for field in meta.local_concrete_fields:
            place = (meta.db_table, field.column)
            if field.unique and place not in unique:
                missing.append("the unique index of {} ({})".format(*place))
            elif getattr(field, "db_index", False) and not field.unique and place not in indexed:
                missing.append("the index of {} ({})".format(*place))
    return sorted(missing), sorted(invalid)


_CONNECTIONS = """
SELECT application_name, count(*) FROM pg_stat_activity
WHERE datname = current_database() AND application_name = ANY(%(names)s) GROUP BY 1
"""


def count_connections(names: list[str]) -> dict[str, int]:
    """The number of connections of each application, on any machine."""
    return dict.fromkeys(names, 0) | dict(hot.fetch_all(_CONNECTIONS, {"names": names}))


class Stall(NamedTuple):
    """A webhook (`workspace/name`) whose oldest waiting change or delivery is from `since`."""

    name: str
    what: str
    since: datetime


# One lookup in an index per active webhook and kind. A webhook with a slow receiver and a long queue
# advances: something was delivered. The queue of one that fails waits, and `failing_since` says so.
_STALLED = """
SELECT w.slug || '/' || h.name, waiting.what, waiting.since
FROM webhooks h JOIN workspaces w ON w.id = h.workspace_id CROSS JOIN LATERAL (
    (SELECT 'a change' AS what, c.at AS since FROM changes c
    WHERE c.workspace_id = h.workspace_id AND (c.xid, c.id) > (h.place_xid::text::xid8, h.place_id)
    ORDER BY c.xid, c.id LIMIT 1)
    UNION ALL
    (SELECT 'a delivery', CASE WHEN d.status = 'delivering' THEN d.lease_expires_at
        ELSE d.next_attempt_at END
    FROM webhook_deliveries d
    WHERE d.webhook_id = h.id AND NOT d.test AND d.status IN ('queued', 'delivering', 'failed')
    ORDER BY d.id LIMIT 1)
    ORDER BY since LIMIT 1
) waiting
WHERE h.status = 'active' AND h.failing_since IS NULL AND w.frozen_at IS NULL
    AND waiting.since < now() - %(late)s
    AND coalesce(h.last_delivered_at < now() - %(late)s, true)
ORDER BY waiting.since LIMIT %(limit)s
"""


def find_stalled_webhooks(late: timedelta, limit: int) -> list[Stall]:
    """Active webhooks that are not failing, but have delivered nothing for `late` although something
    has waited for longer."""
    rows = hot.fetch_all(_STALLED, {"late": late, "limit": limit})
    return [Stall._make(row) for row in rows]


class Failures(NamedTuple):
    """Of the WAL archive: the file whose last attempt failed and when, unless a later one succeeded.
    Of checksums: the number of damaged pages that were found, and when the last one was."""

    wal: str | None
    wal_failed_at: datetime | None
    damaged: int
    damaged_at: datetime | None


_FAILURES = """
SELECT a.last_failed_wal, a.last_failed_time, d.damaged, d.damaged_at
FROM (
    SELECT coalesce(sum(checksum_failures), 0)::bigint AS damaged,
        max(checksum_last_failure) AS damaged_at
    FROM pg_stat_database WHERE datid IN (0, (SELECT oid FROM pg_database
        WHERE datname = current_database()))
) d LEFT JOIN pg_stat_archiver a ON current_setting('archive_mode') <> 'off'
    AND a.last_failed_time > coalesce(a.last_archived_time, '-infinity')
"""


def read_failures() -> Failures:
    return Failures._make(hot.fetch_row(_FAILURES, {}))


_SETTINGS = "SELECT name, setting FROM pg_settings WHERE name = ANY(%(names)s)"


def read_settings(*names: str) -> dict[str, str]:
    """The values of settings, without those that this role may not read."""
    return dict(hot.fetch_all(_SETTINGS, {"names": list(names)}))


class Privileges(NamedTuple):
    """The names of the role and its database, and what the role may do."""

    role: str
    database: str
    temporary: bool
    statistics: bool


_PRIVILEGES = """
SELECT current_user::text, current_database()::text,
    has_database_privilege(current_database(), 'TEMPORARY'),
    pg_has_role(current_user, 'pg_read_all_stats', 'USAGE')
"""


def read_privileges() -> Privileges:
    return Privileges._make(hot.fetch_row(_PRIVILEGES, {}))
