"""Blame: each path of an entry, on the version that set it."""

from __future__ import annotations

import pytest
from django.db.models.functions import Now

from state_admin.models import Namespace
from state_admin.services import entries
from state_admin.services.blame import blame_entry
from state_admin.services.errors import NotRegistered
from tests.builders import Person, make_namespace, put


def blamed(person: Person) -> dict[str, tuple[int, str]]:
    lines = blame_entry(actor=person.actor, namespace="notes", key="k")
    return {line.pointer: (line.version, line.actor) for line in lines}


def test_blame__each_path__has_the_version_that_set_it(alice: Person) -> None:
    make_namespace(alice.actor)
    put(alice.actor, "notes", "k", {"a": 1, "b": {"c": 1, "d": 1}})
    put(alice.actor, "notes", "k", {"a": 1, "b": {"c": 2, "d": 1}})
    put(alice.actor, "notes", "k", {"a": 1, "b": {"c": 2, "d": 1}, "e": []})
    found = blamed(alice)
    assert {pointer: version for pointer, (version, _) in found.items()} == {
        "": 3,  # everything without a line of its own: /e
        "/a": 1,
        "/b": 1,
        "/b/c": 2,
    }
    assert found["/b/c"] == (2, "alice")


def test_blame__no_entry__is_empty(alice: Person) -> None:
    make_namespace(alice.actor)
    assert blamed(alice) == {}
    put(alice.actor, "notes", "k", 1)
    entries.delete_entry(actor=alice.actor, namespace="notes", key="k")
    assert blamed(alice) == {}


def test_blame__unregistered_after_caching__is_refused(alice: Person) -> None:
    make_namespace(alice.actor)
    put(alice.actor, "notes", "k", 1)
    Namespace.objects.update(unregistered_at=Now())
    with pytest.raises(NotRegistered):
        blamed(alice)
