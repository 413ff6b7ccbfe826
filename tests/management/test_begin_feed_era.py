"""The command `begin_feed_era`, beside running writers."""

from __future__ import annotations

import threading
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import connection, transaction

from state_admin.models import Change, FeedEra, feed_sql
from state_admin.models.feed_eras import begin_era
from state_admin.models.feed_sql import FeedFilter, Position
from state_admin.streams import cursors
from tests.builders import Person, make_namespace, put
from tests.project.running import wait_for
from tests.services.racing import holds_up

pytestmark = pytest.mark.django_db(transaction=True)

WEEK = timedelta(days=7)


def execute(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def begin_feed_era() -> str:
    output = StringIO()
    try:
        call_command("begin_feed_era", stdout=output)
    finally:
        connection.close()
    return output.getvalue()


def keys_after(person: Person, position: Position) -> list[str]:
    end = feed_sql.read_end(person.workspace.pk)
    rows = feed_sql.read_page(
        person.actor, after=position, until=end.position, filters=FeedFilter(), limit=100
    )
    return [row.key for row in rows]


def test_begin_feed_era__cursors__expire_after_the_newest_change(alice: Person) -> None:
    make_namespace(alice.actor, "notes")
    put(alice.actor, "notes", "a", 1)
    last = feed_sql.read_end(alice.workspace.pk).position

    output = begin_feed_era()

    assert output == (
        "Readers of the change feed that have read changes which this database does not contain "
        "get 410. All others continue.\n"
    )
    put(alice.actor, "notes", "b", 1)
    end = feed_sql.read_end(alice.workspace.pk)
    assert cursors.resume(cursors.seal(last, end.at), end, WEEK) == last
    assert keys_after(alice, last) == ["b"]
    for lost in (last._replace(id=last.id + 1), Position(last.xid + 1, 1)):
        with pytest.raises(cursors.LostCursor):
            cursors.resume(cursors.seal(lost, end.at), end, WEEK)


def test_begin_feed_era__open_transaction__is_waited_for_and_its_change_is_read(
    alice: Person,
) -> None:
    """Otherwise a reader with the new horizon would pass the change before it is committed."""
    make_namespace(alice.actor, "notes")
    before = feed_sql.read_end(alice.workspace.pk).position
    waiting = threading.Thread(target=begin_feed_era)
    with transaction.atomic():
        put(alice.actor, "notes", "open", 1)
        waiting.start()
        wait_for(holds_up, "the command waits")
    waiting.join()

    assert FeedEra.objects.latest("id").start > before.xid
    put(alice.actor, "notes", "after", 1)
    assert keys_after(alice, before) == ["open", "after"]


def test_begin_feed_era__same_backup_restored_twice__assigns_no_position_and_id_again(
    alice: Person,
) -> None:
    """Followers of the first restore would otherwise be taken for followers of the second."""

    def restore_and_write() -> tuple[int, int, int]:
        with transaction.atomic():
            execute("SELECT setval(pg_get_serial_sequence('changes', 'id'), 1000)")
            start = begin_era().start
            put(alice.actor, "notes", "a", 1)
            change = Change.objects.latest("xid", "id")
            transaction.set_rollback(True)  # the next one restores the same again
            return change.xid, change.id, start

    # Other tests may have moved the sequence past the time, which a rollback does not take back.
    execute("SELECT setval(pg_get_serial_sequence('changes', 'id'), 1000)")
    make_namespace(alice.actor, "notes")
    first_xid, first_id, _ = restore_and_write()
    _, second_id, second_start = restore_and_write()

    assert second_start > first_xid
    assert second_id > first_id


def test_first_era__changes_are_committed_while_the_migration_waits__continues_the_clock(
    alice: Person,
) -> None:
    """Processes of the version before eras read the same clock, so its base must stay 0."""
    make_namespace(alice.actor, "notes")

    def write() -> None:
        try:
            put(alice.actor, "notes", "a", 1)
        finally:
            connection.close()

    with transaction.atomic():
        execute("SELECT pg_current_xact_id()")  # that of the migration
        writer = threading.Thread(target=write)
        writer.start()
        writer.join()
        execute("DELETE FROM feed_eras")
        execute("SELECT begin_feed_era(true)")
        bases = list(FeedEra.objects.values_list("base", flat=True))
        transaction.set_rollback(True)
    assert bases == [0]
