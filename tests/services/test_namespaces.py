"""Namespaces: registering, changing, dry runs, owners."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from state_admin.models import AuditRow, Entry, Namespace, NamespaceVersion
from state_admin.services import namespaces, plugins
from state_admin.services.errors import Conflict, Invalid, VersionConflict
from state_admin.services.namespace_updates import update_namespace
from state_admin.services.namespaces import NamespaceRegistration
from tests.builders import Person, put, raw
from tests.patience import PATIENCE
from tests.project.running import wait_for
from tests.services.racing import overlap, race, split

OBJECT = {"type": "object"}
TEXT = {"type": "string"}


def register(
    person: Person, schema: Any = None, default: Any = None, **fields: Any
) -> NamespaceRegistration:
    return namespaces.register_namespace(
        actor=person.actor, name="notes", schema=raw(schema or {}), default=raw(default), **fields
    )


def test_register__same_content_again__changes_nothing(alice: Person) -> None:
    first = register(alice, OBJECT, {})
    again = register(alice, OBJECT, {})
    assert (first.created, again.created, again.changed) == (True, False, False)
    assert again.namespace.schema_version == 1
    assert AuditRow.objects.filter(namespace="notes").count() == 1


def test_register__other_content__is_a_new_schema_version_and_changes_no_entry(
    alice: Person,
) -> None:
    register(alice, OBJECT, {})
    put(alice.actor, "notes", "k", {"a": 1})
    changed = register(alice, TEXT, "")
    assert (changed.changed, changed.namespace.schema_version) == (True, 2)
    assert NamespaceVersion.objects.filter(namespace=changed.namespace).count() == 2
    read = namespaces.find_definition(alice.actor, "notes", fresh=True)
    assert (read.schema_version, read.default) == (2, '""')


@pytest.mark.parametrize(
    "change", [{"description": "Plans"}, {"history_keep_last": 3}, {"history_keep_seconds": 60}]
)
def test_register__only_description_or_retention_changed__keeps_the_schema_version(
    alice: Person, change: dict[str, Any]
) -> None:
    register(alice, OBJECT, {})
    put(alice.actor, "notes", "k", {"a": 1})
    changed = register(alice, OBJECT, {}, **change, reason="tidy")
    assert (changed.changed, changed.namespace.schema_version) == (True, 1)
    assert NamespaceVersion.objects.filter(namespace=changed.namespace).count() == 1
    assert AuditRow.objects.filter(action="namespace.change", reason="tidy").exists()
    (name, value) = next(iter(change.items()))
    assert getattr(Namespace.objects.get(name="notes"), name) == value
    assert not register(alice, OBJECT, {}, **change).changed
    assert register(alice, TEXT, "", **change).namespace.schema_version == 2


def test_register__changed_limits__are_in_the_audit(alice: Person) -> None:
    register(alice, OBJECT, {}, history_keep_last=10)
    register(alice, OBJECT, {}, history_keep_last=2, description="What agents know")
    assert AuditRow.objects.get(action="namespace.change").detail == {
        "fields": ["description", "history_keep_last"],
        "before": {"history_keep_last": 10},
        "after": {"history_keep_last": 2},
    }


def test_register__invalid_default__is_refused(alice: Person) -> None:
    schema = {"properties": {"goal": TEXT}}
    with pytest.raises(Invalid, match="default does not satisfy") as refused:
        register(alice, schema, {"goal": 1})
    # The pointer starts from the default, as that of a value starts from the value.
    assert [error["pointer"] for error in refused.value.data["errors"]] == ["/goal"]
    assert refused.value.data["within"] == "/default"
    assert not Namespace.objects.open().exists()


def test_register__schema_without_a_default__hint_says_that_missing_entries_read_as_null(
    alice: Person,
) -> None:
    with pytest.raises(Invalid) as refused:
        register(alice, TEXT, None)
    assert refused.value.hint.startswith("Without a default, a missing entry reads as null.")


def test_register__of_another_plugin__has_the_exact_message(alice: Person) -> None:
    register(alice, plugin="kit")
    with pytest.raises(Conflict) as refused:
        register(alice, plugin="other")
    assert refused.value.detail == "key already registered: notes"


def test_dry_run__breaking_change__reports_entries_and_changes_and_locks_nothing(
    alice: Person,
) -> None:
    register(alice, {}, None)
    for key, value in (("a", {}), ("b", "text"), ("c", 1)):
        put(alice.actor, "notes", key, value)
    with CaptureQueriesContext(
        connection,
    ) as queries:
        tried = register(alice, TEXT, "", dry_run=True)
    assert tried.violations is not None
    assert (tried.changed, tried.violations.count) == (True, 2)
    assert [row["key"] for row in tried.violations.first] == ["a", "c"]
    assert not any(" UPDATE" in query["sql"] for query in queries)
    assert Namespace.objects.get(name="notes").schema_version == 1


def test_dry_run__of_a_new_namespace__registers_nothing(alice: Person) -> None:
    tried = register(alice, TEXT, "", dry_run=True)
    assert (tried.created, tried.violations) == (True, namespaces.Violations(0, []))
    assert not Namespace.objects.open().exists()


def test_expected_version__stale__is_refused(alice: Person) -> None:
    with pytest.raises(VersionConflict):
        register(alice, expected_version=1)
    assert not Namespace.objects.open().exists()
    register(alice, expected_version=0)
    with pytest.raises(VersionConflict, match="expected 0, actual 1"):
        register(alice, OBJECT, {}, expected_version=0)
    assert register(alice, OBJECT, {}, expected_version=1).namespace.schema_version == 2
    with pytest.raises(VersionConflict, match="expected 1, actual 2"):
        register(alice, TEXT, "", expected_version=1, dry_run=True)


def test_expected_time__changed_since__is_refused(alice: Person) -> None:
    first = register(alice, description="first").namespace
    second = register(alice, description="second").namespace
    with pytest.raises(Conflict, match="changed in the meantime"):
        register(alice, description="third", expected_version=1, expected_time=first.updated_at)
    assert Namespace.objects.get(name="notes").description == "second"
    assert register(alice, description="third", expected_time=second.updated_at).changed


def test_expected_version__over_the_api__is_if_match(alice: Person) -> None:
    body = {"schema": OBJECT, "default": {}}
    assert alice.api("PUT", "/namespaces/notes", body, If_None_Match="*").status_code == 201
    assert alice.api("PUT", "/namespaces/notes", body, If_None_Match="*").status_code == 412
    body["description"] = "changed"
    stale = alice.api("PUT", "/namespaces/notes", body, If_Match='"7"')
    assert (stale.status_code, stale.json()["actual"]) == (412, 1)
    landed = alice.api("PUT", "/namespaces/notes", body, If_Match='"1"')
    assert (landed.status_code, landed["ETag"]) == (200, '"1"')
    body["ttl_seconds"] = 60
    landed = alice.api("PUT", "/namespaces/notes", body, If_Match='"1"')
    assert (landed.status_code, landed["ETag"]) == (200, '"2"')


@pytest.mark.django_db(transaction=True)
def test_race__changes_of_one_version__exactly_one_lands(alice: Person) -> None:
    register(alice)
    schemas = [{"type": "object", "title": str(number)} for number in range(8)]
    works = [partial(register, alice, schema, {}, expected_version=1) for schema in schemas]
    landed, lost = split(race(works))
    assert len(landed) == 1
    assert {type(error) for error in lost} == {VersionConflict}
    assert Namespace.objects.get(name="notes").schema_version == 2


# Accepting what is registered --------------------------------------------------------------------

GOAL = {"type": "object", "properties": {"goal": TEXT}}
GOAL_AND_BUDGET = {"type": "object", "properties": {"goal": TEXT, "budget": {}}}


def ensure(person: Person, **body: Any) -> Any:
    return person.api("PUT", "/namespaces/notes?if_exists=accept", body)


def test_accept__absent__is_registered(alice: Person) -> None:
    made = ensure(alice, schema=GOAL, default={}, ttl_seconds=60)
    assert (made.status_code, made.json()["ttl_seconds"]) == (201, 60)


@pytest.mark.parametrize("body", [
    {"schema": GOAL, "default": {}},
    {"schema": GOAL_AND_BUDGET, "default": {"budget": 1}},
    {"schema": {"title": "Renamed", **GOAL}, "description": "another", "ttl_seconds": 5},
    {"default": {"mine": 1}},
    {},
])  # fmt: skip
def test_accept__compatible__returns_the_registered_one_unchanged(
    alice: Person, body: dict[str, Any]
) -> None:
    registered = ensure(alice, schema=GOAL, default={}).json()
    accepted = ensure(alice, **body)
    assert (accepted.status_code, accepted.json()) == (200, registered)
    assert accepted["ETag"] == '"1"'
    assert AuditRow.objects.filter(namespace="notes").count() == 1


@pytest.mark.parametrize(("body", "pointer"), [
    ({"schema": {**GOAL, "required": ["goal"]}, "default": {"goal": ""}}, "/schema/required"),
    ({"schema": GOAL, "default": {"goal": "x"}}, "/default/goal"),
    ({"schema": TEXT, "default": ""}, "/schema/type"),
    ({"default": {"goal": 5}}, "/default/goal"),
])  # fmt: skip
def test_accept__incompatible__is_409_with_the_differences(
    alice: Person, body: dict[str, Any], pointer: str
) -> None:
    ensure(alice, schema=GOAL, default={})
    for path in (
        "/namespaces/notes?if_exists=accept",
        "/namespaces/notes?if_exists=accept&dry_run=true",
    ):
        refused = alice.api("PUT", path, body)
        assert refused.status_code == 409
        problem = refused.json()
        assert problem["type"] == "/problems/schema-conflict"
        assert "namespace notes is registered with an incompatible definition" in str(problem)
        assert problem["schema_version"] == 1
        assert pointer in [error["pointer"] for error in problem["errors"]]
    assert Namespace.objects.get(name="notes").schema_version == 1


def test_accept__invalid_definition__is_refused(alice: Person) -> None:
    ensure(alice, schema=GOAL, default={})
    assert ensure(alice, schema={"type": "nonsense"}).status_code == 422
    assert ensure(alice, schema=TEXT, default=1).status_code == 422


def test_accept__namespace_of_a_plugin__is_refused(alice: Person) -> None:
    register(alice, plugin="kit")
    refused = ensure(alice)
    assert refused.status_code == 409
    assert "key already registered: notes" in refused.content.decode()


def test_accept__with_a_precondition__compares_the_version(alice: Person) -> None:
    path = "/namespaces/notes?if_exists=accept"
    assert alice.api("PUT", path, {}, If_Match='"1"').status_code == 412
    assert alice.api("PUT", path, {}, If_None_Match="*").status_code == 201
    assert alice.api("PUT", path, {}, If_None_Match="*").status_code == 412
    assert alice.api("PUT", path, {}, If_Match='"1"').status_code == 200


def test_update__registered__keeps_what_the_body_omits(alice: Person) -> None:
    path = "/namespaces/notes?if_exists=update"
    history = {"keep_last": 5, "keep_seconds": 60}
    kept = {"description": "kept", "ttl_seconds": 60, "max_value_bytes": 100, "history": history}
    created = alice.api("PUT", path, {"schema": GOAL, "default": {}, **kept})
    assert created.status_code == 201
    preview = alice.api("PUT", path + "&dry_run=true", {"default": {"goal": "x"}}).json()
    assert preview["would_change"]
    updated = alice.api("PUT", path, {"default": {"goal": "x"}, "ttl_seconds": None}).json()
    assert updated["schema_version"] == 2
    assert (updated["schema"], updated["default"]) == (GOAL, {"goal": "x"})
    assert {name: updated[name] for name in kept} == {**kept, "ttl_seconds": None}
    assert alice.api("PUT", path, {"schema": TEXT}).status_code == 422
    assert alice.api("PUT", path, {}, If_Match='"1"').status_code == 412


def test_update__namespace_of_a_plugin__requires_its_name(alice: Person) -> None:
    register(alice, plugin="kit")
    path = "/namespaces/notes?if_exists=update"
    assert alice.api("PUT", path, {"description": "d"}).status_code == 409
    assert alice.api("PUT", path, {"description": "d", "plugin": "kit"}).status_code == 200


@pytest.mark.django_db(transaction=True)
def test_update__several_at_once__each_change_is_kept(alice: Person) -> None:
    register(alice)
    update = partial(update_namespace, actor=alice.actor, name="notes", schema=None, default=None)
    changes = {"description": "d", "ttl_seconds": 60, "history_keep_last": 5, "max_value_bytes": 9}
    race([partial(update, **{name: value}) for name, value in changes.items()])
    stored = Namespace.objects.get(name="notes")
    assert {name: getattr(stored, name) for name in changes} == changes


@pytest.mark.django_db(transaction=True)
def test_accept__workers_start_at_once__one_definition_is_registered_and_all_succeed(
    alice: Person,
) -> None:
    schemas = [{**GOAL, "properties": {"goal": TEXT, f"new{n}": {}}} for n in range(8)]

    def start(schema: Any) -> NamespaceRegistration:
        return namespaces.ensure_namespace(
            actor=alice.actor, name="notes", schema=raw(schema), default=raw({})
        )

    landed, lost = split(race([partial(start, schema) for schema in schemas]))
    assert (len(landed), lost) == (8, [])
    assert sum(each.created for each in landed) == 1
    assert len({each.namespace.schema for each in landed}) == 1
    assert Namespace.objects.get(name="notes").schema_version == 1


# Unregistering beside writes ---------------------------------------------------------------------


@contextmanager
def write_under_way(person: Person) -> Iterator[Callable[[], None]]:
    """Another transaction that has put notes/late and commits on request."""
    written, commit = threading.Event(), threading.Event()

    def write() -> None:
        try:
            with transaction.atomic():
                put(person.actor, "notes", "late", 1)
                written.set()
                assert commit.wait(PATIENCE)
        finally:
            connection.close()

    writer = threading.Thread(target=write)
    writer.start()
    assert written.wait(PATIENCE)
    yield commit.set
    commit.set()
    writer.join()


def is_unregistered() -> bool:
    return Namespace.objects.filter(name="notes", unregistered_at__isnull=False).exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("entries", ["delete", ""])
def test_unregister__concurrent_write_commits_after_it__counts_as_before_it(
    alice: Person, monkeypatch: pytest.MonkeyPatch, entries: str
) -> None:
    register(alice)
    monkeypatch.setattr(namespaces, "LATE_SECONDS", 30.0)
    with write_under_way(alice) as commit:

        def unregister() -> int:
            return namespaces.unregister_namespace(actor=alice.actor, name="notes", entries=entries)

        def watch() -> None:
            wait_for(is_unregistered, "the name is out of use")
            commit()

        (answer, _) = race([unregister, watch])
    if entries:
        assert answer == 1
        assert not Entry.objects.live().filter(key="late").exists()
        assert register(alice).created
        assert not Entry.objects.live().filter(key="late").exists()
    else:
        assert isinstance(answer, Conflict)
        assert answer.data["count"] == 1
        assert not is_unregistered()
        assert put(alice.actor, "notes", "late", 2).version == 2


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("verb", ["unregister", "uninstall"])
def test_race__batch_and_deletion_of_its_namespace__both_succeed(alice: Person, verb: str) -> None:
    """At its end PostgreSQL checks the namespace of rows that the batch inserted."""
    actor, note = alice.actor, {"name": "notes", "schema": raw({}), "default": raw(None)}
    if verb == "uninstall":
        plugins.install_plugin(actor=actor, name="kit", namespaces=[note])
    else:
        register(alice)
    put(actor, "notes", "k", 0)
    verbs = {
        "unregister": partial(
            namespaces.unregister_namespace, actor=actor, name="notes", entries="delete"
        ),
        "uninstall": partial(plugins.uninstall_plugin, actor=actor, name="kit", entries="delete"),
    }
    overlap(lambda: [put(actor, "notes", key, 1) for key in ("k", "late")], verbs[verb])
    assert not Entry.objects.live().exists()
    assert is_unregistered()


@pytest.mark.django_db(transaction=True)
def test_unregister__open_transaction_elsewhere__ends_anyway(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(alice)
    monkeypatch.setattr(namespaces, "LATE_SECONDS", 0.0)
    with write_under_way(alice):
        assert namespaces.unregister_namespace(actor=alice.actor, name="notes") == 0
        assert is_unregistered()


@pytest.mark.django_db(transaction=True)
def test_unregister__in_a_transaction_of_the_caller__checks_again_after_its_commit(
    alice: Person,
) -> None:
    register(alice)
    with write_under_way(alice) as commit:
        with transaction.atomic():
            namespaces.unregister_namespace(actor=alice.actor, name="notes", entries="delete")
            commit()
        assert not Entry.objects.live().filter(key="late").exists()


@pytest.mark.django_db(transaction=True)
def test_uninstall__concurrent_write_commits_after_it__is_deleted_too(alice: Person) -> None:
    notes = {"name": "notes", "schema": raw({}), "default": raw(None)}
    plugins.install_plugin(actor=alice.actor, name="kit", namespaces=[notes])
    with write_under_way(alice) as commit:

        def watch() -> None:
            wait_for(is_unregistered, "the name is out of use")
            commit()

        uninstall = partial(
            plugins.uninstall_plugin, actor=alice.actor, name="kit", entries="delete"
        )
        _, refused = split(race([uninstall, watch]))
    assert refused == []
    assert not Entry.objects.live().filter(key="late").exists()
