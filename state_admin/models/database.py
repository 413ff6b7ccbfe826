"""What PostgreSQL says about itself: for the people who run the server, and who is still at work."""

from __future__ import annotations

import time
from typing import NamedTuple

from . import hot


class Table(NamedTuple):
    """A table with its indexes; `rows` is PostgreSQL's estimate."""

    name: str
    rows: int
    size_bytes: int
    dead_rows: int


class Database(NamedTuple):
    version: str
    name: str
    size_bytes: int
    connections: int
    max_connections: int
    tables: list[Table]


_DATABASE = """
SELECT current_setting('server_version'), current_database(),
    pg_database_size(current_database()),
    (SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()),
    current_setting('max_connections')::int
"""

_TABLES = """
SELECT c.relname, greatest(c.reltuples, 0)::bigint, pg_total_relation_size(c.oid),
    coalesce(s.n_dead_tup, 0)
FROM pg_class c
LEFT JOIN pg_stat_user_tables s ON s.relid = c.oid
WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace
ORDER BY 3 DESC LIMIT 12
"""


def describe_database() -> Database:
    """Size, connections and the largest tables. Two reads of the catalogue."""
    row = hot.fetch_one(_DATABASE, {})
    if row is None:
        raise RuntimeError("a SELECT without FROM answers one row")
    tables = [Table._make(table) for table in hot.fetch_all(_TABLES, {})]
    return Database._make([*row, tables])


_STILL_OPEN = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend'
    AND pid <> pg_backend_pid() AND xact_start <= %(moment)s
    AND (backend_xid IS NOT NULL OR backend_xmin IS NOT NULL)
"""
_POLL = 0.02


def wait_for_others(seconds: float) -> bool:
    """Wait until every transaction of the server's role that runs now and has written, or is within
    a statement, is over; False after `seconds`. Call it outside of any transaction: within one the
    answer would stay what it was, and what was changed is not there for the others yet."""
    row = hot.fetch_one("SELECT clock_timestamp()", {})
    moment = row[0] if row else None
    until = time.monotonic() + seconds
    while True:
        row = hot.fetch_one(_STILL_OPEN, {"moment": moment})
        if row is None or row[0] == 0:
            return True
        if time.monotonic() >= until:
            return False
        time.sleep(_POLL)
