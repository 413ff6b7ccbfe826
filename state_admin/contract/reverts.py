"""Reverts: jobs that undo the writes of one request, or all writes since a moment."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Self

from msgspec import UNSET, UnsetType

from .base import JSON_TYPE, Answer, AscendingList, DescendingList, Operation, Page, doc
from .restores import EntrySelection, MomentText
from .types import Actor, Key, Namespace, Reason, Scope, Time

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


FILTERS = ("namespace", "key", "prefix", "scope_kind")


class Revert(Answer):
    """A revert: a job that a worker performs, and its result."""

    id: RevertId
    request_id: Annotated[
        TargetId | None, doc("Request whose writes are reverted; null for a revert to a moment.")
    ]
    at: Annotated[
        Time | None, doc("Moment since which writes are reverted; null for a revert of a request.")
    ]
    namespace: Annotated[
        Namespace | None, doc("Filter of a revert to a moment; null if it has none.")
    ]
    key: Annotated[Key | None, doc("Filter of a revert to a moment; null if it has none.")]
    prefix: Annotated[
        str | None, doc("Filter of a revert to a moment; null if it has none.", "thread::")
    ]
    scope_kind: Annotated[Scope | None, doc("Filter of a revert to a moment; null if it has none.")]
    status: RevertStatus
    total: Annotated[
        Count | None,
        doc("Entries that the job found; null while it searches for them.", 42),
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
            row,
            id=row.public_id,
            request_id=row.target if row.at is None else None,
            requested_by=row.actor_name,
            **{name: row.filters.get(name) for name in FILTERS},
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


class RevertRequest(EntrySelection):
    """What is reverted: the writes of a request, or those since a moment."""

    request_id: TargetId | UnsetType = UNSET
    at: Annotated[MomentText | UnsetType, doc("Revert what was written since this moment.")] = UNSET


class RevertFilters(DescendingList):
    request_id: Annotated[TargetId | None, doc("Only reverts of this request.")] = None
    status: Annotated[RevertStatus | None, doc("Only reverts with this status.")] = None


_operation = partial(Operation, tag="reverts")
REQUEST_REVERT = _operation(
    id="request_revert",
    route="POST /reverts",
    summary="Revert a request, or to a moment",
    description="Either `request_id`, or `at` with one or more of the filters `namespace`, `key`, `prefix`"
    " and `scope_kind`, is required.\n\n"
    "With `request_id`, each entry that the request wrote gets the value and expiry that it had before, as"
    " a new version, and entries that it created are deleted. Tags that a bulk action added are removed, and"
    " tags that it removed are added again. Entries that were written since then are skipped, and so are those whose"
    " earlier version is not kept, has expired or was redacted, or that the schema refuses.\n\n"
    "With `at`, each entry that all filters select, and that was written or has expired since that moment, gets"
    " the value that it had then, as in `POST /restore`, but for any number of entries. Entries that did not exist"
    " then are deleted. An entry that is written after the job has found it is skipped.\n\n"
    "A worker performs it in batches: read `GET /reverts/{id}`, whose path is in the Location header, until it"
    " has ended. If the caller has an unfinished revert of the same request, or with the same moment and filters, that one is returned. A dry"
    " run stops after about one second. Its counts are complete only if its status is `done`.",
    body=RevertRequest,
    examples={JSON_TYPE: {"request_id": "0199f3c2a41c7d3e9b1f6f0f4a5e8c21"}},
    answers={202: Revert},
    dry_run=Revert,
    location=True,
    problems=("not-registered",),
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
