"""Workspaces: the tenants, and what each may hold. For operators' tokens."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Final, Literal, Self

from msgspec import UNSET, UnsetType

from state_admin.domain.access import Role

from .base import Answer, AscendingList, Body, Name, Operation, Page, Query, ShortText, doc
from .tokens import CreatedToken, NewToken
from .types import Time

if TYPE_CHECKING:
    from state_admin import models

_OPERATOR = " Needs an operator's token."
LARGEST_QUOTA: Final = 2**63 - 1
Quota = Annotated[int, doc("Maximum; null: no limit.", 100_000, ge=0, le=LARGEST_QUOTA)]


class Workspace(Answer):
    """A tenant."""

    slug: Annotated[str, doc("Name in URLs and commands.", "acme")]
    name: Annotated[str, doc("Name for people.", "Acme Inc.")]
    max_entries: Annotated[Quota | None, doc("Maximum number of entries; null: no limit.")]
    max_bytes: Annotated[Quota | None, doc("Maximum size in bytes; null: no limit.")]
    max_threads: Annotated[Quota | None, doc("Maximum number of threads; null: no limit.")]
    created_at: Annotated[Time, doc("When it was created.")]

    @classmethod
    def of(cls, row: models.Workspace) -> Self:
        return cls.from_attributes(row)


class NewWorkspace(Body):
    """A workspace to create."""

    slug: Annotated[
        str, doc("Letters, digits, `_`, `-` and `.`; cannot be changed.", "acme", max_length=64)
    ]
    name: Annotated[ShortText | UnsetType, doc("Name for people; default: the slug.")] = UNSET


class WorkspaceChange(Body):
    """Absent members stay as they are; null lifts a quota."""

    name: Annotated[Name | UnsetType, doc("Name for people.", "Acme Inc.")] = UNSET
    max_entries: Annotated[Quota | UnsetType | None, doc("Maximum number of entries.")] = UNSET
    max_bytes: Annotated[Quota | UnsetType | None, doc("Maximum size in bytes.")] = UNSET
    max_threads: Annotated[Quota | UnsetType | None, doc("Maximum number of threads.")] = UNSET


class WorkspaceContents(Answer):
    """What a workspace contains."""

    entries: Annotated[
        int, doc("Number of live entries; above 1,000: at the last measurement.", 1200, ge=0)
    ]
    threads: Annotated[
        int, doc("Number of threads; above 1,000: at the last measurement.", 40, ge=0)
    ]
    tokens: Annotated[int, doc("Number of live API tokens, up to 10,001.", 3, ge=0)]
    members: Annotated[int, doc("Number of members.", 5, ge=0)]
    webhooks: Annotated[int, doc("Number of webhooks.", 1, ge=0)]


class WorkspaceRemoval(Answer):
    """What the deletion of a workspace would delete."""

    would_delete: Annotated[WorkspaceContents, doc("What the workspace contains.")]


class WorkspaceDeletion(Query):
    contents: Annotated[
        Literal["delete"] | None,
        doc("`delete`: also if the workspace has entries or threads. Required if it has any."),
    ] = None


_operation = partial(Operation, tag="management", role=Role.ADMIN)
LIST_WORKSPACES = _operation(
    id="list_workspaces",
    route="GET /workspaces",
    summary="List workspaces",
    description="In alphabetical order." + _OPERATOR,
    query=AscendingList,
    answers={200: Page[Workspace]},
)
CREATE_WORKSPACE = _operation(
    id="create_workspace",
    route="POST /workspaces",
    summary="Create a workspace",
    description="An existing one is returned as it is, with 200." + _OPERATOR,
    body=NewWorkspace,
    answers={200: Workspace, 201: Workspace},
)
GET_WORKSPACE = _operation(
    id="get_workspace",
    route="GET /workspaces/{workspace}",
    summary="Read a workspace",
    description="The workspace and its quotas." + _OPERATOR,
    answers={200: Workspace},
)
CHANGE_WORKSPACE = _operation(
    id="change_workspace",
    route="PATCH /workspaces/{workspace}",
    summary="Change a workspace",
    description="Its name and its quotas." + _OPERATOR,
    body=WorkspaceChange,
    answers={200: Workspace},
)
DELETE_WORKSPACE = _operation(
    id="delete_workspace",
    route="DELETE /workspaces/{workspace}",
    summary="Delete a workspace",
    description="With everything in it. It cannot be undone. Its tokens are refused and its name is "
    "free at once; a job deletes the rows. Refused if the workspace has an operator token, or if its move to "
    "another cell has not ended." + _OPERATOR,
    query=WorkspaceDeletion,
    answers={204: None},
    dry_run=WorkspaceRemoval,
)
CREATE_WORKSPACE_TOKEN = _operation(
    id="create_workspace_token",
    route="POST /workspaces/{workspace}/tokens",
    summary="Create an API token of a workspace",
    description="For the first token of a new workspace. The response contains the secret, once."
    + _OPERATOR,
    body=NewToken,
    answers={201: CreatedToken},
)
