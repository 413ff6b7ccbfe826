"""Decides tickets: the first decision wins, the last one wakes the run (semantics §7)."""

from __future__ import annotations

from django.db import transaction
from django.db.models.functions import Now

from state_admin.domain import schemas, values
from state_admin.domain.access import Actor, Role
from state_admin.domain.values import Raw
from state_admin.models import RevisionKind, RunStatus, Ticket, TicketStatus

from . import journal, runs, snapshots
from .actors import require
from .errors import Conflict, Invalid, NotFound
from .runs import RunChange

_OUTCOMES = {"resume": TicketStatus.RESUMED, "cancel": TicketStatus.CANCELLED}


def find_ticket(actor: Actor, ticket_id: str) -> Ticket:
    ticket = (
        Ticket.objects.visible_to(actor)
        .select_related("run", "run__thread")
        .filter(public_id=ticket_id)
        .first()
    )
    if ticket is None:
        raise NotFound(f"ticket not found: {ticket_id}")
    return ticket


def decide_ticket(
    *, actor: Actor, ticket_id: str, action: str, payload: Raw, reason: str = ""
) -> Ticket:
    """Record a decision. `resume` carries a payload that fits the ticket's response schema.

    A second decision is Conflict `ticket already decided: …`. With its last ticket decided the
    run is running again, as one revision.
    """
    require(actor, Role.EDITOR)
    if action not in _OUTCOMES:
        raise Invalid(
            f"no such action: {action}", [values.Fault("/action", "must be resume or cancel")]
        )
    try:
        values.check(payload, "/payload")
    except values.RefusedJSON as refused:
        raise Invalid("the answer cannot be stored", refused.faults) from refused
    ticket = find_ticket(actor, ticket_id)
    if action == "resume" and ticket.response_schema and ticket.status == TicketStatus.PENDING:
        faults = schemas.compile_schema(ticket.response_schema).faults(payload.value)
        if faults:
            raise Invalid("the payload does not fit the ticket's response schema", faults)
    with transaction.atomic():
        run, thread = runs.lock_run(actor, ticket.run.public_id)
        decided = Ticket.objects.filter(pk=ticket.pk, status=TicketStatus.PENDING).update(
            status=_OUTCOMES[action],
            payload=payload.text,
            decided_by=actor.name,
            decided_at=Now(),
        )
        if not decided:
            raise Conflict(
                f"ticket already decided: {ticket_id}", detail="The first decision stands."
            )
        trace = journal.Trace(
            f"ticket.{action}", key=ticket_id, thread=thread.public_id, run=run.public_id
        )
        journal.record(actor, [trace], reason=reason)
        waits = Ticket.objects.filter(run=run).pending().exists()
        if run.status == RunStatus.WAITING and not waits:
            change = RunChange(status=RunStatus.RUNNING)
            writes = runs.apply_change(run, thread, change)
            snapshots.advance(
                actor, thread, RevisionKind.COMMIT, writes, action="run.running", run=run
            )
    return find_ticket(actor, ticket_id)
