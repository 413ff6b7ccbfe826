"""Namespaces against semantics §3: registering, changing, dry runs, whose they are."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from state_admin.models import AuditRow, Namespace, NamespaceVersion
from state_admin.services import namespaces
from state_admin.services.errors import Conflict, Invalid, VersionConflict
from state_admin.services.namespaces import Registered
from tests.builders import Person, put, raw
from tests.services.racing import race, split

OBJECT = {"type": "object"}
TEXT = {"type": "string"}


def register(person: Person, schema: Any = None, default: Any = None, **fields: Any) -> Registered:
    return namespaces.register_namespace(
        actor=person.actor, name="notes", schema=raw(schema or {}), default=raw(default), **fields
    )


def test_register__same_content_again__changes_nothing(alice: Person) -> None:
    first = register(alice, OBJECT, {})
    again = register(alice, OBJECT, {})
    assert (first.created, again.created, again.changed) == (True, False, False)
    assert again.namespace.schema_version == 1
    assert AuditRow.objects.filter(namespace="notes").count() == 1


def test_register__other_content__is_a_new_schema_version_and_rewrites_no_entry(
    alice: Person,
) -> None:
    register(alice, OBJECT, {})
    put(alice.actor, "notes", "k", {"a": 1})
    changed = register(alice, TEXT, "")
    assert (changed.changed, changed.namespace.schema_version) == (True, 2)
    assert NamespaceVersion.objects.filter(namespace=changed.namespace).count() == 2
    read = namespaces.definition(alice.actor, "notes", fresh=True)
    assert (read.schema_version, read.default) == (2, '""')


def test_register__default_that_breaks_its_schema__is_refused(alice: Person) -> None:
    with pytest.raises(Invalid, match="default does not satisfy"):
        register(alice, TEXT, 1)
    assert not Namespace.objects.open().exists()


def test_register__of_another_plugin__is_the_exact_title(alice: Person) -> None:
    register(alice, plugin="kit")
    with pytest.raises(Conflict) as refused:
        register(alice, plugin="other")
    assert refused.value.title == "key already registered: notes"


def test_dry_run__tells_what_would_break_and_stores_and_locks_nothing(alice: Person) -> None:
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
    assert not any("FOR UPDATE" in query["sql"] for query in queries)
    assert Namespace.objects.get(name="notes").schema_version == 1


def test_dry_run__of_a_new_namespace__registers_nothing(alice: Person) -> None:
    tried = register(alice, TEXT, "", dry_run=True)
    assert (tried.created, tried.violations) == (True, namespaces.Violations(0, []))
    assert not Namespace.objects.open().exists()


def test_expected_version__not_the_present_one__is_refused(alice: Person) -> None:
    with pytest.raises(VersionConflict):
        register(alice, expected_version=1)
    assert not Namespace.objects.open().exists()
    register(alice, expected_version=0)
    with pytest.raises(VersionConflict, match="expected 0, actual 1"):
        register(alice, OBJECT, {}, expected_version=0)
    assert register(alice, OBJECT, {}, expected_version=1).namespace.schema_version == 2
    with pytest.raises(VersionConflict, match="expected 1, actual 2"):
        register(alice, TEXT, "", expected_version=1, dry_run=True)


def test_expected_version__over_the_api__is_if_match(alice: Person) -> None:
    body = {"schema": OBJECT, "default": {}}
    assert alice.api("PUT", "/namespaces/notes", body, If_None_Match="*").status_code == 201
    assert alice.api("PUT", "/namespaces/notes", body, If_None_Match="*").status_code == 412
    body["description"] = "changed"
    stale = alice.api("PUT", "/namespaces/notes", body, If_Match='"7"')
    assert (stale.status_code, stale.json()["actual"]) == (412, 1)
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
