"""Clearing in bulk: by namespace, prefix, scope kind."""

from __future__ import annotations

import pytest

from state_admin.domain.scopes import ScopeKind
from state_admin.models import AuditRow, Change, Entry, EntryRevision
from state_admin.services import batches, clearing, entries, namespaces
from state_admin.services.batches import BatchOperation
from state_admin.services.errors import (
    BadRequest,
    Conflict,
    Forbidden,
    Invalid,
    NotRegistered,
)
from tests.builders import Person, make_namespace, make_token, put, raw
from tests.services.racing import race, split
from tests.services.test_entries import operations_of, read

KEYS = ("global", "thread::t1", "thread::t2", "agent_type::x", "thread::", "plain", "plane", "100%")


@pytest.fixture
def filled(alice: Person) -> Person:
    for name in ("a", "b"):
        make_namespace(alice.actor, name)
        for key in KEYS:
            put(alice.actor, name, key, {"k": key})
    return alice


def live(namespace: str = "a") -> list[str]:
    rows = Entry.objects.live().filter(namespace__name=namespace)
    return sorted(rows.values_list("key", flat=True))


@pytest.mark.parametrize(
    ("filters", "gone"),
    [
        ({}, set(KEYS)),
        ({"prefix": "pla"}, {"plain", "plane"}),
        ({"prefix": "100%"}, {"100%"}),
        ({"prefix": "PLA"}, set()),
        ({"scope_kind": ScopeKind.THREAD}, {"thread::t1", "thread::t2"}),
        ({"scope_kind": ScopeKind.CUSTOM}, {"thread::", "plain", "plane", "100%"}),
        ({"scope_kind": ScopeKind.CUSTOM, "prefix": "t"}, {"thread::"}),
    ],
)
def test_clear__by_filters__deletes_exactly_matching_entries(
    filled: Person, filters: dict[str, object], gone: set[str]
) -> None:
    def clear(dry_run: bool) -> int:
        return clearing.clear_matching(
            actor=filled.actor,
            namespace="a",
            dry_run=dry_run,
            **filters,  # type: ignore[arg-type]
        )

    assert clear(True) == len(gone)
    assert live() == sorted(KEYS)
    assert clear(False) == len(gone)
    assert live() == sorted(set(KEYS) - gone)
    assert live("b") == sorted(KEYS)
    assert clear(False) == 0


def test_clear__over_all_namespaces__includes_orphans_and_only_permitted_entries(
    filled: Person,
) -> None:
    namespaces.unregister_namespace(actor=filled.actor, name="b", entries="retain")
    _, narrow = make_token(filled, namespaces=["a"])
    assert clearing.clear_matching(actor=narrow, scope_kind=ScopeKind.GLOBAL) == 1
    assert clearing.clear_matching(actor=filled.actor, scope_kind=ScopeKind.GLOBAL) == 1
    assert live("b") == sorted(set(KEYS) - {"global"})


def test_clear__no_filter__is_refused(filled: Person, bob: Person) -> None:
    with pytest.raises(BadRequest):
        clearing.clear_matching(actor=filled.actor)
    with pytest.raises(NotRegistered):
        clearing.clear_matching(actor=filled.actor, namespace="nope")
    with pytest.raises(Forbidden):
        clearing.clear_matching(actor=bob.actor, namespace="a")


def test_clear__more_than_one_batch__deletes_all_with_history_audit_and_feed(
    alice: Person,
) -> None:
    make_namespace(alice.actor)
    keys = [f"k{number:04}" for number in range(1500)]
    for start in range(0, 1500, 1000):
        operations = [
            BatchOperation("put", "notes", key, value=raw(key))
            for key in keys[start : start + 1000]
        ]
        batches.run_batch(actor=alice.actor, operations=operations)
    before = Change.objects.count(), AuditRow.objects.count()
    assert clearing.clear_matching(actor=alice.actor, namespace="notes", reason="tidy") == 1500
    assert Entry.objects.live().count() == 0
    assert (Change.objects.count(), AuditRow.objects.count()) == (
        before[0] + 1500,
        before[1] + 1500,
    )
    deleted = EntryRevision.objects.filter(operation="delete")
    assert (deleted.count(), deleted.filter(reason="tidy", value=None, version=2).count()) == (
        1500,
        1500,
    )
    changes = Change.objects.filter(kind="entry.delete").order_by("id")
    assert sorted(changes.values_list("key", flat=True)) == keys
    assert set(changes.values_list("namespace", flat=True)) == {"notes"}


def test_clear__more_than_the_maximum__deletes_nothing(
    filled: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clearing, "MOST", len(KEYS) - 1)
    for dry_run in (True, False):
        with pytest.raises(Invalid) as error:
            clearing.clear_matching(actor=filled.actor, namespace="a", dry_run=dry_run)
        assert "?limit=" in error.value.hint
    with pytest.raises(Invalid):
        namespaces.unregister_namespace(actor=filled.actor, name="a", entries="delete")
    assert live() == sorted(KEYS)
    namespaces.unregister_namespace(actor=filled.actor, name="a", entries="retain")


def test_clear__with_a_limit__deletes_so_many_per_call(filled: Person) -> None:
    def clear(dry_run: bool = False) -> int:
        return clearing.clear_matching(
            actor=filled.actor, namespace="a", limit=len(KEYS) - 2, dry_run=dry_run
        )

    assert clear(dry_run=True) == len(KEYS) - 2
    assert live() == sorted(KEYS)
    assert [clear(), clear(), clear()] == [len(KEYS) - 2, 2, 0]
    assert (live(), live("b")) == ([], sorted(KEYS))


@pytest.mark.django_db(transaction=True)
def test_clear__against_writers_and_batches__loses_nothing_and_never_deadlocks(
    alice: Person,
) -> None:
    for name in ("b", "a"):  # created in another order than that of their names
        make_namespace(alice.actor, name)
    keys = [f"k{number:02}" for number in range(30)]

    def write() -> object:
        operations = [
            BatchOperation("put", name, key, value=raw(1))
            for key in reversed(keys)
            for name in ("a", "b")
        ]
        return batches.run_batch(actor=alice.actor, operations=operations)

    for _ in range(5):
        write()
        won, lost = split(
            race(
                [
                    write,
                    lambda: clearing.clear_matching(actor=alice.actor, prefix="k"),
                    lambda: clearing.clear_matching(actor=alice.actor, prefix="k", reason="again"),
                    lambda: entries.put_entry(
                        actor=alice.actor, namespace="b", key="k07", value=raw(2)
                    ),
                ]
            )
        )
        assert not lost
        assert len(won) == 4
    # Every version has its row: no write overwrote a concurrent one.
    for entry in Entry.objects.all():
        versions = EntryRevision.objects.filter(entry=entry).order_by("version")
        assert list(versions.values_list("version", flat=True)) == list(range(1, entry.version + 1))
        newest = versions.last()
        assert newest is not None
        assert (newest.value is None) == entry.deleted


def test_api__clear_namespace__counts_then_deletes(filled: Person) -> None:
    told = filled.api("DELETE", "/state/a?scope_kind=thread&dry_run=true").json()
    assert told == {"deleted": 0, "matched": 2, "dry_run": True}
    told = filled.api("DELETE", "/state/a?scope_kind=thread").json()
    assert told == {"deleted": 2, "matched": 2}
    assert filled.api("DELETE", "/state?prefix=thread%3A%3A").json()["deleted"] == 4
    assert filled.api("DELETE", "/state").status_code == 400
    assert filled.api("DELETE", "/state/a?scope=thread").status_code == 400
    assert filled.api("DELETE", "/state/a?scope_kind=nope").status_code == 400
    assert filled.api("DELETE", "/state/nope").status_code == 404


def test_clear__by_key__counts_then_deletes_orphans_too(alice: Person) -> None:
    for name in ("a", "b", "c"):
        make_namespace(alice.actor, name)
        put(alice.actor, name, "k", 1)
        put(alice.actor, name, "other", 1)
    namespaces.unregister_namespace(actor=alice.actor, name="c", entries="retain")
    assert clearing.clear_key(actor=alice.actor, key="k", dry_run=True) == 3
    assert clearing.clear_key(actor=alice.actor, key="k") == 3
    assert clearing.clear_key(actor=alice.actor, key="k") == 0
    assert Entry.objects.live().count() == 3


def test_clear__restricted_token__deletes_only_permitted_entries(alice: Person) -> None:
    for name in ("a.x", "b.x"):
        make_namespace(alice.actor, name)
        put(alice.actor, name, "k", 1)
    _, narrow = make_token(alice, namespaces=["a.*"])
    assert clearing.clear_key(actor=narrow, key="k") == 1
    assert read(alice, namespace="b.x").exists


def test_orphans__registered_again__are_available_again(alice: Person) -> None:
    make_namespace(alice.actor)
    put(alice.actor, "notes", "k", 1)
    with pytest.raises(Conflict):
        namespaces.unregister_namespace(actor=alice.actor, name="notes")
    assert namespaces.unregister_namespace(actor=alice.actor, name="notes", entries="retain") == 1
    shown = alice.api("GET", "/keys/k").json()["items"]
    assert [(row["namespace"], row["registered"]) for row in shown] == [("notes", False)]
    make_namespace(alice.actor)
    assert (read(alice).value, read(alice).version) == ("1", 1)


def test_unregister__delete__keeps_the_history(alice: Person) -> None:
    make_namespace(alice.actor)
    put(alice.actor, "notes", "k", 1)
    assert namespaces.unregister_namespace(actor=alice.actor, name="notes", entries="delete") == 1
    make_namespace(alice.actor)
    assert not read(alice).exists
    assert operations_of() == [(1, "put"), (2, "delete")]
