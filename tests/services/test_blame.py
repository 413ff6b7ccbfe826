"""Blame: each path of an entry, on the version that set it, and the versions that changed a path."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from django.db.models.functions import Now

from state_admin.domain.values import MISSING
from state_admin.models import Entry, EntryRevision, Namespace
from state_admin.services import blame, entries
from state_admin.services.blame import blame_entry
from state_admin.services.errors import BadRequest, NotRegistered
from tests.builders import Person, make_namespace, make_token, put


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


def test_blame__expired_entry__is_empty_before_the_sweep(alice: Person) -> None:
    make_namespace(alice.actor)
    put(alice.actor, "notes", "k", {"a": 1}, ttl_seconds=60)
    assert blamed(alice) == {"": (1, "alice")}
    EntryRevision.objects.update(expires_at=Now() - timedelta(seconds=1))
    assert blamed(alice) == {}


def test_blame__created_over_an_expired_entry__has_one_version(alice: Person) -> None:
    make_namespace(alice.actor)
    put(alice.actor, "notes", "k", {"a": 1}, ttl_seconds=60)
    past = Now() - timedelta(seconds=1)
    EntryRevision.objects.update(expires_at=past)
    Entry.objects.update(expires_at=past)
    put(replace(alice.actor, name="bob"), "notes", "k", {"a": 1, "b": 1})
    assert blamed(alice) == {"": (2, "bob")}


def test_blame__unregistered_after_caching__is_refused(alice: Person) -> None:
    make_namespace(alice.actor)
    put(alice.actor, "notes", "k", 1)
    Namespace.objects.update(unregistered_at=Now())
    with pytest.raises(NotRegistered):
        blamed(alice)


def test_path_history__limit_of_versions__continues_where_it_ended(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_namespace(alice.actor)
    for value in ([0], [1], [2], ["new", 2], ["new", 3]):
        put(alice.actor, "notes", "k", value)
    whole = history_of(alice, "/1")
    assert changed(whole) == [(5, "/1"), (3, "/0"), (2, "/0"), (1, "/0")]
    assert (whole.newest, whole.oldest, whole.next, whole.has_gaps) == (5, 1, None, False)
    monkeypatch.setattr(blame, "MOST_VERSIONS", 2)
    first = history_of(alice, "/1")
    assert (changed(first), first.oldest, first.next) == ([(5, "/1")], 3, (3, "/0"))
    second = history_of(alice, "/0", 3)
    assert (changed(second), second.next) == ([(3, "/0"), (2, "/0")], (1, "/0"))
    last = history_of(alice, "/0", 1)
    assert (changed(last), last.next) == ([(1, "/0")], None)


@pytest.mark.parametrize(("limit", "most"), [("MOST_CHANGES", 1), ("MOST_CHARACTERS", 0)])
def test_path_history__other_limits__read_one_version_at_least(
    limit: str, most: int, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blame, limit, most)
    make_namespace(alice.actor)
    for value in range(3):
        put(alice.actor, "notes", "k", {"a": value})
    found = history_of(alice, "/a")
    assert (changed(found), found.next) == ([(3, "/a")], (2, "/a"))


def test_path_history__compacted__says_so_and_begins_with_the_oldest_version(alice: Person) -> None:
    make_namespace(alice.actor)
    for value in range(5):
        put(alice.actor, "notes", "k", {"a": value})
    EntryRevision.objects.filter(version__in=[1, 2, 4]).delete()
    found = history_of(alice, "/a")
    assert [(each.revision.version, each.is_oldest) for each in found.changes] == [
        (5, False),
        (3, True),
    ]
    assert found.has_gaps


def test_path_history__no_value_or_no_entry__finds_nothing(alice: Person) -> None:
    make_namespace(alice.actor)
    put(alice.actor, "notes", "k", {"a": 1})
    found = history_of(alice, "/b")
    assert (found.found, found.changes, found.newest) == (False, [], 1)
    assert history_of(alice, "/a").found
    absent = blame.read_path_history(
        actor=alice.actor, namespace="notes", key="absent", pointer="/a"
    )
    assert (absent.found, absent.newest) == (False, 0)


@pytest.mark.parametrize("pointer", ["a", "/~2", "/a" * 2000])
def test_path_history__malformed_pointer__is_refused(pointer: str, alice: Person) -> None:
    make_namespace(alice.actor)
    with pytest.raises(BadRequest, match="path must be a JSON Pointer"):
        history_of(alice, pointer)


def test_path_history__invisible_entry__is_refused_or_empty(alice: Person, mallory: Person) -> None:
    make_namespace(alice.actor)
    put(alice.actor, "notes", "k", {"a": "secret"})
    with pytest.raises(NotRegistered):
        history_of(mallory, "/a")
    make_namespace(mallory.actor)
    assert history_of(mallory, "/a").newest == 0
    _, narrow = make_token(alice, namespaces=["other"])
    with pytest.raises(NotRegistered):
        blame.read_path_history(actor=narrow, namespace="notes", key="k", pointer="/a")


def test_path_history__created_over_an_expired_value__lists_the_creation(alice: Person) -> None:
    make_namespace(alice.actor)
    put(alice.actor, "notes", "k", {"a": 1}, ttl_seconds=60)
    past = Now() - timedelta(seconds=1)
    EntryRevision.objects.update(expires_at=past)
    Entry.objects.update(expires_at=past)
    put(alice.actor, "notes", "k", {"a": 1})
    found = history_of(alice, "/a")
    assert changed(found) == [(2, "/a"), (1, "/a")]
    assert [each.before for each in found.changes] == [MISSING, MISSING]


def history_of(person: Person, pointer: str, since: int | None = None) -> blame.PathHistory:
    return blame.read_path_history(
        actor=person.actor, namespace="notes", key="k", pointer=pointer, since=since
    )


def changed(found: blame.PathHistory) -> list[tuple[int, str]]:
    return [(each.revision.version, each.pointer) for each in found.changes]
