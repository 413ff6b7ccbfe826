"""Entries: preconditions, versions, patches, TTL, past, races."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext

from state_admin.domain.access import Role
from state_admin.models import AuditRow, Change, Entry, EntryRevision, Namespace
from state_admin.services import clearing, entries, entry_views, maintenance, namespaces
from state_admin.services.entries import Precondition
from state_admin.services.errors import (
    BadRequest,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    NotRegistered,
    TooLarge,
    VersionConflict,
)
from tests.builders import TEAM_SCHEMA, Person, make_namespace, make_token, put, raw


def read(person: Person, key: str = "k", namespace: str = "notes") -> entry_views.EntryView:
    return entry_views.read_entry(actor=person.actor, namespace=namespace, key=key)


def patch(
    person: Person, operations: Any, kind: Any = "merge", **options: Any
) -> entries.WriteResult:
    return entries.patch_entry(
        actor=person.actor, namespace="notes", key="k", kind=kind, operations=operations, **options
    )


def delete(person: Person, **options: Any) -> int:
    return entries.delete_entry(actor=person.actor, namespace="notes", key="k", **options)


def let_expire(key: str = "k") -> None:
    # Before this test began: its transaction has one now().
    Entry.objects.filter(key=key).update(expires_at=Now() - timedelta(hours=1))


def operations_of(key: str = "k") -> list[tuple[int, str]]:
    rows = EntryRevision.objects.filter(entry__key=key).order_by("version")
    return list(rows.values_list("version", "operation"))


def now() -> Any:
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        return cursor.fetchone()[0]


# Preconditions and versions ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expected", "lands"), [(None, True), (2, True), (1, False), (3, False), (0, False)]
)
def test_put__if_version__is_stored_only_on_that_version(
    alice: Person, expected: int | None, lands: bool
) -> None:
    make_namespace(alice.actor)
    put(alice.actor, "notes", "k", 1)
    put(alice.actor, "notes", "k", 2)
    if lands:
        assert put(alice.actor, "notes", "k", 3, precondition=Precondition(expected)).version == 3
        return
    with pytest.raises(VersionConflict) as refused:
        put(alice.actor, "notes", "k", 3, precondition=Precondition(expected))
    assert refused.value.detail == f"version conflict: expected {expected}, actual 2"
    assert operations_of() == [(1, "put"), (2, "put")]
    assert read(alice).value == "2"


def test_put__if_version_of_a_missing_entry__is_a_conflict_with_actual_0(alice: Person) -> None:
    make_namespace(alice.actor)
    with pytest.raises(VersionConflict) as refused:
        put(alice.actor, "notes", "k", 3, precondition=Precondition(1))
    sides = {"mergeable": False, "yours": 3}  # there is no base, and theirs does not exist
    assert refused.value.data == {"expected": 1, "actual": 0, **sides}


def test_put__same_value__is_a_new_version(alice: Person) -> None:
    make_namespace(alice.actor)
    assert [put(alice.actor, "notes", "k", 1).version for _ in range(3)] == [1, 2, 3]


@pytest.mark.parametrize("precondition", [Precondition(None, True), Precondition(1, True)])
def test_put__if_changed_and_equal__returns_the_old_version(
    alice: Person, precondition: Precondition
) -> None:
    make_namespace(alice.actor)
    put(alice.actor, "notes", "k", {"a": [1, 2], "b": None})
    done = entries.put_entry(
        actor=alice.actor,
        namespace="notes",
        key="k",
        value=raw({"b": None, "a": [1, 2]}),
        precondition=precondition,
    )
    assert (done.changed, done.created, done.entry.version) == (False, False, 1)
    assert operations_of() == [(1, "put")]
    assert put(alice.actor, "notes", "k", {"a": 3}, precondition=precondition).version == 2


@pytest.mark.parametrize("version", [None, 1])
@pytest.mark.parametrize(
    "rest", [{"tags": ["b"]}, {"tags": []}, {"pinned": False}, {"ttl_seconds": 60}]
)
def test_put__if_changed_and_only_metadata_differs__is_stored(
    alice: Person, version: int | None, rest: Any
) -> None:
    make_namespace(alice.actor)
    put(alice.actor, "notes", "k", 1, tags=["a"], pinned=True)
    precondition = Precondition(version, changed=True)
    assert (
        put(
            alice.actor, "notes", "k", 1, tags=["a"], pinned=True, precondition=precondition
        ).version
        == 1
    )
    assert put(alice.actor, "notes", "k", 1, precondition=precondition, **rest).version == 2
    now = read(alice)
    assert now.tags == rest.get("tags", ["a"])
    assert now.pinned == rest.get("pinned", True)
    assert (now.expires_at is not None) == ("ttl_seconds" in rest)


def test_put__after_a_delete__continues_the_version_and_is_created(alice: Person) -> None:
    make_namespace(alice.actor)
    put(alice.actor, "notes", "k", 1, tags=["old"], pinned=True)
    assert delete(alice) == 2
    assert delete(alice) == 0
    assert read(alice).version == 0
    done = entries.put_entry(actor=alice.actor, namespace="notes", key="k", value=raw(3))
    assert (done.created, done.entry.version) == (True, 3)
    assert (done.entry.tags, done.entry.pinned) == ([], False)
    with pytest.raises(VersionConflict):
        put(alice.actor, "notes", "k", 4, precondition=Precondition(1))
    assert operations_of() == [(1, "put"), (2, "delete"), (3, "put")]


@pytest.mark.parametrize(("expected", "actual"), [(1, 2), (3, 2), (0, 2)])
def test_delete__other_version__is_refused(alice: Person, expected: int, actual: int) -> None:
    make_namespace(alice.actor)
    put(alice.actor, "notes", "k", 1)
    put(alice.actor, "notes", "k", 2)
    with pytest.raises(VersionConflict) as refused:
        delete(alice, precondition=Precondition(expected))
    assert refused.value.detail == f"version conflict: expected {expected}, actual {actual}"
    assert read(alice).exists


def test_delete__reason__is_stored_with_the_version(alice: Person) -> None:
    make_namespace(alice.actor)
    put(alice.actor, "notes", "k", 1)
    delete(alice, reason="no longer used")
    assert EntryRevision.objects.get(version=2).reason == "no longer used"


def test_delete__entry_changes_at_every_attempt__is_a_conflict(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_namespace(alice.actor)
    put(alice.actor, "notes", "k", 1)
    attempts: list[Any] = []
    monkeypatch.setattr(entries.entries_sql, "delete_entry", attempts.append)
    with pytest.raises(Conflict) as refused:
        delete(alice, precondition=Precondition(1))
    assert refused.value.detail == "the entry changes too often; retry"
    assert len(attempts) == 16


def test_put__namespace_changes_at_every_attempt__is_a_conflict(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_namespace(alice.actor)
    attempts: list[Any] = []
    monkeypatch.setattr(entries.entries_sql, "put_entry", attempts.append)
    with pytest.raises(Conflict) as refused:
        put(alice.actor, "notes", "k", 1)
    assert refused.value.detail == "the namespace or the entry changes too often; retry"
    assert len(attempts) == 16


def test_address__invalid__is_refused(alice: Person) -> None:
    with pytest.raises(BadRequest) as refused:
        entries.check_address("no spaces", "k")
    assert refused.value.detail.startswith("invalid address: ")
    entries.check_address("notes", "k")


def test_check_entry__invalid_value__is_refused_without_a_write(alice: Person, bob: Person) -> None:
    make_namespace(alice.actor, schema=TEAM_SCHEMA, default={})
    entries.check_entry(actor=alice.actor, namespace="notes", value=raw({"goal": "x"}))
    with pytest.raises(Invalid):
        entries.check_entry(actor=alice.actor, namespace="notes", value=raw({"goal": 1}))
    with pytest.raises(NotRegistered):
        entries.check_entry(actor=alice.actor, namespace="others", value=raw(1))
    with pytest.raises(Forbidden):
        entries.check_entry(actor=bob.actor, namespace="notes", value=raw({"goal": "x"}))
    assert not Entry.objects.exists()


def test_tags_and_pin__not_given__are_kept(alice: Person) -> None:
    make_namespace(alice.actor)
    put(alice.actor, "notes", "k", 1, tags=["a"], pinned=True)
    put(alice.actor, "notes", "k", 2)
    patch(alice, 3)
    view = read(alice)
    assert (view.tags, view.pinned, view.value) == (["a"], True, "3")
    put(alice.actor, "notes", "k", 4, tags=[], pinned=False)
    assert (read(alice).tags, read(alice).pinned) == ([], False)


def test_entry__metadata__counts_bytes_and_tokens(alice: Person) -> None:
    make_namespace(alice.actor)
    view = put(alice.actor, "notes", "k", "é" * 10)
    assert (view.size_bytes, view.estimated_tokens) == (22, 5)
    now = read(alice)
    assert (now.size_bytes, now.estimated_tokens, now.actor) == (22, 5, "alice")
    assert now.created_at == now.updated_at is not None


# Values --------------------------------------------------------------------------------------


def test_put__invalid_value__is_located_and_not_stored(alice: Person) -> None:
    make_namespace(alice.actor, schema=TEAM_SCHEMA, default={})
    with pytest.raises(Invalid) as refused:
        put(alice.actor, "notes", "k", {"constraints": ["a", 2]})
    assert refused.value.data["errors"][0]["pointer"] == "/constraints/1"
    assert not Entry.objects.exists()


def test_patch__invalid_result__changes_nothing(alice: Person) -> None:
    make_namespace(alice.actor, schema=TEAM_SCHEMA, default={})
    put(alice.actor, "notes", "k", {"count": 1})
    with pytest.raises(Invalid):
        patch(alice, {"op": "append", "path": "/constraints", "value": 5}, "update")
    assert read(alice).version == 1


def test_patch__result_too_large__is_refused(alice: Person) -> None:
    make_namespace(alice.actor, max_value_bytes=100)
    put(alice.actor, "notes", "k", ["x" * 60])
    with pytest.raises(TooLarge):
        patch(alice, {"op": "append", "path": "", "value": "x" * 60}, "update")
    assert read(alice).version == 1


@pytest.mark.parametrize(
    ("kind", "operations", "result"),
    [
        ("merge", {"goal": "x", "constraints": None}, {"goal": "x"}),
        ("json", [{"op": "add", "path": "/constraints/-", "value": "b"}], {"constraints": ["b"]}),
        ("update", {"op": "add", "path": "/count", "value": 2}, {"constraints": [], "count": 2}),
    ],
)
def test_patch__missing_entry__starts_from_the_default(
    alice: Person, kind: Any, operations: Any, result: Any
) -> None:
    make_namespace(alice.actor, schema=TEAM_SCHEMA, default={"constraints": []})
    done = patch(alice, operations, kind)
    assert (done.created, done.entry.version) == (True, 1)
    assert raw(result).value == entries.values.load(done.entry.value)
    assert operations_of() == [(1, "patch")]


def test_patch__too_many_items_to_compare__is_refused_at_the_limit(
    alice: Person,
) -> None:
    make_namespace(alice.actor)
    put(alice.actor, "notes", "k", [["x" * 8_000] * 100])
    again = [{"op": "append", "path": "/0", "value": 1}, {"op": "union", "path": "", "value": [1]}]
    with pytest.raises(Invalid) as refused:
        patch(alice, again * 100, "update")
    (error,) = refused.value.data["errors"]
    assert again[int(error["pointer"][1:]) % 2]["op"] == "union"
    assert read(alice).version == 1


def test_patch__failing_test__is_a_conflict_and_changes_nothing(alice: Person) -> None:
    make_namespace(alice.actor)
    put(alice.actor, "notes", "k", {"a": 1})
    with pytest.raises(Conflict) as refused:
        patch(
            alice,
            [
                {"op": "add", "path": "/b", "value": 1},
                {"op": "test", "path": "/a", "value": 2},
            ],
            "json",
        )
    assert refused.value.detail == "test failed at /a"
    assert refused.value.data["pointer"] == "/a"
    assert refused.value.hint.endswith("Nothing was changed.")
    assert (read(alice).value, read(alice).version) == ('{"a": 1}', 1)


def test_patch__if_version_stale__is_refused(alice: Person) -> None:
    make_namespace(alice.actor)
    put(alice.actor, "notes", "k", 1)
    with pytest.raises(VersionConflict) as refused:
        patch(alice, 2, precondition=Precondition(5))
    sides = {"mergeable": False, "theirs": 1}  # there is no base to apply the patch to
    assert refused.value.data == {"expected": 5, "actual": 1, **sides}


def test_patch__if_version_of_a_deleted_entry__says_that_it_does_not_exist(alice: Person) -> None:
    make_namespace(alice.actor)
    put(alice.actor, "notes", "k", 1)
    delete(alice)
    with pytest.raises(VersionConflict) as refused:
        patch(alice, 2, precondition=Precondition(1))
    assert refused.value.detail == "version conflict: expected 1, actual 0"
    assert refused.value.hint.startswith("The entry does not exist, or no longer exists.")


def test_patch__if_missing_and_existing__is_compared_with_the_default(alice: Person) -> None:
    make_namespace(alice.actor, default={"d": 0})
    put(alice.actor, "notes", "k", {"a": 1})
    with pytest.raises(VersionConflict) as refused:
        patch(alice, {"b": 2}, precondition=Precondition(0))
    assert (refused.value.data["expected"], refused.value.data["actual"]) == (0, 1)
    assert refused.value.data["base"] == {"d": 0}
    assert refused.value.data["yours"] == {"d": 0, "b": 2}


def test_patch__deleted_entry__starts_from_the_default_and_continues_the_version(
    alice: Person,
) -> None:
    make_namespace(alice.actor, default={"n": 0})
    put(alice.actor, "notes", "k", {"n": 7})
    delete(alice)
    done = patch(alice, {"op": "add", "path": "/n", "value": 1}, "update")
    assert (done.entry.value, done.entry.version, done.created) == ('{"n":1}', 3, True)


# Schema changes ------------------------------------------------------------------------------


def test_write__schema_changed_after_caching__is_validated_against_the_new_one(
    alice: Person,
) -> None:
    """Another process changed the schema; this one has cached the old definition."""
    make_namespace(alice.actor)
    put(alice.actor, "notes", "k", "text")
    Namespace.objects.update(schema='{"type": "integer"}', schema_version=2)
    with pytest.raises(Invalid):
        put(alice.actor, "notes", "k", "more text")
    assert put(alice.actor, "notes", "k", 5).schema_version == 2
    assert operations_of() == [(1, "put"), (2, "put")]


@pytest.mark.parametrize(
    ("narrow", "value"),
    [
        ({"schema": {"type": "integer"}, "default": 0}, "text"),
        ({"max_value_bytes": 20}, "text of more than 20 bytes"),
    ],
)
@pytest.mark.parametrize("verb", ["put", "puts", "patch"])
def test_write__definition_widened_after_caching__is_stored(
    alice: Person, narrow: Any, value: str, verb: str
) -> None:
    """Another process widened the namespace; this one has cached the narrow definition."""
    make_namespace(alice.actor, **narrow)
    namespaces.find_definition(alice.actor, "notes")
    Namespace.objects.update(schema="{}", max_value_bytes=None, schema_version=2)
    verbs = {
        "put": lambda: put(alice.actor, "notes", "k", value),
        "puts": lambda: entries.put_entries(
            actor=alice.actor, puts=[("notes", "k", raw(value)), ("notes", "l", raw(value))]
        ),
        "patch": lambda: patch(alice, {"op": "set", "path": "", "value": value}, "update"),
    }
    assert verbs[verb]() is not None
    assert (read(alice).value, read(alice).schema_version) == (f'"{value}"', 2)


@pytest.mark.parametrize("verb", ["put", "puts", "patch"])
def test_write__refused_by_the_cache_and_unregistered__is_not_registered(
    alice: Person, verb: str
) -> None:
    make_namespace(alice.actor, schema={"type": "integer"}, default=0)
    put(alice.actor, "notes", "k", 1)
    Namespace.objects.update(unregistered_at=Now())
    verbs = {
        "put": lambda: put(alice.actor, "notes", "k", "text"),
        "puts": lambda: entries.put_entries(actor=alice.actor, puts=[("notes", "k", raw("text"))]),
        "patch": lambda: patch(alice, "text"),
    }
    with pytest.raises(NotRegistered):
        verbs[verb]()


def test_write__accepted_by_the_cached_definition__uses_one_statement(alice: Person) -> None:
    make_namespace(alice.actor, schema={"type": "integer"}, default=0)
    put(alice.actor, "notes", "k", 1)
    with CaptureQueriesContext(connection) as asked:
        put(alice.actor, "notes", "k", 2)
    assert not [query for query in asked if '"namespaces"' in query["sql"]]


def test_read__schema_changed_after_caching__reports_invalid_and_returns_the_value(
    alice: Person,
) -> None:
    make_namespace(alice.actor)
    put(alice.actor, "notes", "k", "text")
    put(alice.actor, "notes", "n", 1)
    Namespace.objects.update(schema='{"type": "integer"}', schema_version=2)
    assert (read(alice).valid, read(alice).value) == (False, '"text"')
    assert read(alice, "n").valid
    rows = {row.key: row for row in Entry.objects.all()}
    assert [entry_views.is_valid(rows[key]) for key in ("k", "n")] == [False, True]


def test_restore__version_without_value__is_refused(alice: Person) -> None:
    make_namespace(alice.actor)
    put(alice.actor, "notes", "k", 1)
    delete(alice)
    with pytest.raises(NotFound) as refused:
        entries.restore_entry(actor=alice.actor, namespace="notes", key="k", version=2)
    assert refused.value.detail == "version 2 of notes/k has no value"


def test_patch__stale_definition__uses_the_new_limits(alice: Person) -> None:
    make_namespace(alice.actor)
    put(alice.actor, "notes", "k", ["x" * 60])
    Namespace.objects.update(max_value_bytes=100, schema_version=2)
    with pytest.raises(TooLarge):
        patch(alice, {"op": "append", "path": "", "value": "x" * 60}, "update")


# Expiry --------------------------------------------------------------------------------------


def test_ttl__of_the_write_or_the_namespace__sets_the_expiry(alice: Person) -> None:
    make_namespace(alice.actor, ttl_seconds=60)
    by_namespace = put(alice.actor, "notes", "a", 1)
    by_write = put(alice.actor, "notes", "b", 1, ttl_seconds=600)
    assert by_namespace.expires_at - by_namespace.updated_at == timedelta(seconds=60)
    assert by_write.expires_at - by_write.updated_at == timedelta(seconds=600)


def test_patch__entry_with_a_ttl__keeps_its_expiry(alice: Person) -> None:
    make_namespace(alice.actor)
    before = put(alice.actor, "notes", "k", 1, ttl_seconds=600)
    assert patch(alice, 2).entry.expires_at == before.expires_at


def test_expired__before_the_sweep__appears_absent_everywhere(alice: Person) -> None:
    make_namespace(alice.actor, default="none")
    put(alice.actor, "notes", "k", 1, ttl_seconds=60)
    let_expire()
    assert (read(alice).exists, read(alice).value, read(alice).version) == (False, '"none"', 0)
    assert alice.api("GET", "/state/notes").json()["items"] == []
    assert alice.api("GET", "/keys/k").json()["items"] == []
    assert delete(alice) == 0
    done = entries.put_entry(
        actor=alice.actor, namespace="notes", key="k", value=raw(2), precondition=Precondition(0)
    )
    assert (done.created, done.entry.version) == (True, 2)


def test_expiry_sweep__expired_entry__writes_one_expire_version(alice: Person) -> None:
    make_namespace(alice.actor)
    put(alice.actor, "notes", "k", 1, ttl_seconds=60)
    put(alice.actor, "notes", "stays", 1, ttl_seconds=60)
    let_expire()
    assert maintenance.expire_entries() == {"expired": 1}
    assert maintenance.expire_entries() == {"expired": 0}
    assert operations_of() == [(1, "put"), (2, "expire")]
    assert operations_of("stays") == [(1, "put")]
    assert put(alice.actor, "notes", "k", 2).version == 3
    row = AuditRow.objects.get(action="entry.expire")
    assert (row.actor_kind, row.namespace, row.key) == ("system", "notes", "k")


def test_expiry_sweep__written_again_meanwhile__skips_it(alice: Person) -> None:
    make_namespace(alice.actor)
    put(alice.actor, "notes", "k", 1, ttl_seconds=60)
    due = list(Entry.objects.all().values_list("namespace_id", "namespace__name", "key"))
    expire = entries.Operation.EXPIRE
    assert clearing.clear_entries(alice.actor, due, "", expire) == 0
    assert read(alice).exists


# Trail ---------------------------------------------------------------------------------------


def test_write__any_kind__writes_one_audit_row_and_one_change(alice: Person) -> None:
    make_namespace(alice.actor)
    AuditRow.objects.all().delete()
    Change.objects.all().delete()
    put(alice.actor, "notes", "k", 1, reason="why")
    patch(alice, 2)
    entries.restore_entry(actor=alice.actor, namespace="notes", key="k", version=1)
    delete(alice)
    delete(alice)
    trail = [
        (row.action, row.version, row.actor_name)
        for row in AuditRow.objects.filter(namespace="notes", key="k").order_by("id")
    ]
    assert trail == [
        ("entry.put", 1, "alice"),
        ("entry.patch", 2, "alice"),
        ("entry.restore", 3, "alice"),
        ("entry.delete", 4, "alice"),
    ]
    assert list(Change.objects.order_by("id").values_list("kind", "version")) == [
        (action, version) for action, version, _ in trail
    ]
    assert EntryRevision.objects.get(version=1).reason == "why"


def test_viewer__any_write__is_forbidden_by_the_service_too(alice: Person, bob: Person) -> None:
    make_namespace(alice.actor)
    for write in (
        lambda: put(bob.actor, "notes", "k", 1),
        lambda: patch(bob, 1),
        lambda: delete(bob),
        lambda: clearing.clear_key(actor=bob.actor, key="k"),
        lambda: make_namespace(bob.actor, "mine"),
        lambda: namespaces.unregister_namespace(actor=bob.actor, name="notes"),
    ):
        with pytest.raises(Forbidden):
            write()


def test_other_workspace__same_names__are_separate(alice: Person, mallory: Person) -> None:
    for person, value in ((alice, "ours"), (mallory, "theirs")):
        make_namespace(person.actor)
        put(person.actor, "notes", "k", value)
    assert read(alice).value == '"ours"'
    assert read(mallory).value == '"theirs"'
    delete(mallory)
    assert read(alice).exists


def test_token__restricted_to_other_namespaces__sees_the_same_as_for_an_absent_one(
    alice: Person,
) -> None:
    make_namespace(alice.actor)
    _, narrow = make_token(alice, Role.EDITOR, namespaces=["else*"])
    with pytest.raises(NotRegistered):
        put(narrow, "notes", "k", 1)
    with pytest.raises(NotRegistered):
        entry_views.read_entry(actor=narrow, namespace="notes", key="k")


# What a refusal says -------------------------------------------------------------------------


def test_check_value__refused__states_the_reason_and_the_limit(alice: Person) -> None:
    make_namespace(alice.actor, schema=TEAM_SCHEMA, default={}, max_value_bytes=100)
    with pytest.raises(TooLarge) as large:
        put(alice.actor, "notes", "k", "x" * 99)
    assert large.value.detail == "the value has 101 bytes; the limit of notes is 100 bytes"
    assert (large.value.data["limit"], large.value.data["actual"]) == (100, 101)
    with pytest.raises(Invalid) as unstorable:
        put(alice.actor, "notes", "k", {"goal": "\0"})
    assert unstorable.value.detail == "the value cannot be stored"
    assert [each["pointer"] for each in unstorable.value.data["errors"]] == ["/goal"]
    with pytest.raises(Invalid) as wrong:
        put(alice.actor, "notes", "k", {"goal": 1})
    assert wrong.value.detail == "the value does not satisfy the schema of notes"
    assert wrong.value.data["schema_version"] == 1
    assert [each["pointer"] for each in wrong.value.data["errors"]] == ["/goal"]
