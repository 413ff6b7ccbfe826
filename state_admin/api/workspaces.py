"""Workspaces, for operators: /workspaces."""

from __future__ import annotations

from django.http import HttpResponse

from state_admin.contract import workspaces as contract
from state_admin.models import Workspace
from state_admin.rest.bodies import answer, no_content
from state_admin.rest.endpoint import Endpoint, handles
from state_admin.rest.pagination import answer_rows
from state_admin.services import workspace_deletions, workspaces

from . import tokens


@handles(contract.LIST_WORKSPACES)
def list_workspaces(call: Endpoint) -> HttpResponse:
    rows = Workspace.objects.visible_to(call.actor)
    return answer_rows(call, rows, contract.Workspace.of, by="slug")


@handles(contract.CREATE_WORKSPACE)
def create_workspace(call: Endpoint) -> HttpResponse:
    body = call.body(contract.NewWorkspace)
    workspace, created = workspaces.ensure_workspace(body.slug, **call.author, name=body.name or "")
    return answer(contract.Workspace.of(workspace), 201 if created else 200)


@handles(contract.GET_WORKSPACE)
def get_workspace(call: Endpoint, workspace: str) -> HttpResponse:
    return answer(contract.Workspace.of(workspaces.find_workspace(call.actor, workspace)))


@handles(contract.CHANGE_WORKSPACE)
def change_workspace(call: Endpoint, workspace: str) -> HttpResponse:
    changed = workspaces.change_workspace(
        **call.author, slug=workspace, changes=call.body(contract.WorkspaceChange).given()
    )
    return answer(contract.Workspace.of(changed))


@handles(contract.DELETE_WORKSPACE)
def delete_workspace(call: Endpoint, workspace: str) -> HttpResponse:
    found = workspace_deletions.delete_workspace(
        **call.author, slug=workspace, contents=call.query.contents or ""
    )
    if not call.dry_run:
        return no_content()
    return answer(contract.WorkspaceRemoval(would_delete=found))


@handles(contract.CREATE_WORKSPACE_TOKEN)
def create_workspace_token(call: Endpoint, workspace: str) -> HttpResponse:
    return tokens.create_in(call, workspaces.acting_in(call.actor, workspace))
