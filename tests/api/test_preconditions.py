"""If-Match and If-None-Match of resources with a revision: messages and state of threads, runs,
commits."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from tests.builders import (
    Person,
    commit,
    make_namespace,
    make_run,
    make_state_key,
    make_thread,
    put,
)

_HELLO = {"messages": [{"role": "user", "content": "hi"}]}

WRITES = [
    ("POST", "/threads/t1/messages", _HELLO),
    ("POST", "/threads/t1/restore", {"revision": 1}),
    ("POST", "/threads/t1/import", {"snapshot": {"revision": 1, "extensions": {"plan": 2}}}),
    ("PATCH", "/runs/r1", {"step_count": 3}),
    ("POST", "/runs/r1/cancel", None),
    ("POST", "/runs/r1/fail", {"message": "no"}),
    ("POST", "/runs/r1/commits", {"updates": [{"key": "plan", "update": 2}]}),
]


@pytest.fixture
def moved(alice: Person) -> Person:
    """t1 with the running r1, both at revision 2."""
    make_state_key(alice.actor, "plan")
    make_thread(alice.actor, "t1")
    make_run(alice.actor, "t1", "r1")
    commit(alice.actor, "r1", {"plan": 1})
    return alice


def all_of_it(person: Person) -> list[Any]:
    paths = ("/threads/t1", "/threads/t1/messages", "/threads/t1/state", "/runs/r1")
    return [person.api("GET", path).json() for path in paths]


@pytest.mark.parametrize(("method", "path", "body"), WRITES)
@pytest.mark.parametrize("stale", ["1", "999"])
def test_if_match__another_revision__is_412_and_nothing_is_stored(
    moved: Person, method: str, path: str, body: Any, stale: str
) -> None:
    before = all_of_it(moved)
    answer = moved.api(method, path, body, If_Match=f'"{stale}"')
    assert answer.status_code == answer.json()["status"] == 412
    assert answer.json()["detail"] == f"revision conflict: expected {stale}, actual 2"
    assert answer.json()["type"] == "/problems/revision-conflict"
    assert answer["ETag"] == '"2"'
    assert all_of_it(moved) == before


@pytest.mark.parametrize(("method", "path", "body"), WRITES)
def test_if_match__current_revision__is_stored(
    moved: Person, method: str, path: str, body: Any
) -> None:
    read = moved.api("GET", "/runs/r1" if path.startswith("/runs") else "/threads/t1/state")
    assert moved.api(method, path, body, If_Match=read["ETag"]).status_code in (200, 201, 204)


@pytest.mark.parametrize(("method", "path", "body"), WRITES)
def test_if_match__malformed_etag__is_a_bad_request(
    moved: Person, method: str, path: str, body: Any
) -> None:
    assert moved.api(method, path, body, If_Match="2").status_code == 400


def test_commit__if_match_and_base_revision__must_agree(moved: Person) -> None:
    body = {"updates": [{"key": "plan", "update": 2}], "base_revision": 2}
    clash = moved.api("POST", "/runs/r1/commits", body, If_Match='"1"')
    assert clash.status_code == 400
    assert clash.json()["detail"] == "If-Match (1) and base_revision (2) differ"
    assert moved.api("POST", "/runs/r1/commits", body, If_Match='"2"').status_code == 200


def test_commit__stale_base_in_the_body_alone__is_409(moved: Person) -> None:
    body = {"updates": [{"key": "plan", "update": 2}], "base_revision": 1}
    answer = moved.api("POST", "/runs/r1/commits", body)
    assert answer.status_code == answer.json()["status"] == 409


def test_commit__if_match_and_rebase_over_other_keys__is_stored(moved: Person) -> None:
    make_state_key(moved.actor, "other")
    body = {"updates": [{"key": "other", "update": 2}], "on_conflict": "rebase"}
    assert moved.api("POST", "/runs/r1/commits", body, If_Match='"1"').status_code == 200


def test_run__etag__is_its_last_revision(moved: Person) -> None:
    changed = moved.api("PATCH", "/runs/r1", {"step_count": 1})
    assert changed["ETag"] == moved.api("GET", "/runs/r1")["ETag"] == '"3"'
    moved.api("POST", "/threads/t1/restore", {"revision": 2})  # outside any run
    assert moved.api("GET", "/threads/t1/state")["ETag"] == '"4"'
    assert moved.api("GET", "/runs/r1")["ETag"] == '"3"'
    assert moved.api("PATCH", "/runs/r1", {"step_count": 2}, If_Match='"4"').status_code == 412


@pytest.mark.parametrize("body", [{"input_tokens": 5}, {"step_count": 3}, {"status": "running"}])
def test_run__two_changes_with_one_etag__second_is_412(moved: Person, body: Any) -> None:
    """Also for fields that are not copied into the state, such as counts of tokens."""
    tag = moved.api("GET", "/runs/r1")["ETag"]
    first = moved.api("PATCH", "/runs/r1", body, If_Match=tag)
    assert (first.status_code, first["ETag"]) == (200, '"3"')
    assert moved.api("PATCH", "/runs/r1", body, If_Match=tag).status_code == 412


def test_state__if_none_match__is_304_until_a_change(moved: Person) -> None:
    tag = moved.api("GET", "/threads/t1/state")["ETag"]
    same = moved.api("GET", "/threads/t1/state", If_None_Match=tag)
    assert (same.status_code, same.content, same["ETag"]) == (304, b"", tag)
    weak = moved.api("GET", "/threads/t1/state", If_None_Match=f"W/{tag}")
    assert weak.status_code == 304, "a proxy that compresses makes ETags weak"
    commit(moved.actor, "r1", {"plan": 2})
    assert moved.api("GET", "/threads/t1/state", If_None_Match=tag).status_code == 200
    old = moved.api("GET", "/threads/t1/state?revision=2", If_None_Match=tag)
    assert old.status_code == 304


def test_export__key_unregistered_since__changes_the_etag(moved: Person) -> None:
    """An export leaves out unregistered keys, and unregistering creates no revision."""
    tag = moved.api("GET", "/threads/t1/state?export=true")["ETag"]
    moved.api("DELETE", "/state-keys/plan")
    again = moved.api("GET", "/threads/t1/state?export=true", If_None_Match=tag)
    assert again.status_code == 200
    assert "plan" not in again.json()["extensions"]


def test_if_match__on_an_operation_without_support__is_refused_and_nothing_changes(
    moved: Person,
) -> None:
    before = all_of_it(moved)
    answer = moved.api("POST", "/runs/r1/resume", If_Match='"2"')
    assert (answer.status_code, answer.json()["detail"]) == (
        400,
        "POST does not support If-Match on this path",
    )
    assert all_of_it(moved) == before


def test_restore__with_on_conflict__is_refused_and_not_offered(alice: Person) -> None:
    """A merge would not write the value of the old version."""
    make_namespace(alice.actor)
    for value in ({"goal": "good"}, {"goal": "bad"}, {"goal": "bad", "z": 1}):
        put(alice.actor, "notes", "k", value)
    restore = partial(alice.api, "POST", "/restore/notes/k", {"version": 1}, If_Match='"1"')
    assert "On-Conflict" not in restore().text
    merged = restore(On_Conflict="merge")
    assert (merged.status_code, merged.json()["detail"]) == (
        400,
        "POST does not support On-Conflict on this path",
    )


def test_state_key__with_if_none_match__is_not_replaced(alice: Person) -> None:
    alice.api("PUT", "/state-keys/plan", {"description": "first"})
    again = alice.api("PUT", "/state-keys/plan", {"description": "second"}, If_None_Match="*")
    assert again.status_code == 400
    assert alice.api("GET", "/state-keys/plan").json()["description"] == "first"
