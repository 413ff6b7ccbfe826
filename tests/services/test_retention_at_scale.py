"""Compaction of a million rows: in bounded batches, by indexes, beside a writer.

Durations are printed (`make exhaustive`, with -s) and not asserted; but no writer may wait longer than
LONGEST_WAIT for a lock, which the server enforces.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import DatabaseError, connection, connections

from state_admin.models import Compaction, Namespace, Thread, retention_sql
from state_admin.services import retention
from tests.builders import (
    Person,
    commit,
    make_namespace,
    make_run,
    make_state_key,
    make_thread,
    put,
)
from tests.services.test_retention import keep

KEYS = 50
LONGEST_WAIT = "50ms"


def fill(thread_id: int, revisions: int) -> None:
    """Revisions that each change one key of KEYS, in turn, as commits store them. Every thousandth
    is labelled."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO revisions (thread_id, number, kind, touched, message_count, label,
                actor_kind, actor_id, actor_name)
            SELECT %(thread)s, n, 'commit', ARRAY['k' || n %% %(keys)s], 0,
                CASE WHEN n %% 1000 = 0 THEN 'mark' ELSE '' END, 'system', 'x', 'x'
            FROM generate_series(1, %(revisions)s) n
            """,
            {"thread": thread_id, "keys": KEYS, "revisions": revisions},
        )
        cursor.execute(
            """
            INSERT INTO state_values (thread_id, key, valid_from, valid_to, value, scope, persistent)
            SELECT %(thread)s, 'k' || n %% %(keys)s, n,
                CASE WHEN n + %(keys)s <= %(revisions)s THEN n + %(keys)s END,
                to_json(repeat('x', 200)), 'thread', true
            FROM generate_series(1, %(revisions)s) n
            """,
            {"thread": thread_id, "keys": KEYS, "revisions": revisions},
        )
        cursor.execute("UPDATE threads SET revision = %s WHERE id = %s", [revisions, thread_id])
        cursor.execute("ANALYZE revisions; ANALYZE state_values")


def plan_of(statement: str, parameters: dict[str, Any]) -> Iterator[str]:
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN (COSTS OFF) " + statement, parameters)
        for (line,) in cursor.fetchall():
            yield line


@pytest.mark.parametrize("name", ["_DROP", "_REMOVE_VALUES"])
def test_batch__of_snapshots_in_a_large_table__uses_an_index(alice: Person, name: str) -> None:
    make_thread(alice.actor, "big")
    thread_id = Thread.objects.get(public_id="big").pk
    fill(thread_id, 20_000)
    parameters = {
        "thread": thread_id, "after": 10_000, "until": 19_000, "keep_every": None,
        "batch": retention.BATCH, "key": "k2", "from": 500, "kept": [1000, 2000],
    }  # fmt: skip
    plan = "\n".join(plan_of(getattr(retention_sql, name), parameters))
    assert "Seq Scan on revisions" not in plan, plan
    assert "Seq Scan on state_values" not in plan, plan


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["_REMOVE_VERSIONS", "_ANY_OLD_VERSION"])
def test_batch__of_histories_in_a_large_table__uses_an_index(alice: Person, name: str) -> None:
    make_namespace(alice.actor, history_keep_last=1)
    put(alice.actor, "notes", "k", 1)
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO entries (namespace_id, key, value, version, born_version, schema_version,
                deleted, size_bytes, estimated_tokens, actor_kind, actor_name)
            SELECT namespace_id, 'k' || n, '1', 4, 1, 1, false, 1, 1, 'system', 'x'
            FROM entries, generate_series(1, 200000) n WHERE key = 'k'
            """
        )
        cursor.execute(
            """
            INSERT INTO entry_revisions (entry_id, version, operation, value, schema_version,
                size_bytes, actor_kind, actor_id, actor_name)
            SELECT id, n, 'put', '1', 1, 1, 'system', 'x', 'x'
            FROM entries, generate_series(1, 4) n WHERE key <> 'k'
            """
        )
        cursor.execute("ANALYZE entries; ANALYZE entry_revisions")
    parameters = {
        "namespace": Namespace.objects.get(name="notes").pk, "keep_last": 1, "keep_seconds": None,
        "key": "k2", "batch": retention.BATCH,
    }  # fmt: skip
    plan = "\n".join(plan_of(getattr(retention_sql, name), parameters))
    assert "Seq Scan on entries" not in plan, plan
    assert "Seq Scan on entry_revisions" not in plan, plan


@pytest.mark.exhaustive
@pytest.mark.timeout(900)
@pytest.mark.django_db(transaction=True)
def test_snapshots__million_rows__are_removed_in_bounded_batches_beside_a_writer(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    a = alice.actor
    make_state_key(a, "plan")
    make_thread(a)
    fill(Thread.objects.get().pk, 1_000_000)
    make_run(a)
    keep(alice, 100)
    began = time.monotonic()
    preview = retention.preview_snapshots(actor=a, thread_id="t1")
    print(f"\npreview {time.monotonic() - began:.1f} s: {preview.weight}")  # noqa: T201

    pieces: list[float] = []
    rows: list[int] = []
    remove, drop = retention_sql.remove_values, retention_sql.drop_revisions

    def timed(work: Any) -> Any:
        def piece(**given: Any) -> Any:
            at = time.monotonic()
            done = work(**given)
            pieces.append(time.monotonic() - at)
            rows.append(done if isinstance(done, int) else done.weight.rows if done else 0)
            return done

        return piece

    monkeypatch.setattr(retention_sql, "remove_values", timed(remove))
    monkeypatch.setattr(retention_sql, "drop_revisions", timed(drop))
    alone, beside = [], []
    for number in range(200):
        at = time.monotonic()
        commit(a, updates={"plan": number})
        alone.append(time.monotonic() - at)
    over = threading.Event()
    looks = 0
    waits: Counter[str] = Counter()
    refused: list[DatabaseError] = []

    def write() -> None:
        try:
            with connection.cursor() as cursor:
                cursor.execute(f"SET lock_timeout = '{LONGEST_WAIT}'")
            number = 0
            while not over.is_set():
                number += 1
                at = time.monotonic()
                commit(a, updates={"plan": number})
                beside.append(time.monotonic() - at)
        except DatabaseError as error:
            refused.append(error)
        finally:
            connections.close_all()

    def watch() -> None:
        """The statements that wait for a lock of another transaction, polled every few
        milliseconds."""
        nonlocal looks
        try:
            while not over.wait(0.002):
                looks += 1
                with connection.cursor() as cursor:
                    cursor.execute(
                        "SELECT left(query, 60) FROM pg_stat_activity"
                        " WHERE wait_event_type = 'Lock' AND wait_event IN ('transactionid', 'tuple')"
                    )
                    waits.update(query for (query,) in cursor.fetchall())
        finally:
            connections.close_all()

    others = [threading.Thread(target=write), threading.Thread(target=watch)]
    for other in others:
        other.start()
    began = time.monotonic()
    try:
        job = retention.request_snapshots(actor=a, thread_id="t1")
        assert retention.run_retention(job.public_id) == "done"
        took = time.monotonic() - began
    finally:
        over.set()
        for other in others:
            other.join()
    assert refused == [], "a commit waited for the job"
    assert beside, "the writer wrote meanwhile"
    assert max(rows) <= retention.BATCH
    done = Compaction.objects.get()
    assert done.rows_removed > 900_000
    report = {
        "job s": took,
        "pieces": len(pieces),
        "piece p50 ms": 1000 * sorted(pieces)[len(pieces) // 2],
        "piece p99 ms": 1000 * sorted(pieces)[len(pieces) * 99 // 100],
        "piece max ms": 1000 * max(pieces),
        "commit alone p50 ms": 1000 * sorted(alone)[len(alone) // 2],
        "commit alone max ms": 1000 * max(alone),
        "commit beside p50 ms": 1000 * sorted(beside)[len(beside) // 2],
        "commit beside p99 ms": 1000 * sorted(beside)[len(beside) * 99 // 100],
        "commit beside max ms": 1000 * max(beside),
        "commits beside": len(beside),
        "looks": looks,
        "waits seen": dict(waits),
        "removed": done.rows_removed,
    }
    for name, value in report.items():
        print(f"{name}: {value:.1f}" if isinstance(value, float) else f"{name}: {value}")  # noqa: T201
