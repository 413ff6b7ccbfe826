"""The lifecycle of a run: statuses, valid transitions, why it ended or waits.

Not here: its copy in the state (reducers) and what is stored (models, services).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final

from state_admin.domain.values import JSON, Fault, pointer_of


class RunStatus(StrEnum):
    CREATED = "created"
    RUNNING = "running"
    WAITING = "waiting"
    DONE = "done"


ACTIVE: Final = frozenset({RunStatus.CREATED, RunStatus.RUNNING, RunStatus.WAITING})

_MOVES: Final[dict[str, frozenset[str]]] = {
    "created": frozenset({"created", "running", "done"}),
    "running": frozenset({"running", "waiting", "done"}),
    "waiting": frozenset({"waiting", "running", "done"}),
    "done": frozenset({"done"}),
}

TERMINATION_TYPES: Final = (
    "natural_end",
    "behavior_requested",
    "stopped",
    "cancelled",
    "blocked",
    "error",
)
EXPIRIES: Final = ("keep", "cancel")
RESUME_MODES: Final = ("replay_tool_call", "use_decision_as_tool_result", "pass_decision_to_tool")

# The texts that the reference implementation writes into `status_reason`.
_WAITING_STRINGS: Final = {
    "tool_permission": "suspended",
    "user_input": "input_required",
    "background_tasks": "awaiting_tasks",
    "external_event": "external_event",
    "rate_limit": "rate_limit",
    "manual_pause": "manual_pause",
}
WAITING_REASONS: Final = tuple(_WAITING_STRINGS)
WAITING_MEMBERS: Final = ("reason", "message", "deadline_at", "wake", "tickets")
TICKET_MEMBERS: Final = (
    "ticket_id",
    "tool_call_id",
    "tool_name",
    "arguments",
    "reason",
    "resume_mode",
    "response_schema",
    "expires_at",
    "on_expiry",
)
_ALIASES: Final = {"plugin_requested": "behavior_requested"}


def can_move(old: str, new: str) -> bool:
    """Whether a run may change from one status to the other; an unchanged status is valid."""
    return new in _MOVES.get(old, frozenset())


def check_termination(reason: JSON) -> list[Fault]:
    """The faults of a `termination_reason`; [] if it is valid.

    `{"type": …}` with `value`, as in the reference implementation: a text for `blocked` and
    `error`, `{"code", "detail"?}` for `stopped`. The members of `value` may also be beside `type`.
    """
    return list(_termination_faults(reason))


def _termination_faults(reason: JSON) -> Iterator[Fault]:
    if not isinstance(reason, dict):
        yield Fault("", "must be an object with a type")
        return
    kind = _type_of(reason)
    if kind == "suspended":
        yield Fault("/type", "a suspended run must have the status waiting, not done")
    elif kind not in TERMINATION_TYPES:
        yield Fault("/type", f"must be one of {', '.join(TERMINATION_TYPES)}")
    elif kind == "stopped":
        nested = "value" in reason
        body, place = (reason["value"], "/value") if nested else (reason, "")
        if not isinstance(body, dict):
            yield Fault(place, "must be an object with a code")
            return
        if not isinstance(body.get("code"), str) or not body["code"]:
            yield Fault(f"{place}/code", "must be a non-empty string")
        if not isinstance(body.get("detail"), (str, type(None))):
            yield Fault(f"{place}/detail", "must be a string")
    elif kind in ("blocked", "error"):
        if not isinstance(reason.get("value"), (str, type(None))):
            yield Fault("/value", "must be a string")
    elif reason.get("value") is not None:
        yield Fault("/value", f"must be absent for {kind}")


def check_waiting(waiting: JSON) -> list[Fault]:
    """The faults of a `waiting` body (WAITING_MEMBERS, TICKET_MEMBERS); [] if it is valid.

    A ticket needs `tool_call_id` and `tool_name`. The server creates a missing `ticket_id`. Whether
    `response_schema` is a valid schema is checked elsewhere (schemas). `wake` says how the agent is
    notified of the last decision: `dispatch`, or not at all.
    """
    return list(_waiting_faults(waiting))


def _waiting_faults(waiting: JSON) -> Iterator[Fault]:
    if not isinstance(waiting, dict):
        yield Fault("", "must be an object with a reason")
        return
    yield from _unknown_members("", waiting, WAITING_MEMBERS)
    if waiting.get("reason") not in WAITING_REASONS:
        yield Fault("/reason", f"must be one of {', '.join(WAITING_REASONS)}")
    if not isinstance(waiting.get("message"), (str, type(None))):
        yield Fault("/message", "must be a string")
    if waiting.get("wake") not in ("dispatch", None):
        yield Fault("/wake", "must be dispatch or absent")
    tickets = waiting.get("tickets")
    if not isinstance(tickets, (list, type(None))):
        yield Fault("/tickets", "must be an array")
        return
    seen: set[str] = set()
    for index, ticket in enumerate(tickets or ()):
        yield from _ticket_faults(f"/tickets/{index}", ticket)
        identifier = ticket.get("ticket_id") if isinstance(ticket, dict) else None
        if isinstance(identifier, str):
            if identifier in seen:
                yield Fault(f"/tickets/{index}/ticket_id", "two tickets have this id")
            seen.add(identifier)


def _ticket_faults(place: str, ticket: JSON) -> Iterator[Fault]:
    if not isinstance(ticket, dict):
        yield Fault(place, "must be an object")
        return
    yield from _unknown_members(place, ticket, TICKET_MEMBERS)
    for name in ("tool_call_id", "tool_name"):
        if not isinstance(ticket.get(name), str) or not ticket[name]:
            yield Fault(f"{place}/{name}", "must be a non-empty string")
    for name in ("ticket_id", "reason", "expires_at"):
        if not isinstance(ticket.get(name), (str, type(None))):
            yield Fault(f"{place}/{name}", "must be a string")
    if ticket.get("ticket_id") == "":
        yield Fault(f"{place}/ticket_id", "must be a non-empty string")
    if ticket.get("resume_mode") not in (*RESUME_MODES, None):
        yield Fault(f"{place}/resume_mode", f"must be one of {', '.join(RESUME_MODES)}")
    if ticket.get("on_expiry") not in (*EXPIRIES, None):
        yield Fault(f"{place}/on_expiry", f"must be one of {', '.join(EXPIRIES)}")
    if not isinstance(ticket.get("response_schema"), (dict, bool, type(None))):
        yield Fault(f"{place}/response_schema", "must be a JSON Schema")


def _unknown_members(
    place: str, document: dict[str, JSON], members: Collection[str]
) -> Iterator[Fault]:
    for name in document:
        if name not in members:
            message = f"unknown field; must be one of {', '.join(members)}"
            yield Fault(place + pointer_of(name), message)


def status_reason(status: str, detail: JSON) -> str | None:
    """The `status_reason` of the reference implementation for a validated termination reason or
    waiting body: `natural`, `blocked:{text}`, `stopped:{code}`, `input_required`, …"""
    if not isinstance(detail, dict):
        return None
    if status == RunStatus.WAITING:
        return _WAITING_STRINGS.get(str(detail.get("reason")))
    if status != RunStatus.DONE:
        return None
    kind, value = _type_of(detail), detail.get("value")
    if kind == "natural_end":
        return "natural"
    if kind == "stopped":
        return f"stopped:{(value if isinstance(value, dict) else detail).get('code')}"
    if kind == "blocked":
        return f"blocked:{value}" if value else "blocked"
    return kind


def _type_of(reason: dict[str, JSON]) -> str | None:
    kind = reason.get("type")
    return _ALIASES.get(kind, kind) if isinstance(kind, str) else None


def stuck_reason(
    *,
    status: str,
    now: datetime,
    lease_expires_at: datetime | None = None,
    lease_seconds: int = 0,
    lease_released_at: datetime | None = None,
    ticket_due_at: datetime | None = None,
    deadline_at: datetime | None = None,
    times_out_at: datetime | None = None,
    step_count: int = 0,
    max_rounds: int = 0,
) -> str:
    """Why a run is stuck, as text, the most serious reason first; "" if it is not."""
    if status not in ACTIVE:
        return ""
    found = []
    if status == RunStatus.RUNNING and lease_expires_at is not None and lease_expires_at <= now:
        seen = lease_expires_at - timedelta(seconds=lease_seconds)
        found.append(
            f"silent for {format_duration(now - seen)}: no commit or heartbeat since {_at(seen)}"
        )
    if status == RunStatus.RUNNING and lease_expires_at is None and lease_released_at is not None:
        idle = format_duration(now - lease_released_at)
        found.append(f"its lease was released {idle} ago and no worker has taken it over")
    if status == RunStatus.WAITING and ticket_due_at is not None and ticket_due_at <= now:
        found.append(f"a ticket expired undecided at {_at(ticket_due_at)}")
    if status == RunStatus.WAITING and deadline_at is not None and deadline_at <= now:
        late = format_duration(now - deadline_at)
        found.append(f"waiting {late} past its deadline of {_at(deadline_at)}")
    if 0 < max_rounds <= step_count:
        found.append(
            f"all of its {max_rounds:,} rounds are used: it has taken {step_count:,} steps"
        )
    if times_out_at is not None and times_out_at <= now:
        found.append(f"{format_duration(now - times_out_at)} over its time limit")
    return "; ".join(found)


def format_duration(duration: timedelta) -> str:
    """A duration in its largest unit: "45 s", "14 min", "3 h", "2 days"."""
    seconds = max(int(duration.total_seconds()), 0)
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min"
    if seconds < 48 * 3600:
        return f"{seconds // 3600} h"
    return f"{seconds // 86400:,} days"


def _at(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
