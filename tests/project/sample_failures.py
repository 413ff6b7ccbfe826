"""A process in which everything fails, with $CANARY in the text of each error.

Run by tests as `python -m tests.project.sample_failures`, on the database of a running server.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Callable
from typing import Any

import django

django.setup()

import psycopg
import structlog
from django.db import DatabaseError, connection

from state_admin.models import Workspace

CANARY = os.environ["CANARY"]
log = structlog.get_logger("project.sample")
library = logging.getLogger("some.library")


def orm_duplicate() -> None:
    Workspace.objects.create(slug=CANARY, name=CANARY)
    Workspace.objects.create(slug=CANARY, name=CANARY)


def invalid_json() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s::jsonb", ['{"' + CANARY])


def invalid_number() -> None:
    Workspace.objects.extra(where=["id = %s::text::int"], params=[CANARY]).exists()


def raised_by_a_function() -> None:
    with psycopg.Cursor(connection.connection) as cursor:
        cursor.execute("SELECT format('DO $d$ BEGIN RAISE ''%%s''; END $d$', %s::text)", [CANARY])
        row = cursor.fetchone()
        assert row is not None
        cursor.execute(row[0].encode())


def copy() -> None:
    with (
        psycopg.Cursor(connection.connection) as cursor,
        cursor.copy("COPY workspaces (id) FROM STDIN") as lines,
    ):
        lines.write(f"{CANARY}\n")


def cancelled() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = '50ms'")
        try:
            cursor.execute("SELECT pg_sleep(60), %s", [CANARY])
        finally:
            connection.rollback()
            cursor.execute("RESET statement_timeout")


def slow() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_sleep(1.1), %s", [CANARY])
    with psycopg.Cursor(connection.connection) as cursor:
        cursor.execute("SELECT pg_sleep(1.1), %s::text", [CANARY])


def python_error() -> None:
    int(CANARY)


FAILURES: list[Callable[[], None]] = [
    orm_duplicate,
    invalid_json,
    invalid_number,
    raised_by_a_function,
    copy,
    cancelled,
    python_error,
]


async def forgotten_task() -> None:
    task: asyncio.Task[Any] = asyncio.get_running_loop().create_task(asyncio.to_thread(int, CANARY))
    await asyncio.wait([task])


def main() -> None:
    slow()
    for fail in FAILURES:
        try:
            fail()
        except (DatabaseError, psycopg.Error, ValueError) as error:
            log.exception("sample.failed", of=fail.__name__)
            library.exception("%s failed: %s", CANARY, error)
        else:
            raise AssertionError(fail.__name__)
        connection.connection.rollback()
    library.warning("a message\nof two lines: %s", CANARY)
    library.info(f"for developers: {CANARY}")
    asyncio.run(forgotten_task())
    thread = threading.Thread(target=python_error)
    thread.start()
    thread.join()
    python_error()


if __name__ == "__main__":
    main()
