"""Runs the hand-written statements: prepared, on Django's own connection, errors translated.

Django's cursors bind parameters on the client, so the server parses and plans every call anew.
`psycopg.Cursor` on the same connection binds on the server and prepares after a few uses
(OPTIONS["prepare_threshold"]), which halves PostgreSQL's share of a small read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import psycopg
from django.db import connection

Row = tuple[Any, ...]


def fetch_all(statement: str, parameters: Mapping[str, Any]) -> list[Row]:
    """Execute one statement and return its rows. Takes part in Django's open transaction, if any.

    Raises django.db errors, and marks the connection as Django would, so that a broken one is
    replaced at the next request.
    """
    connection.ensure_connection()
    with connection.wrap_database_errors, psycopg.Cursor(connection.connection) as cursor:
        cursor.execute(statement.encode(), parameters)
        return cursor.fetchall()


def fetch_one(statement: str, parameters: Mapping[str, Any]) -> Row | None:
    rows = fetch_all(statement, parameters)
    return rows[0] if rows else None
