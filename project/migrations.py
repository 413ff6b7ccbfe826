"""The migrations that are not applied."""

from __future__ import annotations

from django.db import ProgrammingError, connection
from django.db.migrations import Migration
from django.db.migrations.executor import MigrationExecutor
from psycopg.errors import UndefinedTable

from project.env import BASE_DIR

_FOLDER = BASE_DIR / "state_admin" / "migrations"


def find_due() -> list[Migration]:
    """The migrations of this version that the database lacks, in their order."""
    executor = MigrationExecutor(connection)
    return [step for step, _ in executor.migration_plan(executor.loader.graph.leaf_nodes())]


def are_due() -> bool:
    """Whether the database lacks migrations of this version, by their names: nothing is imported."""
    names = {path.stem for path in _FOLDER.glob("[0-9]*.py")}
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT name FROM django_migrations WHERE app = 'state_admin'")
            return bool(names - {name for (name,) in cursor.fetchall()})
    except ProgrammingError as error:
        if isinstance(error.__cause__, UndefinedTable):  # before the first migration
            return True
        raise
