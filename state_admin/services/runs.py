"""Starts runs, moves them between statuses, renews their leases (semantics §7)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import IntegrityError, transaction
from django.db.models.functions import Now
from django.utils.dateparse import parse_datetime

from state_admin.domain import lifecycle, schemas, values
from state_admin.domain.access import Actor, Role
from state_admin.domain.ids import uuid7
from state_admin.domain.values import JSON, Fault, Raw
from state_admin.models import (
    Origin,
    RevisionKind,
    Run,
    RunStatus,
    Thread,
    Ticket,
    TicketStatus,
)

from . import journal, snapshots
from .actors import require
from .errors import Conflict, Invalid, NotFound
from .snapshots import NewValue
from .threads import EMPTY_OBJECT, check_id, find_thread

MAX_TICKETS = 100
MAX_TOOL_NAME = 256


@dataclass(frozen=True)
class RunChange:
    """What a caller wants changed on a run. None: leave it. Counts are totals, not increments."""

    status: str | None = None
    waiting: JSON = None
    termination_reason: JSON = None
    step_count: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: str | None = None
    metadata: Raw | None = None

    @property
    def empty(self) -> bool:
        return self == UNCHANGED


UNCHANGED = RunChange()


def find_run(actor: Actor, run_id: str) -> Run:
    run = Run.objects.visible_to(actor).select_related("thread").filter(public_id=run_id).first()
    if run is None:
        raise NotFound(f"run not found: {run_id}")
    return run


def lock_run(actor: Actor, run_id: str) -> tuple[Run, Thread]:
    """The run and its thread, both rows locked, the thread first: the order of all thread work.
    `run.locked_at` is the database's time."""
    run = (
        Run.objects.visible_to(actor)
        .select_related("thread__workspace")
        .select_for_update(of=("thread", "self"))
        .annotate(locked_at=Now())
        .filter(public_id=run_id)
        .first()
    )
    if run is None:
        raise NotFound(f"run not found: {run_id}")
    return run, run.thread


def start_run(
    *,
    actor: Actor,
    thread_id: str,
    run_id: str | None = None,
    agent_id: str = "",
    parent_run_id: str = "",
    origin: str = Origin.USER,
    metadata: Raw = EMPTY_OBJECT,
    status: str = RunStatus.RUNNING,
    lease_seconds: int = 60,
    max_rounds: int = 0,
    timeout_seconds: int | None = None,
    reason: str = "",
) -> tuple[Run, bool]:
    """Start a run; answers it and whether it is new (the same id and content: the stored one).

    Clears the run-scoped keys of the run before it; that clearing is part of the run-start
    revision. Conflict `thread already has an active run: …`.
    """
    require(actor, Role.EDITOR)
    public_id = check_id(run_id) if run_id is not None else uuid7()
    if status not in (RunStatus.CREATED, RunStatus.RUNNING):
        raise Invalid("a run starts as created or running", [Fault("/status", str(status))])
    content = {
        "thread_id": thread_id,
        "agent_id": agent_id,
        "parent_run_id": parent_run_id,
        "origin": str(origin),
        "metadata": metadata.value,
        "max_rounds": max_rounds,
        "timeout_seconds": timeout_seconds,
    }
    with transaction.atomic():
        thread = find_thread(actor, thread_id, lock=True)
        held = Run.objects.filter(workspace_id=actor.workspace_id, public_id=public_id).first()
        if held is not None:
            if values.same(values.load(held.created_from or "{}"), content):
                return held, False
            raise Conflict(f"run already exists with other content: {public_id}")
        run = Run(
            workspace_id=actor.workspace_id,
            thread=thread,
            public_id=public_id,
            agent_id=agent_id,
            status=status,
            parent_run_id=parent_run_id,
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
            if Run.objects.filter(workspace_id=actor.workspace_id, public_id=public_id).exists():
                raise Conflict(f"run already exists with other content: {public_id}") from error
            raise Conflict(f"thread already has an active run: {thread_id}") from error
        run, _ = lock_run(actor, public_id)
        now: datetime = run.locked_at  # type: ignore[attr-defined]
        writes = snapshots.clears(thread, scope="run")
        writes[snapshots.LIFECYCLE] = snapshots.lifecycle_value(run, None, _ms(now))
        advanced = snapshots.advance(
            actor, thread, RevisionKind.START, writes, action="run.start", run=run, reason=reason
        )
        run.start_revision = run.last_revision = advanced.revision
        if status == RunStatus.RUNNING:
            run.started_at = now
            run.lease_expires_at = now + timedelta(seconds=lease_seconds)
        if timeout_seconds:
            run.times_out_at = now + timedelta(seconds=timeout_seconds)
        run.save(
            update_fields=[
                "start_revision",
                "last_revision",
                "started_at",
                "lease_expires_at",
                "times_out_at",
            ]
        )
        Thread.objects.filter(pk=thread.pk).update(active_run=run, latest_run=run)
    return run, True


def change_run(*, actor: Actor, run_id: str, change: RunChange, reason: str = "") -> Run:
    """Move a run, or update its counts, outside a commit. A change of status or step count is
    mirrored in state, as one revision."""
    require(actor, Role.EDITOR)
    with transaction.atomic():
        run, thread = lock_run(actor, run_id)
        before = (run.status, run.step_count)
        writes = apply_change(run, thread, change)
        if (run.status, run.step_count) != before:
            kind = RevisionKind.END if run.status == RunStatus.DONE else RevisionKind.COMMIT
            advanced = snapshots.advance(
                actor, thread, kind, writes, action=f"run.{run.status}", run=run, reason=reason
            )
            run.last_revision = advanced.revision
        elif not change.empty:
            trace = journal.Trace("run.change", thread=thread.public_id, run=run_id)
            journal.record(actor, [trace], reason=reason)
    return run


def heartbeat(*, actor: Actor, run_id: str, reason: str = "") -> Run:
    """Renew the lease of an active run: one conditional UPDATE. An agent's heartbeat is no change
    of state and leaves no trail; a person who gives a reason does."""
    require(actor, Role.EDITOR)
    run = find_run(actor, run_id)
    renewed = (
        Run.objects.filter(pk=run.pk)
        .active()
        .update(lease_expires_at=Now() + timedelta(seconds=run.lease_seconds), flagged_at=None)
    )
    if not renewed:
        raise Conflict(f"run is done: {run_id}", detail="A finished run has no lease.")
    if reason:
        trace = journal.Trace("run.renew", thread=run.thread.public_id, run=run_id)
        journal.record(actor, [trace], reason=reason)
    run.refresh_from_db()
    return run


def cancel_run(*, actor: Actor, run_id: str, reason: str = "") -> Run:
    """End an active run as cancelled; its pending tickets become void."""
    change = RunChange(status=RunStatus.DONE, termination_reason={"type": "cancelled"})
    return change_run(actor=actor, run_id=run_id, change=change, reason=reason)


def apply_change(run: Run, thread: Thread, change: RunChange) -> dict[str, NewValue]:
    """Store a change on a locked run; answers the state writes that mirror it.

    Raises Conflict `invalid run transition: …`, Invalid for a wrong reason or ticket.
    """
    if change.empty:
        return {}
    now: datetime = run.locked_at  # type: ignore[attr-defined]
    old_status, old_steps = run.status, run.step_count
    if run.status == RunStatus.DONE and change.step_count not in (None, run.step_count):
        # Its mirror in state may be another run's by now.
        raise Conflict(f"run is done: {run.public_id}", detail="Its steps are counted.")
    if change.status is not None:
        _move(run, change, now)
    status_reason = lifecycle.status_reason(run.status, run.termination_reason or run.waiting)
    for name in ("step_count", "input_tokens", "output_tokens", "cost_usd"):
        wanted = getattr(change, name)
        if wanted is not None:
            setattr(run, name, wanted)
    if change.metadata is not None:
        run.metadata = change.metadata.text
    run.flagged_at = None
    if run.status in (RunStatus.CREATED, RunStatus.RUNNING):
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
            "started_at",
            "finished_at",
            "updated_at",
        ]
    )
    writes: dict[str, NewValue] = {}
    if run.status != old_status or run.step_count != old_steps:
        writes[snapshots.LIFECYCLE] = snapshots.lifecycle_value(run, status_reason, _ms(now))
    if run.status == RunStatus.DONE and old_status != RunStatus.DONE:
        Thread.objects.filter(pk=thread.pk).update(active_run=None)
        writes |= snapshots.clears(thread, persistent=False)
    return writes


def _move(run: Run, change: RunChange, now: datetime) -> None:
    wanted = change.status or run.status
    if wanted not in RunStatus.values:
        raise Invalid(
            f"no such run status: {wanted}",
            [Fault("/status", f"must be one of {', '.join(RunStatus.values)}")],
        )
    if not lifecycle.can_move(run.status, wanted):
        raise Conflict(f"invalid run transition: {run.status} -> {wanted}")
    if wanted == run.status and change.waiting is None:
        return
    if wanted == RunStatus.WAITING:
        waiting = change.waiting if change.waiting is not None else {"reason": "external_event"}
        _refuse(lifecycle.check_waiting(waiting), "the waiting reason is not acceptable")
        run.waiting = {name: part for name, part in waiting.items() if name != "tickets"}
        run.deadline_at = _moment(waiting.get("deadline_at"), "/deadline_at")
        _open_tickets(run, waiting.get("tickets") or [])
        run.lease_expires_at = None
    elif wanted == RunStatus.RUNNING:
        run.waiting, run.deadline_at = None, None
        run.started_at = run.started_at or now
    elif wanted == RunStatus.DONE and run.status != RunStatus.DONE:
        ended = change.termination_reason or {"type": "natural_end"}
        _refuse(lifecycle.check_termination(ended), "the termination reason is not acceptable")
        run.termination_reason, run.waiting = ended, None
        run.finished_at, run.lease_expires_at, run.deadline_at = now, None, None
        Ticket.objects.filter(run=run).pending().update(status=TicketStatus.VOID, decided_at=Now())
    run.status = wanted


def _open_tickets(run: Run, tickets: JSON) -> None:
    if len(tickets) > MAX_TICKETS:
        raise Invalid(f"a run waits for at most {MAX_TICKETS} tickets at once")
    made = [_ticket(run, ticket, f"/tickets/{index}") for index, ticket in enumerate(tickets)]
    try:
        with transaction.atomic():
            Ticket.objects.bulk_create(made)
    except IntegrityError as error:
        raise Conflict("a ticket id is already in use", detail="Ticket ids are unique.") from error


def _ticket(run: Run, ticket: dict[str, JSON], pointer: str) -> Ticket:
    """A ticket row from a body that lifecycle.check_waiting has passed."""
    for name in ("tool_call_id", "tool_name"):
        if len(ticket[name]) > MAX_TOOL_NAME:
            fault = Fault(f"{pointer}/{name}", f"takes at most {MAX_TOOL_NAME} characters")
            raise Invalid("a ticket is not acceptable", [fault])
    schema = ticket.get("response_schema")
    text = values.dump(schema) if schema is not None else None
    if text is not None:
        try:
            schemas.compile_schema(text)
        except schemas.InvalidSchema as invalid:
            at = f"{pointer}/response_schema"
            faults = [Fault(at + fault.pointer, fault.message) for fault in invalid.faults]
            raise Invalid("a response schema is not acceptable", faults) from invalid
    return Ticket(
        workspace_id=run.workspace_id,
        run=run,
        public_id=check_id(ticket.get("ticket_id") or uuid7()),
        tool_call_id=ticket["tool_call_id"],
        tool_name=ticket["tool_name"],
        arguments=values.dump(ticket.get("arguments")),
        resume_mode=ticket.get("resume_mode") or lifecycle.RESUME_MODES[0],
        reason=ticket.get("reason") or "",
        response_schema=text,
        expires_at=_moment(ticket.get("expires_at"), f"{pointer}/expires_at"),
    )


def _moment(text: JSON, pointer: str) -> datetime | None:
    if text is None:
        return None
    try:
        moment = parse_datetime(text) if isinstance(text, str) else None
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        fault = Fault(pointer, "must be an RFC 3339 time such as 2026-01-31T12:00:00Z")
        raise Invalid("a time is not acceptable", [fault])
    return moment


def _refuse(faults: list[Fault], title: str) -> None:
    if faults:
        raise Invalid(title, faults)


def _ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
