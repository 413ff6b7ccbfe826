"""Runs the hand-written statements: prepared, on Django's own connection, errors translated.

Django's cursors bind parameters on the client, so the server parses and plans every call.
psycopg's cursors on the same connection bind on the server and prepare after a few uses
(OPTIONS["prepare_threshold"]), which halves PostgreSQL's share of a small read. Values come back in
binary, read by psycopg in C: that and numbered parameters halve our own share.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import lru_cache
from struct import Struct
from typing import Any, Final

import psycopg
from django.db import connection
from psycopg.pq import TransactionStatus
from psycopg.types.array import ListBinaryDumper

from project import tracing

Row = tuple[Any, ...]
# A statement and its parameters.
Call = tuple[str, Mapping[str, Any]]
# The workspace and public id of the run of each call, by the index of the call in its group. The
# statements return this index as `place`.
Addresses = Mapping[int, tuple[int, str]]

_PARAMETER = re.compile(r"%\((\w+)\)(?:s|b::(\w+)\[\])|%(%)")


class _Array(list[Any]):
    """A list that is sent as a binary array of one fixed type. psycopg derives the type of a plain list
    from its members, so larger numbers or an empty list would mean another prepared statement."""


# Parts of a binary array: its dimension, the type of its members, and the members with their lengths.
_DIMENSION: Final = Struct("!iiIii").pack
_NO_DIMENSION: Final = Struct("!iiI").pack
_NULL: Final = b"\xff\xff\xff\xff"
_LENGTH: Final = Struct("!i").pack
_INTEGER: Final = Struct("!iq").pack


class _FlatDumper(ListBinaryDumper):
    """psycopg's own dumper takes twice as long, because it allows for several dimensions. A write sends
    23 arrays."""

    def _head(self, members: Sequence[Any]) -> bytes:
        if not members:
            return _NO_DIMENSION(0, 0, self.element_oid)
        return _DIMENSION(1, None in members, self.element_oid, len(members), 1)


class _TextsDumper(_FlatDumper):
    def dump(self, obj: list[str | None]) -> bytes:
        members = [
            _NULL if text is None else _LENGTH(len(encoded := text.encode())) + encoded
            for text in obj
        ]
        return self._head(obj) + b"".join(members)


class _IntegersDumper(_FlatDumper):
    def dump(self, obj: list[int | None]) -> bytes:
        members = [_NULL if number is None else _INTEGER(8, number) for number in obj]
        return self._head(obj) + b"".join(members)


def _array_of(name: str, dumper: type[ListBinaryDumper] = ListBinaryDumper) -> type[_Array]:
    element = psycopg.adapters.types[name]
    array = type("Array", (_Array,), {})
    members = {"oid": element.array_oid, "element_oid": element.oid}
    psycopg.adapters.register_dumper(array, type("ArrayDumper", (dumper,), members))
    return array


_INTEGERS = _array_of("int8", _IntegersDumper)
_ARRAYS = {
    "bigint": _INTEGERS,
    "int": _INTEGERS,
    "text": _array_of("text", _TextsDumper),
    "bool": _array_of("bool"),
    "bytea": _array_of("bytea"),
    "timestamptz": _array_of("timestamptz"),
}


def fetch_all(statement: str, parameters: Mapping[str, Any]) -> list[Row]:
    """Execute one statement and return its rows. Takes part in Django's open transaction, if any.

    `%(name)s` is a parameter, `%(name)b::text[]` for a list, sent as a binary array of that type.
    Select jsonb and types that psycopg does not know `::text`. Raises django.db errors, and marks
    the connection as Django would, so that a broken one is replaced at the next request.
    """
    connection.ensure_connection()
    with (
        tracing.statements([statement]),
        connection.wrap_database_errors,
        _execute(statement, parameters) as cursor,
    ):
        return cursor.fetchall()


def fetch_each(calls: Sequence[Call]) -> list[list[Row]]:
    """Execute statements one after the other, in one round trip, and return the rows of each. Raises
    as fetch_all does; statements after a failed one are not executed.
    """
    connection.ensure_connection()
    raw = connection.connection
    with (
        tracing.statements([statement for statement, _ in calls]),
        connection.wrap_database_errors,
        ExitStack() as cursors,
    ):
        with raw.pipeline():
            if not raw.autocommit and raw.info.transaction_status == TransactionStatus.IDLE:
                raw.autocommit = True  # psycopg would wait for its own BEGIN
                begin = psycopg.RawCursor(raw).execute("BEGIN", prepare=False)
                cursors.enter_context(begin)
            fetching = [cursors.enter_context(_execute(*call)) for call in calls]
        return [cursor.fetchall() for cursor in fetching]


def _execute(statement: str, parameters: Mapping[str, Any]) -> psycopg.RawCursor[Row]:
    numbered, values = number(statement, parameters)
    return psycopg.RawCursor(connection.connection).execute(numbered, values, binary=True)


def number(statement: str, parameters: Mapping[str, Any]) -> tuple[bytes, list[Any]]:
    """The statement with numbered parameters, as psycopg's raw cursors take it, and their values."""
    names, numbered = _number(statement)
    return numbered, [
        parameters[name] if array is None else array(parameters[name]) for name, array in names
    ]


def fetch_one(statement: str, parameters: Mapping[str, Any]) -> Row | None:
    rows = fetch_all(statement, parameters)
    return rows[0] if rows else None


def fetch_row(statement: str, parameters: Mapping[str, Any]) -> Row:
    """The first row of a statement that always returns one."""
    return fetch_all(statement, parameters)[0]


def unzip(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> dict[str, list[Any]]:
    """The columns of rows, by name: the arrays that a statement about several rows takes."""
    return {name: [row[place] for row in rows] for place, name in enumerate(names)}


def columns_of(addresses: Addresses) -> dict[str, list[Any]]:
    """`addresses` as the array parameters `place`, `workspace` and `run`."""
    return unzip(("place", "workspace", "run"), [(p, *each) for p, each in addresses.items()])


@lru_cache(maxsize=512)
def _number(statement: str) -> tuple[tuple[tuple[str, type[_Array] | None], ...], bytes]:
    """The parameter names in the order of their numbers, each with its array type or None, and the
    statement with numbered parameters."""
    numbers: dict[str, int] = {}
    arrays: dict[str, type[_Array]] = {}

    def number(found: re.Match[str]) -> str:
        name, kind, percent = found.groups()
        if percent:
            return "%"
        place = numbers.setdefault(name, len(numbers) + 1)
        if kind is None:
            return f"${place}"
        arrays[name] = _ARRAYS[kind]
        return f"${place}::{kind}[]"

    numbered = _PARAMETER.sub(number, statement)
    return tuple((name, arrays.get(name)) for name in numbers), numbered.encode()
