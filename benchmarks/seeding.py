"""Fills a database to a given size by INSERT … SELECT, which is faster than the services. The rows
are like those of the services; only the search index is omitted, so that searches compare values, the
slow case."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks.seeded_rows import Seeding, Size


def seed(size: Size) -> None:
    """Fill the workspace of the sweep's pages (tests/e2e/pages.py) up to `size`."""
    from django.db import connection

    from state_admin.domain.access import Role
    from tests.builders import make_person
    from tests.e2e.pages import fill

    alice = make_person("alice", "acme", Role.ADMIN)
    fill(alice)
    big_values(alice.actor, size)
    seeding = Seeding(alice.workspace.pk, size)
    with connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = 0")
        cursor.execute("SET synchronous_commit = off")
        cursor.execute("SET maintenance_work_mem = '1GB'")
        seeding.cursor = cursor
        seeding.burn_transactions()
        with without_indexes(cursor, seeding.BULK):
            # All references are valid, so checking foreign keys would only take time.
            cursor.execute("SET session_replication_role = replica")
            for step in (
                seeding.people,
                seeding.namespaces,
                seeding.entries,
                seeding.threads,
                seeding.long_thread,
                seeding.work,
                seeding.samples,
            ):
                started = time.perf_counter()
                step()
                print(f"{step.__name__:14}{time.perf_counter() - started:8.1f} s", flush=True)
            cursor.execute("RESET session_replication_role")
        seeding.advance_sequences()
        started = time.perf_counter()
        cursor.execute("VACUUM (ANALYZE)")
        print(f"{'vacuum':14}{time.perf_counter() - started:8.1f} s", flush=True)
    # The results of the sweeps, which several pages show.
    from state_admin.services.storage import measure_storage

    measure_storage()


def big_values(actor: Any, size: Size) -> None:
    """Store a tree and a text of `size.value_mb` megabytes, each as an entry with three versions,
    as a state value of a thread and as a message."""
    from tests import builders

    letters = int(size.value_mb * 2**20)
    items = 3_000
    builders.make_namespace(actor, "huge", max_value_bytes=8 * 2**20)
    builders.make_state_key(actor, "held", scope="thread")
    builders.make_thread(actor, "huge")
    builders.make_run(actor, "huge", "r-huge", lease_seconds=86_400)
    for version in range(3):
        line = "lorem ipsum dolor sit amet " * (letters // items // 27)
        tree = {"items": [{"id": n, "text": f"{version} {line}"} for n in range(items)]}
        builders.put(actor, "huge", "tree", tree)
        builders.put(actor, "huge", "text", {"text": f"{version} " + "word " * (letters // 5)})
        builders.commit(actor, "r-huge", {"held": tree})
    builders.append(actor, "huge", {"role": "user", "content": "word " * (letters // 5)})
    builders.append(
        actor,
        "huge",
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
            ],
        },
    )
    builders.append(
        actor, "huge", {"role": "tool", "tool_call_id": "c1", "content": json.dumps(tree)}
    )


@contextmanager
def without_indexes(cursor: Any, tables: tuple[str, ...]) -> Iterator[None]:
    """Drop all indexes except primary keys, and rebuild them afterwards."""
    cursor.execute(
        """
        SELECT i.indrelid::regclass::text, i.indexrelid::regclass::text,
            pg_get_indexdef(i.indexrelid), c.conname, pg_get_constraintdef(c.oid)
        FROM pg_index i LEFT JOIN pg_constraint c ON c.conindid = i.indexrelid AND c.contype = 'u'
        WHERE i.indrelid = ANY(%s::text[]::regclass[]) AND NOT i.indisprimary
        """,
        [list(tables)],
    )
    found = cursor.fetchall()
    for table, index, _, constraint, _ in found:
        cursor.execute(
            f"ALTER TABLE {table} DROP CONSTRAINT {constraint}"
            if constraint
            else f"DROP INDEX {index}"
        )
    yield
    for table, index, definition, constraint, rule in found:
        started = time.perf_counter()
        cursor.execute(
            f"ALTER TABLE {table} ADD CONSTRAINT {constraint} {rule}" if constraint else definition
        )
        print(f"{index:34}{time.perf_counter() - started:8.1f} s", flush=True)
