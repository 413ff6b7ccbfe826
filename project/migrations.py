"""The migrations that are not applied."""

from __future__ import annotations

from django.db import connection
from django.db.migrations import Migration
from django.db.migrations.executor import MigrationExecutor


def find_due() -> list[Migration]:
    """The migrations of this version that the database lacks, in their order."""
    executor = MigrationExecutor(connection)
    return [step for step, _ in executor.migration_plan(executor.loader.graph.leaf_nodes())]
