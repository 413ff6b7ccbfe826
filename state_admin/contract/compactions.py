"""Compactions: of the context of a thread, of its snapshots, and of the history of a namespace."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal, Self

from state_admin.domain.access import Role

from .base import Answer, AscendingList, Body, DescendingList, Operation, Page, Query, doc
from .messages import Message
from .policies import EffectivePolicy, Sources
from .types import Actor, Bytes, Cost, JsonOut, Namespace, Reason, ThreadId, Time, Tokens, json_of

if TYPE_CHECKING:
    from state_admin import models
    from state_admin.domain.boundaries import Plan
    from state_admin.models.retention_sql import StoredSize
    from state_admin.services import compactions, retention

CompactionId = Annotated[str, doc("Id of a compaction.", "0199f3c2-a41c-7d3e-9b1f-6f0f4a5e8c21")]
CompactionKind = Annotated[
    str,
    doc(
        "`context`: messages of a thread are summarized. `snapshot`: old snapshots of a thread are"
        " removed. `history`: old versions of the entries of a namespace are removed.",
        "context",
        choices=("context", "snapshot", "history"),
    ),
]
CompactionStatus = Annotated[
    str,
    doc(
        "`skipped`: there was nothing worth compacting. `superseded`: the thread changed meanwhile."
        " `undone`: the context has the original messages again.",
        "done",
        choices=(
            "queued",
            "running",
            "done",
            "skipped",
            "failed",
            "superseded",
            "cancelled",
            "undone",
        ),
    ),
]
CompactionPhase = Annotated[
    str,
    doc(
        "`asking`: waiting for the summary.",
        "asking",
        choices=("claimed", "planning", "asking", "applying"),
    ),
]
ThreadCompactionKind = Annotated[
    Literal["context", "snapshot"],
    doc("`context`: summarize messages. `snapshot`: remove old snapshots.", "context"),
]
Seq = Annotated[int, doc("Sequence number of a message in its thread.", 8, ge=1)]
Count = Annotated[int, doc("Number of rows.", 40, ge=0)]


class Compaction(Answer):
    """A compaction: a job that a worker performs, and its result."""

    id: CompactionId
    kind: CompactionKind
    status: CompactionStatus
    phase: Annotated[
        CompactionPhase | None, doc("What the worker is doing; null: it is not running.", None)
    ]
    trigger: Annotated[
        str,
        doc(
            "What requested it: the size of the context, a user or program, or the schedule.",
            "hand",
            choices=("threshold", "hand", "schedule"),
        ),
    ]
    thread_id: Annotated[ThreadId | None, doc("The thread; null for `history`.", "thread-1")]
    namespace: Annotated[Namespace | None, doc("The namespace; only for `history`.", None)]
    requested_by: Actor
    reason: Reason
    policy: Annotated[
        JsonOut,
        doc(
            "The policy with which it was requested.",
            {"min_gain_tokens": 1024},
            # Without a title, generators name its class like the resource CompactionPolicy.
            schema={"type": "object", "title": "RequestedPolicy"},
        ),
    ]
    from_seq: Annotated[
        Seq | None, doc("First summarized message; null: no messages were selected.", 1)
    ]
    to_seq: Annotated[Seq | None, doc("Last summarized message; null: none.", 8)]
    carried_seq: Annotated[
        Seq | None,
        doc("User message within that range that the context retains; null: none.", None),
    ]
    tokens_before: Annotated[
        Tokens | None, doc("Estimated tokens of the summarized messages; null: not measured.")
    ]
    tokens_after: Annotated[
        Tokens | None, doc("Estimated tokens of the summary; null: no summary.", 300)
    ]
    to_revision: Annotated[
        int | None, doc("For `snapshot`, the newest revision that could be removed.", None)
    ]
    rows_before: Annotated[Count | None, doc("Rows before; null: not counted.", None)]
    rows_after: Annotated[Count | None, doc("Rows after; null: not counted.", None)]
    rows_removed: Annotated[Count, doc("Rows removed so far.", 0)]
    bytes_before: Annotated[Bytes | None, doc("Bytes before; null: not counted.", None)]
    bytes_after: Annotated[Bytes | None, doc("Bytes after; null: not counted.", None)]
    summary: Annotated[str | None, doc("The summary; null: none.", "The user asked for a refund.")]
    summary_message_id: Annotated[
        str | None, doc("Id of the message that holds the summary; null: none.", "summary-1")
    ]
    summarizer: Annotated[
        str | None, doc("What wrote the summary, `extractive` or `model`.", "extractive")
    ]
    provider: Annotated[str | None, doc("Provider of the model that was called.", None)]
    model: Annotated[str | None, doc("The model that was called.", None)]
    instructions: Annotated[str | None, doc("The instructions that the model got.", None)]
    input_tokens: Annotated[int, doc("Input tokens of all calls of the model.", 0, ge=0)]
    output_tokens: Annotated[int, doc("Output tokens of all calls of the model.", 0, ge=0)]
    cost_usd: Annotated[Cost, doc("Cost of all calls of the model, in US dollars.", "0.000000")]
    detail: Annotated[str, doc("Why it was skipped or failed, in plain text; else empty.", "")]
    attempts: Annotated[int, doc("How many times a worker started it.", 1, ge=0)]
    created_at: Annotated[Time, doc("When it was requested.")]
    started_at: Annotated[Time | None, doc("When a worker first started it; null: not yet.")]
    finished_at: Annotated[Time | None, doc("When it ended; null: not yet.")]
    undone_at: Annotated[Time | None, doc("When it was undone; null: never.", None)]
    undone_by: Annotated[Actor | None, doc("Who undid it; null: nobody.", None)]

    @classmethod
    def of(cls, row: models.Compaction) -> Self:
        return cls.from_attributes(
            row,
            id=row.public_id,
            phase=row.phase or None,
            thread_id=row.thread.public_id if row.thread else None,
            namespace=row.namespace.name if row.namespace else None,
            policy=json_of(row.policy or "{}"),
            from_seq=1 if row.boundary_seq else None,
            to_seq=row.boundary_seq,
            carried_seq=row.summary.fold_carries if row.summary else None,
            summary=row.summary_text or None,
            summary_message_id=row.summary.public_id if row.summary else None,
            summarizer=row.summarizer or None,
            provider=row.provider or None,
            model=row.model or None,
            instructions=row.instructions or None,
            cost_usd=str(row.cost_usd),
            undone_by=row.undone_by or None,
        )


class CompactionPlan(Answer):
    """The messages that a compaction would summarize."""

    boundary_seq: Annotated[Seq, doc("Last message to summarize.", 8)]
    boundary_message_id: Annotated[str, doc("Id of that message.", "message-8")]
    tokens_before: Annotated[Tokens, doc("Estimated tokens of the messages to summarize.")]
    kept: Annotated[int, doc("Number of later messages, which are retained.", 2, ge=0)]
    carried_seq: Annotated[
        Seq | None, doc("User message within the range that the context retains; null: none.", None)
    ]

    @classmethod
    def of(cls, plan: Plan) -> Self:
        return cls(**vars(plan))


class CompactionPreview(Answer):
    """What a context compaction would do now."""

    policy: Annotated[EffectivePolicy, doc("The policy that applies to the thread.")]
    sources: Sources
    context_tokens: Annotated[Tokens, doc("Size of the context now, in estimated tokens.", 4000)]
    would_fold: Annotated[CompactionPlan | None, doc("What would be summarized; null: see `skip`.")]
    tokens_after: Annotated[
        Tokens | None, doc("Largest size of the summary; null: nothing to summarize.", 300)
    ]
    savings_ratio: Annotated[
        float | None,
        doc("Smallest share of `would_fold.tokens_before` that is saved, from 0 to 1.", 0.75),
    ]
    skip: Annotated[str | None, doc("Why nothing would be summarized; null otherwise.", None)]
    problem: Annotated[
        str | None, doc("Why the summary cannot be written at present; null: it can.", None)
    ]
    warning: Annotated[
        str | None, doc("What to consider before requesting it; null: nothing.", None)
    ]

    @classmethod
    def of(cls, preview: compactions.Preview) -> Self:
        return cls.from_attributes(
            preview,
            policy=EffectivePolicy.of(preview.policy),
            sources=preview.effective.sources,
            would_fold=CompactionPlan.of(preview.plan) if preview.plan else None,
            skip=preview.skip or None,
            problem=preview.problem or None,
            warning=preview.warning or None,
        )


class HistoryPreview(Answer):
    """What a removal of old versions would do now."""

    rows: Annotated[Count, doc("Stored rows.", 40)]
    rows_removed: Annotated[Count, doc("How many of them would be removed.", 12)]
    bytes: Annotated[Bytes, doc("Bytes of the stored values.", 5120)]
    bytes_removed: Annotated[Bytes, doc("How many of them would be removed.", 1024)]

    @classmethod
    def of(cls, weight: StoredSize) -> Self:
        return cls(**weight._asdict())


class SnapshotPreview(HistoryPreview):
    """What a removal of old snapshots would do now. Rows and bytes are those of the state values of
    the thread."""

    keep_last: Annotated[int, doc("Newest snapshots that are retained.", 100, ge=1)]
    keep_every: Annotated[
        int | None, doc("Revisions that are a multiple of it are retained too; null: none.", None)
    ]
    snapshots: Annotated[int, doc("Snapshots of the thread.", 140, ge=0)]
    snapshots_removed: Annotated[int, doc("How many of them would be removed.", 40, ge=0)]

    @classmethod
    def of_thread(cls, preview: retention.SnapshotPreview) -> Self:
        return cls(
            keep_last=preview.keep_last,
            keep_every=preview.keep_every,
            snapshots=preview.snapshots,
            snapshots_removed=preview.dropped,
            **preview.weight._asdict(),
        )


class CompactionRequest(Body):
    """What to compact in the thread."""

    kind: ThreadCompactionKind = "context"


class PreviewQuery(Query):
    kind: ThreadCompactionKind = "context"


class CompactionFilters(DescendingList):
    thread_id: Annotated[ThreadId | None, doc("Only compactions of this thread.")] = None
    kind: Annotated[CompactionKind | None, doc("Only compactions of this kind.")] = None
    status: Annotated[CompactionStatus | None, doc("Only compactions with this status.")] = None


_PREVIEWS = (CompactionPreview, SnapshotPreview)

_operation = partial(Operation, tag="compactions")
PREVIEW_COMPACTION = _operation(
    id="preview_compaction",
    route="GET /threads/{thread_id}/compactions",
    summary="Preview a compaction of a thread",
    description="What a compaction would do now. `would_fold` has the messages that it would"
    " summarize, or `skip` the reason why it would do nothing. With `kind=snapshot`, the number of"
    " snapshots and rows that would be removed.",
    query=PreviewQuery,
    answers={200: _PREVIEWS},
)
REQUEST_COMPACTION = _operation(
    id="request_compaction",
    route="POST /threads/{thread_id}/compactions",
    summary="Request a compaction of a thread",
    description="A worker performs it: read `GET /compactions/{id}`, whose path is in the Location"
    " header, until it has ended. If a compaction of this kind is queued or running already, that"
    " one is returned. `kind` `snapshot` requires the role admin, because removed snapshots cannot"
    " be restored.",
    body=CompactionRequest,
    answers={202: Compaction},
    dry_run=_PREVIEWS,
    location=True,
)
PREVIEW_HISTORY_COMPACTION = _operation(
    id="preview_history_compaction",
    route="GET /namespaces/{namespace}/compactions",
    summary="Preview a history compaction of a namespace",
    description="How many versions the entries have, and how many would be removed now.",
    answers={200: HistoryPreview},
    problems=("not-registered",),
)
REQUEST_HISTORY_COMPACTION = _operation(
    id="request_history_compaction",
    route="POST /namespaces/{namespace}/compactions",
    summary="Request a history compaction of a namespace",
    description="Removes the versions that the `history` of the namespace does not retain. They"
    " cannot be restored. A worker performs it: read `GET /compactions/{id}`, whose path is in the"
    " Location header, until it has ended.",
    role=Role.ADMIN,
    answers={202: Compaction},
    dry_run=HistoryPreview,
    problems=("not-registered",),
    location=True,
)
LIST_COMPACTIONS = _operation(
    id="list_compactions",
    route="GET /compactions",
    replica=True,
    summary="List compactions",
    description="Compactions of the workspace, newest first.",
    query=CompactionFilters,
    answers={200: Page[Compaction]},
)
GET_COMPACTION = _operation(
    id="get_compaction",
    route="GET /compactions/{compaction_id}",
    summary="Read a compaction",
    answers={200: Compaction},
)
LIST_FOLDED_MESSAGES = _operation(
    id="list_folded_messages",
    route="GET /compactions/{compaction_id}/messages",
    replica=True,
    summary="List the messages behind a summary",
    description="The messages that the summary replaces in the context, in order.",
    query=AscendingList,
    answers={200: Page[Message]},
)
UNDO_COMPACTION = _operation(
    id="undo_compaction",
    route="POST /compactions/{compaction_id}/undo",
    summary="Undo a compaction",
    description="The context has the original messages again instead of the summary. Only a context"
    " compaction that is done can be undone, and not before the later ones that include its"
    " summary: 409 names the next of them in `later`.",
    answers={200: Compaction},
)
CANCEL_COMPACTION = _operation(
    id="cancel_compaction",
    route="POST /compactions/{compaction_id}/cancel",
    summary="Cancel a compaction",
    description="A queued one does not start, a running one stops at its next step. What a removal"
    " has removed stays removed. 409 if the compaction has ended.",
    answers={200: Compaction},
)
RETRY_COMPACTION = _operation(
    id="retry_compaction",
    route="POST /compactions/{compaction_id}/retry",
    summary="Request a compaction again",
    description="Returns a new compaction of the context of the same thread. 409 if this one is"
    " queued, running or done, or of another kind.",
    answers={202: Compaction},
)
