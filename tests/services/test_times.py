"""Times are in the order of versions, however long a transaction was open before it wrote."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from django.db import connection, connections, transaction

from state_admin.models import Entry, EntryRevision
from state_admin.services import bulk, clearing, entries, entry_views, redactions, restores
from state_admin.services.bulk import SelectedEntry
from state_admin.services.entries import Precondition
from tests.builders import Person, make_namespace, put, raw
from tests.patience import PATIENCE
from tests.project.running import wait_for
from tests.services.racing import holds_up, race

pytestmark = pytest.mark.django_db(transaction=True)

Write = Callable[[Person], Any]


def patch(person: Person) -> Any:
    return entries.patch_entry(
        actor=person.actor, namespace="notes", key="k", kind="merge", operations={"v": "patched"}
    )


def version(person: Person) -> int:
    return entry_views.read_entry(actor=person.actor, namespace="notes", key="k").version


def put_at_version(person: Person) -> Any:
    return put(person.actor, "notes", "k", "cas", precondition=Precondition(version(person)))


def tag(person: Person) -> Any:
    seen = [SelectedEntry("notes", "k", version(person))]
    return bulk.change_entries(actor=person.actor, action="tag", seen=seen, tag="t")


def restore(person: Person) -> Any:
    first = EntryRevision.objects.get(version=1).at
    return restores.restore_entries(actor=person.actor, at=first, namespace="notes")


# Each changes notes/k whatever its value.
BLIND: dict[str, Write] = {
    "put": lambda p: put(p.actor, "notes", "k", "late"),
    "put if changed": lambda p: put(
        p.actor, "notes", "k", "late", precondition=Precondition(None, changed=True)
    ),
    "puts": lambda p: entries.put_entries(actor=p.actor, puts=[("notes", "k", raw("late"))]),
    "patch": patch,
    "delete": lambda p: entries.delete_entry(actor=p.actor, namespace="notes", key="k"),
    "clear": lambda p: clearing.clear_key(actor=p.actor, key="k"),
    "redact": lambda p: redactions.redact_entry(
        actor=p.actor, namespace="notes", key="k", reason="why"
    ),
    "restore": restore,
}
WRITES: dict[str, Write] = {**BLIND, "put at a version": put_at_version, "tag": tag}


def clock() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        moment: datetime = cursor.fetchone()[0]
    return moment


def times() -> list[datetime]:
    """The times of the versions of notes/k in order; the entry must have the last one."""
    rows = EntryRevision.objects.filter(entry__key="k").order_by("version")
    found = list(rows.values_list("at", flat=True))
    entry = Entry.objects.get(key="k")
    assert entry.updated_at == found[-1]
    assert entry.created_at <= entry.updated_at
    return found


@pytest.mark.parametrize("name", WRITES)
def test_times__transaction_open_before_other_writes__are_in_the_order_of_versions(
    alice: Person, name: str
) -> None:
    make_namespace(alice.actor, default={})
    put(alice.actor, "notes", "k", {"v": 1})
    with transaction.atomic():
        began = clock()
        race([lambda: put(alice.actor, "notes", "k", {"v": 2})])
        between = clock()
        WRITES[name](alice)
    first, second, third = times()
    assert first < began < second < between < third
    then = entry_views.read_past(actor=alice.actor, namespace="notes", key="k", at=between)
    assert then.version == 2


@pytest.mark.parametrize("name", ["put", "puts"])
def test_times__recreated_in_a_transaction_open_before__begin_after_the_deletion(
    alice: Person, name: str
) -> None:
    make_namespace(alice.actor, default={})
    put(alice.actor, "notes", "k", 1)
    with transaction.atomic():
        began = clock()
        race([lambda: entries.delete_entry(actor=alice.actor, namespace="notes", key="k")])
        WRITES[name](alice)
    first, deleted, again = times()
    assert first < began < deleted < Entry.objects.get().created_at <= again


@pytest.mark.parametrize("name", BLIND)
def test_times__statement_that_waited_for_the_lock__are_in_the_order_of_versions(
    alice: Person, name: str
) -> None:
    """The lock is held before the other's version is created: the time is taken after the lock."""
    make_namespace(alice.actor, default={})
    put(alice.actor, "notes", "k", {"v": 1})
    if name == "restore":
        put(alice.actor, "notes", "k", {"v": 2})

    connected = threading.Event()

    def late() -> None:
        try:
            connection.ensure_connection()
            connected.set()
            BLIND[name](alice)
        finally:
            connections.close_all()

    waiting = threading.Thread(target=late)
    with transaction.atomic():
        list(Entry.objects.filter(key="k").select_for_update().values_list("pk"))
        waiting.start()
        # A transaction sees only the connections that existed at its first query of the view.
        assert connected.wait(PATIENCE)
        wait_for(holds_up, "the other waits for the row")
        put(alice.actor, "notes", "k", {"v": 3})
    waiting.join()
    found = times()
    assert len(found) == (4 if name == "restore" else 3)
    assert found == sorted(set(found))


def test_times__restore_to_a_time_within_a_long_transaction__is_the_state_of_that_time(
    alice: Person,
) -> None:
    make_namespace(alice.actor)
    put(alice.actor, "notes", "k", "before")
    with transaction.atomic():
        clock()
        race([lambda: put(alice.actor, "notes", "k", "theirs")])
        between = clock()
        put(alice.actor, "notes", "k", "late")
    report = restores.restore_entries(actor=alice.actor, at=between, namespace="notes")
    assert [(step.key, step.then_version) for step in report.first] == [("k", 2)]
    assert Entry.objects.get().value == '"theirs"'
