"""The feed's clock: the changes of one entry come in the order of its versions, whatever the order
in which overlapping transactions began."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from django.db import connection, transaction

from state_admin.models import feed_sql
from state_admin.models.feed_sql import FeedFilter, Position
from state_admin.services import entries
from tests.builders import Person, make_namespace, put, raw
from tests.project.running import wait_for

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
    """Take a transaction's number, as any first write does."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_current_xact_id()")


def waits_for_a_lock() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE wait_event_type = 'Lock' AND datname = current_database()"
        )
        return cursor.fetchone() != (0,)


def versions_of(person: Person, key: str) -> list[int]:
    end = feed_sql.read_end(person.workspace.pk).position
    wanted = FeedFilter(key=key)
    rows = feed_sql.read_page(person.actor, after=Position(), until=end, wanted=wanted, limit=100)
    return [row.version for row in rows]


def test_order__began_first_but_wrote_the_entry_second__version_order(alice: Person) -> None:
    make_namespace(alice.actor, "notes")
    with transaction.atomic():
        put(alice.actor, "notes", "a", 1)
        in_another_transaction(lambda: put(alice.actor, "notes", "b", "first")).join()
        put(alice.actor, "notes", "b", "second")

    assert versions_of(alice, "b") == [1, 2]


@pytest.mark.parametrize("many", [False, True])
def test_order__began_first_and_waited_for_the_other__version_order(
    alice: Person, many: bool
) -> None:
    """The statement's own snapshot is older than the other's end: the clock must look again."""
    make_namespace(alice.actor, "notes")
    begun, holding = threading.Event(), threading.Event()

    def second() -> None:
        with transaction.atomic():
            begin()
            begun.set()
            assert holding.wait(20)
            if many:
                puts = [("notes", key, raw("second")) for key in ("a", "b", "c")]
                entries.put_entries(actor=alice.actor, puts=puts)
            else:
                put(alice.actor, "notes", "b", "second")

    waiting = in_another_transaction(second)
    assert begun.wait(20)
    with transaction.atomic():
        put(alice.actor, "notes", "b", "first")
        holding.set()
        wait_for(waits_for_a_lock, "the one that began first waits")
    waiting.join()

    assert versions_of(alice, "b") == [1, 2]
    if many:
        end = feed_sql.read_end(alice.workspace.pk).position
        rows = feed_sql.read_page(
            alice.actor, after=Position(), until=end, wanted=FeedFilter(), limit=100
        )
        assert len({row.xid for row in rows if row.key in ("a", "c")}) == 1
