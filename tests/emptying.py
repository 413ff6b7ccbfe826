"""Empties the tables after a test that commits, at a cost that depends on the rows it left."""

from __future__ import annotations

import functools

from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType
from django.db import connection, transaction
from psycopg import sql

# Of all tables together, dead rows included. Beyond this, truncating is faster.
MOST_BYTES_TO_DELETE = 8_000_000


@functools.cache
def tables() -> list[sql.Identifier]:
    """All tables except those of content types and permissions, which migrations fill and no test
    changes."""
    kept = {ContentType._meta.db_table, Permission._meta.db_table}
    found = connection.introspection.django_table_names(only_existing=True, include_views=False)
    return [sql.Identifier(name) for name in found if name not in kept]


def empty_tables() -> None:
    """Has the effect of Django's `flush`, except that sequences continue.

    `flush` truncates, which takes as long for an empty table as for a full one: a quarter of a
    second for all. The lock waits for writers, so that none of their rows remains; readers are not
    blocked.
    """
    names = sql.SQL(", ").join(tables())
    sizes = sql.SQL("SELECT pg_relation_size(name) FROM unnest({}::regclass[]) AS name").format(
        [name.as_string() for name in tables()]
    )
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql.SQL("LOCK TABLE {} IN EXCLUSIVE MODE").format(names))
        cursor.execute(sizes)
        sized = list(zip(tables(), (size for (size,) in cursor.fetchall()), strict=True))
        if sum(size for _, size in sized) > MOST_BYTES_TO_DELETE:
            cursor.execute(sql.SQL("TRUNCATE {}").format(names))
            return
        # The order does not matter because foreign keys are not checked.
        cursor.execute("SET LOCAL session_replication_role = replica")
        deletions = [sql.SQL("DELETE FROM {}").format(name) for name, size in sized if size]
        cursor.execute(sql.SQL("; ").join(deletions))
