"""How long a migration lasts and what it needs, from the sizes of this database's tables."""

from __future__ import annotations

import json
from typing import Final, NamedTuple

from django.db import connection

from project.upgrades.observation import Effects, NewIndex, fetch

# Bytes of the table per second. Lower than what two cores and a shared disk reached: 670 MiB/s,
# 31 MiB/s, 37 MiB/s, 7 MiB/s (an index of words) and 2 MiB/s (with five indexes).
_SCAN: Final = 200 << 20
_REWRITE: Final = 20 << 20
_INDEX: Final = 25 << 20
_INDEX_OF_EXPRESSIONS: Final = 4 << 20
_UPDATE: Final = 1 << 20
# Of each row of an index, beside its columns; an index of words was 1.8 times as large as its table.
_ROW_BYTES: Final = 20
_FILL: Final = 1.3
_EXPRESSIONS_FACTOR: Final = 2


class Size(NamedTuple):
    """`table`: bytes with TOAST; `total`: also with indexes; `widths`: average bytes of columns."""

    rows: int
    table: int
    total: int
    widths: dict[str, int]


_SIZES = """
SELECT c.relname, greatest(c.reltuples, 0)::bigint, pg_table_size(c.oid), pg_total_relation_size(c.oid),
    coalesce((
        SELECT jsonb_object_agg(s.attname, s.avg_width) FROM pg_stats s
        WHERE s.schemaname = 'public' AND s.tablename = c.relname), '{}')::text
FROM pg_class c WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace
"""


def read_sizes() -> dict[str, Size]:
    """The sizes of all tables. One query of the catalogue."""
    return {
        name: Size(rows, table, total, json.loads(widths))
        for name, rows, table, total, widths in fetch(connection, _SIZES)
    }


def seconds_blocked(effects: Effects, sizes: dict[str, Size]) -> dict[str, float]:
    """For each table that the transaction blocks for writers: for how many seconds at most, after it has
    its locks. It holds all locks until it ends."""
    work = sum(_seconds_of_work(effects, table, size) for table, size in sizes.items())
    return dict.fromkeys([*effects.blocked(), *effects.updated], work)


def _seconds_of_work(effects: Effects, table: str, size: Size) -> float:
    built = [index for index in effects.indexes if index.table == table and not index.concurrent]
    seconds = sum(index_seconds(index, size) for index in built)
    if table in effects.rewritten:
        seconds += size.total / _REWRITE
    elif table in effects.updated:
        seconds += size.table / _UPDATE
    elif table in effects.scanned:
        seconds += size.table / _SCAN
    return seconds


def index_seconds(index: NewIndex, size: Size) -> float:
    return size.table / (_INDEX_OF_EXPRESSIONS if index.expressions else _INDEX)


def disk_bytes(effects: Effects, sizes: dict[str, Size]) -> int:
    """The additional disk space at most. Rewritten tables and updated rows exist twice, and an index is
    sorted in temporary files before it is written."""
    indexes = sum(2 * _index_bytes(i, sizes[i.table]) for i in effects.indexes if i.table in sizes)
    copies = {*effects.rewritten, *effects.updated} & sizes.keys()
    return indexes + sum(sizes[table].total for table in copies)


def _index_bytes(index: NewIndex, size: Size) -> int:
    if index.expressions:
        return size.table * _EXPRESSIONS_FACTOR
    if not size.rows or not size.widths.keys() >= set(index.columns):
        return size.table  # never analyzed
    width = sum(size.widths[column] for column in index.columns)
    return int(size.rows * (width + _ROW_BYTES) * _FILL)
