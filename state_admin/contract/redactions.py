"""Redactions: a secret removed from every version of an entry."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, UnsetType

from state_admin.domain.access import Role

from .base import Answer, Body, Operation, doc
from .types import Key, Namespace, Pointer


class Redaction(Answer):
    """What a redaction removed."""

    namespace: Namespace
    key: Key
    version: Annotated[
        int,
        doc("The version that records the redaction; the current one if it changed nothing.", 6),
    ]
    rewritten: Annotated[int, doc("Number of versions from which something was removed.", 5, ge=0)]
    withdrawn_answers: Annotated[
        int, doc("Number of stored responses of idempotent requests that were deleted.", 0, ge=0)
    ]


class RedactionRequest(Body):
    """Which parts of the value to remove from all versions, and why."""

    reason: Annotated[
        str, doc("Why; kept in history and audit.", "API key leaked", min_length=1, max_length=1000)
    ]
    pointers: (
        Annotated[
            list[Annotated[Pointer, doc("A part of the value.", "/api_key", max_length=2048)]],
            doc(
                "The parts to remove. Absent: the whole value.",
                ["/api_key"],
                min_length=1,  # An empty list of a program must not remove the whole value.
                max_length=100,
            ),
        ]
        | UnsetType
    ) = UNSET
    versions: Annotated[
        Literal["all"] | UnsetType, doc("The versions: always all of them.", "all")
    ] = UNSET


REDACT_ENTRY = Operation(
    id="redact_entry",
    route="POST /redact/{namespace}/{key}",
    tag="entries",
    summary="Redact an entry",
    description="Removes parts of the value from every version, permanently. "
    '`{"$redacted": true}` takes their place, and a new version records it. The entry may be '
    "deleted, and its namespace unregistered. Every pointer must lead to something in at least "
    "one version.",
    role=Role.ADMIN,
    body=RedactionRequest,
    answers={200: Redaction},
    dry_run=Redaction,
    problems=("not-found",),
    etag=True,
)
