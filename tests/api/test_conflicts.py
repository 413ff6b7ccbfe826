"""A lost race explains itself; a harmless one can be merged; blame names who set what."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.builders import Person, make_namespace, put

BASE = {"goal": "ship", "tags": ["a"], "budget": {"eur": 1, "usd": 2}}


@pytest.fixture
def moved(alice: Person) -> Person:
    """notes/k: version 1 is BASE; version 2 changed budget.eur."""
    make_namespace(alice.actor, default={})
    put(alice.actor, "notes", "k", BASE)
    put(alice.actor, "notes", "k", {**BASE, "budget": {"eur": 5, "usd": 2}})
    return alice


def write(person: Person, value: Any, **headers: str) -> Any:
    return person.api("PUT", "/state/notes/k", {"value": value}, If_Match='"1"', **headers)


def test_conflict__stale_write__carries_base_theirs_yours_and_the_clash(moved: Person) -> None:
    mine = {**BASE, "budget": {"eur": 9, "usd": 2}}
    answer = write(moved, mine)
    assert answer.status_code == 412
    body = answer.json()
    assert body["title"] == "version conflict: expected 1, actual 2"
    assert (body["base"], body["yours"]) == (BASE, mine)
    assert body["theirs"]["budget"]["eur"] == 5
    assert body["clashes"] == [{"pointer": "/budget/eur", "base": 1, "theirs": 5, "yours": 9}]
    assert body["mergeable"] is False


def test_conflict__other_paths__says_that_a_merge_would_land(moved: Person) -> None:
    body = write(moved, {**BASE, "goal": "ship soon"}).json()
    assert (body["mergeable"], body["clashes"]) == (True, [])


def test_merge__other_paths__lands_both_changes(moved: Person) -> None:
    answer = write(moved, {**BASE, "goal": "ship soon"}, On_Conflict="merge")
    assert answer.status_code == 200
    assert answer.json()["version"] == 3
    assert answer.json()["value"] == {
        "goal": "ship soon",
        "tags": ["a"],
        "budget": {"eur": 5, "usd": 2},
    }


def test_merge__same_path__is_refused_and_nothing_lands(moved: Person) -> None:
    answer = write(moved, {**BASE, "budget": {"eur": 9, "usd": 2}}, On_Conflict="merge")
    assert answer.status_code == 412
    assert moved.api("GET", "/state/notes/k").json()["version"] == 2


def test_merge__unknown_base__is_refused_without_guessing(moved: Person) -> None:
    answer = moved.api(
        "PUT", "/state/notes/k", {"value": BASE}, If_Match='"7"', On_Conflict="merge"
    )
    assert answer.status_code == 412
    assert "base" not in answer.json()


def test_merge__without_if_match__is_a_bad_request(moved: Person) -> None:
    answer = moved.api("PUT", "/state/notes/k", {"value": BASE}, On_Conflict="merge")
    assert answer.status_code == 400


def test_merge__result_that_breaks_the_schema__is_refused(alice: Person) -> None:
    schema = {"type": "object", "maxProperties": 2}
    make_namespace(alice.actor, schema=schema, default={})
    put(alice.actor, "notes", "k", {"a": 1})
    put(alice.actor, "notes", "k", {"a": 1, "b": 1})
    answer = write(alice, {"a": 1, "c": 1}, On_Conflict="merge")
    assert answer.status_code == 422
    assert alice.api("GET", "/state/notes/k").json()["version"] == 2


def test_conflict__big_integers__are_told_as_they_are(alice: Person) -> None:
    make_namespace(alice.actor)
    put(alice.actor, "notes", "k", 10**30)
    put(alice.actor, "notes", "k", 10**30 + 1)
    answer = write(alice, 1)
    assert answer.status_code == 412
    assert f'"base":{10**30}' in answer.content.decode()
    diff = alice.api("GET", "/diff/notes/k?from=1&to=2")
    assert diff.json()["rows"][0]["after"] == 10**30 + 1


def test_blame__two_writers__each_has_the_paths_it_set(moved: Person, bob: Person) -> None:
    moved.api("PATCH", "/state/notes/k", json.dumps({"goal": "done"}).encode(), Run_Id="run-7")
    items = moved.api("GET", "/blame/notes/k").json()["items"]
    by_pointer = {item["pointer"]: item for item in items}
    assert {p: i["version"] for p, i in by_pointer.items()} == {"": 1, "/goal": 3, "/budget/eur": 2}
    assert by_pointer["/goal"]["run_id"] == "run-7"
    assert by_pointer["/goal"]["actor"] == "alice's token"
    assert bob.api("GET", "/blame/notes/k").status_code == 200


def test_run_id__header__stands_in_history_audit_and_feed(moved: Person) -> None:
    moved.api("PUT", "/state/notes/k", {"value": 1}, Run_Id="run-9")
    assert moved.api("GET", "/history/notes/k").json()["items"][0]["run_id"] == "run-9"
    assert moved.api("GET", "/audit?run_id=run-9").json()["items"][0]["key"] == "k"


def test_blame__deleted_or_missing_entry__is_empty(alice: Person) -> None:
    make_namespace(alice.actor)
    assert alice.api("GET", "/blame/notes/never").json()["items"] == []
    assert alice.api("GET", "/blame/other/k").status_code == 404
