"""Dispatches: units of background work in the mailbox of a thread."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Final, Self

from msgspec import UNSET, UnsetType, field

from state_admin.domain.access import Role
from state_admin.domain.mailbox import (
    DEFAULT_LEASE_SECONDS,
    DEFAULT_MAX_ATTEMPTS,
    DEFAULT_PRIORITY,
    LOWEST_PRIORITY,
)

from .base import Answer, Body, DescendingList, Name, NonEmpty, Operation, Page, Query, Wait, doc
from .types import Cleared, JsonIn, JsonOut, RunId, ThreadId, Time, json_of, null

if TYPE_CHECKING:
    from state_admin import models

_DAY: Final = 86_400

DispatchStatus = Annotated[
    str,
    doc(
        "`Acked`: delivered, which does not mean that the work succeeded; `Superseded`: the thread "
        "was interrupted; `DeadLetter`: all attempts failed.",
        "Queued",
        choices=("Queued", "Claimed", "Acked", "Cancelled", "Superseded", "DeadLetter"),
    ),
]


class Dispatch(Answer):
    """A unit of background work for a thread."""

    id: Annotated[str, doc("Id of the dispatch.", "0199f3c2-a41c-7d3e-9b1f-6f0f4a5e8c21")]
    thread_id: ThreadId
    run_id: Annotated[RunId | None, doc("The run that it belongs to; null: none.")]
    agent_id: Annotated[str, doc("Id of the agent that it is for; empty: any.", "planner")]
    payload: Annotated[JsonOut, doc("What to do.", {"task": "check"})]
    priority: Annotated[
        int, doc("0 is first. Equal priorities are in order of age.", 128, ge=0, le=LOWEST_PRIORITY)
    ]
    available_at: Annotated[Time, doc("Cannot be claimed before this time.")]
    dedupe_key: Annotated[
        str | None,
        doc("No second dispatch of the thread with this key while it is open; null: none.", None),
    ]
    epoch: Annotated[
        int, doc("Epoch of the thread when it was enqueued; interrupts begin a new one.", 0, ge=0)
    ]
    status: DispatchStatus
    attempts: Annotated[int, doc("Number of failed attempts.", 0, ge=0)]
    max_attempts: Annotated[
        int, doc("Number of failed attempts at which it becomes a dead letter.", 5, ge=1)
    ]
    replays: Annotated[int, doc("How often it was replayed as a dead letter.", 0, ge=0)]
    last_error: Annotated[str | None, doc("Why the last attempt failed; null: none did.", None)]
    claimed_by: Annotated[str | None, doc("Name of the worker; null: not claimed.", None)]
    claimed_at: Annotated[Time | None, doc("When it was claimed; null: not claimed.", None)]
    lease_until: Annotated[
        Time | None, doc("When the worker's lease expires; null: not claimed.", None)
    ]
    created_at: Annotated[Time, doc("When it was enqueued.")]
    updated_at: Annotated[Time, doc("When it was changed last.")]
    finished_at: Annotated[Time | None, doc("When it was finished; null: it is open.", None)]

    @classmethod
    def of(cls, row: models.Dispatch, **more: str) -> Self:
        """`more`: the members of a subclass."""
        return cls.from_attributes(
            row,
            id=row.public_id,
            thread_id=row.thread.public_id,
            run_id=row.run.public_id if row.run else None,
            payload=json_of(row.payload),
            dedupe_key=row.dedupe_key or None,
            last_error=row.last_error or None,
            claimed_by=row.claimed_by or None,
            **more,
        )


class ClaimedDispatch(Dispatch):
    """A dispatch that the caller has claimed."""

    claim_token: Annotated[
        str, doc("Secret of the claim, needed to extend, ack and nack.", "4Yq1…")
    ]


class Claims(Answer):
    """The dispatches that the caller has claimed."""

    items: Annotated[
        list[ClaimedDispatch], doc("What was claimed, each of another thread; may be empty.")
    ]


class DispatchFilters(DescendingList):
    thread_id: Annotated[str | None, doc("Only dispatches of this thread.")] = None
    agent_id: Annotated[str | None, doc("Only dispatches for this agent.")] = None
    status: Annotated[DispatchStatus | None, doc("Only dispatches with this status.")] = None
    dedupe_key: Annotated[str | None, doc("Only dispatches with this key.")] = None


class DispatchScope(Query):
    thread_id: Annotated[str | None, doc("Only dispatches of this thread.")] = None
    agent_id: Annotated[str | None, doc("Only dispatches for this agent.")] = None


_COUNT: Final = doc("Dispatches with this status.", 0, ge=0)


class DispatchCounts(Answer):
    """Number of dispatches by status."""

    queued: Annotated[int, _COUNT] = field(name="Queued")
    claimed: Annotated[int, _COUNT] = field(name="Claimed")
    acked: Annotated[int, _COUNT] = field(name="Acked")
    cancelled: Annotated[int, _COUNT] = field(name="Cancelled")
    superseded: Annotated[int, _COUNT] = field(name="Superseded")
    dead: Annotated[int, _COUNT] = field(name="DeadLetter")


class NewDispatch(Body):
    """Work to enqueue in the mailbox of a thread."""

    payload: Annotated[JsonIn, doc("What to do: any JSON.", {"task": "check"})] = null()
    run_id: Annotated[
        NonEmpty | UnsetType,
        doc("The run of this thread that it belongs to. Default: none.", "run-1"),
    ] = UNSET
    agent_id: Annotated[
        Name | UnsetType,
        doc("Agent that it is for. Default: the agent of the run, otherwise any.", "planner"),
    ] = UNSET
    priority: Annotated[int, doc("0 is first.", 128, ge=0, le=LOWEST_PRIORITY)] = DEFAULT_PRIORITY
    available_at: Annotated[
        NonEmpty | UnsetType,
        doc(
            "RFC 3339 time before which it cannot be claimed. Default: now.",
            "2026-01-31T12:00:00Z",
            schema={"format": "date-time"},
        ),
    ] = UNSET
    dedupe_key: (
        Annotated[
            str,
            doc(
                "Refuse it while another dispatch of the thread with this key is open.",
                "check-order-9921",
                min_length=1,
                max_length=256,
            ),
        ]
        | UnsetType
    ) = UNSET
    max_attempts: Annotated[
        int, doc("Number of failed attempts at which it becomes a dead letter.", 5, ge=1, le=100)
    ] = DEFAULT_MAX_ATTEMPTS


LeaseSeconds = Annotated[int, doc("Seconds from now until the lease expires.", 60, ge=1, le=_DAY)]
ClaimToken = Annotated[
    str, doc("`claim_token` of the claim.", "4Yq1…", min_length=1, max_length=128)
]


class ClaimRequest(Body):
    """Which dispatches to claim, and for how long."""

    thread_id: Annotated[NonEmpty | UnsetType, doc("Claim only of this thread.", "thread-1")] = (
        UNSET
    )
    agent_id: Annotated[
        Name | UnsetType, doc("Claim only where the next dispatch is for this agent.", "planner")
    ] = UNSET
    consumer: Annotated[
        Name | UnsetType,
        doc("Name of the worker, shown to people. Default: the name of the token.", "worker-1"),
    ] = UNSET
    limit: Annotated[int, doc("Claim at most this number.", 10, ge=1, le=100)] = 1
    lease_seconds: LeaseSeconds = DEFAULT_LEASE_SECONDS


class Acknowledgement(Body):
    """Acknowledges a claimed dispatch: it was delivered and is not enqueued again."""

    claim_token: ClaimToken


class Extension(Body):
    """A longer lease for a claimed dispatch."""

    claim_token: ClaimToken
    lease_seconds: LeaseSeconds = DEFAULT_LEASE_SECONDS


class NegativeAcknowledgement(Body):
    """Returns a claimed dispatch to the queue, because the attempt failed."""

    claim_token: ClaimToken
    error: Annotated[
        str, doc("Why the attempt failed.", "The order service is down.", max_length=2000)
    ] = ""
    retry_after: (
        Annotated[
            int,
            doc(
                "Seconds until it can be claimed again. Default: 0.25, doubled with each failure, "
                "at most 30.",
                60,
                ge=0,
                le=30 * _DAY,
            ),
        ]
        | UnsetType
    ) = UNSET


class DeadLetterScope(Body):
    """Filters that select dead letters. Without a filter: all dead letters of the workspace."""

    thread_id: Annotated[
        NonEmpty | UnsetType, doc("Only dead letters of this thread.", "thread-1")
    ] = UNSET
    agent_id: Annotated[Name | UnsetType, doc("Only dead letters for this agent.", "planner")] = (
        UNSET
    )


class Interruption(Answer):
    """The outcome of an interrupt."""

    thread_id: ThreadId
    epoch: Annotated[int, doc("The new epoch of the thread.", 1, ge=1)]
    superseded_dispatches: Annotated[int, doc("How many queued dispatches it superseded.", 2, ge=0)]
    active: Annotated[
        Dispatch | None, doc("The claimed dispatch, whose worker should stop; null: none.")
    ]


class Replayed(Answer):
    """How many dead letters were enqueued again."""

    replayed: Annotated[int, doc("Number of dead letters that were enqueued again.", 3, ge=0)]


_operation = partial(Operation, tag="dispatches")
ENQUEUE_DISPATCH = _operation(
    id="enqueue_dispatch",
    route="POST /threads/{thread_id}/dispatches",
    summary="Enqueue a dispatch",
    description="Puts work into the mailbox of the thread. A `dedupe_key` that an open dispatch of "
    "the thread has is a conflict.",
    body=NewDispatch,
    answers={201: Dispatch},
    location=True,
)
INTERRUPT_THREAD = _operation(
    id="interrupt_thread",
    route="POST /threads/{thread_id}/interrupt",
    summary="Interrupt a thread",
    description="Begins a new epoch, which supersedes all queued dispatches. A claimed one can no "
    "longer be extended or acked; the thread waits until its worker lets it go or its lease expires.",
    answers={200: Interruption},
    dry_run=Interruption,
)
LIST_DISPATCHES = _operation(
    id="list_dispatches",
    route="GET /dispatches",
    summary="List dispatches",
    description="Newest first. `status=DeadLetter` lists the dead letters.",
    query=DispatchFilters,
    answers={200: Page[Dispatch]},
)
COUNT_DISPATCHES = _operation(
    id="count_dispatches",
    route="GET /dispatches/counts",
    summary="Count dispatches",
    description="How many there are of each status.",
    query=DispatchScope,
    answers={200: DispatchCounts},
)
CLAIM_DISPATCHES = _operation(
    id="claim_dispatches",
    route="POST /dispatches/claim",
    summary="Claim dispatches",
    description="Claims the next dispatch of up to `limit` threads in which none is claimed. With "
    "`wait`, the response is held until there is one; `wait` cannot be combined with "
    "Idempotency-Key. A dispatch whose lease expires returns to the queue. Claims fewer than `limit` if "
    "their payloads would exceed 16 MiB.",
    query=Wait,
    body=ClaimRequest,
    answers={200: Claims},
    problems=("not-found",),
)
GET_DISPATCH = _operation(
    id="get_dispatch",
    route="GET /dispatches/{dispatch_id}",
    summary="Read a dispatch",
    description="With its payload and status. The claim token is not returned.",
    answers={200: Dispatch},
)
EXTEND_DISPATCH = _operation(
    id="extend_dispatch",
    route="POST /dispatches/{dispatch_id}/extend",
    summary="Extend the lease of a dispatch",
    description="Refused if the claim is no longer valid or the thread was interrupted.",
    body=Extension,
    answers={200: Dispatch},
)
ACK_DISPATCH = _operation(
    id="ack_dispatch",
    route="POST /dispatches/{dispatch_id}/ack",
    summary="Acknowledge a dispatch",
    description="Finishes it as delivered; whether the work succeeded is recorded by the run. "
    "Refused if the claim is no longer valid or the thread was interrupted.",
    body=Acknowledgement,
    answers={200: Dispatch},
)
NACK_DISPATCH = _operation(
    id="nack_dispatch",
    route="POST /dispatches/{dispatch_id}/nack",
    summary="Return a dispatch",
    description="Counts a failed attempt. The dispatch returns to the queue, or becomes a dead "
    "letter when its attempts are used up. If the thread was interrupted, it is superseded.",
    body=NegativeAcknowledgement,
    answers={200: Dispatch},
)
CANCEL_DISPATCH = _operation(
    id="cancel_dispatch",
    route="POST /dispatches/{dispatch_id}/cancel",
    summary="Cancel a dispatch",
    description="Only while it is queued; to stop a claimed one, interrupt the thread.",
    answers={200: Dispatch},
)
REPLAY_DISPATCH = _operation(
    id="replay_dispatch",
    route="POST /dispatches/{dispatch_id}/replay",
    summary="Replay a dead letter",
    description="Enqueues it again with all its attempts. Refused if it is not a dead letter, or an "
    "open dispatch has its `dedupe_key`.",
    answers={200: Dispatch},
)
REPLAY_DEAD_LETTERS = _operation(
    id="replay_dead_letters",
    route="POST /dispatches/replay",
    summary="Replay dead letters",
    description="Enqueues them again with all their attempts. Leaves out those whose `dedupe_key` an "
    "open dispatch or a newer dead letter has.",
    body=DeadLetterScope,
    answers={200: Replayed},
    dry_run=Replayed,
    problems=("not-found",),
)
CLEAR_DEAD_LETTERS = _operation(
    id="clear_dead_letters",
    route="POST /dispatches/clear",
    summary="Delete dead letters",
    description="Deletes those that the body selects: with `{}`, all dead letters of the workspace. "
    "It cannot be undone.",
    role=Role.ADMIN,
    body=DeadLetterScope,
    answers={200: Cleared},
    dry_run=Cleared,
    problems=("not-found",),
)
