"""Access: the caller, the usage of the workspace, and who may do what."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Self

from state_admin import __version__
from state_admin.domain import access
from state_admin.domain.access import Role

from .base import Answer, Natural, Operation, Query, doc
from .types import Actor, ActorKind, Bytes, Key, Namespace, ThreadId, Time

if TYPE_CHECKING:
    from state_admin.services.quotas import Usage as Used

RoleName = Annotated[
    str,
    doc(
        "A viewer reads, an editor also writes, an admin does everything.",
        "editor",
        choices=tuple(Role),
    ),
]


class Me(Answer):
    """The caller, and what it may do."""

    workspace: Annotated[str, doc("Name of the workspace in addresses.", "default")]
    actor: Annotated[Actor, doc("Name of the token or user.")]
    actor_kind: ActorKind
    role: RoleName
    namespaces: Annotated[
        list[str], doc("Globs of the namespaces that it may access; empty: all.", ["team_*"])
    ]
    thread_prefixes: Annotated[
        list[str], doc("Prefixes of the ids of the threads that it may access; empty: all.", [])
    ]

    @classmethod
    def of(cls, actor: access.Actor, workspace: str) -> Self:
        return cls(
            workspace=workspace,
            actor=actor.name,
            actor_kind=actor.kind,
            role=actor.role.value,
            namespaces=list(actor.namespaces),
            thread_prefixes=list(actor.thread_prefixes),
        )


class Version(Answer):
    """The version of the server."""

    version: Annotated[str, doc("Version of the server, as in its CHANGELOG.", __version__)]
    api_version: Annotated[
        str, doc("Version of the API: the part of the path after `/api/`.", "v1")
    ]


class Usage(Answer):
    """How much the workspace holds, as last measured, and its quotas."""

    entries: Annotated[int, doc("Number of entries.", 1200, ge=0)]
    bytes: Annotated[Bytes, doc("Bytes of all values.", 524_288)]
    threads: Annotated[int, doc("Number of threads.", 80, ge=0)]
    messages: Annotated[int, doc("Number of messages.", 2400, ge=0)]
    measured_at: Annotated[Time | None, doc("When it was measured; null: never.")]
    limits: Annotated[
        dict[str, int | None],
        doc(
            "The quotas of `entries`, `bytes` and `threads`; null: unlimited.",
            {"entries": 10_000, "bytes": None, "threads": None},
        ),
    ]

    @classmethod
    def of(cls, found: Used) -> Self:
        return cls.from_attributes(found.usage, limits=found.limits)


class Explanation(Answer):
    """What a token or a member may do, and why."""

    who: Annotated[str, doc("Name of the token or member.", "planner-token")]
    role: Annotated[RoleName | None, doc("Its role; null: not a member.")]
    may_read: Annotated[bool, doc("Whether it may read.", True)]
    may_write: Annotated[bool, doc("Whether it may write.", True)]
    may_administer: Annotated[bool, doc("Whether it may administer.", False)]
    reasons: Annotated[
        list[str],
        doc("The reasons in plain text, in the order of the decision.", ["the token is active"]),
    ]


class ExplainQuery(Query):
    """Exactly one of `token_id` and `username` is given."""

    token_id: Annotated[Natural | None, doc("Id of the token to explain.", 7)] = None
    username: Annotated[str | None, doc("Name of the user to explain.", "alice")] = None
    namespace: Annotated[Namespace | None, doc("Access to this namespace.")] = None
    key: Annotated[Key | None, doc("Access to this key of the namespace.")] = None
    thread_id: Annotated[ThreadId | None, doc("Access to this thread.")] = None


_operation = partial(Operation, tag="access")
GET_ME = _operation(
    id="get_me",
    route="GET /me",
    summary="Read the caller",
    description="The workspace, role and limits of the token or user that calls.",
    answers={200: Me},
)
GET_VERSION = _operation(
    id="get_version",
    route="GET /version",
    summary="Read the version",
    description="The version of the server and of its API.",
    answers={200: Version},
)
GET_USAGE = _operation(
    id="get_usage",
    route="GET /usage",
    summary="Read the usage of the workspace",
    description="The counts are those of the last measurement, which a worker repeats regularly.",
    answers={200: Usage},
)
EXPLAIN_ACCESS = _operation(
    id="explain_access",
    route="GET /access/explain",
    summary="Explain access",
    description="What a token (`token_id`) or a member (`username`) may do, in general or with a"
    " namespace, a key or a thread, and why. Exactly one of the two is required.",
    role=Role.ADMIN,
    query=ExplainQuery,
    answers={200: Explanation},
    problems=("not-found", "invalid"),
)
