"""An operation returns the problems that it declares. That it returns no undeclared ones is checked
in every test (tests/conftest.py)."""

from __future__ import annotations

from state_admin.contract import OPERATIONS
from state_admin.contract.openapi import problems_of
from tests.builders import call
from tests.contract.test_permissions import World, world
from tests.contract.test_requests import ROWS

__all__ = ["world"]

PRECONDITIONS = {"version-conflict", "revision-conflict"}
# Without If-Match: the version or revision is in the body.
IN_BODY = {"run_batch", "resume_run", "update_agent_state", "patch_agent_thread"}
# An unknown kind or version, a reference in the query or the body, a namespace that is too large to
# measure, and workspaces for operators (tests/api/test_management.py).
NOT_FOUND_OF_OTHER_CAUSES = {
    *("list_config", "write_config", "delete_config"),
    *("read_entry", "pin_version", "diff_entry", "restore_entry"),
    *("explain_access", "run_batch", "measure_namespace"),
    *("change_workspace", "create_workspace_token"),
}


def declaring(slug: str) -> set[str]:
    return {name for name, operation in OPERATIONS.items() if slug in problems_of(operation)}


def test_if_match__of_another_version__is_the_declared_problem(world: World) -> None:
    wrong = {}
    for name, row in ROWS.values():
        operation = OPERATIONS[name]
        if "If-Match" not in operation.headers:
            continue
        url, body, content_type = world.request_of(row)
        secret = world.secrets["admin"]
        answer = call(secret, row.method, url, body, content_type=content_type, If_Match='"424242"')
        slug = answer.json()["type"].rpartition("/")[2] if answer.content else ""
        declared = PRECONDITIONS & problems_of(operation)
        if slug not in declared:
            wrong[operation.id] = (answer.status_code, slug)
    assert wrong == {}
    conditional = {name for name, each in OPERATIONS.items() if "If-Match" in each.headers}
    assert declaring("version-conflict") | declaring("revision-conflict") == conditional | IN_BODY


def test_not_found__where_declared__is_returned(world: World) -> None:
    returned = set()
    for name, row in ROWS.values():
        if row.hides is not None:
            answer = world.call("foreign", row)
            if answer.content and answer.json().get("type") == "/problems/not-found":
                returned.add(name)
    assert declaring("not-found") - returned == NOT_FOUND_OF_OTHER_CAUSES
