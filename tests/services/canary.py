"""Searches everything in the database for a secret."""

from __future__ import annotations

from django.db import connection


def tables_with(secret: str) -> set[str]:
    """The tables of all schemas with a row that contains `secret`, in any case, as text or
    bytes."""
    found = set()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT quote_ident(table_schema), quote_ident(table_name)"
            " FROM information_schema.tables WHERE table_type = 'BASE TABLE'"
            " AND table_schema NOT IN ('pg_catalog', 'information_schema')"
        )
        for schema, table in cursor.fetchall():
            cursor.execute(
                f"SELECT EXISTS (SELECT 1 FROM {schema}.{table} t WHERE"
                " position(lower(%s) in lower(t::text)) > 0"
                " OR position(%s in t::text) > 0)",
                [secret, secret.encode().hex()],
            )
            if cursor.fetchone()[0]:
                found.add(table)
    return found
