"""Mirrors tool calls in the state, in the format of the reference implementation.

runs.py opens the tickets that calls wait for; tickets.py decides them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from state_admin.domain import moments, reducers, values
from state_admin.domain.access import Actor
from state_admin.domain.values import JSON
from state_admin.models import Thread, Ticket, TicketStatus

from . import snapshots
from .snapshots import NewValue
from .state_keys import check_value, find_slots

TOOL_CALLS = "__runtime.tool_call_states"

# A tool call in the value of the state key.
Call = dict[str, JSON]


def call_of(ticket: Ticket, status: str, now: datetime, **more: JSON) -> Call:
    about = {"suspension_reason": ticket.reason} if ticket.reason else {}
    return {
        "call_id": ticket.tool_call_id,
        "tool_name": ticket.tool_name,
        "arguments": values.load(ticket.arguments or "null"),
        "status": status,
        "updated_at": moments.milliseconds(now),
        "resume_mode": ticket.resume_mode,
        "suspension_id": ticket.public_id,
        **about,
        **more,
    }


def mirror_calls(
    actor: Actor, thread: Thread, calls: Sequence[Call], writes: Mapping[str, NewValue]
) -> dict[str, NewValue]:
    """Return the state write that mirrors `calls`, applied after `writes`. An invalid transition
    leaves a call unchanged. Returns {} if the current value is malformed.

    Raises TooLarge and Invalid as the updates of a commit do, unless all calls are cancelled, so
    that a run can always end.
    """
    if not calls:
        return {}
    slot = find_slots(actor, thread, [TOOL_CALLS])[TOOL_CALLS]
    before = writes[TOOL_CALLS].text if TOOL_CALLS in writes else slot.held
    value = values.load(before or "{}")
    try:
        for call in calls:
            value = reducers.apply(reducers.Reducer.TOOL_CALLS, value, {"put": call})
    except reducers.UpdateRefused:
        return {}
    text = values.dump(value)
    if any(call["status"] != "cancelled" for call in calls):
        check_value(slot, text)
    return {TOOL_CALLS: snapshots.new_value(slot, text)}


def drop_ended(actor: Actor, thread: Thread) -> dict[str, NewValue]:
    """Return the state write that removes the calls of ended runs. Suspended calls remain, unless
    their ticket is closed, because only these can still resume. No run may be active."""
    slot = find_slots(actor, thread, [TOOL_CALLS])[TOOL_CALLS]
    calls = values.load(slot.held or "{}") or {}
    try:
        suspended = reducers.suspended_calls(calls)
    except reducers.UpdateRefused:
        return {}
    statuses = _statuses(actor, suspended)
    kept = {
        name: call
        for name, call in suspended.items()
        if statuses.get(name, TicketStatus.PENDING) == TicketStatus.PENDING
    }
    if len(kept) == len(calls):
        return {}
    return {TOOL_CALLS: snapshots.new_value(slot, values.dump(kept) if kept else None)}


def without_tickets(actor: Actor, text: str) -> str | None:
    """Return the value `text` of the state key without the calls that have a ticket, None if there
    are no others: for a copy of the state, whose calls nobody can decide."""
    calls = values.load(text)
    if not isinstance(calls, dict):
        return text
    tickets = _statuses(actor, calls)
    kept = {name: call for name, call in calls.items() if name not in tickets}
    if len(kept) == len(calls):
        return text
    return values.dump(kept) if kept else None


def _statuses(actor: Actor, calls: Mapping[str, JSON]) -> dict[str, str]:
    """The statuses of the tickets of `calls`, by the name of the call."""
    ids = {
        name: call.get("suspension_id") for name, call in calls.items() if isinstance(call, dict)
    }
    ticket_ids = [each for each in ids.values() if isinstance(each, str)]
    if not ticket_ids:
        return {}
    tickets = Ticket.objects.filter(workspace_id=actor.workspace_id, public_id__in=ticket_ids)
    statuses = dict(tickets.values_list("public_id", "status"))
    return {name: statuses[ticket] for name, ticket in ids.items() if ticket in statuses}
