"""The feed's clock: the changes of one entry are in the order of its versions, whatever the order
in which overlapping transactions began; those of one transaction have one position."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

import pytest
from django.db import connection, transaction

from state_admin.models import Change, changes_sql, feed_sql
from state_admin.models.feed_sql import FeedFilter, Position
from state_admin.services import batches, batching, clearing, entries, restores
from state_admin.services.batches import BatchOperation
from tests.builders import Person, make_namespace, put, raw
from tests.patience import PATIENCE
from tests.project.running import wait_for
from tests.services.faults import beside_others
from tests.services.racing import holds_up

pytestmark = pytest.mark.django_db(transaction=True)


def in_another_transaction(work: Callable[[], object]) -> threading.Thread:
    def run() -> None:
        try:
            work()
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def begin() -> None:
    """Get a transaction number, as the first write does."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_current_xact_id()")


def versions_of(person: Person, key: str) -> list[int]:
    end = feed_sql.read_end(person.workspace.pk).position
    filters = FeedFilter(key=key)
    rows = feed_sql.read_page(person.actor, after=Position(), until=end, filters=filters, limit=100)
    return [row.version for row in rows]


def test_order__began_first_but_wrote_the_entry_second__is_that_of_versions(alice: Person) -> None:
    make_namespace(alice.actor, "notes")
    with transaction.atomic():
        put(alice.actor, "notes", "a", 1)
        in_another_transaction(lambda: put(alice.actor, "notes", "b", "first")).join()
        put(alice.actor, "notes", "b", "second")

    assert versions_of(alice, "b") == [1, 2]


@pytest.mark.parametrize("many", [False, True])
def test_order__began_first_and_waited_for_the_other__is_that_of_versions(
    alice: Person, many: bool
) -> None:
    """The statement's own snapshot is older than the end of the other: the clock must be read
    again."""
    make_namespace(alice.actor, "notes")
    begun, holding = threading.Event(), threading.Event()

    def second() -> None:
        with transaction.atomic():
            begin()
            begun.set()
            assert holding.wait(PATIENCE)
            if many:
                puts = [("notes", key, raw("second")) for key in ("a", "b", "c")]
                entries.put_entries(actor=alice.actor, puts=puts)
            else:
                put(alice.actor, "notes", "b", "second")

    waiting = in_another_transaction(second)
    assert begun.wait(PATIENCE)
    with transaction.atomic():
        put(alice.actor, "notes", "b", "first")
        holding.set()
        wait_for(holds_up, "the one that began first waits")
    waiting.join()

    assert versions_of(alice, "b") == [1, 2]
    if many:
        end = feed_sql.read_end(alice.workspace.pk).position
        rows = feed_sql.read_page(
            alice.actor, after=Position(), until=end, filters=FeedFilter(), limit=100
        )
        assert len({row.xid for row in rows if row.key in ("a", "c")}) == 1


# One moment ------------------------------------------------------------------------------------


def change_together(person: Person) -> None:
    operations = [
        BatchOperation("put", "notes", "a", value=raw(1), if_version=1),
        BatchOperation("delete", "notes", "b"),
        BatchOperation("patch", "notes", "c", operations={"n": 1}),
    ]
    batches.run_batch(actor=person.actor, operations=operations)


def clear(person: Person) -> None:
    assert clearing.clear_matching(actor=person.actor, namespace="notes") == 3


def restore(person: Person) -> None:
    at = datetime(2020, 1, 1, tzinfo=UTC)
    restores.restore_entries(actor=person.actor, at=at, namespace="notes")


@pytest.mark.parametrize("work", [change_together, clear, restore])
def test_feed__transaction_of_several_statements__is_visible_at_once(
    alice: Person, monkeypatch: pytest.MonkeyPatch, work: Callable[[Person], None]
) -> None:
    """Another change is committed after each statement, and one transaction stays open: a reader
    whose horizon is in the middle of the transaction sees none of it."""
    monkeypatch.setattr(clearing, "_CHUNK", 1)
    monkeypatch.setattr(restores, "split_by_size", partial(batching.split_by_size, most=1))
    make_namespace(alice.actor, "notes")
    for key in ("a", "b", "c"):
        put(alice.actor, "notes", key, {})
    before = feed_sql.read_end(alice.workspace.pk).position

    def seen() -> list[str]:
        end = feed_sql.read_end(alice.workspace.pk).position
        rows = feed_sql.read_page(
            alice.actor, after=before, until=end, filters=FeedFilter(namespace="notes"), limit=100
        )
        return [row.key for row in rows]

    with beside_others(stay_open=True):
        work(alice)
        assert Change.objects.filter(version=2, namespace="notes").count() == 3
        assert seen() == []
    assert seen() == ["a", "b", "c"]
    own = Change.objects.filter(namespace="notes", version=2)
    assert len(set(own.values_list("xid", flat=True))) == 1


def test_align_feed_clock__changes_of_others__keep_their_position(alice: Person) -> None:
    make_namespace(alice.actor, "notes")
    with transaction.atomic():
        put(alice.actor, "notes", "a", 1)
        in_another_transaction(lambda: put(alice.actor, "notes", "other", 1)).join()
        with transaction.atomic():  # a number of its own
            put(alice.actor, "notes", "b", 1)
        theirs = Change.objects.get(key="other").xid
        assert changes_sql.align_feed_clock(alice.workspace.pk) == 1
        assert changes_sql.align_feed_clock(alice.workspace.pk) == 0
    clocks = dict(Change.objects.filter(namespace="notes").values_list("key", "xid"))
    assert clocks["a"] == clocks["b"]
    assert clocks["other"] == theirs


def test_align_feed_clock__many_changes__reads_its_own_range_only(alice: Person) -> None:
    """One range of the feed's index, however many changes there are."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO changes (workspace_id, kind) SELECT %s, 'test.filler'"
            " FROM generate_series(1, 20000)",
            [alice.workspace.pk],
        )
        cursor.execute("ANALYZE changes")
    make_namespace(alice.actor, "notes")
    with transaction.atomic(), connection.cursor() as cursor:
        put(alice.actor, "notes", "a", 1)
        put(alice.actor, "notes", "b", 1)
        cursor.execute(
            f"EXPLAIN (FORMAT JSON) {changes_sql._GATHER}", {"workspace": alice.workspace.pk}
        )
        plan = json.dumps(cursor.fetchone()[0])
    assert "Seq Scan" not in plan
    assert "changes_feed_order" in plan
