"""Tickets: decisions that a suspended run waits for."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal, Self

from .base import Answer, AscendingList, Body, DescendingList, Operation, Page, Wait, doc
from .types import MAX_ID, JsonIn, JsonOut, RunId, ThreadId, Time, json_of, null

if TYPE_CHECKING:
    from state_admin import models

TicketStatus = Annotated[
    str,
    doc(
        "`pending` until somebody decides; `void` when the run ended without a decision.",
        "pending",
        choices=("pending", "resumed", "cancelled", "void"),
    ),
]
TicketId = Annotated[
    str, doc("Id of a ticket.", "ticket-1", schema={"minLength": 1, "maxLength": MAX_ID})
]


class Ticket(Answer):
    """A decision that a suspended run waits for."""

    id: TicketId
    run_id: RunId
    thread_id: ThreadId
    tool_call_id: Annotated[str, doc("Id of the tool call to decide about.", "call-1")]
    tool_name: Annotated[str, doc("Name of the tool.", "refund")]
    arguments: Annotated[JsonOut, doc("Arguments of the tool call.", {"amount": 120})]
    resume_mode: Annotated[str, doc("What the agent does with the decision.", "replay_tool_call")]
    reason: Annotated[str, doc("Why a decision is needed.", "The amount exceeds 100.")]
    response_schema: Annotated[
        JsonOut,
        doc("JSON Schema that `payload` of the decision must match; null: any payload.", None),
    ]
    expires_at: Annotated[Time | None, doc("When the ticket expires; null: never.")]
    on_expiry: Annotated[
        str,
        doc(
            "What happens at that time: `keep` leaves it pending, `cancel` cancels it.",
            "keep",
            choices=("keep", "cancel"),
        ),
    ]
    status: TicketStatus
    payload: Annotated[JsonOut, doc("Payload of the decision.", {"approved": True})]
    decided_by: Annotated[str | None, doc("Who decided.", "alice")]
    decided_at: Annotated[Time | None, doc("When it was decided.")]
    created_at: Annotated[Time, doc("When the run opened it.")]

    @classmethod
    def of(cls, row: models.Ticket) -> Self:
        return cls.from_attributes(
            row,
            id=row.public_id,
            run_id=row.run.public_id,
            thread_id=row.run.thread.public_id,
            arguments=json_of(row.arguments),
            response_schema=json_of(row.response_schema),
            payload=json_of(row.payload),
            decided_by=row.decided_by or None,
        )


class TicketFilters(DescendingList):
    status: Annotated[TicketStatus | None, doc("Only tickets with this status.")] = None
    thread_id: Annotated[ThreadId | None, doc("Only tickets of this thread.")] = None
    run_id: Annotated[RunId | None, doc("Only tickets of this run.")] = None


class Decision(Body):
    """How the ticket is decided."""

    action: Annotated[
        Literal["resume", "cancel"],
        doc("`resume` continues the tool call with `payload`, `cancel` refuses it.", "resume"),
    ]
    payload: Annotated[
        JsonIn, doc("The answer, which must match `response_schema`.", {"approved": True})
    ] = null()


_operation = partial(Operation, tag="tickets")
LIST_TICKETS = _operation(
    id="list_tickets",
    route="GET /tickets",
    summary="List tickets",
    description="Tickets of the workspace, newest first. `status=pending` is the inbox.",
    query=TicketFilters,
    answers={200: Page[Ticket]},
)
LIST_RUN_TICKETS = _operation(
    id="list_run_tickets",
    route="GET /runs/{run_id}/tickets",
    summary="List the tickets of a run",
    description="In the order in which they were opened.",
    query=AscendingList,
    answers={200: Page[Ticket]},
)
GET_TICKET = _operation(
    id="get_ticket",
    route="GET /tickets/{ticket_id}",
    summary="Read a ticket",
    description="With `wait`, the response is held until the ticket is decided.",
    query=Wait,
    answers={200: Ticket},
)
DECIDE_TICKET = _operation(
    id="decide_ticket",
    route="POST /tickets/{ticket_id}/decision",
    summary="Decide a ticket",
    description="The first decision counts. Another one with the same content returns the ticket; "
    "a different one is refused.",
    body=Decision,
    answers={200: Ticket},
    problems=("conflict",),
)
