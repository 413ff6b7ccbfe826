"""Conflicts: what the response contains, which ones can be merged, and blame."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import pytest

from state_admin.models import EntryRevision
from tests.builders import Person, make_namespace, make_record, put

MERGE = "application/merge-patch+json"
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


def test_conflict__stale_write__contains_base_theirs_yours_and_the_conflicting_paths(
    moved: Person,
) -> None:
    mine = {**BASE, "budget": {"eur": 9, "usd": 2}}
    answer = write(moved, mine)
    assert answer.status_code == 412
    body = answer.json()
    assert body["detail"] == "version conflict: expected 1, actual 2"
    assert (body["base"], body["yours"]) == (BASE, mine)
    assert body["theirs"]["budget"]["eur"] == 5
    assert body["clashes"] == [{"pointer": "/budget/eur", "base": 1, "theirs": 5, "yours": 9}]
    assert body["mergeable"] is False


def test_conflict__other_paths__reports_that_a_merge_would_succeed(moved: Person) -> None:
    body = write(moved, {**BASE, "goal": "ship soon"}).json()
    assert (body["mergeable"], body["clashes"]) == (True, [])


def test_merge__other_paths__stores_both_changes(moved: Person) -> None:
    answer = write(moved, {**BASE, "goal": "ship soon"}, On_Conflict="merge")
    assert answer.status_code == 200
    assert answer.json()["version"] == 3
    assert answer.json()["value"] == {
        "goal": "ship soon",
        "tags": ["a"],
        "budget": {"eur": 5, "usd": 2},
    }


def test_merge__same_path__is_refused_and_nothing_is_stored(moved: Person) -> None:
    answer = write(moved, {**BASE, "budget": {"eur": 9, "usd": 2}}, On_Conflict="merge")
    assert answer.status_code == 412
    assert moved.api("GET", "/state/notes/k").json()["version"] == 2


def test_conflict__item_removed_and_changed__is_reported_for_that_item_only(alice: Person) -> None:
    a, b, c = ({"id": name, "n": 0} for name in "abc")
    make_namespace(alice.actor, default=[])
    put(alice.actor, "notes", "k", [a, b, c])
    put(alice.actor, "notes", "k", [{**a, "n": 1}, c])
    answer = write(alice, [a, {**b, "n": 2}, c, {"id": "d"}], On_Conflict="merge")
    assert answer.status_code == 412
    assert answer.json()["clashes"] == [{"pointer": "/1", "base": b, "yours": {**b, "n": 2}}]


def test_merge__unknown_base__is_refused(moved: Person) -> None:
    answer = moved.api(
        "PUT", "/state/notes/k", {"value": BASE}, If_Match='"7"', On_Conflict="merge"
    )
    assert answer.status_code == 412
    assert "base" not in answer.json()
    assert moved.api("GET", "/state/notes/k").json()["version"] == 2


@pytest.mark.parametrize("headers", [{}, {"On_Conflict": "merge"}])
def test_conflict__base_was_removed__contains_theirs_and_yours(
    moved: Person, headers: dict[str, str]
) -> None:
    EntryRevision.objects.filter(version=1).delete()
    mine = {**BASE, "goal": "ship soon"}
    body = write(moved, mine, **headers).json()
    assert body["status"] == 412
    assert (body["yours"], body["theirs"]["budget"]["eur"], body["mergeable"]) == (mine, 5, False)
    assert body.keys().isdisjoint({"base", "clashes"})
    patched = patch(moved, {"goal": "soon"}, **headers).json()
    assert (patched["status"], patched["theirs"]["budget"]["eur"]) == (412, 5)
    assert patched["mergeable"] is False
    assert patched.keys().isdisjoint({"base", "yours", "clashes"})
    deleted = moved.api("DELETE", "/state/notes/k", If_Match='"1"', **headers).json()
    assert (deleted["status"], deleted["mergeable"]) == (412, False)
    assert moved.api("GET", "/state/notes/k").json()["version"] == 2


def test_conflict__create_of_what_exists__is_compared_with_the_default(alice: Person) -> None:
    make_namespace(alice.actor, default={"goal": ""})
    put(alice.actor, "notes", "k", {"goal": "theirs"})
    body = {"value": {"goal": "", "n": 1}}
    refused = alice.api("PUT", "/state/notes/k", body, If_None_Match="*").json()
    assert (refused["status"], refused["base"], refused["mergeable"]) == (412, {"goal": ""}, True)
    assert refused["hint"].startswith("The entry already exists.")
    merged = alice.api("PUT", "/state/notes/k", body, If_Match='"0"', On_Conflict="merge")
    assert merged.json()["value"] == {"goal": "theirs", "n": 1}


def patch(person: Person, operations: Any, *, kind: str = "merge-patch", **headers: str) -> Any:
    return person.api(
        "PATCH",
        "/state/notes/k",
        operations,
        content_type=f"application/{kind}+json",
        If_Match='"1"',
        **headers,
    )


def test_conflict__stale_patch__contains_its_result_on_the_base(moved: Person) -> None:
    add = {"op": "add", "path": "/budget/eur", "value": 2}
    answer = patch(moved, add, kind="vnd.commonhold.update")
    assert (answer.status_code, answer["ETag"]) == (412, '"2"')
    body = answer.json()
    assert body["detail"] == "version conflict: expected 1, actual 2"
    assert (body["base"], body["yours"]["budget"]["eur"]) == (BASE, 3)
    assert body["clashes"] == [{"pointer": "/budget/eur", "base": 1, "theirs": 5, "yours": 3}]
    assert patch(moved, {"goal": "soon"}).json()["mergeable"] is True


def test_conflict__stale_patch_that_applies_to_no_version__contains_base_and_theirs(
    moved: Person,
) -> None:
    test = [{"op": "test", "path": "/goal", "value": "none"}]
    answer = patch(moved, test, kind="json-patch")
    assert answer.status_code == 412
    assert (answer.json()["base"], answer.json()["theirs"]["budget"]["eur"]) == (BASE, 5)
    assert "yours" not in answer.json()


def test_merge__patch_of_other_paths__is_applied_to_theirs(moved: Person) -> None:
    answer = patch(moved, {"goal": "ship soon", "tags": None}, On_Conflict="merge")
    assert answer.status_code == 200
    assert (answer.json()["version"], answer.json()["value"]) == (
        3,
        {"goal": "ship soon", "budget": {"eur": 5, "usd": 2}},
    )
    history = moved.api("GET", "/history/notes/k").json()["items"]
    assert history[0]["operation"] == "patch"


def test_merge__patch_of_the_same_path__is_refused_and_nothing_is_stored(moved: Person) -> None:
    answer = patch(moved, {"goal": "soon", "budget": {"eur": 9}}, On_Conflict="merge")
    assert answer.status_code == 412
    assert [clash["pointer"] for clash in answer.json()["clashes"]] == ["/budget/eur"]
    assert moved.api("GET", "/state/notes/k").json()["version"] == 2


def test_merge__patch_of_a_record__is_stored_and_shows_no_secret(alice: Person) -> None:
    make_record(alice.actor, "providers", "p", {"adapter": "openai", "api_key": "sk-not-shown"})
    address = "/config/providers/p"
    alice.api("PATCH", address, {"timeout_secs": 7}, content_type=MERGE)
    asked = {"content_type": MERGE, "If_Match": '"1"'}
    lost = alice.api("PATCH", address, {"timeout_secs": 9, "api_key": "sk-newer"}, **asked)
    assert (lost.status_code, lost.json()["clashes"][0]["pointer"]) == (412, "/timeout_secs")
    assert b"sk-n" not in lost.content
    base_url = {"base_url": "https://example.org/v1"}
    merged = alice.api("PATCH", address, base_url, On_Conflict="merge", **asked)
    assert merged.status_code == 200
    assert (merged.json()["value"]["timeout_secs"], merged.json()["version"]) == (7, 3)


def test_conflict__stale_delete__contains_base_and_theirs(moved: Person) -> None:
    answer = moved.api("DELETE", "/state/notes/k", If_Match='"1"')
    assert answer.status_code == 412
    body = answer.json()
    assert (body["base"], body["theirs"]["budget"]["eur"]) == (BASE, 5)
    assert "yours" not in body
    assert (body["mergeable"], body["clashes"]) == (
        False,
        [{"pointer": "", "base": BASE, "theirs": body["theirs"]}],
    )
    merged = moved.api("DELETE", "/state/notes/k", If_Match='"1"', On_Conflict="merge")
    assert merged.status_code == 412
    assert moved.api("GET", "/state/notes/k").json()["exists"]


def test_merge__delete_of_an_unchanged_value__succeeds(moved: Person) -> None:
    put(moved.actor, "notes", "k", BASE)
    stale = moved.api("DELETE", "/state/notes/k", If_Match='"1"')
    assert (stale.status_code, stale.json()["mergeable"]) == (412, True)
    for _ in range(2):  # the repeat finds it deleted, as requested
        merged = moved.api("DELETE", "/state/notes/k", If_Match='"1"', On_Conflict="merge")
        assert merged.status_code == 204
    assert moved.api("GET", "/history/notes/k").json()["items"][0]["version"] == 4


@pytest.mark.parametrize("merge", [{}, {"On_Conflict": "merge"}])
@pytest.mark.parametrize("value", [{"goal": "mine"}, BASE])
def test_conflict__deleted_since__contains_the_base_and_never_merges(
    moved: Person, merge: dict[str, str], value: Any
) -> None:
    moved.api("DELETE", "/state/notes/k")
    for answer in (write(moved, value, **merge), patch(moved, {"goal": "mine"}, **merge)):
        assert answer.status_code == 412
        body = answer.json()
        assert (body["actual"], body["base"], "theirs" in body) == (0, BASE, False)
        assert body["mergeable"] is False
        assert [clash["pointer"] for clash in body["clashes"]] == [""]
    assert not moved.api("GET", "/state/notes/k").json()["exists"]


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


def test_conflict__large_integers__are_returned_exactly(alice: Person) -> None:
    make_namespace(alice.actor)
    put(alice.actor, "notes", "k", 10**30)
    put(alice.actor, "notes", "k", 10**30 + 1)
    answer = write(alice, 1)
    assert answer.status_code == 412
    assert f'"base":{10**30}' in answer.content.decode()
    diff = alice.api("GET", "/diff/notes/k?from=1&to=2")
    assert diff.json()["rows"][0]["after"] == 10**30 + 1


def test_blame__two_writers__each_has_the_paths_it_set(moved: Person, bob: Person) -> None:
    moved.api("PATCH", "/state/notes/k", {"goal": "done"}, content_type=MERGE, Run_Id="run-7")
    items = moved.api("GET", "/blame/notes/k").json()["items"]
    by_pointer = {item["pointer"]: item for item in items}
    assert {p: i["version"] for p, i in by_pointer.items()} == {"": 1, "/goal": 3, "/budget/eur": 2}
    assert by_pointer["/goal"]["run_id"] == "run-7"
    assert by_pointer["/goal"]["actor"] == "alice's token"
    assert bob.api("GET", "/blame/notes/k").status_code == 200


@pytest.mark.parametrize(
    ("sent", "run_id"),
    [(b"run-9", "run-9"), ("rü-日".encode(), "rü-日"), (b"r\xfc", "rü")],  # the last is latin-1
)
def test_run_id__header__is_in_history_audit_and_feed(
    sent: bytes, run_id: str, moved: Person
) -> None:
    moved.api("PUT", "/state/notes/k", {"value": 1}, Run_Id=sent.decode("latin-1"))
    assert moved.api("GET", "/history/notes/k").json()["items"][0]["run_id"] == run_id
    found = moved.api("GET", f"/audit?{urlencode({'run_id': run_id})}").json()["items"]
    assert found[0]["key"] == "k"


def test_blame__deleted_or_missing_entry__is_empty(alice: Person) -> None:
    make_namespace(alice.actor)
    assert alice.api("GET", "/blame/notes/never").json()["items"] == []
    assert alice.api("GET", "/blame/other/k").status_code == 404


MALFORMED = [
    ({"On_Conflict": ""}, "On-Conflict must be merge"),
    ({"On_Conflict": "theirs", "If_Match": '"1"'}, "On-Conflict must be merge"),
    ({"On_Conflict": "merge"}, "On-Conflict requires If-Match"),
    ({"If_Changed": ""}, "If-Changed must be true or false"),
    ({"If_Changed": "yes"}, "If-Changed must be true or false"),
    ({"If_None_Match": ""}, "If-None-Match on a write must be *"),
    ({"If_None_Match": "", "If_Match": '"2"'}, "If-None-Match on a write must be *"),
    ({"If_None_Match": "*", "If_Match": '"2"'}, "send either If-Match or If-None-Match"),
]


@pytest.mark.parametrize(
    ("method", "headers", "said"),
    [("PUT", *each) for each in MALFORMED]
    + [("PATCH", *each) for each in MALFORMED]
    + [("DELETE", *each) for each in MALFORMED[:3]],
)
def test_precondition__invalid_value__is_refused_and_nothing_is_written(
    method: str, headers: dict[str, str], said: str, moved: Person
) -> None:
    body = {"PUT": {"value": 1}, "PATCH": {"a": 1}, "DELETE": None}[method]
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    answer = moved.api(method, "/state/notes/k", body, content_type=kind, **headers)
    assert answer.status_code == 400
    assert said in answer.json()["detail"]
    assert moved.api("GET", "/state/notes/k").json()["version"] == 2


def test_merge__items_added_and_edited_in_one_list__stores_both(alice: Person) -> None:
    make_namespace(alice.actor, default={})
    hotel, flight, car = ({"id": each, "done": False} for each in ("hotel", "flight", "car"))
    put(alice.actor, "notes", "k", {"tasks": [hotel], "log": ["a", "b"]})
    put(alice.actor, "notes", "k", {"tasks": [hotel, flight], "log": ["x", "a", "b"]})
    mine = {"tasks": [{**hotel, "done": True}, car], "log": ["a", "b", "c"]}
    answer = write(alice, mine, On_Conflict="merge")
    assert answer.status_code == 200
    assert answer.json()["value"] == {
        "tasks": [{**hotel, "done": True}, flight, car],
        "log": ["x", "a", "b", "c"],
    }
    lines = alice.api("GET", "/blame/notes/k").json()["items"]
    assert {line["pointer"]: line["version"] for line in lines} == {
        "": 1,
        "/tasks": 3,
        "/tasks/0": 1,
        "/tasks/0/done": 3,
        "/tasks/1": 2,
        "/log": 3,
        "/log/0": 2,
        "/log/1": 1,
        "/log/2": 1,
    }
    difference = alice.api("GET", "/diff/notes/k?from=1&to=2").json()
    assert [(row["pointer"], row["kind"]) for row in difference["rows"]] == [
        ("/tasks/1", "added"),
        ("/log/0", "added"),
    ]
    assert [each["op"] for each in difference["patch"]] == ["add", "add"]


def test_conflict__in_an_item_that_moved__points_into_the_merged_value(alice: Person) -> None:
    make_namespace(alice.actor, default={})
    put(alice.actor, "notes", "k", {"log": ["a", "b"]})
    put(alice.actor, "notes", "k", {"log": ["x", "a", "c"]})
    body = write(alice, {"log": ["a", "d"]}).json()
    assert body["clashes"] == [
        {
            "pointer": "/log/2",
            "pointers": {"base": "/log/1", "yours": "/log/1"},
            "base": "b",
            "theirs": "c",
            "yours": "d",
        }
    ]
