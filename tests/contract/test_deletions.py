"""A deletion is idempotent: an absent or inaccessible resource counts as deleted, and no row
changes. Its container must exist (docs/guides/requests.md)."""

from __future__ import annotations

from typing import Any

import pytest

from state_admin.contract import OPERATIONS
from state_admin.contract.openapi import problems_of
from tests.builders import Person, call
from tests.contract.test_permissions import TABLE, Row, World, world
from tests.contract.test_requests import operation_of
from tests.services.faults import fingerprint

__all__ = ["world"]

DELETIONS = {operation_of(row): row for row in TABLE if row.method == "DELETE"}

# By operation: the path of an absent resource, the status, and the response to a dry run.
COUNTS = {"deleted": 0, "matched": 0}
ABSENT: dict[str, tuple[str, int, Any]] = {
    "clear_namespace": ("/state/notes?prefix=none", 200, COUNTS),
    "clear_state": ("/state?prefix=none", 200, COUNTS),
    "clear_key": ("/keys/none", 200, COUNTS),
    "delete_entry": ("/state/notes/none", 204, COUNTS),
    "delete_config": ("/config/providers/none", 204, {"dependents": [], "hidden": 0}),
    "delete_thread": ("/threads/none", 204, {"would_delete": {
        "threads": 0, "messages": 0, "runs": 0, "state_values": 0, "entries": 0}}),
    "unregister_namespace": ("/namespaces/none", 204, {"held": {"entries": 0}}),
    "unregister_state_key": ("/state-keys/none", 204, {"held": {"threads": 0, "values": 0}}),
    "uninstall_plugin": ("/plugins/none", 204, {"would_remove": {
        "state_keys": 0, "threads": 0, "values": 0, "retained": 0, "namespaces": 0, "entries": 0}}),
    "delete_workspace_policy": ("/compaction-policies/workspace", 204, {}),
    "delete_agent_policy": ("/compaction-policies/agents/none", 204, {}),
    "delete_thread_policy": ("/compaction-policies/threads/t1", 204, {}),
    "delete_webhook": ("/webhooks/none", 204, {}),
    "revoke_token": ("/tokens/999999999", 204, {}),
    "remove_member": ("/members/999999999", 204, {"revoked_tokens": 0}),
    "end_member_sessions": ("/members/MEMBER/sessions", 200, {"ended": 0}),
    "delete_workspace": ("/workspaces/none", 204, {"would_delete": {
        "entries": 0, "threads": 0, "tokens": 0, "members": 0, "webhooks": 0}}),
    "delete_store_item": ("/agent-protocol/store/items", 204, None),
    "delete_agent_thread": ("/agent-protocol/threads/none", 204, None),
}  # fmt: skip

# The container is absent.
NOWHERE = {
    "delete_config": ("/config/none/x", "not-found"),
    "delete_entry": ("/state/none/k", "not-registered"),
    "clear_namespace": ("/state/none", "not-registered"),
    "delete_thread_policy": ("/compaction-policies/threads/none", "not-found"),
    "end_member_sessions": ("/members/999999999/sessions", "not-found"),
    "release_lease": ("/runs/none/lease", "not-found"),
}


def delete(world: World, row: Row, url: str, **headers: str) -> Any:
    for word, name in world.names.items():
        url = url.replace(word, name)
    secret = world.secrets["operator" if "/workspaces" in url else "admin"]
    body = {"namespace": ["x"], "key": "none"} if row.body else None
    return call(secret, "DELETE", url, body, **headers)


def test_rows__every_deletion__is_listed() -> None:
    deletions = {name for name, each in OPERATIONS.items() if each.method == "DELETE"}
    # Releasing a lease creates a new fencing token and returns the run, which must therefore exist.
    assert deletions == set(DELETIONS) == {*ABSENT, "release_lease"}


def test_delete__absent_resource__succeeds_and_changes_no_row(world: World) -> None:
    delete(world, DELETIONS["end_member_sessions"], "/members/MEMBER/sessions")
    before, wrong = fingerprint(), {}
    for name, (url, status, report) in ABSENT.items():
        answer = delete(world, DELETIONS[name], url)
        if (answer.status_code, fingerprint()) != (status, before):
            wrong[name] = (answer.status_code, answer.content)
        if OPERATIONS[name].dry_run is not None:
            sign = "&" if "?" in url else "?"
            dry = delete(world, DELETIONS[name], f"{url}{sign}dry_run=true")
            if (dry.status_code, dry.json()) != (200, {"dry_run": True, **report}):
                wrong[name, "dry run"] = (dry.status_code, dry.content)
    assert (wrong, fingerprint()) == ({}, before)


def test_delete__absent_resource_with_if_match__is_412(world: World) -> None:
    wrong = {}
    for name, (url, _, _) in ABSENT.items():
        if "If-Match" in OPERATIONS[name].headers:
            answer = delete(world, DELETIONS[name], url, If_Match='"7"')
            if (answer.status_code, answer.json().get("expected")) != (412, 7):
                wrong[name] = (answer.status_code, answer.content)
    assert wrong == {}


def test_delete__absent_thread_with_expected_revision__is_409(world: World) -> None:
    answer = delete(world, DELETIONS["delete_thread"], "/threads/none?expected_revision=3")
    assert (answer.status_code, answer.json()["actual"]) == (409, 0)


def test_delete__absent_container__is_404(world: World) -> None:
    wrong = {}
    for name, (url, slug) in NOWHERE.items():
        answer = delete(world, DELETIONS[name], url)
        if (answer.status_code, answer.json()["type"]) != (404, f"/problems/{slug}"):
            wrong[name] = (answer.status_code, answer.content)
    assert wrong == {}
    declared = {"not-found", "not-registered"}
    assert set(NOWHERE) == {name for name in DELETIONS if declared & problems_of(OPERATIONS[name])}


@pytest.mark.parametrize("path", ["/threads/t1", "/namespaces/notes", "/webhooks/HOOK"])
def test_delete__resource_of_another_workspace__keeps_it(
    path: str, world: World, mallory: Person
) -> None:
    before = fingerprint()
    for word, name in world.names.items():
        path = path.replace(word, name)
    assert mallory.api("DELETE", path).status_code == 204
    assert fingerprint() == before
