"""Types of fields that several nouns share, with their descriptions and examples."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self, overload

import msgspec
from msgspec import UNSET, UnsetType, field

from state_admin.domain import diffs, values
from state_admin.domain.moments import timestamp
from state_admin.domain.scopes import NAME
from state_admin.domain.values import JSON, Raw

from .base import Answer, doc

# In a request: a JSON value with its source text. In a response: stored text, sent as it is.
if TYPE_CHECKING:
    JsonIn = Raw
else:
    JsonIn = Any
JsonOut = msgspec.Raw
ItemStatus = Annotated[
    int, doc("HTTP status that the operation would return as a separate request.", 200)
]
OBJECT: Final = {"type": "object"}
# Characters of an id.
MAX_ID: Final = 128
# PostgreSQL's bigint.
MAX_INTEGER = 2**63 - 1
BigInt = Annotated[int, msgspec.Meta(ge=0, le=MAX_INTEGER)]

Namespace = Annotated[
    str, doc("Name of a namespace.", "team_context", schema={"pattern": f"^{NAME}$"})
]
Key = Annotated[
    str,
    doc(
        "Key within the namespace.",
        "parent_thread::thread-1",
        schema={"minLength": 1, "maxLength": 512},
    ),
]
ThreadId = Annotated[
    str, doc("Id of a thread.", "thread-1", schema={"minLength": 1, "maxLength": MAX_ID})
]
RunId = Annotated[str, doc("Id of a run.", "run-1", schema={"minLength": 1, "maxLength": MAX_ID})]
AgentId = Annotated[str, doc("Id of an agent.", "planner")]
Time = Annotated[
    str,
    doc(
        "RFC 3339 time in UTC, with microseconds.",
        "2026-01-31T12:00:00.000000Z",
        schema={"format": "date-time"},
    ),
]
Actor = Annotated[str, doc("Name of the user, token or job that did it.", "planner-token")]
RequestId = Annotated[
    str, doc("Id of the request that did it.", "0199f3c2a41c7d3e9b1f6f0f4a5e8c21")
]
Pointer = Annotated[str, doc("JSON Pointer (RFC 6901).", "/goal")]
Scope = Literal["global", "parent_thread", "agent_type", "thread", "system", "custom"]
Version = Annotated[int, doc("Version; grows with every change.", 3, ge=0)]
Cost = Annotated[
    str,
    doc(
        "US dollars, a decimal number in text.", "0.012500", schema={"pattern": r"^-?\d+(\.\d+)?$"}
    ),
]
Bytes = Annotated[int, doc("Size in bytes of UTF-8.", 512, ge=0)]
Tokens = Annotated[int, doc("Estimated number of tokens.", 1800, ge=0)]
ActorKind = Annotated[
    str,
    doc(
        "What the actor is: a person, an API token, or the server itself.",
        "token",
        choices=("user", "token", "system"),
    ),
]
Reason = Annotated[
    str, doc("Why it was done: `Change-Reason` of the request; empty if none was given.", "Retry")
]
# Seconds.
MAX_TTL = 10 * 365 * 86400
RevisionNumber = Annotated[
    int, doc("Revision of the thread's state; 0 before the first one.", 12, ge=0)
]
MetadataOut = Annotated[
    JsonOut, doc("Any JSON object that clients store with it.", {"channel": "web"}, schema=OBJECT)
]
MetadataIn = Annotated[
    JsonIn, doc("Any JSON object to store with it.", {"channel": "web"}, schema=OBJECT)
]


class Fault(Answer):
    """One place in a document, and what is wrong there."""

    pointer: Pointer
    message: Annotated[str, doc("What is wrong.", "is not of type integer")]


class Cleared(Answer):
    """How much a bulk deletion removed."""

    deleted: Annotated[int, doc("Number of deleted items; 0 in a dry run.", 3)]
    matched: Annotated[int, doc("Number of items that the conditions match.", 3)]


class PatchOperation(Answer):
    """An operation of a JSON Patch (RFC 6902)."""

    op: Annotated[str, doc("What it does.", "replace", choices=("add", "remove", "replace"))]
    path: Pointer
    value: Annotated[
        JsonOut | UnsetType, doc("The new value. Absent if `op` is `remove`.", "Ship it")
    ] = UNSET


class Difference(Answer):
    """One difference between two values."""

    pointer: Pointer
    kind: Annotated[
        str,
        doc(
            "Whether the place was added, removed or changed.",
            "changed",
            choices=("added", "removed", "changed"),
        ),
    ]
    before: Annotated[JsonOut, doc("The value before. Null if it was added.", "Plan it")]
    after: Annotated[JsonOut, doc("The value after. Null if it was removed.", "Ship it")]


class Diff(Answer):
    """What changed between two versions or revisions."""

    patch: Annotated[
        list[PatchOperation], doc("The JSON Patch that turns the old value into the new one.")
    ]
    rows: Annotated[
        list[Difference], doc("The same changes with both values, at most 500 of them.")
    ]
    from_: Annotated[int, doc("Version or revision of the old value.", 1)] = field(name="from")
    to: Annotated[int, doc("Version or revision of the new value.", 2)]

    @classmethod
    def of(cls, before: JSON, after: JSON, *, old: int, new: int) -> Self:
        rows = [
            Difference(
                pointer=each.pointer,
                kind=each.kind,
                before=dumped(each.before),
                after=dumped(each.after),
            )
            for each in diffs.rows(before, after)
        ]
        patch = [
            PatchOperation(
                op=each["op"],
                path=each["path"],
                value=dumped(each["value"]) if "value" in each else UNSET,
            )
            for each in diffs.json_patch(before, after)
        ]
        return cls(patch=patch, rows=rows, from_=old, to=new)


def dumped(value: JSON) -> msgspec.Raw:
    """A value as JSON text, to be sent as it is."""
    # Not by msgspec, which has no integers beyond 64 bits and would lose the spelling of 1.10.
    return msgspec.Raw(values.dump(value))


@overload
def time_of(moment: datetime) -> str: ...
@overload
def time_of(moment: None) -> None: ...
@overload
def time_of(moment: datetime | None) -> str | None: ...
def time_of(moment: datetime | None) -> str | None:
    """A moment as responses spell it."""
    return None if moment is None else timestamp(moment)


def json_of(text: str | None) -> msgspec.Raw:
    """Stored JSON text, to be sent as it is; None is null."""
    return msgspec.Raw(text or "null")


def null() -> Any:
    """The default of a JSON member: null."""
    return field(default_factory=lambda: Raw("null", None))
