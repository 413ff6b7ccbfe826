"""What a migration does to the tables that exist: the locks it takes, and whether it reads or
rewrites them. Observed in PostgreSQL's catalogue while it runs, on tables that may be empty."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from django.db import transaction
from django.db.backends.base.base import BaseDatabaseWrapper

# The weakest first. From SHARE on, writes wait; ACCESS EXCLUSIVE also makes reads wait.
_MODES: Final = (
    "AccessShareLock",
    "RowShareLock",
    "RowExclusiveLock",
    "ShareUpdateExclusiveLock",
    "ShareLock",
    "ShareRowExclusiveLock",
    "ExclusiveLock",
    "AccessExclusiveLock",
)


@dataclass
class NewIndex:
    """`columns`: those of its key and of its condition; `expressions`: whether the key has others."""

    name: str
    table: str
    columns: list[str]
    expressions: bool
    concurrent: bool


@dataclass
class Effects:
    """Of one transaction on tables that existed before. `locks`: the strongest mode of each table."""

    locks: dict[str, str] = field(default_factory=dict)
    rewritten: list[str] = field(default_factory=list)
    scanned: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    indexes: list[NewIndex] = field(default_factory=list)

    def blocked(self) -> list[str]:
        """The tables to which other transactions cannot write during this one."""
        return [name for name, mode in self.locks.items() if _MODES.index(mode) >= _SHARE]

    def blocks_reads(self, table: str) -> bool:
        return self.locks.get(table) == "AccessExclusiveLock"


_SHARE: Final = _MODES.index("ShareLock")

_TABLES = """
SELECT c.oid::bigint, c.relname, pg_relation_filenode(c.oid)::bigint, pg_stat_get_xact_numscans(c.oid)
FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r'
    AND c.relname <> 'django_migrations'
"""
_LOCKS = """
SELECT relation::bigint, mode FROM pg_locks
WHERE pid = pg_backend_pid() AND locktype = 'relation' AND granted
"""
# By file: an index that keeps its file, because a column only became longer, is not built again.
_INDEXES = """
SELECT pg_relation_filenode(x.oid)::bigint, x.relname, t.relname, 0 = ANY (i.indkey::int2[]), ARRAY(
    SELECT DISTINCT a.attname::text FROM pg_depend d
    JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
    WHERE d.objid = i.indexrelid AND d.refobjid = i.indrelid AND d.refobjsubid > 0
    ORDER BY 1)
FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid JOIN pg_class t ON t.oid = i.indrelid
WHERE x.relnamespace = 'public'::regnamespace ORDER BY x.relname
"""


def list_tables(connection: BaseDatabaseWrapper) -> frozenset[str]:
    return frozenset(name for _, name, *_ in fetch(connection, _TABLES))


def observe(
    connection: BaseDatabaseWrapper,
    tables: frozenset[str],
    run: Callable[[], object],
    *,
    atomic: bool,
) -> list[Effects]:
    """Run a migration and return its effects on `tables`: those of its transaction, or (`atomic` is
    false) of each of its statements."""
    found: list[Effects] = []
    if atomic:
        with _transaction(connection, tables, found):
            run()
        return found
    observing = False

    def each(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        nonlocal observing
        if observing or sql.split(None, 1)[0].upper() in ("SET", "SHOW", "SELECT", "RESET"):
            return execute(sql, *rest)
        observing = True
        try:
            if "CONCURRENTLY" in sql.upper():
                return _run_concurrently(connection, tables, found, lambda: execute(sql, *rest))
            with _transaction(connection, tables, found):
                return execute(sql, *rest)
        finally:
            observing = False

    with connection.execute_wrapper(each):
        run()
    return found


@contextmanager
def _transaction(
    connection: BaseDatabaseWrapper, tables: frozenset[str], found: list[Effects]
) -> Iterator[None]:
    """A transaction whose effects are appended to `found`. Its locks are read before it ends."""
    with transaction.atomic(connection.alias):
        before = {oid: rest for oid, *rest in fetch(connection, _TABLES) if rest[0] in tables}
        indexes = _read_indexes(connection)
        yield
        effects = Effects(indexes=_find_new(connection, indexes, tables, concurrent=False))
        held = [(oid, mode) for oid, mode in fetch(connection, _LOCKS) if oid in before]
        for oid, mode in sorted(held, key=lambda lock: _MODES.index(lock[1])):
            effects.locks[before[oid][0]] = mode
        for oid, name, file, scans in fetch(connection, _TABLES):
            if oid not in before:
                continue
            if file != before[oid][1]:
                effects.rewritten.append(name)
            elif scans != before[oid][2]:
                effects.scanned.append(name)
                if (oid, "RowExclusiveLock") in held:
                    effects.updated.append(name)
    found.append(effects)


def _run_concurrently(
    connection: BaseDatabaseWrapper,
    tables: frozenset[str],
    found: list[Effects],
    run: Callable[[], Any],
) -> Any:
    """Run a statement that permits no transaction around it, and locks with SHARE UPDATE EXCLUSIVE."""
    indexes = _read_indexes(connection)
    result = run()
    created = _find_new(connection, indexes, tables, concurrent=True)
    locks = {index.table: "ShareUpdateExclusiveLock" for index in created}
    found.append(Effects(locks=locks, indexes=created))
    return result


def _read_indexes(connection: BaseDatabaseWrapper) -> dict[int, list[Any]]:
    return {file: rest for file, *rest in fetch(connection, _INDEXES)}


def _find_new(
    connection: BaseDatabaseWrapper,
    before: dict[int, list[Any]],
    tables: frozenset[str],
    *,
    concurrent: bool,
) -> list[NewIndex]:
    return [
        NewIndex(name, table, columns, expressions, concurrent)
        for file, (name, table, expressions, columns) in _read_indexes(connection).items()
        if file not in before and table in tables
    ]


def fetch(connection: BaseDatabaseWrapper, statement: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return list(cursor.fetchall())
