"""Operations of migrations that run while the processes of the previous version serve requests.

A statement that waits for a lock blocks everyone who comes after it, so `manage.py setup` gives each
migration a short lock_timeout and tries again (project/startup.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations import RunSQL
from django.db.migrations.operations.base import Operation


class CreateIndexOnline(RunSQL):
    """CREATE INDEX CONCURRENTLY, in a migration with `atomic = False`. It blocks no writes, but waits
    for the transactions that are open, as long as they last. An interrupted attempt leaves an invalid
    index, which the next one replaces. `on`: the table, columns and condition. `replaces`: indexes that
    are dropped."""

    def __init__(
        self, name: str, on: str, state: Sequence[Operation] = (), replaces: Sequence[str] = ()
    ) -> None:
        drop = f"DROP INDEX CONCURRENTLY IF EXISTS {name}"
        create = f"CREATE INDEX CONCURRENTLY {name} ON {on}"
        others = [f"DROP INDEX CONCURRENTLY IF EXISTS {other}" for other in replaces]
        super().__init__([drop, create, *others], drop, state_operations=list(state))

    def database_forwards(self, *args: Any, **options: Any) -> None:
        schema_editor: BaseDatabaseSchemaEditor = args[1]
        with _without_lock_timeout(schema_editor):
            super().database_forwards(*args, **options)


@contextmanager
def _without_lock_timeout(schema_editor: BaseDatabaseSchemaEditor) -> Iterator[None]:
    with schema_editor.connection.cursor() as cursor:
        cursor.execute("SHOW lock_timeout")
        before = cursor.fetchone()
        cursor.execute("SET lock_timeout = 0")
        try:
            yield
        finally:
            cursor.execute("SELECT set_config('lock_timeout', %s, false)", before)
