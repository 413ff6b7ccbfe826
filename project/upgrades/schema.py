"""The tables of a database as the previous version's code sees them, and what would break it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper

from project.upgrades.observation import fetch


class Column(NamedTuple):
    """`fills_itself`: whether an INSERT may leave it out (nullable, a default, an identity)."""

    type: str
    nullable: bool
    fills_itself: bool


class Schema(NamedTuple):
    """Of the schema `public`. `rules`: constraints and unique indexes by table and definition.
    `functions`: by name and arguments."""

    tables: dict[str, dict[str, Column]]
    rules: frozenset[tuple[str, str]]
    functions: frozenset[str]


_VARYING = re.compile(r"character varying\((?P<length>\d+)\)")

_COLUMNS = """
SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), NOT a.attnotnull,
    NOT a.attnotnull OR a.atthasdef OR a.attidentity <> ''
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v')
    AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY c.relname, a.attnum
"""
# A constraint of NOT NULL is in the columns, and the index of a constraint in the constraints.
_RULES = """
SELECT conrelid::regclass::text, pg_get_constraintdef(oid) FROM pg_constraint
WHERE connamespace = 'public'::regnamespace AND conrelid <> 0 AND contype <> 'n'
UNION ALL
SELECT i.indrelid::regclass::text,
    regexp_replace(pg_get_indexdef(i.indexrelid), ' INDEX .* ON ', ' INDEX ON ')
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE c.relnamespace = 'public'::regnamespace AND i.indisunique AND i.indisvalid
    AND NOT EXISTS (SELECT 1 FROM pg_constraint o WHERE o.conindid = i.indexrelid)
"""
_FUNCTIONS = """
SELECT oid::regprocedure::text FROM pg_proc WHERE pronamespace = 'public'::regnamespace
"""


def read_schema(connection: BaseDatabaseWrapper) -> Schema:
    tables: dict[str, dict[str, Column]] = {}
    for table, column, *rest in fetch(connection, _COLUMNS):
        tables.setdefault(table, {})[column] = Column(*rest)
    return Schema(
        tables,
        frozenset((table, rule) for table, rule in fetch(connection, _RULES)),
        frozenset(name for (name,) in fetch(connection, _FUNCTIONS)),
    )


def find_breaks(old: Schema, new: Schema) -> list[str]:
    """The reasons why code for the schema `old` may fail on `new`, one per change."""
    return [*_tables(old, new), *_rules(old, new), *_functions(old, new)]


def _tables(old: Schema, new: Schema) -> Iterator[str]:
    for table, columns in old.tables.items():
        if table not in new.tables:
            yield f"the table {table} is gone"
            continue
        present = new.tables[table]
        for name, column in columns.items():
            yield from _column(f"{table}.{name}", column, present.get(name))
        for name, column in present.items():
            if name not in columns and not column.fills_itself:
                yield f"{table}.{name} is required and has no default, so an INSERT without it fails"


def _column(name: str, old: Column, new: Column | None) -> Iterator[str]:
    if new is None:
        yield f"{name} is gone"
        return
    if not _holds(new.type, old.type):
        yield f"{name} has the type {new.type} instead of {old.type}"
    if old.nullable and not new.nullable:
        yield f"{name} does not accept NULL any more"
    if old.fills_itself and not new.fills_itself:
        yield f"{name} has no default any more, so an INSERT without it fails"


def _holds(new: str, old: str) -> bool:
    """Whether a column of the type `new` can be used as one of `old`: the same type, or longer text."""
    if new == old:
        return True
    longest = [_VARYING.fullmatch(each) for each in (new, old)]
    if longest[1] is None or (longest[0] is None and new != "text"):
        return False
    return longest[0] is None or int(longest[0]["length"]) >= int(longest[1]["length"])


def _rules(old: Schema, new: Schema) -> Iterator[str]:
    for table, rule in sorted(new.rules - old.rules):
        if table in old.tables:
            yield f"{table} has a new constraint that rows may violate: {rule}"
    for table, rule in sorted(old.rules - new.rules):
        if table in new.tables and ("UNIQUE" in rule or "PRIMARY KEY" in rule):
            yield f"{table} has lost a constraint that ON CONFLICT may name: {rule}"


def _functions(old: Schema, new: Schema) -> Iterator[str]:
    for name in sorted(old.functions - new.functions):
        yield f"the function {name} is gone"
