"""Starts runs, changes their status, and renews their leases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import MappingProxyType

from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from state_admin.domain import lifecycle, moments, schemas, values
from state_admin.domain.access import Actor, Role
from state_admin.domain.ids import uuid7
from state_admin.domain.values import EMPTY_OBJECT, JSON, MAX_VALUE_BYTES, Fault, Raw
from state_admin.models import (
    OnExpiry,
    Origin,
    RevisionKind,
    Run,
    RunStatus,
    Thread,
    Ticket,
    TicketStatus,
    runs_sql,
)
from state_admin.models.runs import IN_PROGRESS

from . import journal, snapshots, tool_calls
from .actors import require
from .errors import Conflict, Invalid, NotFound, RevisionConflict, Superseded
from .finding import find_row, refuse, the_only
from .snapshots import NewValue
from .threads import check_id, find_thread

MAX_TICKETS = 100
MAX_TOOL_NAME = 256


@dataclass(frozen=True)
class RunChange:
    """The requested changes of a run. None: unchanged. Counts are totals, not increments. `pointer` is
    their place in the body of the request."""

    status: str | None = None
    waiting: JSON = None
    termination_reason: JSON = None
    step_count: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: str | None = None
    metadata: Raw | None = None
    pointer: str = field(default="", compare=False)

    @property
    def empty(self) -> bool:
        return self == UNCHANGED


UNCHANGED = RunChange()


def find_run(actor: Actor, run_id: str) -> Run:
    rows = Run.objects.visible_to(actor).timed().select_related("thread")
    return find_row(rows, "run", public_id=run_id)


def is_resting(actor: Actor, run: Run, pending: Sequence[Ticket]) -> bool:
    """Whether a run is done or waits. `pending`: its pending tickets, read after it. Without them it
    is read again, because the last decision may have resumed it in between. Raises NotFound."""
    if run.status != RunStatus.WAITING or pending:
        return run.status not in IN_PROGRESS
    return find_run(actor, run.public_id).last_revision == run.last_revision


def parents_of(actor: Actor, runs: Sequence[Run]) -> set[str]:
    """Return the ids of the parents of `runs`, without those outside the thread prefixes of the
    actor's token. An unknown parent is omitted in the same way as a hidden one."""
    named = {run.parent_run_id for run in runs if run.parent_run_id}
    if not (named and actor.thread_prefixes):
        return named
    seen = Run.objects.visible_to(actor).filter(public_id__in=named)
    return set(seen.values_list("public_id", flat=True))


def lock_run(actor: Actor, run_id: str) -> tuple[Run, Thread]:
    """Return the run and its thread, with both rows locked, the thread first, as all work on a
    thread does. `run.read_at` is the database's time. Raises NotFound."""
    run = runs_sql.lock(
        workspace_id=actor.workspace_id, run_id=run_id, prefixes=actor.thread_prefixes
    )
    if run is None:
        raise NotFound(f"run not found: {run_id}")
    return run, run.thread


def check_fencing(run: Run, token: int | None) -> None:
    """Raise Superseded if `token` is not the newest fencing token of a locked run. None: no
    check."""
    if token is not None and token != run.fencing_token:
        raise Superseded(token, run.fencing_token)


def start_run(
    *,
    actor: Actor,
    thread_id: str,
    run_id: str | None = None,
    agent_id: str = "",
    parent_run_id: str = "",
    parent_thread_id: str = "",
    origin: str = Origin.USER,
    metadata: Raw = EMPTY_OBJECT,
    status: str = RunStatus.RUNNING,
    lease_seconds: int = 60,
    max_rounds: int = 0,
    timeout_seconds: int | None = None,
    reason: str = "",
) -> tuple[Run, bool]:
    """Start a run. Returns it, and whether it is new. With the id and content of an active run,
    returns that run.

    The start revision clears the run-scoped keys and the finished tool calls of the previous run.
    `parent_thread_id` defaults to the thread's parent. The first fencing token is 1.

    Raises Conflict `thread already has an active run: …`, `run is done: …` for the id of a finished
    run, and `run already exists with other content: …`.
    """
    require(actor, Role.EDITOR)
    public_id = check_id(run_id, "/id") if run_id is not None else uuid7()
    if status not in IN_PROGRESS:
        raise Invalid(
            "a new run must have the status created or running", [Fault("/status", str(status))]
        )
    content = {
        "thread_id": thread_id,
        "agent_id": agent_id,
        "parent_run_id": parent_run_id,
        "parent_thread_id": parent_thread_id,
        "origin": str(origin),
        "metadata": metadata.value,
        "max_rounds": max_rounds,
        "timeout_seconds": timeout_seconds,
        "status": str(status),
        "lease_seconds": lease_seconds,
    }
    with transaction.atomic():
        thread = find_thread(actor, thread_id, lock=True)
        same_id = Run.objects.filter(workspace_id=actor.workspace_id, public_id=public_id)
        existing = the_only(same_id.timed())
        if existing is not None:
            if not values.same(values.load(existing.created_from or "{}"), content):
                raise Conflict(f"run already exists with other content: {public_id}")
            if existing.status == RunStatus.DONE:
                raise Conflict(
                    f"run is done: {public_id}",
                    hint="A finished run cannot be restarted. Start a run with another id.",
                )
            return existing, False
        run = Run(
            workspace_id=actor.workspace_id,
            thread=thread,
            public_id=public_id,
            agent_id=agent_id,
            status=status,
            parent_run_id=parent_run_id,
            parent_thread_id=parent_thread_id or (thread.parent.public_id if thread.parent else ""),
            origin=origin,
            metadata=metadata.text,
            created_from=values.dump(content),
            lease_seconds=lease_seconds,
            max_rounds=max_rounds,
        )
        try:
            with transaction.atomic():
                run.save(force_insert=True)
        except IntegrityError as error:
            if same_id.exists():
                raise Conflict(f"run already exists with other content: {public_id}") from error
            raise Conflict(
                f"thread already has an active run: {thread_id}",
                hint="End or cancel the run that the thread names as active_run_id, or start "
                "the new run on another thread.",
            ) from error
        run, _ = lock_run(actor, public_id)
        now = run.read_at
        writes = snapshots.clears(thread, scope="run") | tool_calls.drop_ended(actor, thread)
        writes[snapshots.LIFECYCLE] = snapshots.lifecycle_value(
            run, None, moments.milliseconds(now)
        )
        advanced = snapshots.advance(
            actor, thread, RevisionKind.START, writes, action="run.start", run=run, reason=reason
        )
        run.start_revision = advanced.revision
        running = status == RunStatus.RUNNING
        run.started_at = now if running else None
        run.lease_expires_at = now + timedelta(seconds=lease_seconds) if running else None
        if timeout_seconds:
            run.times_out_at = now + timedelta(seconds=timeout_seconds)
        run.save(update_fields=["start_revision", "started_at", "lease_expires_at", "times_out_at"])
        Thread.objects.filter(pk=thread.pk).update(active_run=run, latest_run=run)
    return run, True


def change_run(
    *,
    actor: Actor,
    run_id: str,
    change: RunChange,
    fencing_token: int | None = None,
    expected_revision: int | None = None,
    reason: str = "",
) -> Run:
    """Change the status or the counts of a run outside a commit.

    A change of what state mirrors (status, step count, tool calls) creates one revision. With
    `expected_revision`, every change does, so that only one of two changes that expect the same
    revision succeeds. Raises Superseded for an old fencing token, RevisionConflict if the run's
    last revision is not `expected_revision`, and what apply_change raises.
    """
    require(actor, Role.EDITOR)
    with transaction.atomic():
        run, thread = lock_run(actor, run_id)
        check_fencing(run, fencing_token)
        if expected_revision is not None and expected_revision != run.last_revision:
            raise RevisionConflict(expected_revision, run.last_revision)
        writes = apply_change(actor, run, thread, change)
        if writes or (expected_revision is not None and not change.empty):
            kind = RevisionKind.END if run.status == RunStatus.DONE else RevisionKind.COMMIT
            action = f"run.{run.status}" if writes else "run.change"
            snapshots.advance(actor, thread, kind, writes, action=action, run=run, reason=reason)
        elif not change.empty:
            trace = journal.Trace("run.change", thread=thread.public_id, run=run_id)
            journal.record(actor, [trace], reason=reason)
        if change.waiting is not None:  # tickets have rows of their own in the feed
            journal.align_feed_clock(actor)
    return run


def heartbeat(
    *, actor: Actor, run_id: str, fencing_token: int | None = None, reason: str = ""
) -> Run:
    """Renew the lease of an active run, with one conditional UPDATE. Writes an audit row only if
    there is a `reason` (docs/adr/0008). Raises NotFound, Superseded for an old fencing token, and
    Conflict for a finished run."""
    require(actor, Role.EDITOR)
    run = find_run(actor, run_id)
    rows = Run.objects.filter(pk=run.pk).active()
    if fencing_token is not None:
        rows = rows.filter(fencing_token=fencing_token)
    with transaction.atomic() if reason else nullcontext():
        renewed = rows.update(
            lease_expires_at=Now() + timedelta(seconds=run.lease_seconds), flagged_at=None
        )
        if not renewed:
            check_fencing(find_run(actor, run_id), fencing_token)
            raise Conflict(f"run is done: {run_id}", hint="A finished run has no lease.")
        if reason:
            trace = journal.Trace("run.renew", thread=run.thread.public_id, run=run_id)
            journal.record(actor, [trace], reason=reason)
    run = find_run(actor, run_id)
    check_fencing(run, fencing_token)  # of the run that is returned: another worker may have it now
    return run


def cancel_run(
    *,
    actor: Actor,
    run_id: str,
    expected_revision: int | None = None,
    fencing_token: int | None = None,
    reason: str = "",
) -> Run:
    """End an active run as cancelled. Its pending tickets become void. Raises what change_run
    raises."""
    change = RunChange(status=RunStatus.DONE, termination_reason={"type": "cancelled"})
    return change_run(
        actor=actor,
        run_id=run_id,
        change=change,
        fencing_token=fencing_token,
        expected_revision=expected_revision,
        reason=reason,
    )


def apply_change(
    actor: Actor,
    run: Run,
    thread: Thread,
    change: RunChange,
    writes: Mapping[str, NewValue] = MappingProxyType({}),
) -> dict[str, NewValue]:
    """Store a change of a locked run. Returns the state writes that mirror it. `writes` are the
    earlier writes of the same revision.

    Raises Conflict `invalid run transition: …`, and Invalid for an invalid reason or ticket.
    """
    if change.empty:
        return {}
    now = run.read_at
    old_status, old_mirror = run.status, (run.status, run.step_count, _status_reason(run))
    if run.status == RunStatus.DONE and change.step_count not in (None, run.step_count):
        # The state may already mirror a later run.
        raise Conflict(
            f"run is done: {run.public_id}", hint="The step count of a finished run cannot change."
        )
    calls = _move(actor, run, change, now)
    status_reason = _status_reason(run)
    for name in ("step_count", "input_tokens", "output_tokens", "cost_usd"):
        value = getattr(change, name)
        if value is not None:
            setattr(run, name, value)
    if change.metadata is not None:
        run.metadata = change.metadata.text
    run.flagged_at = None
    if run.status in IN_PROGRESS:
        run.lease_expires_at = now + timedelta(seconds=run.lease_seconds)
    run.updated_at = now
    run.save(
        update_fields=[
            "status",
            "waiting",
            "termination_reason",
            "step_count",
            "input_tokens",
            "output_tokens",
            "cost_usd",
            "metadata",
            "flagged_at",
            "lease_expires_at",
            "deadline_at",
            "ticket_due_at",
            "started_at",
            "finished_at",
            "updated_at",
        ]
    )
    mirrored = tool_calls.mirror_calls(actor, thread, calls, writes)
    if (run.status, run.step_count, status_reason) != old_mirror:
        mirrored[snapshots.LIFECYCLE] = snapshots.lifecycle_value(
            run, status_reason, moments.milliseconds(now)
        )
    if run.status == RunStatus.DONE and old_status != RunStatus.DONE:
        Thread.objects.filter(pk=thread.pk).update(active_run=None)
        mirrored |= snapshots.clears(thread, persistent=False)
    return mirrored


def _move(actor: Actor, run: Run, change: RunChange, now: datetime) -> list[tool_calls.Call]:
    """Change the status of the run in memory. Returns the resulting states of tool calls."""
    status = change.status or run.status
    if status not in RunStatus.values:
        raise Invalid(
            f"unknown run status: {status}",
            [Fault("/status", f"must be one of {', '.join(RunStatus.values)}")],
        )
    if not lifecycle.can_move(run.status, status):
        raise Conflict(f"invalid run transition: {run.status} -> {status}")
    refuse(
        _misplaced_fields(change, status), "the change has fields that its status does not allow"
    )
    given = change.termination_reason
    ended = given if given is not None else {"type": "natural_end"}
    faults = [fault.inside("/termination_reason") for fault in lifecycle.check_termination(ended)]
    refuse(faults, "the termination reason is not valid")
    calls: list[tool_calls.Call] = []
    if status == run.status and change.waiting is None:
        return calls
    if status == RunStatus.WAITING:
        waiting = change.waiting if change.waiting is not None else {"reason": "external_event"}
        faults = [fault.inside("/waiting") for fault in lifecycle.check_waiting(waiting)]
        refuse(faults, "`waiting` is not valid")
        run.waiting = {name: part for name, part in waiting.items() if name != "tickets"}
        run.deadline_at = read_moment(waiting.get("deadline_at"), "/waiting/deadline_at")
        opened = _open_tickets(actor, run, waiting.get("tickets") or [])
        calls = [tool_calls.call_of(ticket, "suspended", now) for ticket in opened]
        run.lease_expires_at = None
    elif status == RunStatus.RUNNING:
        run.waiting, run.deadline_at, run.ticket_due_at = None, None, None
        run.started_at = run.started_at or now
    elif status == RunStatus.DONE and run.status != RunStatus.DONE:
        run.termination_reason, run.waiting = ended, None
        run.finished_at, run.lease_expires_at, run.deadline_at = now, None, None
        calls = [tool_calls.call_of(ticket, "cancelled", now) for ticket in void_tickets(run)]
    run.status = status
    return calls


def _misplaced_fields(change: RunChange, status: str) -> list[Fault]:
    """Return a fault for each field that has no effect in the resulting status."""
    faults = []
    if change.waiting is not None and status != RunStatus.WAITING:
        faults.append(Fault("/waiting", "is allowed only with the status waiting"))
    if change.termination_reason is not None and change.status != RunStatus.DONE:
        faults.append(Fault("/termination_reason", "is allowed only with the status done"))
    return faults


def _status_reason(run: Run) -> str | None:
    return lifecycle.status_reason(run.status, run.termination_reason or run.waiting)


def void_tickets(run: Run) -> list[Ticket]:
    """Void the pending tickets of a locked run, and return them."""
    pending = list(Ticket.objects.filter(run=run).pending().order_by("pk"))
    if pending:
        ids = [ticket.pk for ticket in pending]
        Ticket.objects.filter(pk__in=ids).update(status=TicketStatus.VOID, decided_at=Now())
    run.ticket_due_at = None
    return pending


def _open_tickets(actor: Actor, run: Run, tickets: JSON) -> list[Ticket]:
    if len(tickets) > MAX_TICKETS:
        raise Invalid(
            f"a run can wait for at most {MAX_TICKETS} tickets at once",
            [Fault("/waiting/tickets", f"must have at most {MAX_TICKETS} items")],
        )
    created = [
        _ticket(run, ticket, f"/waiting/tickets/{index}") for index, ticket in enumerate(tickets)
    ]
    try:
        with transaction.atomic():
            Ticket.objects.bulk_create(created)
    except IntegrityError as error:
        raise Conflict(
            "a ticket id is already in use",
            hint="Within a workspace, a ticket id cannot be used again, even after the decision. Send a new ticket_id.",
        ) from error
    journal.record(
        actor,
        [
            journal.Trace(
                "ticket.open", key=row.public_id, thread=run.thread.public_id, run=run.public_id
            )
            for row in created
        ],
    )
    # Of all pending tickets: some may remain from an earlier wait.
    run.ticket_due_at = Ticket.objects.filter(run=run).pending().first_due()
    return created


def _ticket(run: Run, ticket: dict[str, JSON], pointer: str) -> Ticket:
    """Return a ticket row for a body that lifecycle.check_waiting accepts."""
    for name in ("tool_call_id", "tool_name"):
        if len(ticket[name]) > MAX_TOOL_NAME:
            fault = Fault(f"{pointer}/{name}", f"must have at most {MAX_TOOL_NAME} characters")
            raise Invalid("a ticket is not valid", [fault])
    schema = ticket.get("response_schema")
    text = values.dump(schema) if schema is not None else None
    if text is not None:
        try:
            schemas.check_patterns(text, MAX_VALUE_BYTES)
            schemas.compile_schema(text)
        except schemas.InvalidSchema as invalid:
            at = f"{pointer}/response_schema"
            faults = [fault.inside(at) for fault in invalid.faults]
            raise Invalid("a response schema is not valid", faults) from invalid
    return Ticket(
        workspace_id=run.workspace_id,
        run=run,
        public_id=check_id(ticket.get("ticket_id") or uuid7(), f"{pointer}/ticket_id"),
        tool_call_id=ticket["tool_call_id"],
        tool_name=ticket["tool_name"],
        arguments=values.dump(ticket.get("arguments")),
        resume_mode=ticket.get("resume_mode") or lifecycle.RESUME_MODES[0],
        reason=ticket.get("reason") or "",
        response_schema=text,
        on_expiry=ticket.get("on_expiry") or OnExpiry.KEEP,
        expires_at=read_moment(ticket.get("expires_at"), f"{pointer}/expires_at"),
    )


def read_moment(text: JSON, pointer: str) -> datetime | None:
    """The time that a body has at `pointer`. Raises Invalid if it is malformed."""
    if text is None:
        return None
    moment = moments.read(text)
    if moment is None:
        fault = Fault(pointer, "must be an RFC 3339 time such as 2026-01-31T12:00:00Z")
        raise Invalid("a time is not valid", [fault])
    return moment
