"""Access: GET /me, GET /version, GET /usage, GET /access/explain."""

from __future__ import annotations

from django.http import HttpResponse

from state_admin import __version__
from state_admin.contract import access as contract
from state_admin.models import Workspace
from state_admin.rest.bodies import answer
from state_admin.rest.endpoint import Endpoint, handles
from state_admin.services.access import explain_access
from state_admin.services.quotas import read_usage


@handles(contract.GET_ME)
def get_me(call: Endpoint) -> HttpResponse:
    workspace = Workspace.objects.get(pk=call.actor.workspace_id)
    return answer(contract.Me.of(call.actor, workspace.slug))


@handles(contract.GET_VERSION)
def get_version(call: Endpoint) -> HttpResponse:
    return answer(contract.Version(version=__version__, api_version="v1"))


@handles(contract.GET_USAGE)
def get_usage(call: Endpoint) -> HttpResponse:
    return answer(contract.Usage.of(read_usage(call.actor)))


@handles(contract.EXPLAIN_ACCESS)
def explain(call: Endpoint) -> HttpResponse:
    query = call.query
    explanation = explain_access(
        actor=call.actor,
        token_id=query.token_id,
        username=query.username,
        namespace=query.namespace or "",
        key=query.key or "",
        thread_id=query.thread_id or "",
    )
    return answer(explanation)
