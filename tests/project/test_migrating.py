"""Migrations while other processes use the database."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from project.postgres.cluster import Cluster
from tests.project.running import Running, wait_for
from tests.project.sites import connect, url_of

# The first release created all tables. Its migrations run on an empty database.
FIRST_RELEASE = "0002_storage"
# Each migration has a lock budget (project/startup.py), and Django names and types the columns.
EXCLUDED = (
    "require-lock-timeout",
    "require-statement-timeout",
    "prefer-bigint-over-int",
    "prefer-bigint-over-smallint",
    "prefer-robust-stmts",
    "prefer-identity",
    "prefer-text-field",
)


def test_setup__table_is_locked__lets_others_read_and_tries_again(
    cluster: Cluster, start: Callable[..., Running]
) -> None:
    url = url_of(cluster)
    old = start("manage.py", "migrate", "state_admin", "0004", DATABASE_URL=url)
    assert old.wait() == 0, old.output()
    check = start("manage.py", "setup", "--check", DATABASE_URL=url)
    assert check.wait() == 1
    assert "state_admin.0005_untracked_namespaces" in check.output()
    with connect(cluster) as holder, connect(cluster) as reader:
        # What an interrupted CREATE INDEX CONCURRENTLY leaves.
        reader.execute("CREATE INDEX runs_by_parent ON runs (id)")
        with holder.transaction():
            holder.execute("SELECT count(*) FROM namespaces")
            setup = start("manage.py", "setup", DATABASE_URL=url)

            def waits() -> bool:
                waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                return reader.execute(waiting).fetchone() is not None

            wait_for(waits, setup.output)
            # This waits behind the migration, which gives up for it.
            reader.execute("SELECT count(*) FROM namespaces")
            wait_for(waits, setup.output)
        assert setup.wait() == 0, setup.output()
        invalid = reader.execute("SELECT 1 FROM pg_index WHERE NOT indisvalid").fetchall()
        assert invalid == []
        (definition,) = reader.execute(
            "SELECT pg_get_indexdef('runs_by_parent'::regclass)"
        ).fetchone() or ("",)
        assert "parent_run_id" in definition
    check = start("manage.py", "setup", "--check", DATABASE_URL=url)
    assert check.wait() == 0
    assert "The database is up to date." in check.output()


@pytest.mark.django_db
def test_migrations__since_the_first_release__block_nobody_for_long(tmp_path: Path) -> None:
    executor = MigrationExecutor(connection)
    (newest,) = executor.loader.graph.leaf_nodes("state_admin")
    plan = [
        name for app, name in executor.loader.graph.forwards_plan(newest) if app == "state_admin"
    ]
    later = plan[plan.index(FIRST_RELEASE) + 1 :]
    assert later
    for name in later:
        path = tmp_path / f"{name}.sql"
        with path.open("w") as file:
            call_command("sqlmigrate", "state_admin", name, stdout=file)
        squawk = Path(sys.executable).with_name("squawk")
        rules = [f"--exclude={rule}" for rule in EXCLUDED]
        checked = subprocess.run(
            [squawk, "--pg-version=18", *rules, str(path)], capture_output=True, text=True
        )
        assert checked.returncode == 0, checked.stdout + checked.stderr
