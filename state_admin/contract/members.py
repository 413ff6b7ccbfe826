"""Members: people of a workspace. A new person is invited with a one-time login link."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Self

from state_admin.domain.access import Role

from .base import Answer, AscendingList, Body, Operation, Page, Query, doc
from .tokens import RoleName
from .types import Time, time_of

if TYPE_CHECKING:
    from state_admin import models

LoginUrl = Annotated[
    str | None,
    doc(
        "A link that signs the person in, once. Null for somebody who has an account, and in the "
        "response to a repeated request.",
        "https://commonhold.example/login/once/4f1c…",
    ),
]


class Member(Answer):
    """A person of the workspace."""

    id: Annotated[str, doc("Id of the membership.", "3")]
    username: Annotated[str, doc("Name of the person.", "alice")]
    role: Annotated[
        str, doc("What the person may do.", "editor", choices=("viewer", "editor", "admin"))
    ]
    joined_at: Annotated[Time, doc("When the person became a member.")]
    last_login_at: Annotated[Time | None, doc("When the person last signed in; null: never.")]

    @classmethod
    def of(cls, row: models.Membership) -> Self:
        return cls(
            id=str(row.pk),
            username=row.user.get_username(),
            role=row.role,
            joined_at=time_of(row.created_at),
            last_login_at=time_of(row.user.last_login),
        )


class Invitation(Answer):
    """A member, and the link with which a new person signs in."""

    member: Member
    login_url: LoginUrl


class EndedSessions(Answer):
    """How many sessions of the member were ended."""

    ended: Annotated[int, doc("Number of sessions that were ended.", 2)]


class RemovalQuery(Query):
    revoke_tokens: Annotated[
        bool,
        doc(
            "`true`: also revoke the API tokens that the person created in this workspace, for good. "
            "A token may revoke itself in this way: this request is then its last one."
        ),
    ] = False


class MemberRemoval(Answer):
    """What removing a member would revoke."""

    revoked_tokens: Annotated[int, doc("Number of API tokens that would be revoked.", 2)]


class NewMember(Body):
    """A person to add to the workspace."""

    username: Annotated[
        str, doc("Name of the person; an account is created for a new name.", "alice", min_length=1)
    ]
    role: Annotated[RoleName, doc("What the person may do.", "editor")]


class MemberChange(Body):
    """The new role of a member."""

    role: Annotated[RoleName, doc("The new role.", "admin")]


_operation = partial(Operation, tag="management", role=Role.ADMIN)
LIST_MEMBERS = _operation(
    id="list_members",
    route="GET /members",
    summary="List members",
    description="In the order in which they joined.",
    query=AscendingList,
    answers={200: Page[Member]},
)
ADD_MEMBER = _operation(
    id="add_member",
    route="POST /members",
    summary="Add a member",
    description="A new name gets an account and an invitation: `login_url` signs the person in, once. "
    "For an existing account it is null, and unused login links of the account stop working.",
    body=NewMember,
    answers={201: Invitation},
)
GET_MEMBER = _operation(
    id="get_member",
    route="GET /members/{member_id}",
    summary="Read a member",
    answers={200: Member},
)
CHANGE_MEMBER = _operation(
    id="change_member",
    route="PATCH /members/{member_id}",
    summary="Change the role of a member",
    description="The last admin keeps the role.",
    body=MemberChange,
    answers={200: Member},
)
REMOVE_MEMBER = _operation(
    id="remove_member",
    route="DELETE /members/{member_id}",
    summary="Remove a member",
    description="Takes effect at once. The account remains, and so do the tokens that the person "
    "created, unless you send `revoke_tokens=true`. The last admin cannot be removed.",
    query=RemovalQuery,
    dry_run=MemberRemoval,
    answers={204: None},
)
INVITE_MEMBER = _operation(
    id="invite_member",
    route="POST /members/{member_id}/invitation",
    summary="Renew the invitation of a member",
    description="A new one-time login link. Refused for a person who belongs to other workspaces too, and for a superuser.",
    answers={201: Invitation},
)
END_SESSIONS = _operation(
    id="end_member_sessions",
    route="DELETE /members/{member_id}/sessions",
    summary="Sign a member out everywhere",
    description="Ends all sessions and unused login links.",
    dry_run=EndedSessions,
    answers={200: EndedSessions},
    problems=("not-found",),
)
