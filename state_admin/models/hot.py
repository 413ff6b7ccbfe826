"""Runs the hand-written statements: prepared, on Django's own connection, errors translated.

Django's cursors bind parameters on the client, so the server parses and plans every call anew.
psycopg's cursors on the same connection bind on the server and prepare after a few uses
(OPTIONS["prepare_threshold"]), which halves PostgreSQL's share of a small read. Values come back in
binary, read by psycopg in C: that and numbered parameters halve our own share.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import psycopg
from django.db import connection

Row = tuple[Any, ...]

_PARAMETER = re.compile(r"%\((\w+)\)s|%(%)")


def fetch_all(statement: str, parameters: Mapping[str, Any]) -> list[Row]:
    """Execute one statement and return its rows. Takes part in Django's open transaction, if any.

    `%(name)s` stands for a parameter, `%(name)b` for one sent in binary. Select jsonb and types
    that psycopg does not know `::text`. Raises django.db errors, and marks the connection as Django
    would, so that a broken one is replaced at the next request.
    """
    connection.ensure_connection()
    names, numbered = _number(statement)
    with connection.wrap_database_errors:
        if names is None:
            with psycopg.Cursor(connection.connection) as cursor:
                return cursor.execute(numbered, parameters, binary=True).fetchall()
        with psycopg.RawCursor(connection.connection) as cursor:
            values = [parameters[name] for name in names]
            return cursor.execute(numbered, values, binary=True).fetchall()


def fetch_one(statement: str, parameters: Mapping[str, Any]) -> Row | None:
    rows = fetch_all(statement, parameters)
    return rows[0] if rows else None


@lru_cache(maxsize=512)
def _number(statement: str) -> tuple[tuple[str, ...] | None, bytes]:
    """A statement as PostgreSQL takes it, and the names of its parameters in the order of their
    numbers. None: psycopg must do that, since only it can send parameters in binary."""
    if re.search(r"%\(\w+\)b", statement):
        return None, statement.encode()
    names: list[str] = []

    def number(found: re.Match[str]) -> str:
        if found[2]:
            return "%"
        if found[1] not in names:
            names.append(found[1])
        return f"${names.index(found[1]) + 1}"

    numbered = _PARAMETER.sub(number, statement)
    return tuple(names), numbered.encode()
