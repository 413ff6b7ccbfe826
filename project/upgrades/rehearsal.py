"""Runs the migrations that a database lacks on an empty copy of its schema, in a temporary embedded
PostgreSQL, and reports their effects on the tables that the database has.

`rehearse` starts this module as a separate process, because a process has the settings of one database.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Collection
from pathlib import Path

import django
import msgspec
from django.db import connection
from django.db.migrations import Migration
from django.db.migrations.executor import MigrationExecutor

from project.env import BASE_DIR, BadSetting
from project.upgrades.observation import Effects, list_tables, observe
from project.upgrades.schema import find_breaks, read_schema


class Step(msgspec.Struct):
    """A migration, and the effects of its transactions."""

    migration: str
    effects: list[Effects]


class Rehearsal(msgspec.Struct):
    """`breaks`: the reasons why the previous version may fail on the new schema."""

    steps: list[Step]
    breaks: list[str]


def rehearse(applied: Collection[tuple[str, str]]) -> Rehearsal:
    """Rehearse all migrations that are not `applied`. Raises BadSetting if that is not possible."""
    with tempfile.TemporaryDirectory(prefix="ch") as folder:
        done = subprocess.run(
            [sys.executable, "-m", __name__],
            check=False,
            cwd=BASE_DIR,
            input=json.dumps(sorted(applied)),
            capture_output=True,
            text=True,
            env=_environment(Path(folder)),
        )
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise BadSetting(f"The migrations cannot be rehearsed: {reason}")
    return msgspec.json.decode(done.stdout, type=Rehearsal)


def _environment(folder: Path) -> dict[str, str]:
    """That of this process, with an embedded PostgreSQL in `folder` and no other server."""
    own = {"DJANGO_SETTINGS_MODULE": "project.settings", "COMMONHOLD_DATA_DIR": str(folder)}
    others = ("DATABASE_URL", "DATABASE_REPLICA_URLS", "AUDIT_STREAM")
    return {
        name: value
        for name, value in os.environ.items()
        if name.removesuffix("_FILE") not in others
    } | own


def _main() -> None:
    django.setup()
    if not connection.settings_dict.get("EMBEDDED"):
        raise BadSetting("the settings name a database that exists")
    applied = {(app, name) for app, name in json.load(sys.stdin)}
    executor = MigrationExecutor(connection)
    leaves = executor.loader.graph.leaf_nodes()
    plan = executor.migration_plan(leaves)
    base = [each for each in plan if (each[0].app_label, each[0].name) in applied]
    with connection.cursor() as cursor:  # the session's limits are for requests
        cursor.execute("SET statement_timeout = 0")
    state = executor.migrate(leaves, plan=base)
    before, tables = read_schema(connection), list_tables(connection)
    steps = []
    for migration, backwards in plan:
        if (migration, backwards) in base:
            continue

        def run(step: tuple[Migration, bool] = (migration, backwards)) -> None:
            executor.migrate(leaves, plan=[step], state=state)

        effects = observe(connection, tables, run, atomic=migration.atomic)
        steps.append(Step(str(migration), effects))
    result = Rehearsal(steps, find_breaks(before, read_schema(connection)))
    sys.stdout.buffer.write(msgspec.json.encode(result))


if __name__ == "__main__":
    _main()
