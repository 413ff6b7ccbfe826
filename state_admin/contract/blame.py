"""Blame: which version set each part of an entry's value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Self

from .base import Answer, Operation, Page, doc
from .entries import EntryOperation
from .types import Actor, ActorKind, Pointer, Reason, RequestId, RunId, Time, time_of

if TYPE_CHECKING:
    from state_admin.services.blame import Attribution as FoundAttribution


class Attribution(Answer):
    """A part of the value and the version that set it."""

    pointer: Annotated[
        Pointer, doc("The part, with all below it that has no attribution of its own.")
    ]
    version: Annotated[int, doc("The version that set it.", 3, ge=1)]
    operation: EntryOperation
    actor: Annotated[Actor, doc("Who made the version.")]
    actor_kind: ActorKind
    reason: Reason
    request_id: RequestId
    run_id: Annotated[RunId | None, doc("The run on whose behalf it was made. Null: none.")]
    at: Annotated[Time, doc("When it was made.")]

    @classmethod
    def of(cls, each: FoundAttribution) -> Self:
        return cls(**{**vars(each), "run_id": each.run_id or None, "at": time_of(each.at)})


BLAME_ENTRY = Operation(
    id="blame_entry",
    route="GET /blame/{namespace}/{key}",
    replica=True,
    tag="entries",
    summary="Attribute the parts of an entry",
    description="Who set each part of the current value, in which version, request and run. Items "
    "of arrays are followed when they get another index. What "
    "history compaction removed is attributed to the oldest version that is kept. All parts are "
    "on one page.",
    answers={200: Page[Attribution]},
    problems=("not-registered",),
)
