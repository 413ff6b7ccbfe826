"""The statements of released versions, which the current schema must still be able to plan, because processes
of the previous version run while a new one is installed.

`python -m tests.released VERSION`, in the tree of a release, writes VERSION.sql, one statement per line:
it runs tests that reach every operation, page and job, and reads their statements from
pg_stat_statements. Constants in them are parameters.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import psycopg

from project.env import BASE_DIR
from project.postgres.cluster import Cluster
from tests.project.sites import connect, url_of

FOLDER = Path(__file__).parent
_TESTS = (
    "tests/contract/test_permissions.py",
    "tests/web/test_query_counts.py",
    "tests/tasks",
    "tests/streams",
    "tests/services/test_maintenance.py",
    "tests/services/test_retention.py",
    "tests/services/test_compaction_jobs.py",
    "tests/services/test_search.py",
    "tests/services/test_deliveries.py",
    "tests/services/test_storage.py",
    "tests/management/test_verify_state.py",
)
_VERBS = ("SELECT", "INSERT", "UPDATE", "DELETE", "WITH")
_CURSOR = re.compile(
    r"^DECLARE\s+\S+\s+(?:\w+\s+)*?CURSOR\s+(?:WITH(?:OUT)? HOLD\s+)?FOR\s+", re.DOTALL
)
_LONGEST = 12_000
_TABLES = (
    "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'"
)


def newest() -> Path:
    """The statements of the newest release."""

    def version(path: Path) -> tuple[int, ...]:
        return tuple(map(int, path.stem.split(".")))

    return max(FOLDER.glob("*.sql"), key=version)


def find_failing(execute: Any, statements: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The statements for which PostgreSQL 16 or newer makes no plan, each with its reason.
    `execute` runs a statement and raises psycopg.Error or an error caused by one."""
    for statement in statements:
        try:
            execute(f"EXPLAIN (GENERIC_PLAN) {statement}")
        except Exception as error:
            cause = error if isinstance(error, psycopg.Error) else error.__cause__
            if not isinstance(cause, psycopg.Error):
                raise
            yield statement, str(cause).partition("\n")[0]


def record(version: str) -> None:
    cluster = Cluster(BASE_DIR / ".data" / "released" / "postgres")
    cluster.acquire()
    cluster.release()
    with (cluster.data / "postgresql.conf").open("a") as settings:
        settings.write("shared_preload_libraries = 'pg_stat_statements'\n")
        settings.write("pg_stat_statements.max = 20000\npg_stat_statements.track = top\n")
    cluster.acquire()
    try:
        with connect(cluster, "postgres") as database:
            database.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
            database.execute("SELECT pg_stat_statements_reset()")
            database.execute("DROP DATABASE IF EXISTS commonhold")
            database.execute("CREATE DATABASE commonhold")
            folder = str(cluster.folder.parent)
            pytest = [
                sys.executable,
                "-m",
                "pytest",
                "-q",
                "-n0",
                "-m",
                "not slow and not exhaustive",
                *_TESTS,
            ]
            subprocess.run(pytest, check=False, env=os.environ | {"COMMONHOLD_DATA_DIR": folder})
            rows = database.execute("SELECT query FROM pg_stat_statements WHERE toplevel")
            statements = list(_select(text for (text,) in rows))
        migrate = [sys.executable, "manage.py", "migrate", "--verbosity=0"]
        subprocess.run(migrate, check=True, env=os.environ | {"DATABASE_URL": url_of(cluster)})
        with connect(cluster) as database:
            # Some constants cannot be parameters (intervals), others lose their type.
            failing = {statement for statement, _ in find_failing(database.execute, statements)}
            tables = [name for (name,) in database.execute(_TABLES)]
    finally:
        cluster.release()
    ours = re.compile(rf"\b({'|'.join(tables)})\b")
    kept = sorted(each for each in statements if each not in failing and ours.search(each))
    (FOLDER / f"{version}.sql").write_text("".join(f"{each}\n" for each in kept))


def _select(texts: Iterable[str]) -> Iterator[str]:
    """Statements on one line, each form of a list of values once."""
    seen = set()
    for text in texts:
        # A comment would end at the end of the line, which is not there any more.
        statement = re.sub(r"--[^\n]*", "", _CURSOR.sub("", text))
        statement = re.sub(r"\s+", " ", statement).strip()
        if statement.split(" ", 1)[0].upper() not in _VERBS or len(statement) > _LONGEST:
            continue
        form = re.sub(r"\((?:\$(?:, )?)+\)", "($)", re.sub(r"\$\d+", "$", statement))
        if form not in seen:
            seen.add(form)
            yield statement
