"""/plugins and DELETE /state-keys over HTTP: formats, exact messages, pointers, dry runs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import Person, commit, make_run, make_state_key, make_thread, put

KIT: dict[str, Any] = {
    "description": "Plans",
    "state_keys": [
        {"key": "kit.plan", "default": 1.10, "merge": "commutative", "reducer": "add"},
        {"key": "kit.facts", "retain_on_uninstall": True, "plugin": "kit"},
    ],
    "namespaces": [{"name": "kit.notes", "history": {"keep_last": 3}}],
}


@pytest.fixture
def kit(alice: Person) -> Person:
    answer = alice.api("PUT", "/plugins/kit", KIT, Change_Reason="needed")
    assert answer.status_code == 201, answer.content
    return alice


def test_put__plugin__returns_its_parts_as_their_own_endpoints_do(kit: Person) -> None:
    body = kit.api("GET", "/plugins/kit").json()
    assert (body["name"], body["description"]) == ("kit", "Plans")
    assert [part["key"] for part in body["state_keys"]] == ["kit.facts", "kit.plan"]
    for part in body["state_keys"]:
        assert kit.api("GET", f"/state-keys/{part['key']}").json() == part
    (space,) = body["namespaces"]
    assert kit.api("GET", "/namespaces/kit.notes").json() == space
    assert b'"default":1.1' in kit.api("GET", "/plugins/kit").content
    (row,) = kit.api("GET", "/plugins").json()["items"]
    assert (row["state_keys"], row["namespaces"]) == (["kit.facts", "kit.plan"], ["kit.notes"])
    assert kit.api("GET", "/audit?action=plugin.install").json()["items"][0]["reason"] == "needed"


def test_put__already_installed__is_409_and_a_repeat_with_its_key_is_replayed(
    alice: Person,
) -> None:
    first = alice.api("PUT", "/plugins/kit", KIT, Idempotency_Key="once")
    again = alice.api("PUT", "/plugins/kit", KIT, Idempotency_Key="once")
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.content == again.content
    refused = alice.api("PUT", "/plugins/kit", KIT)
    assert (refused.status_code, refused.json()["detail"]) == (409, "plugin already installed: kit")


@pytest.mark.parametrize(
    ("body", "status", "detail", "pointer"),
    [
        ({"state_keys": [{"key": "a"}, {"key": "kit.plan"}]}, 409,
         "key already registered: kit.plan", "/state_keys/1"),
        ({"namespaces": [{"name": "kit.notes"}]}, 409,
         "key already registered: kit.notes", "/namespaces/0"),
        ({"state_keys": [{"key": "a", "schema": {"type": "object"}, "default": 1}]}, 422,
         "the default does not satisfy the schema", "/state_keys/0/default"),
        ({"state_keys": [{"key": "a"}, {"key": "b", "merge": "both"}]}, 422,
         "the request is not valid", "/state_keys/1/merge"),
        ({"state_keys": [{"key": "a", "plugin": "kit"}]}, 422,
         "a part of a plugin names another plugin", "/state_keys/0/plugin"),
        ({"state_keys": [{"merge": "exclusive"}]}, 422,
         "the request is not valid", "/state_keys/0/key"),
        ({"namespaces": [{"name": "n", "shema": {}}]}, 400,
         "unknown field: shema", "/namespaces/0/shema"),
        ({"state_keys": {"key": "a"}}, 422, "the request is not valid", "/state_keys"),
        ({"state_keys": ["a"]}, 400, "/state_keys/0 must be a JSON object", "/state_keys/0"),
        ({"keys": []}, 400, "unknown field: keys", "/keys"),
    ],
)  # fmt: skip
def test_put__invalid__reports_the_item_by_pointer_and_registers_nothing(
    kit: Person, body: Any, status: int, detail: str, pointer: str
) -> None:
    answer = kit.api("PUT", "/plugins/other", body)
    told = answer.json()
    assert (answer.status_code, told["detail"]) == (status, detail)
    assert pointer in [told.get("pointer"), *(e["pointer"] for e in told.get("errors", ()))]
    assert kit.api("GET", "/plugins/other").status_code == 404
    assert kit.api("GET", "/state-keys/a").status_code == 404


def test_delete__dry_run_then_delete__has_the_previewed_effect(kit: Person) -> None:
    make_thread(kit.actor, "t1")
    make_run(kit.actor, "t1", "r1")
    commit(kit.actor, "r1", {"kit.plan": 1, "kit.facts": 2})
    put(kit.actor, "kit.notes", "k", 1)
    told = kit.api("DELETE", "/plugins/kit?dry_run=true").json()
    assert told == {
        "dry_run": True,
        "would_remove": {
            "state_keys": 2, "threads": 1, "values": 1, "retained": 1, "namespaces": 1,
            "entries": 1,
        },
    }  # fmt: skip
    assert kit.api("DELETE", "/plugins/kit").status_code == 409
    assert kit.api("DELETE", "/plugins/kit?entries=burn").status_code == 400
    assert kit.api("DELETE", "/plugins/kit?entries=delete").status_code == 204
    assert kit.api("DELETE", "/plugins/kit").status_code == 204
    extensions = kit.api("GET", "/threads/t1/state").json()["extensions"]
    assert extensions["kit.facts"] == 2
    assert "kit.plan" not in extensions
    newest = kit.api("GET", "/threads/t1/snapshots").json()["items"][0]
    assert (newest["kind"], newest["touched_keys"]) == ("uninstall", ["kit.plan"])
    assert "kit.plan" in kit.api("GET", "/threads/t1/state?revision=2").json()["extensions"]


def test_delete__state_key__keeps_values_unless_clear_is_requested(alice: Person) -> None:
    make_state_key(alice.actor, "own")
    make_thread(alice.actor, "t1")
    make_run(alice.actor, "t1", "r1")
    commit(alice.actor, "r1", {"own": 1})
    told = alice.api("DELETE", "/state-keys/own?dry_run=true").json()
    assert told == {"dry_run": True, "held": {"threads": 1, "values": 1}}
    assert alice.api("DELETE", "/state-keys/own").status_code == 204
    assert alice.api("GET", "/threads/t1/state").json()["extensions"]["own"] == 1
    assert alice.api("DELETE", "/state-keys/own?values=clear").status_code == 204
    assert alice.api("GET", "/threads/t1/state").json()["extensions"]["own"] == 1
    make_state_key(alice.actor, "own")
    assert alice.api("DELETE", "/state-keys/own?values=clear").status_code == 204
    assert "own" not in alice.api("GET", "/threads/t1/state").json()["extensions"]


@pytest.mark.parametrize("query", ["", "?dry_run=true"])
@pytest.mark.parametrize(
    ("path", "part"),
    [
        ("/state-keys/kit.plan", "state key kit.plan"),
        ("/namespaces/kit.notes", "namespace kit.notes"),
    ],
)
def test_delete__part_of_a_plugin__is_refused(
    kit: Person, path: str, part: str, query: str
) -> None:
    answer = kit.api("DELETE", path + query)
    assert answer.status_code == 409
    problem = answer.json()
    assert problem["detail"] == f"{part} belongs to the installed plugin kit"
    assert problem["hint"].startswith("Uninstall the plugin kit")
    assert problem["plugin"] == "kit"
    assert kit.api("GET", path).status_code == 200


@pytest.mark.parametrize("path", ["/state-keys/kit.plan", "/namespaces/kit.notes"])
def test_put__part_of_a_plugin__needs_the_name_of_the_plugin(kit: Person, path: str) -> None:
    refused = kit.api("PUT", path, {})
    assert refused.status_code == 409
    assert refused.json()["plugin"] == "kit"
    assert refused.json()["hint"].endswith("plugin kit. To change it, send this name as plugin.")
    assert kit.api("PUT", path, {"plugin": "kit"}).status_code == 200


def test_put__runtime_key__is_refused(alice: Person) -> None:
    answer = alice.api("PUT", "/state-keys/__runtime.tool_call_states", {"reducer": "replace"})
    assert answer.status_code == 409
    assert answer.json()["detail"] == "key already registered: __runtime.tool_call_states"
    assert alice.api("PUT", "/state-keys/__other.runtime", {}).status_code == 201
