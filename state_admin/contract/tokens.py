"""API tokens: keys of programs, each with a role and a reach."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Final, Literal, Self

from msgspec import UNSET, UnsetType

from state_admin.domain.access import Role

from .base import (
    Answer,
    AwareTime,
    Body,
    DescendingList,
    DryRun,
    Name,
    Operation,
    Page,
    doc,
)
from .types import Time

if TYPE_CHECKING:
    from state_admin import models

RoleName = Literal["viewer", "editor", "admin"]
Globs = Annotated[
    list[str], doc("Globs of the namespaces that the token is limited to; empty: all.", ["team_*"])
]
Prefixes = Annotated[
    list[str],
    doc("Prefixes of the thread ids that the token is limited to; empty: all.", ["support-"]),
]
NAME_LENGTH: Final = 128
MOST_PER_MINUTE: Final = 2**31 - 1
LONGEST_LIFE: Final = 10 * 365 * 86400  # seconds
Rate = Annotated[int, doc("Requests per minute; null: no limit.", 600, ge=1, le=MOST_PER_MINUTE)]


class Token(Answer):
    """An API token, without its secret."""

    id: Annotated[str, doc("Id of the token.", "17")]
    name: Annotated[str, doc("The program that uses the token.", "planner")]
    prefix: Annotated[str, doc("Public first part of the token.", "ch_12124b793e09_")]
    role: Annotated[
        str, doc("What the token may do.", "editor", choices=("viewer", "editor", "admin"))
    ]
    namespaces: Globs
    thread_prefixes: Prefixes
    operator: Annotated[bool, doc("Whether the token may manage all workspaces.", False)]
    rate_per_minute: Rate | None
    created_by: Annotated[str, doc("Who created it.", "alice")]
    created_at: Annotated[Time, doc("When it was created.")]
    expires_at: Annotated[Time | None, doc("When it expires; null: never.")]
    rotated_at: Annotated[Time | None, doc("When a successor was created; null: not rotated.")]
    revoked_at: Annotated[Time | None, doc("When it was revoked; null: not revoked.")]
    last_used_at: Annotated[Time | None, doc("When it was last used, to the minute; null: never.")]

    @classmethod
    def of(cls, row: models.ApiToken) -> Self:
        return cls.from_attributes(row, id=str(row.pk), prefix=row.beginning)


class CreatedToken(Answer):
    """A new token with its secret, which is never shown again."""

    token: Token
    secret: Annotated[
        str | None,
        doc(
            "Send as `Authorization: Bearer …`. Null in the response to a repeated request.",
            "ch_12124b793e09_206007e22b64b18b8c9f4ff82ba440f6",
        ),
    ]


class NewToken(Body):
    """The name, role and limits of a new API token."""

    name: Annotated[
        str,
        doc(
            "The program that will use the token.", "planner", min_length=1, max_length=NAME_LENGTH
        ),
    ]
    role: Annotated[RoleName, doc("What the token may do; at most your own role.", "editor")]
    namespaces: Annotated[Globs, doc("At most your own reach.")] = []
    thread_prefixes: Annotated[Prefixes, doc("At most your own reach.")] = []
    expires_in_seconds: (
        Annotated[
            int,
            doc(
                "Lifetime; absent or null: no end. If the caller is a token that expires, the new one "
                "must not expire later.",
                86400,
                ge=1,
                le=LONGEST_LIFE,
            ),
        ]
        | None
    ) = None
    rate_per_minute: Rate | None = None


class TokenChanges(Body):
    """The fields of a token to change; all others stay."""

    name: Annotated[Name | UnsetType, doc("The program that uses the token.", "planner")] = UNSET
    role: Annotated[
        RoleName | UnsetType, doc("What the token may do; at most your own role.", "viewer")
    ] = UNSET
    namespaces: Annotated[Globs | UnsetType, doc("Replaces all globs; within your own limits.")] = (
        UNSET
    )
    thread_prefixes: Annotated[
        Prefixes | UnsetType, doc("Replaces all prefixes; within your own limits.")
    ] = UNSET
    rate_per_minute: Rate | UnsetType | None = UNSET
    expires_at: Annotated[
        AwareTime | UnsetType | None,
        doc(
            "When it expires, at most ten years from now; null: never. If the caller is a token that "
            "expires, the changed one must not expire later.",
            "2031-01-31T12:00:00Z",
        ),
    ] = UNSET


class Rotation(Body):
    """How long the old token remains valid after the rotation."""

    overlap_seconds: Annotated[
        int, doc("How long the old token remains valid.", 3600, ge=0, le=30 * 86400)
    ] = 0


_operation = partial(Operation, tag="management", role=Role.ADMIN)
LIST_TOKENS = _operation(
    id="list_tokens",
    route="GET /tokens",
    summary="List API tokens",
    description="Tokens of the workspace, newest first, including revoked and expired ones.",
    query=DescendingList,
    answers={200: Page[Token]},
)
CREATE_TOKEN = _operation(
    id="create_token",
    route="POST /tokens",
    summary="Create an API token",
    description="The response contains the secret, once. A token cannot reach further than the "
    "caller that creates it, nor be valid for longer than a token that creates it.",
    body=NewToken,
    answers={201: CreatedToken},
)
GET_TOKEN = _operation(
    id="get_token",
    route="GET /tokens/{token_id}",
    summary="Read an API token",
    answers={200: Token},
)
CHANGE_TOKEN = _operation(
    id="change_token",
    route="PATCH /tokens/{token_id}",
    summary="Change an API token",
    description="The secret stays valid. The next request with the token has the changed permissions, and "
    "streams that are open with the previous ones are closed. After the change, the token must not have more "
    "permissions than the caller. If the change adds permissions or sets `expires_at`, it must not expire later "
    "than the caller's token. Refused for a token that was rotated or revoked or has expired. Only an operator's token can change an operator's token.",
    body=TokenChanges,
    answers={200: Token},
    dry_run=Token,
    problems=("conflict",),
)
ROTATE_TOKEN = _operation(
    id="rotate_token",
    route="POST /tokens/{token_id}/rotate",
    summary="Rotate an API token",
    description="Creates a successor with the same name, role and reach. The response contains its "
    "secret, once. The old token remains valid for `overlap_seconds`. The successor has the lifetime of "
    "the old token; a token that expires sooner can only rotate itself.",
    body=Rotation,
    body_required=False,
    answers={201: CreatedToken},
    problems=("conflict",),
)
REVOKE_TOKEN = _operation(
    id="revoke_token",
    route="DELETE /tokens/{token_id}",
    summary="Revoke an API token",
    description="The token is refused at once, for good. Revoking it again changes nothing.",
    dry_run=DryRun,
    answers={204: None},
)
