"""Decides and expires tickets. The first decision is final; after the last one, the run resumes."""

from __future__ import annotations

from django.db import transaction
from django.db.models.functions import Now

from state_admin.domain import moments, schemas, values
from state_admin.domain.access import Actor, Role
from state_admin.domain.values import Raw
from state_admin.models import OnExpiry, RevisionKind, Run, RunStatus, Thread, Ticket, TicketStatus
from state_admin.models.tickets import TicketQuerySet

from . import dispatches, journal, runs, snapshots, tool_calls
from .actors import require, system_actor
from .errors import Conflict, Invalid, NotFound, check_storable
from .finding import find_row, refuse
from .runs import RunChange

_OUTCOMES = {"resume": TicketStatus.RESUMED, "cancel": TicketStatus.CANCELLED}


def find_ticket(actor: Actor, ticket_id: str) -> Ticket:
    rows = Ticket.objects.visible_to(actor).select_related("run", "run__thread")
    return find_row(rows, "ticket", public_id=ticket_id)


def decide_ticket(
    *,
    actor: Actor,
    ticket_id: str,
    action: str,
    payload: Raw,
    reason: str = "",
    expected_pk: int | None = None,
) -> Ticket:
    """Record a decision. `resume` has a payload that satisfies the response schema of the ticket.

    Raises Conflict `ticket already decided: …` for a second decision, and `ticket expired: …` for a
    late one. The state of the tool call changes in one new revision. After the last ticket the run
    is running again, in the same revision; if it waited with `"wake": "dispatch"`, its thread gets
    a dispatch.

    What a ticket asks never changes, but its id can be used again after its thread was deleted:
    `expected_pk` is the row that was shown to the person who decides. Raises Conflict if it is gone.
    """
    require(actor, Role.EDITOR)
    if action not in _OUTCOMES:
        raise Invalid(
            f"unknown action: {action}", [values.Fault("/action", "must be resume or cancel")]
        )
    check_storable(payload, "the payload", "/payload")
    ticket = find_ticket(actor, ticket_id)
    if expected_pk is not None and ticket.pk != expected_pk:
        raise Conflict(
            f"ticket replaced: {ticket_id}",
            hint="The ticket was deleted, and another ticket has its id. Read the new ticket before you decide.",
        )
    if action == "resume" and ticket.response_schema and ticket.status == TicketStatus.PENDING:
        faults = schemas.compile_schema(ticket.response_schema).faults(payload.value)
        refuse(faults, "the payload does not satisfy the ticket's response schema")
    with transaction.atomic():
        run, thread = runs.lock_run(actor, ticket.run.public_id)
        in_time = Ticket.objects.filter(pk=ticket.pk).pending().in_time()
        if _close(actor, in_time, action, payload):
            _record_decision(actor, ticket, run, thread, action, payload, reason)
            return find_ticket(actor, ticket_id)
    ticket = find_ticket(actor, ticket_id)
    if ticket.status != TicketStatus.PENDING:
        raise Conflict(f"ticket already decided: {ticket_id}", hint=_outcome(ticket))
    expire_ticket(ticket)
    raise Conflict(f"ticket expired: {ticket_id}", hint="The ticket can no longer be decided.")


def _outcome(ticket: Ticket) -> str:
    """Who decided what, for a caller whose decision is too late."""
    if ticket.status == TicketStatus.VOID or ticket.decided_at is None:
        return "Its run ended or continued without a decision."
    verb = "approved" if ticket.status == TicketStatus.RESUMED else "refused"
    moment = ticket.decided_at.strftime("%Y-%m-%d %H:%M:%S UTC")
    return f"{ticket.decided_by} {verb} it at {moment}. The first decision is final."


def expire_ticket(ticket: Ticket) -> bool:
    """Cancel a pending ticket that has expired, if its `on_expiry` says so. Returns whether it
    did."""
    actor = system_actor(ticket.workspace_id, "system")
    nothing = Raw("null", None)
    with transaction.atomic():
        try:
            run, thread = runs.lock_run(actor, ticket.run.public_id)
        except NotFound:  # deleted meanwhile, and the ticket with it
            return False
        due = Ticket.objects.filter(pk=ticket.pk).pending().expired()
        due = due.filter(on_expiry=OnExpiry.CANCEL)
        if not _close(actor, due, "cancel", nothing):
            return False
        _record_decision(
            actor, ticket, run, thread, "cancel", nothing, "expired without a decision"
        )
    return True


def _close(actor: Actor, which: TicketQuerySet, action: str, payload: Raw) -> bool:
    """Decide the ticket, in one statement. False: it was decided already, or has expired."""
    decided = which.update(
        status=_OUTCOMES[action], payload=payload.text, decided_by=actor.name, decided_at=Now()
    )
    return decided == 1


def _record_decision(
    actor: Actor,
    ticket: Ticket,
    run: Run,
    thread: Thread,
    action: str,
    payload: Raw,
    reason: str,
) -> None:
    """Record a decision and its effects as one revision: the state of the tool call and, after the last
    ticket, the run that resumes."""
    trace = journal.Trace(
        f"ticket.{action}", key=ticket.public_id, thread=thread.public_id, run=run.public_id
    )
    journal.record(actor, [trace], reason=reason)
    writes = tool_calls.mirror_calls(
        actor, thread, [_call(ticket, run, action, payload, reason)], {}
    )
    pending = Ticket.objects.filter(run=run).pending()
    woken = run.status == RunStatus.WAITING and not pending.exists()
    asked_for_dispatch = woken and (run.waiting or {}).get("wake") == "dispatch"
    if woken:
        change = RunChange(status=RunStatus.RUNNING)
        writes |= runs.apply_change(actor, run, thread, change, writes)
    elif run.status == RunStatus.WAITING:
        Run.objects.filter(pk=run.pk).update(ticket_due_at=pending.first_due())
    if writes:
        kind = "run.running" if woken else "run.tool_calls"
        snapshots.advance(actor, thread, RevisionKind.COMMIT, writes, action=kind, run=run)
    if asked_for_dispatch:
        dispatches.wake_run(actor, run)
    journal.align_feed_clock(actor)


def _call(ticket: Ticket, run: Run, action: str, payload: Raw, reason: str) -> tool_calls.Call:
    now = run.read_at
    if action == "cancel":
        return tool_calls.call_of(ticket, "cancelled", now)
    because = {"reason": reason} if reason else {}
    answer = {
        "decision_id": ticket.public_id,
        "action": action,
        "result": values.load(payload.text),
        **because,
        "updated_at": moments.milliseconds(now),
    }
    return tool_calls.call_of(ticket, "resuming", now, resume_input=answer)
