"""Copies rows that services wrote once: the same rows with new ids and times.

Services write a user with a workspace and a token in thirty statements, which take longer than most
tests. A copy takes two, and has every row that the services wrote, in whatever table.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.apps import apps
from django.db import connection
from django.db.models import AutoField, DateTimeField, Field, Model

# The rows of each table, with the SQL literal of each field.
Row = dict["Field[Any, Any]", str]
Rows = dict[type[Model], list[Row]]
# A literal of a column. An id has the same place in its own row and in those that refer to it.
Place = tuple[type[Model], str, str]

# Encloses the name of a value in a statement. PostgreSQL's text cannot contain it.
_MARK = "\0"


def read_rows() -> Rows:
    """All rows of the database."""
    found: Rows = {}
    with connection.cursor() as cursor:
        for table in apps.get_models():
            fields = table._meta.concrete_fields
            columns = ", ".join(f'quote_nullable("{field.column}"::text)' for field in fields)
            cursor.execute(f'SELECT {columns} FROM "{table._meta.db_table}" ORDER BY ctid')
            found[table] = [dict(zip(fields, row, strict=True)) for row in cursor.fetchall()]
    return found


def added_rows(before: Rows, after: Rows) -> Rows:
    """The new rows. All others must be as before."""
    for table, rows in before.items():
        assert all(row in after[table] for row in rows), f"a row of {table.__name__} was changed"
    found = {
        table: [row for row in rows if row not in before[table]] for table, rows in after.items()
    }
    return {table: rows for table, rows in found.items() if rows}


def place_of(row: Model) -> Place:
    return type(row), "id", f"'{row.pk}'"


class Copier:
    """Inserts `rows` again. `given` names the literals that each copy replaces by values of its own."""

    def __init__(self, rows: Rows, given: Mapping[Place, str]) -> None:
        self._names = dict(given)
        referred = {
            self._place(table, field, literal)
            for table in rows
            for row in rows[table]
            for field, literal in row.items()
            if field.related_model
        }
        self._new_ids: list[Place] = [
            place
            for table in rows
            for row in rows[table]
            if (place := (table, "id", row.get(table._meta.pk, ""))) in referred
        ]
        for number, place in enumerate(self._new_ids):
            self._names[place] = f"id {number}"
        sequences = [
            f"nextval(pg_get_serial_sequence('\"{table._meta.db_table}\"', 'id'))"
            for table, _, _ in self._new_ids
        ]
        self._reserve = f"SELECT {', '.join(['statement_timestamp()', *sequences])}"
        self._parts = ";".join(self._insert(table, rows[table]) for table in rows).split(_MARK)

    def insert(self, given: Mapping[str, str]) -> tuple[dict[Place, int], datetime]:
        """Insert a copy with these literals. Returns the new ids of the rows to which others refer, and
        the time of all new rows."""
        with connection.cursor() as cursor:
            cursor.execute(self._reserve)
            now, *ids = cursor.fetchone()
            values = {**given, "now": f"'{now.isoformat()}'"}
            values |= {f"id {number}": str(new) for number, new in enumerate(ids)}
            parts = self._parts.copy()
            parts[1::2] = [values[name] for name in parts[1::2]]
            cursor.execute("".join(parts))
        return dict(zip(self._new_ids, ids, strict=True)), now

    def _insert(self, table: type[Model], rows: list[Row]) -> str:
        fields = [field for field in rows[0] if self._is_copied(table, field, rows[0])]
        columns = ", ".join(f'"{field.column}"' for field in fields)
        values = (
            ", ".join(self._value(table, field, row[field]) for field in fields) for row in rows
        )
        return f'INSERT INTO "{table._meta.db_table}" ({columns}) VALUES ({"), (".join(values)})'

    def _is_copied(self, table: type[Model], field: Field[Any, Any], row: Row) -> bool:
        """Not an id to which no row refers, and not the clock of the feed: they have defaults."""
        if isinstance(field, AutoField):
            return self._place(table, field, row[field]) in self._names
        is_time = isinstance(field, DateTimeField)
        return is_time or not hasattr(field.db_default, "resolve_expression")

    def _value(self, table: type[Model], field: Field[Any, Any], literal: str) -> str:
        if isinstance(field, DateTimeField) and literal != "NULL":
            return f"{_MARK}now{_MARK}"
        name = self._names.get(self._place(table, field, literal))
        return f"{_MARK}{name}{_MARK}" if name else literal

    @staticmethod
    def _place(table: type[Model], field: Field[Any, Any], literal: str) -> Place:
        if field.related_model:
            return field.related_model, "id", literal
        return table, field.column, literal
