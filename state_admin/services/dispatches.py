"""The mailbox of a thread: enqueue, claim, extend, ack, nack, cancel, interrupt.

Every verb holds the mailbox's row while it moves a dispatch, so of two verbs one sees what the other
did. Claims pass by what others hold. The order of locks: thread, mailbox; several mailboxes by id.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F
from django.db.models.functions import Now

from state_admin.domain import mailbox, values
from state_admin.domain.access import Actor, Role
from state_admin.domain.ids import uuid7
from state_admin.domain.values import Fault, Raw
from state_admin.models import Dispatch, DispatchStatus, Mailbox, Run, Thread, dispatches_sql
from state_admin.models import access as access_models
from state_admin.models.dispatches import OPEN

from . import journal
from .actors import require, system_actor
from .errors import Conflict, Invalid, NotFound
from .threads import find_thread, thread_not_found

# Mailboxes that one claim, or one turn of the sweep, brings up to date.
_DUE_AT_ONCE = 200
# What nobody holds any more.
FREE: dict[str, Any] = {
    "claim_digest": "",
    "claimed_by": "",
    "claimed_at": None,
    "lease_until": None,
}


@dataclass(frozen=True)
class Claims:
    """What a claim got: dispatches of different threads, held by one token until their leases."""

    dispatches: Sequence[Dispatch]
    token: str


@dataclass(frozen=True)
class Interruption:
    """The new epoch, how many queued dispatches it superseded, and the one that is still claimed:
    whoever works on it should stop."""

    epoch: int
    superseded: int
    active: Dispatch | None


def find_dispatch(actor: Actor, dispatch_id: str) -> Dispatch:
    found = (
        Dispatch.objects.visible_to(actor)
        .select_related("thread", "run")
        .filter(public_id=dispatch_id)
        .first()
    )
    if found is None:
        raise NotFound(f"dispatch not found: {dispatch_id}")
    return found


def enqueue_dispatch(
    *,
    actor: Actor,
    thread_id: str,
    payload: Raw,
    run_id: str = "",
    agent_id: str = "",
    priority: int = mailbox.DEFAULT_PRIORITY,
    available_at: datetime | None = None,
    dedupe_key: str = "",
    max_attempts: int = mailbox.DEFAULT_MAX_ATTEMPTS,
    reason: str = "",
) -> Dispatch:
    """Put work into a thread's mailbox, under its present epoch. `available_at` None: now.

    `agent_id` says for whom; left out, it is the run's. Invalid for a run of another thread. While a
    dispatch with the same `dedupe_key` is queued or claimed: Conflict with its `dispatch_id`.
    """
    require(actor, Role.EDITOR)
    try:
        values.check(payload, "/payload")
    except values.RefusedJSON as refused:
        raise Invalid("the payload cannot be stored", refused.faults) from refused
    with transaction.atomic():
        thread = find_thread(actor, thread_id)
        run = _find_run(thread, run_id) if run_id else None
        epoch = _lock_mailbox(thread).epoch
        public_id = uuid7()
        try:
            with transaction.atomic():
                Dispatch.objects.create(
                    workspace_id=thread.workspace_id,
                    thread=thread,
                    public_id=public_id,
                    run=run,
                    agent_id=agent_id or (run.agent_id if run else ""),
                    payload=payload.text,
                    priority=priority,
                    available_at=available_at or Now(),
                    dedupe_key=dedupe_key,
                    epoch=epoch,
                    max_attempts=max_attempts,
                )
        except IntegrityError as error:
            held = Dispatch.objects.get(thread=thread, dedupe_key=dedupe_key, status__in=OPEN)
            raise _duplicate(held) from error
        told = dispatches_sql.refresh([thread.pk], actor.name)
        dispatch = find_dispatch(actor, public_id)
        _record(actor, "enqueue", dispatch, reason, priority=priority)
        if told:
            journal.align_feed_clock(actor)
    return dispatch


def claim_dispatches(
    *,
    actor: Actor,
    consumer: str = "",
    thread_id: str = "",
    agent_id: str = "",
    limit: int = 1,
    lease_seconds: int = mailbox.DEFAULT_LEASE_SECONDS,
    reason: str = "",
) -> Claims:
    """Claim the first dispatch in line of up to `limit` threads in which none is claimed, by
    priority, then age; with `thread_id` of that one, with `agent_id` where it is that agent's turn.

    First brings back what has become due, so that nothing depends on the sweep. May answer fewer
    than there are while others hold their mailboxes; never the same twice.
    """
    require(actor, Role.EDITOR)
    thread = find_thread(actor, thread_id) if thread_id else None
    token = secrets.token_urlsafe(24)
    with transaction.atomic():
        if thread is None:
            due = dispatches_sql.lock_due(actor.workspace_id, _DUE_AT_ONCE)
        else:
            due = dispatches_sql.lock_mailbox(thread.pk)
        _, told = _settle(actor.workspace_id, due)
        claimed = dispatches_sql.claim(
            actor,
            thread=thread.pk if thread else None,
            agent=agent_id,
            limit=limit,
            lease=timedelta(seconds=lease_seconds),
            consumer=consumer or actor.name,
            digest=access_models.digest(token),
        )
        rows = Dispatch.objects.filter(pk__in=claimed).select_related("thread", "run")
        got = list(rows.order_by("priority", "pk")) if claimed else []
        journal.record(
            actor,
            [
                _trace("claim", one, consumer=one.claimed_by, attempt=one.attempts + 1)
                for one in got
            ],
            reason=reason,
        )
        if told:
            journal.align_feed_clock(actor)
    return Claims(got, token)


def extend_dispatch(
    *,
    actor: Actor,
    dispatch_id: str,
    claim_token: str,
    lease_seconds: int = mailbox.DEFAULT_LEASE_SECONDS,
    reason: str = "",
) -> Dispatch:
    """Let the lease end `lease_seconds` from now. Conflict when the claim does not stand, or the
    thread was interrupted."""
    require(actor, Role.EDITOR)
    with transaction.atomic():
        held = _lock_claim(actor, dispatch_id, claim_token)
        _refuse_superseded(held)
        until = Now() + timedelta(seconds=lease_seconds)
        return _move(actor, "extend", held, reason, lease_until=until)


def ack_dispatch(*, actor: Actor, dispatch_id: str, claim_token: str, reason: str = "") -> Dispatch:
    """Finish a claimed dispatch as delivered. That the work succeeded is for the run to say.

    Conflict as for extend. A lease that has ended but was not taken back yet still counts: the work
    is done, and to do it again would help nobody.
    """
    require(actor, Role.EDITOR)
    with transaction.atomic():
        held = _lock_claim(actor, dispatch_id, claim_token)
        _refuse_superseded(held)
        return _move(
            actor, "ack", held, reason, status=DispatchStatus.ACKED, finished_at=Now(), **FREE
        )


def nack_dispatch(
    *,
    actor: Actor,
    dispatch_id: str,
    claim_token: str,
    error: str = "",
    retry_after: int | None = None,
    reason: str = "",
) -> Dispatch:
    """Give a claimed dispatch back: into line again after `retry_after` seconds (None: 250 ms,
    doubling with each failure up to 30 s), or to the dead letters when its attempts are used up.

    Of an interrupted thread it only lets go: the dispatch is superseded.
    """
    require(actor, Role.EDITOR)
    with transaction.atomic():
        held = _lock_claim(actor, dispatch_id, claim_token)
        failures = held.attempts + 1
        fate: dict[str, Any] = {"finished_at": Now()}
        if _is_superseded(held):
            fate["status"] = DispatchStatus.SUPERSEDED
        elif mailbox.is_exhausted(failures, held.max_attempts):
            fate["status"] = DispatchStatus.DEAD
        else:
            rest = mailbox.pause_after(failures)
            if retry_after is not None:
                rest = timedelta(seconds=retry_after)
            fate = {"status": DispatchStatus.QUEUED, "available_at": Now() + rest}
        return _move(
            actor, "nack", held, reason, attempts=failures, last_error=error, **fate, **FREE
        )


def cancel_dispatch(*, actor: Actor, dispatch_id: str, reason: str = "") -> Dispatch:
    """Take a queued dispatch out of the line. Conflict when it is not queued: a claimed one is
    its worker's, see interrupt."""
    require(actor, Role.EDITOR)
    with transaction.atomic():
        held = lock_dispatch(actor, dispatch_id)
        if held.status != DispatchStatus.QUEUED:
            raise Conflict(f"dispatch is not queued: {dispatch_id}", dispatch_status=held.status)
        return _move(
            actor, "cancel", held, reason, status=DispatchStatus.CANCELLED, finished_at=Now()
        )


def interrupt_thread(*, actor: Actor, thread_id: str, reason: str = "") -> Interruption:
    """Begin a new epoch: all that is queued is superseded. What is claimed stays its worker's,
    who can no longer extend or ack it; until they let go, or their lease ends, the thread waits."""
    require(actor, Role.EDITOR)
    with transaction.atomic():
        thread = find_thread(actor, thread_id)
        box = _lock_mailbox(thread)
        Mailbox.objects.filter(pk=box.pk).update(epoch=F("epoch") + 1)
        rows = Dispatch.objects.filter(thread=thread)
        superseded = rows.filter(status=DispatchStatus.QUEUED).update(
            status=DispatchStatus.SUPERSEDED, updated_at=Now(), finished_at=Now()
        )
        dispatches_sql.refresh([thread.pk], actor.name)
        detail = {"epoch": box.epoch + 1, "superseded": superseded}
        trace = journal.Trace("thread.interrupt", thread=thread_id, detail=detail)
        journal.record(actor, [trace], reason=reason)
        active = rows.filter(status=DispatchStatus.CLAIMED).select_related("thread", "run").first()
    return Interruption(box.epoch + 1, superseded, active)


def wake_run(actor: Actor, run: Run) -> Dispatch:
    """Tell whoever works for the run's thread that it goes on (awaken's `hitl_resume` intent).
    Called in the transaction that resumed it, which holds the thread."""
    payload = {"kind": "hitl_resume", "run_id": run.public_id}
    return enqueue_dispatch(
        actor=actor,
        thread_id=run.thread.public_id,
        run_id=run.public_id,
        payload=Raw(values.dump(payload), payload),
    )


def settle_mailboxes() -> dict[str, int]:
    """The sweep: take back what dead workers held, and find who is next where time alone decides."""
    settled = returned = 0
    for workspace_id in dispatches_sql.workspaces_with_due():
        while True:
            with transaction.atomic():
                due = dispatches_sql.lock_due(workspace_id, _DUE_AT_ONCE)
                number, told = _settle(workspace_id, due)
                if told:
                    journal.align_feed_clock(system_actor(workspace_id, "mailbox"))
            returned += number
            settled += len(due)
            if len(due) < _DUE_AT_ONCE:
                break
    return {"mailboxes": settled, "returned": returned}


def anything_due() -> bool:
    """Whether the sweep would find something: one probe per workspace."""
    return bool(dispatches_sql.workspaces_with_due())


def _settle(workspace_id: int, threads: Sequence[int]) -> tuple[int, bool]:
    """Bring locked mailboxes up to date; answers how many leases had ended, and whether the feed
    was told anything."""
    if not threads:
        return 0, False
    actor = system_actor(workspace_id, "mailbox")
    returned = dispatches_sql.take_back(threads)
    told = dispatches_sql.refresh(threads, actor.name)
    traces = [
        journal.Trace(
            "dispatch.expire",
            key=one.id,
            thread=one.thread,
            run=one.run,
            detail={"status": one.status, "consumer": one.claimed_by},
        )
        for one in returned
    ]
    journal.record(actor, traces)
    return len(returned), told or bool(returned)


def lock_dispatch(actor: Actor, dispatch_id: str) -> Dispatch:
    """The dispatch as it is, with its mailbox locked."""
    mine = Dispatch.objects.visible_to(actor).filter(public_id=dispatch_id)
    Mailbox.objects.select_for_update().filter(thread__in=mine.values("thread")).first()
    return find_dispatch(actor, dispatch_id)


def _lock_mailbox(thread: Thread) -> Mailbox:
    if not dispatches_sql.open_mailbox(thread.pk):
        raise thread_not_found(thread.public_id)
    return Mailbox.objects.select_for_update().get(thread=thread)


def _lock_claim(actor: Actor, dispatch_id: str, claim_token: str) -> Dispatch:
    held = lock_dispatch(actor, dispatch_id)
    digest = access_models.digest(claim_token)
    if not hmac.compare_digest(held.claim_digest, digest):
        raise Conflict(
            f"the claim is no longer valid: {dispatch_id}",
            hint=(
                "The claim token is wrong, or the lease expired and the dispatch returned to "
                "the queue."
            ),
            dispatch_status=held.status,
        )
    return held


def _is_superseded(held: Dispatch) -> bool:
    return held.epoch < Mailbox.objects.get(thread=held.thread_id).epoch


def _refuse_superseded(held: Dispatch) -> None:
    if _is_superseded(held):
        raise Conflict(
            f"dispatch superseded: {held.public_id}",
            hint="The thread was interrupted. Stop processing and nack the dispatch.",
        )


def _find_run(thread: Thread, run_id: str) -> Run:
    run = Run.objects.filter(thread=thread, public_id=run_id).first()
    if run is None:
        raise Invalid(
            f"run not found on this thread: {run_id}",
            [Fault("/run_id", "must be a run of this thread")],
        )
    return run


def _duplicate(held: Dispatch) -> Conflict:
    return Conflict(
        f"dispatch already enqueued: {held.dedupe_key}",
        hint="A dispatch with this dedupe_key is still open.",
        dispatch_id=held.public_id,
        dispatch_status=held.status,
    )


def _move(actor: Actor, verb: str, held: Dispatch, reason: str, **columns: Any) -> Dispatch:
    """Change a dispatch whose mailbox is locked, and answer it as it is then."""
    Dispatch.objects.filter(pk=held.pk).update(updated_at=Now(), **columns)
    told = dispatches_sql.refresh([held.thread_id], actor.name)
    moved = find_dispatch(actor, held.public_id)
    _record(actor, verb, moved, reason, status=moved.status)
    if told:
        journal.align_feed_clock(actor)
    return moved


def _record(actor: Actor, verb: str, dispatch: Dispatch, reason: str, **detail: Any) -> None:
    journal.record(actor, [_trace(verb, dispatch, **detail)], reason=reason)


def _trace(verb: str, dispatch: Dispatch, **detail: Any) -> journal.Trace:
    return journal.Trace(
        f"dispatch.{verb}",
        key=dispatch.public_id,
        thread=dispatch.thread.public_id,
        run=dispatch.run.public_id if dispatch.run else "",
        detail=detail,
    )
