"""Reading entries: the default of missing ones, exact refusals, and every past version."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models.functions import Now

from state_admin.models import Compaction, Entry, EntryRevision, Namespace
from state_admin.services import entries, entry_views, namespaces, retention
from state_admin.services.entries import Precondition
from state_admin.services.errors import (
    Gone,
    Invalid,
    NotFound,
    NotRegistered,
    VersionConflict,
)
from tests.builders import Person, make_namespace, put, raw
from tests.services.test_entries import delete, now, operations_of, patch, read

# Reading -------------------------------------------------------------------------------------


def test_hot_statements__used_again__are_planned_once_by_the_server(alice: Person) -> None:
    """Unprepared, planning a read would cost PostgreSQL four times as much as the read."""
    make_namespace(alice.actor)
    with connection.cursor() as cursor:  # otherwise data of other tests determines the plan
        cursor.execute("ANALYZE namespaces, entries")
    for number in range(8):
        put(alice.actor, "notes", "k", number)
        read(alice)
    with connection.cursor() as cursor:
        cursor.execute("SELECT statement, generic_plans FROM pg_prepared_statements")
        plans = dict(cursor.fetchall())
    for name in ("INSERT INTO entries", "LEFT JOIN entries"):
        found = [generic for statement, generic in plans.items() if name in statement]
        assert max(found, default=0) > 0, name


def test_read__missing__returns_the_default_and_stores_nothing(alice: Person) -> None:
    make_namespace(alice.actor, default={"goal": ""})
    view = read(alice)
    assert (view.exists, view.value, view.version, view.valid) == (False, '{"goal": ""}', 0, True)
    assert not Entry.objects.exists()


@pytest.mark.parametrize("verb", ["read", "put", "patch", "delete", "restore", "past"])
def test_any_operation__unregistered_namespace__has_the_exact_message(
    alice: Person, verb: str
) -> None:
    address = {"actor": alice.actor, "namespace": "nobody", "key": "k"}
    verbs = {
        "read": lambda: entry_views.read_entry(**address),
        "put": lambda: entries.put_entry(**address, value=raw(1)),
        "patch": lambda: entries.patch_entry(**address, kind="merge", operations={}),
        "delete": lambda: entries.delete_entry(**address),
        "restore": lambda: entries.restore_entry(**address, version=1),
        "past": lambda: entry_views.read_past(**address, at_version=1),
    }
    with pytest.raises(NotRegistered) as refused:
        verbs[verb]()
    assert refused.value.detail == "profile key not registered: nobody"
    assert "PUT /api/v1/namespaces/nobody" in refused.value.hint


@pytest.mark.parametrize("verb", ["read", "put", "patch", "delete", "restore", "past"])
def test_any_operation__unregistered_after_caching__keeps_the_orphan(
    alice: Person, verb: str
) -> None:
    """Another process unregistered the namespace; this one has cached its definition."""
    make_namespace(alice.actor)
    put(alice.actor, "notes", "k", 1)
    namespaces.find_definition(alice.actor, "notes")
    Namespace.objects.update(unregistered_at=Now())
    address = {"actor": alice.actor, "namespace": "notes", "key": "k"}
    verbs = {
        "read": lambda: entry_views.read_entry(**address),
        "put": lambda: entries.put_entry(**address, value=raw(2)),
        "patch": lambda: entries.patch_entry(**address, kind="merge", operations={}),
        "delete": lambda: entries.delete_entry(**address),
        "restore": lambda: entries.restore_entry(**address, version=1),
        "past": lambda: entry_views.read_past(**address, at_version=1),
    }
    with pytest.raises(NotRegistered):
        verbs[verb]()
    assert operations_of() == [(1, "put")]


# The past ------------------------------------------------------------------------------------


def test_past__each_version__has_its_written_value(alice: Person) -> None:
    make_namespace(alice.actor, default="d")
    put(alice.actor, "notes", "k", 1)
    patch(alice, 2)
    delete(alice)
    put(alice.actor, "notes", "k", 4)
    past = [
        entry_views.read_past(actor=alice.actor, namespace="notes", key="k", at_version=v)
        for v in (1, 2, 3, 4)
    ]
    assert [(p.exists, p.value, p.version) for p in past] == [
        (True, "1", 1),
        (True, "2", 2),
        (False, '"d"', 3),
        (True, "4", 4),
    ]
    with pytest.raises(NotFound):
        entry_views.read_past(actor=alice.actor, namespace="notes", key="k", at_version=5)
    with pytest.raises(NotFound):
        entry_views.read_past(actor=alice.actor, namespace="notes", key="none", at_version=1)


@pytest.mark.django_db(transaction=True)
def test_past__at_a_time__is_the_version_of_that_time(alice: Person) -> None:
    make_namespace(alice.actor, default="d")
    moments = [now()]
    for value in (1, 2):
        put(alice.actor, "notes", "k", value)
        moments.append(now())
    put(alice.actor, "notes", "k", 3, ttl_seconds=60)
    moments.append(now())
    delete(alice)
    moments.append(now())

    def at(moment: Any) -> tuple[bool, str, int]:
        view = entry_views.read_past(actor=alice.actor, namespace="notes", key="k", at=moment)
        return view.exists, view.value, view.version

    assert [at(moment) for moment in moments] == [
        (False, '"d"', 0),
        (True, "1", 1),
        (True, "2", 2),
        (True, "3", 3),
        (False, '"d"', 4),
    ]


def test_past__expired_at_that_time__appears_absent(alice: Person) -> None:
    make_namespace(alice.actor, default="d")
    view = put(alice.actor, "notes", "k", 1, ttl_seconds=60)
    later = view.expires_at + timedelta(seconds=1)
    past = entry_views.read_past(actor=alice.actor, namespace="notes", key="k", at=later)
    assert (past.exists, past.value) == (False, '"d"')
    then = entry_views.read_past(actor=alice.actor, namespace="notes", key="k", at_version=1)
    assert (then.exists, then.expires_at) == (True, view.expires_at)


def test_past__compacted_version__is_gone_and_not_absent(alice: Person) -> None:
    make_namespace(alice.actor, history_keep_last=1)
    for value in (1, 2, 3):
        put(alice.actor, "notes", "k", value)
    EntryRevision.objects.filter(version=1).update(at=Now() - timedelta(days=3))
    EntryRevision.objects.filter(version=2).update(at=Now() - timedelta(days=2))
    EntryRevision.objects.filter(version=3).update(at=Now() - timedelta(days=1))
    middle = EntryRevision.objects.get(version=2).at + timedelta(hours=1)
    assert retention.queue_histories() == {"namespaces": 1}
    job = Compaction.objects.get(kind="history")
    assert retention.run_retention(job.public_id) == "done"
    with pytest.raises(Gone):
        entry_views.read_past(actor=alice.actor, namespace="notes", key="k", at_version=2)
    with pytest.raises(Gone):
        entry_views.read_past(actor=alice.actor, namespace="notes", key="k", at=middle)
    assert read(alice).value == "3"


def test_restore__old_version__is_a_new_version(alice: Person) -> None:
    make_namespace(alice.actor)
    for value in ({"a": 1}, {"a": 2}):
        put(alice.actor, "notes", "k", value)
    address = {"actor": alice.actor, "namespace": "notes", "key": "k"}
    with pytest.raises(VersionConflict):
        entries.restore_entry(**address, version=1, precondition=Precondition(1))
    done = entries.restore_entry(**address, version=1, precondition=Precondition(2))
    assert (done.entry.version, done.entry.value) == (3, '{"a": 1}')
    delete(alice)
    with pytest.raises(NotFound):
        entries.restore_entry(**address, version=4)
    with pytest.raises(NotFound):
        entries.restore_entry(**address, version=99)
    assert entries.restore_entry(**address, version=2).created
    assert operations_of()[2:] == [(3, "restore"), (4, "delete"), (5, "restore")]


def test_restore__existing_entry__keeps_its_expiry_tags_and_pin(alice: Person) -> None:
    make_namespace(alice.actor)
    put(alice.actor, "notes", "k", 1, tags=["old"])
    now = put(alice.actor, "notes", "k", 2, ttl_seconds=3600, tags=["new"], pinned=True)
    address = {"actor": alice.actor, "namespace": "notes", "key": "k"}
    made = entries.restore_entry(**address, version=1).entry
    assert made.expires_at == now.expires_at
    assert (made.value, made.tags, made.pinned) == ("1", ["new"], True)


def test_restore__deleted_entry__gets_the_expiry_of_its_namespace(alice: Person) -> None:
    make_namespace(alice.actor, ttl_seconds=600)
    put(alice.actor, "notes", "k", 1, ttl_seconds=86_400)
    delete(alice)
    address = {"actor": alice.actor, "namespace": "notes", "key": "k"}
    made = entries.restore_entry(**address, version=1).entry
    assert made.expires_at
    assert made.updated_at
    # Counted from the moment before the lock, which precedes the write.
    assert (made.expires_at - made.updated_at).total_seconds() == pytest.approx(600, abs=30)


def test_put__ttl_zero__never_expires(alice: Person) -> None:
    make_namespace(alice.actor, ttl_seconds=600)
    assert put(alice.actor, "notes", "k", 1).expires_at
    assert put(alice.actor, "notes", "k", 2, ttl_seconds=0).expires_at is None


def test_restore__value_invalid_under_the_current_schema__is_refused(alice: Person) -> None:
    make_namespace(alice.actor)
    put(alice.actor, "notes", "k", "text")
    make_namespace(alice.actor, schema={"type": "integer"}, default=0)
    with pytest.raises(Invalid):
        entries.restore_entry(actor=alice.actor, namespace="notes", key="k", version=1)
