"""What PostgreSQL says about itself, for the people who run the server."""

from __future__ import annotations

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
