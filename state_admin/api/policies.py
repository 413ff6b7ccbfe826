"""Compaction policies: /compaction-policies, …/workspace, …/agents/{id}, …/threads/{id}."""

from __future__ import annotations

from functools import partial
from typing import cast

from django.http import HttpResponse

from state_admin.contract import policies as contract
from state_admin.contract.base import Page
from state_admin.domain import values
from state_admin.domain.values import Raw
from state_admin.rest import etags
from state_admin.rest.bodies import answer, no_content
from state_admin.rest.endpoint import Endpoint, handles
from state_admin.services import policies
from state_admin.services.policies import Scope


@handles(contract.LIST_POLICIES)
def list_policies(call: Endpoint) -> HttpResponse:
    views = policies.list_policies(call.actor)
    items = [contract.CompactionPolicy.of(view) for view in views]
    return answer(Page(items=items, next_cursor=None))


def _get(scope: Scope, call: Endpoint, **ids: str) -> HttpResponse:
    view = policies.read_policy(actor=call.actor, scope=scope, name=_name(ids))
    return answer(contract.CompactionPolicy.of(view), etag=view.version)


def _put(scope: Scope, call: Endpoint, **ids: str) -> HttpResponse:
    call.body(contract.PolicyFields)
    body = cast(Raw, call.request.data)  # stored as it was sent
    values.check(body)
    view = policies.put_policy(
        **call.author,
        scope=scope,
        name=_name(ids),
        body=body,
        expected_version=etags.expected_version(call.request),
    )
    return answer(contract.CompactionPolicy.of(view), etag=view.version)


def _delete(scope: Scope, call: Endpoint, **ids: str) -> HttpResponse:
    policies.delete_policy(
        **call.author,
        scope=scope,
        name=_name(ids),
        expected_version=etags.expected_version(call.request),
    )
    return no_content()


def _name(ids: dict[str, str]) -> str:
    """The id of the agent or thread; "" for the workspace."""
    return next(iter(ids.values()), "")


handles(contract.GET_WORKSPACE_POLICY)(partial(_get, "workspace"))
handles(contract.PUT_WORKSPACE_POLICY)(partial(_put, "workspace"))
handles(contract.DELETE_WORKSPACE_POLICY)(partial(_delete, "workspace"))
handles(contract.GET_AGENT_POLICY)(partial(_get, "agent"))
handles(contract.PUT_AGENT_POLICY)(partial(_put, "agent"))
handles(contract.DELETE_AGENT_POLICY)(partial(_delete, "agent"))
handles(contract.GET_THREAD_POLICY)(partial(_get, "thread"))
handles(contract.PUT_THREAD_POLICY)(partial(_put, "thread"))
handles(contract.DELETE_THREAD_POLICY)(partial(_delete, "thread"))
