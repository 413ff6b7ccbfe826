"""Reverts: jobs that undo the writes of one request."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Self

from .base import Answer, AscendingList, Body, DescendingList, Operation, Page, doc
from .types import Actor, Key, Namespace, Reason, Time

if TYPE_CHECKING:
    from state_admin import models

RevertId = Annotated[
    str,
    doc(
        "Id of a revert, and the request id of its writes: a revert of it undoes them.",
        "0199f3c2-a41c-7d3e-9b1f-6f0f4a5e8c21",
    ),
]
TargetId = Annotated[
    str,
    doc(
        "Id of the request whose writes are reverted: its `X-Request-ID`, or the id of a revert.",
        "0199f3c2a41c7d3e9b1f6f0f4a5e8c21",
        min_length=1,
        max_length=64,
    ),
]
RevertStatus = Annotated[
    str,
    doc(
        "`failed`: `detail` has the reason. Entries that were already reverted keep their reverted values.",
        "done",
        choices=("queued", "running", "done", "failed", "cancelled"),
    ),
]
Count = Annotated[int, doc("Number of entries.", 40, ge=0)]


class Revert(Answer):
    """A revert: a job that a worker performs, and its result."""

    id: RevertId
    request_id: TargetId
    status: RevertStatus
    total: Annotated[
        Count | None,
        doc("Entries that the request wrote; null while the job searches the audit log.", 42),
    ]
    reverted: Annotated[Count, doc("Entries that were reverted so far.", 40)]
    skipped: Annotated[Count, doc("Entries that were skipped so far.", 2)]
    requested_by: Actor
    reason: Reason
    detail: Annotated[
        str, doc("Why it failed or waits for another attempt, in plain text; else empty.", "")
    ]
    created_at: Annotated[Time, doc("When it was requested.")]
    started_at: Annotated[Time | None, doc("When a worker last started it; null: not yet.")]
    finished_at: Annotated[Time | None, doc("When it ended; null: not yet.")]

    @classmethod
    def of(cls, row: models.Revert) -> Self:
        return cls.from_attributes(
            row, id=row.public_id, request_id=row.target, requested_by=row.actor_name
        )


class SkippedEntry(Answer):
    """An entry that a revert left as it is."""

    namespace: Namespace
    key: Key
    reason: Annotated[
        str, doc("Why, in plain text.", "its previous version was removed by history compaction")
    ]

    @classmethod
    def of(cls, row: models.RevertEntry) -> Self:
        return cls(namespace=row.namespace, key=row.key, reason=row.why)


class RevertRequest(Body):
    """The request whose writes are reverted."""

    request_id: TargetId


class RevertFilters(DescendingList):
    request_id: Annotated[TargetId | None, doc("Only reverts of this request.")] = None
    status: Annotated[RevertStatus | None, doc("Only reverts with this status.")] = None


_operation = partial(Operation, tag="reverts")
REQUEST_REVERT = _operation(
    id="request_revert",
    route="POST /reverts",
    summary="Revert a request",
    description="Gives each entry that the request wrote the value and expiry that it had before, as"
    " a new version, and deletes entries that it created. Tags that a bulk action added are removed, and"
    " tags that it removed are added again. Entries that were written since then are skipped, and so are those whose"
    " earlier version is not kept, has expired or was redacted, or that the schema refuses. A worker"
    " performs it in batches: read `GET /reverts/{id}`, whose path is in the Location header, until it"
    " has ended. If the caller has an unfinished revert of the same request, that one is returned. A dry"
    " run stops after about one second. Its counts are complete only if its status is `done`.",
    body=RevertRequest,
    answers={202: Revert},
    dry_run=Revert,
    location=True,
)
LIST_REVERTS = _operation(
    id="list_reverts",
    route="GET /reverts",
    replica=True,
    summary="List reverts",
    description="Reverts of the workspace, newest first. They are kept for 30 days after their end."
    " A token that is limited to namespaces or threads sees only the reverts that it requested.",
    query=RevertFilters,
    answers={200: Page[Revert]},
)
GET_REVERT = _operation(
    id="get_revert",
    route="GET /reverts/{revert_id}",
    summary="Read a revert",
    answers={200: Revert},
)
LIST_SKIPPED_ENTRIES = _operation(
    id="list_skipped_entries",
    route="GET /reverts/{revert_id}/skipped",
    replica=True,
    summary="List the entries that a revert skipped",
    description="In the order in which they were examined, with the reasons.",
    query=AscendingList,
    answers={200: Page[SkippedEntry]},
)
CANCEL_REVERT = _operation(
    id="cancel_revert",
    route="POST /reverts/{revert_id}/cancel",
    summary="Cancel a revert",
    description="The job stops before its next batch. Entries that it has already reverted keep their"
    " reverted values. Returns 409 if the job has ended.",
    answers={200: Revert},
)
