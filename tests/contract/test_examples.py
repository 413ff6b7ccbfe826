"""The request examples of the OpenAPI document, sent to the application."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import transaction

from state_admin.domain.access import Role
from state_admin.services import dispatches, members, tokens, webhooks
from state_admin.services.actors import system_actor
from tests import builders
from tests.builders import Person, call, raw
from tests.contract.test_openapi import operations

REQUESTS = [
    pytest.param(name, media_type, content["example"], id=f"{name}-{media_type}")
    for name, (_, _, operation) in operations().items()
    for media_type, content in operation.get("requestBody", {}).get("content", {}).items()
]
# Examples that are valid but conflict with what the other examples refer to.
CONFLICTS = {
    "ack_dispatch",
    "add_member",
    "create_agent_thread",
    "create_thread",
    "extend_dispatch",
    "nack_dispatch",
    "start_run",
    "update_agent_state",
}


@pytest.fixture(scope="module")
def names(one_alice: Person) -> dict[str, str]:
    """Create what the examples refer to. Returns the values of path parameters."""
    a = one_alice.actor
    builders.make_namespace(a, "team_context")
    builders.make_namespace(a, "agent_store")
    for goal in ("Plan it", "Ship it"):
        value = {"goal": goal, "constraints": [], "api_key": "leaked"}
        builders.put(a, "team_context", "parent_thread::thread-1", value)
    builders.make_record(a, "providers", "openai", {"adapter": "openai", "timeout_secs": 30})
    builders.make_state_key(a, "plan", default=[], reducer="append")
    for thread_id in ("thread-0", "thread-1"):
        builders.make_thread(a, thread_id)
        builders.make_run(a, thread_id, thread_id.replace("thread", "run"))
    builders.append(a, "thread-1", *builders.conversation(2, rounds=1)[:8])
    ticket = {"ticket_id": "ticket-1", "tool_call_id": "call-0", "tool_name": "refund"}
    waiting = {"reason": "tool_permission", "tickets": [ticket]}
    for change in ({"status": "waiting", "waiting": waiting}, *[{}] * 10):
        builders.commit(a, "run-1", {"plan": ["x"]}, run=builders.runs.RunChange(**change))
    hook, _ = webhooks.create_webhook(actor=a, name="billing", url="https://example.com/")
    token, _ = tokens.create_token(actor=a, name="spare", role=Role.VIEWER)
    member = members.add_member(actor=a, username="guest-of-acme", role=Role.VIEWER)
    dispatch = dispatches.enqueue_dispatch(actor=a, thread_id="thread-1", payload=raw(1))
    shell = system_actor(one_alice.workspace.pk, "operator")
    return {
        "namespace": "team_context",
        "key": "parent_thread::thread-1",
        "name": "new",
        "agent_id": "planner",
        "thread_id": "thread-1",
        "revision": "12",
        "run_id": "run-1",
        "ticket_id": "ticket-1",
        "dispatch_id": dispatch.public_id,
        "member_id": str(member.membership.pk),
        "token_id": str(token.pk),
        "webhook_id": hook.public_id,
        "kind": "providers",
        "record_id": "openai",
        "workspace": "acme",
        "operator": tokens.create_token(actor=shell, name="x", role=Role.ADMIN, operator=True)[1],
    }


@pytest.mark.parametrize(("name", "media_type", "example"), REQUESTS)
def test_request_example__sent__is_accepted(
    name: str, media_type: str, example: Any, one_alice: Person, names: dict[str, str], db: None
) -> None:
    method, path, operation = operations()[name]
    for parameter in operation["parameters"]:
        if parameter["in"] == "path":
            path = path.replace(f"{{{parameter['name']}}}", names[parameter["name"]])
    secret = names["operator"] if "/workspaces" in path else one_alice.token
    with transaction.atomic():
        answer = call(secret, method, path, example, content_type=media_type)
        transaction.set_rollback(True)
    expected = (409,) if name in CONFLICTS else range(200, 300)
    assert answer.status_code in expected, answer.content
