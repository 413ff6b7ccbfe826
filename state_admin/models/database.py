"""Statistics of PostgreSQL for operators, its time, and waiting for running transactions."""

from __future__ import annotations

import time
from datetime import datetime
from typing import Final, NamedTuple

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


class Statement(NamedTuple):
    """A frequent or running statement: milliseconds in total, and per one of `calls`. `process` is
    the name of the client that runs it, "" if the statistics are of all clients."""

    text: str
    calls: int
    total_ms: float
    mean_ms: float
    process: str


class SlowStatements(NamedTuple):
    """The slowest statements; `kept`: from pg_stat_statements, otherwise those that run now."""

    kept: bool
    statements: list[Statement]


_LOAD = """
SELECT (SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()),
    current_setting('max_connections')::int
"""

_DATABASE = f"""
SELECT current_setting('server_version'), current_database(),
    pg_database_size(current_database()), load.*
FROM ({_LOAD}) load
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
    """Size, connections and the largest tables. Two queries of the catalogue."""
    tables = [Table._make(table) for table in hot.fetch_all(_TABLES, {})]
    return Database._make([*hot.fetch_row(_DATABASE, {}), tables])


# The share of max_connections above which connections are considered scarce.
CROWDED: Final = 0.9


def connections_used() -> tuple[int, int]:
    """The number of connections to this database, and the server's limit."""
    used, limit = hot.fetch_row(_LOAD, {})
    return used, limit


SLOW: Final = 8
_LONGEST: Final = 240

# The view alone is not enough: without the library in shared_preload_libraries, reading it fails,
# and only a superuser may read that setting. The library's own setting has a value if it is loaded;
# it is empty after a transaction of the session has set it without the library.
_KEEPS = """
SELECT to_regclass('pg_stat_statements') IS NOT NULL
    AND current_setting('pg_stat_statements.max', true) <> ''
"""

_KEPT = f"""
SELECT regexp_replace(left(query, {2 * _LONGEST}), '\\s+', ' ', 'g'), calls,
    total_exec_time, mean_exec_time, ''
FROM pg_stat_statements
WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
ORDER BY total_exec_time DESC LIMIT {SLOW}
"""

_RUNNING = f"""
SELECT regexp_replace(left(query, {2 * _LONGEST}), '\\s+', ' ', 'g'), 1,
    extract(epoch FROM clock_timestamp() - query_start) * 1000.0,
    extract(epoch FROM clock_timestamp() - query_start) * 1000.0, application_name
FROM pg_stat_activity
WHERE datname = current_database() AND state <> 'idle' AND pid <> pg_backend_pid()
    AND backend_type = 'client backend' AND query_start IS NOT NULL
ORDER BY query_start LIMIT {SLOW}
"""


def keeps_statements() -> bool:
    """Whether pg_stat_statements is installed."""
    return bool(hot.fetch_row(_KEEPS, {})[0])


def slow_statements(*, with_text: bool) -> SlowStatements:
    """The statements with the highest total time, or without pg_stat_statements those that have run
    longest.

    The text of a statement may contain values of any workspace: without `with_text` only its verb.
    """
    kept = keeps_statements()
    rows = hot.fetch_all(_KEPT if kept else _RUNNING, {})
    return SlowStatements(
        kept,
        [
            Statement(
                _shorten_statement(text, with_text), calls, float(total), float(mean), process or ""
            )
            for text, calls, total, mean, process in rows
        ],
    )


def _shorten_statement(text: str | None, whole: bool) -> str:
    text = (text or "").strip()
    if not whole:
        verb = text.partition(" ")[0]
        return f"{verb.upper()} …" if verb.isalpha() else "…"
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


def lock(name: str, workspace_id: int, *, shared: bool = False) -> None:
    """Take the advisory lock `name` of a workspace, until the end of the transaction."""
    function = "pg_advisory_xact_lock_shared" if shared else "pg_advisory_xact_lock"
    parameters = {"name": name, "workspace": workspace_id}
    hot.fetch_all(f"SELECT {function}(hashtext(%(name)s), %(workspace)s::int)", parameters)


_STILL_OPEN = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend'
    AND pid <> pg_backend_pid() AND xact_start <= %(moment)s
    AND (backend_xid IS NOT NULL OR backend_xmin IS NOT NULL)
"""
_POLL = 0.02


def wait_for_others(seconds: float) -> bool:
    """Wait until every transaction of the server's role that has written or is executing a
    statement has ended; False after `seconds`. Call it outside a transaction: inside one, its
    snapshot would not change, and other transactions would not see its writes yet."""
    moment = read_time()
    until = time.monotonic() + seconds
    while True:
        if not hot.fetch_row(_STILL_OPEN, {"moment": moment})[0]:
            return True
        if time.monotonic() >= until:
            return False
        time.sleep(_POLL)


def read_time() -> datetime:
    """The current time of the database, with which deadlines are compared."""
    moment: datetime = hot.fetch_row("SELECT clock_timestamp()", {})[0]
    return moment
