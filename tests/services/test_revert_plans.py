"""The statements of reverts do not depend on statistics: those of an almost empty database are used until
autovacuum has analyzed the tables."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from state_admin.domain.scopes import ScopeKind
from state_admin.models import Namespace, Revert, moments_sql, reverts_sql
from state_admin.models.browsing import EntryFilter, entries_after
from state_admin.models.reverts_sql import WrittenEntry
from tests.builders import Person, make_namespace
from tests.services.test_dispatch_order import rows_read

MANY = 20_000


def fill(namespace: Namespace, job: Revert, first: int, last: int) -> None:
    """Entries that the request "r" has overwritten."""
    numbers = {"first": first, "last": last}
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO entries (namespace_id, key, value, born_version, version, schema_version,
                size_bytes, estimated_tokens, deleted, tags, pinned, actor_kind, actor_name)
            SELECT %(namespace)s, 'k' || n, '1', 1, 2, 1, 1, 1, false, '{}', false, 'user', 'x'
            FROM generate_series(%(first)s, %(last)s) n
            """,
            {**numbers, "namespace": namespace.pk},
        )
        cursor.execute(
            """
            INSERT INTO entry_revisions (entry_id, version, operation, value, schema_version,
                size_bytes, actor_kind, actor_id, actor_name, request_id, reason)
            SELECT e.id, v, 'put', '1', 1, 1, 'user', '1', 'x', CASE v WHEN 2 THEN 'r' ELSE '' END, ''
            FROM generate_series(%(first)s, %(last)s) n
            JOIN entries e ON e.namespace_id = %(namespace)s AND e.key = 'k' || n
            CROSS JOIN generate_series(1, 2) v
            """,
            {**numbers, "namespace": namespace.pk},
        )
        cursor.execute(
            """
            INSERT INTO revert_entries (workspace_id, revert_id, namespace, key, version, tag_change, why)
            SELECT %(workspace)s, %(job)s, 'notes', 'k' || n, 2, '', ''
            FROM generate_series(%(first)s, %(last)s) n
            """,
            {**numbers, "workspace": namespace.workspace_id, "job": job.pk},
        )


@pytest.fixture
def job(alice: Person) -> Revert:
    """A job with many entries, in tables that were analyzed when they had one row."""
    make_namespace(alice.actor)
    namespace = Namespace.objects.get(name="notes")
    job = Revert.objects.create(
        workspace=alice.workspace, public_id="j", target="r", actor_kind="user", actor_id="1"
    )
    fill(namespace, job, 1, 1)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE namespaces, entries, entry_revisions, revert_entries")
    fill(namespace, job, 2, MANY)
    return job


def rows_of(statement: str, parameters: dict[str, Any]) -> float:
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN (ANALYZE, FORMAT JSON) " + statement, parameters)
        (plan,) = cursor.fetchone()
    return rows_read(plan[0]["Plan"])


@pytest.mark.parametrize("earlier", [reverts_sql._OF_ANOTHER, reverts_sql._OF_THE_TIME])
def test_next__statistics_of_an_empty_database__reads_each_entry_once(
    job: Revert, earlier: str
) -> None:
    after = {"namespace": "notes", "key": "k2"}
    limits = {"rows": 500, "unknown": 0, "target": "r", "at": timezone.now()}
    statement = reverts_sql._NEXT.format(earlier=earlier)
    read = rows_of(statement, {"revert": job.pk, **after, **limits})
    assert 500 < read < 20_000
    following = reverts_sql.next_entries(job.pk, "r", after=("notes", "k2"), rows=2)
    assert [(each.key, each.first, each.last) for each in following] == [
        ("k20", 2, 2),
        ("k200", 2, 2),
    ]


def test_lock__statistics_of_an_empty_database__reads_each_entry_once(
    alice: Person, job: Revert
) -> None:
    many = 500
    keys = [f"k{n}" for n in range(MANY - many, MANY)]
    columns = {"namespaces": ["notes"] * many, "firsts": [2] * many, "lasts": [2] * many}
    parameters = {"workspace": alice.workspace.pk, "keys": keys, **columns}
    read = rows_of(reverts_sql._LOCK, parameters)
    assert many < read < 20_000
    written = [WrittenEntry("notes", key, 2, 2) for key in ("k9", "k10", "none")]
    locked = reverts_sql.lock_entries(alice.workspace.pk, written)
    assert [(each.key, each.then_version) for each in locked] == [("k10", 1), ("k9", 1)]


@pytest.mark.parametrize(
    "filters",
    [
        EntryFilter(namespace="notes"),
        EntryFilter(key="k7"),
        EntryFilter(prefix="k1"),
        EntryFilter(scope=ScopeKind.CUSTOM),
    ],
)
def test_search__statistics_of_an_empty_database__reads_no_more_than_its_step(
    alice: Person, job: Revert, filters: EntryFilter
) -> None:
    for after in (("", ""), ("notes", "k2"), ("notes", "k5")):
        window = filters._replace(after=after, restorable=True)
        entries, parameters = entries_after(alice.actor, window, 500)
        statement = moments_sql._EXAMINED.format(entries=entries) + moments_sql._LAST
        read = rows_of(statement, {**parameters, "at": timezone.now()})
        assert read < 10_000  # in all nodes of the plan together
