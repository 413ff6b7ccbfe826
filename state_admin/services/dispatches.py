"""The mailbox of a thread: enqueue, claim, extend, ack, nack, cancel, interrupt.

Every verb locks the mailbox's row while it changes a dispatch, so that concurrent verbs are
serialized. Claims skip locked mailboxes. The order of locks is thread, then mailbox; several
mailboxes by id.
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

from state_admin.contract import dispatches as contract
from state_admin.domain import mailbox, values
from state_admin.domain.access import Actor, Role
from state_admin.domain.ids import uuid7
from state_admin.domain.values import Fault, Raw
from state_admin.models import Dispatch, DispatchStatus, Mailbox, Run, Thread, dispatches_sql
from state_admin.models import access as access_models
from state_admin.models.dispatches import OPEN
from state_admin.models.large_columns import without_related

from . import batching, journal
from .actors import require, system_actor
from .errors import Conflict, Invalid, check_storable
from .finding import find_row
from .threads import find_thread, thread_not_found

# The maximum number of mailboxes that one claim, or one step of the sweep, updates.
_DUE_AT_ONCE = 200
# The columns of a dispatch that is not claimed.
FREE: dict[str, Any] = {
    "claim_digest": "",
    "claimed_by": "",
    "claimed_at": None,
    "lease_until": None,
}


@dataclass(frozen=True)
class Claims:
    """The claimed dispatches, each of another thread, with the one claim token for all of them."""

    dispatches: Sequence[Dispatch]
    token: str


def find_dispatch(actor: Actor, dispatch_id: str) -> Dispatch:
    rows = Dispatch.objects.visible_to(actor).select_related("thread", "run")
    return find_row(rows, "dispatch", public_id=dispatch_id)


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
    """Put work into the mailbox of a thread, in its current epoch. `available_at` None: now.

    `agent_id` defaults to that of the run. Raises Invalid for a run of another thread, and Conflict
    with `dispatch_id` while a dispatch with the same `dedupe_key` is queued or claimed.
    """
    require(actor, Role.EDITOR)
    check_storable(payload, "the payload", "/payload")
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
            duplicate = Dispatch.objects.get(thread=thread, dedupe_key=dedupe_key, status__in=OPEN)
            raise Conflict(
                f"dispatch already enqueued: {dedupe_key}",
                hint="A dispatch with this dedupe_key is still open.",
                dispatch_id=duplicate.public_id,
                dispatch_status=duplicate.status,
            ) from error
        changed = dispatches_sql.refresh([thread.pk], actor.name)
        dispatch = find_dispatch(actor, public_id)
        record_verb(actor, "enqueue", dispatch, reason, priority=priority)
        if changed:
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
    """Claim the first dispatch in the queue, by priority and then age, of up to `limit` threads
    that have no claimed one. `thread_id`: only of this thread. `agent_id`: only if it is for this
    agent.

    First returns expired claims to their queues, so that this does not depend on the sweep. May
    claim fewer than there are, because it skips locked mailboxes and ends at MOST_BYTES of payloads. No dispatch is claimed twice at a
    time.
    """
    require(actor, Role.EDITOR)
    thread = find_thread(actor, thread_id) if thread_id else None
    token = secrets.token_urlsafe(24)
    with transaction.atomic():
        if thread is None:
            due = dispatches_sql.lock_due(actor.workspace_id, _DUE_AT_ONCE)
        else:
            due = dispatches_sql.lock_mailbox(thread.pk)
        _, changed = _settle(actor.workspace_id, due)
        claimed = dispatches_sql.claim(
            actor,
            thread=thread.pk if thread else None,
            agent=agent_id,
            limit=limit,
            most=batching.MOST_BYTES,
            lease=timedelta(seconds=lease_seconds),
            consumer=consumer or actor.name,
            digest=access_models.digest(token),
        )
        rows = Dispatch.objects.filter(pk__in=claimed).select_related("thread", "run")
        rows = without_related(rows)
        got = list(rows.order_by("priority", "pk")) if claimed else []
        journal.record(
            actor,
            [
                _trace("claim", one, consumer=one.claimed_by, attempt=one.attempts + 1)
                for one in got
            ],
            reason=reason,
        )
        if changed:
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
    """Let the lease end `lease_seconds` from now. Raises Conflict if the claim is no longer valid or
    the thread was interrupted."""
    require(actor, Role.EDITOR)
    with transaction.atomic():
        dispatch = _lock_claim(actor, dispatch_id, claim_token)
        _refuse_superseded(dispatch)
        until = Now() + timedelta(seconds=lease_seconds)
        return _move(actor, "extend", dispatch, reason, lease_until=until)


def ack_dispatch(*, actor: Actor, dispatch_id: str, claim_token: str, reason: str = "") -> Dispatch:
    """Finish a claimed dispatch as delivered. Whether the work succeeded is recorded in the run.

    Raises Conflict as extend_dispatch does. An expired lease is accepted as long as nobody else has
    claimed the dispatch, because the work is done.
    """
    require(actor, Role.EDITOR)
    with transaction.atomic():
        dispatch = _lock_claim(actor, dispatch_id, claim_token)
        _refuse_superseded(dispatch)
        return _move(
            actor, "ack", dispatch, reason, status=DispatchStatus.ACKED, finished_at=Now(), **FREE
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
    """Return a claimed dispatch to the queue after `retry_after` seconds (None: 250 ms, doubling with
    each failure up to 30 s), or to the dead letters after its last attempt.

    If the thread was interrupted, the dispatch becomes superseded instead.
    """
    require(actor, Role.EDITOR)
    with transaction.atomic():
        dispatch = _lock_claim(actor, dispatch_id, claim_token)
        failures = dispatch.attempts + 1
        outcome: dict[str, Any] = {"finished_at": Now()}
        if _is_superseded(dispatch):
            outcome["status"] = DispatchStatus.SUPERSEDED
        elif failures >= dispatch.max_attempts:
            outcome["status"] = DispatchStatus.DEAD
        else:
            pause = mailbox.pause_after(failures)
            if retry_after is not None:
                pause = timedelta(seconds=retry_after)
            outcome = {"status": DispatchStatus.QUEUED, "available_at": Now() + pause}
        return _move(
            actor, "nack", dispatch, reason, attempts=failures, last_error=error, **outcome, **FREE
        )


def cancel_dispatch(*, actor: Actor, dispatch_id: str, reason: str = "") -> Dispatch:
    """Remove a dispatch from the queue. Raises Conflict if it is not queued. For a claimed one, see
    interrupt_thread."""
    require(actor, Role.EDITOR)
    with transaction.atomic():
        dispatch = lock_dispatch(actor, dispatch_id)
        if dispatch.status != DispatchStatus.QUEUED:
            raise Conflict(
                f"dispatch is not queued: {dispatch_id}", dispatch_status=dispatch.status
            )
        return _move(
            actor, "cancel", dispatch, reason, status=DispatchStatus.CANCELLED, finished_at=Now()
        )


def interrupt_thread(*, actor: Actor, thread_id: str, reason: str = "") -> contract.Interruption:
    """Begin a new epoch: all queued dispatches are superseded. A claimed one can no longer be extended
    or acked. The thread waits until its worker nacks it or its lease ends."""
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
    return contract.Interruption(
        thread_id=thread_id,
        epoch=box.epoch + 1,
        superseded_dispatches=superseded,
        active=contract.Dispatch.of(active) if active else None,
    )


def wake_run(actor: Actor, run: Run) -> Dispatch:
    """Enqueue a dispatch that tells a worker that the run resumes (the intent `hitl_resume` of the
    reference implementation). Must be called in the transaction that resumed it, with the thread
    locked."""
    payload = {"kind": "hitl_resume", "run_id": run.public_id}
    return enqueue_dispatch(
        actor=actor,
        thread_id=run.thread.public_id,
        run_id=run.public_id,
        payload=Raw(values.dump(payload), payload),
    )


def settle_mailboxes() -> dict[str, int]:
    """The sweep: return expired claims to their queues, and update queues whose next dispatch is due."""
    settled = returned = 0
    for workspace_id in dispatches_sql.workspaces_with_due():
        with batching.skip_frozen():
            while True:
                with transaction.atomic():
                    due = dispatches_sql.lock_due(workspace_id, _DUE_AT_ONCE)
                    expired, changed = _settle(workspace_id, due)
                    if changed:
                        journal.align_feed_clock(system_actor(workspace_id, "mailbox"))
                returned += expired
                settled += len(due)
                if len(due) < _DUE_AT_ONCE:
                    break
    return {"mailboxes": settled, "returned": returned}


def _settle(workspace_id: int, threads: Sequence[int]) -> tuple[int, bool]:
    """Update locked mailboxes. Returns how many claims had expired, and whether the change feed got
    rows."""
    if not threads:
        return 0, False
    actor = system_actor(workspace_id, "mailbox")
    returned = dispatches_sql.requeue_expired(threads)
    changed = dispatches_sql.refresh(threads, actor.name)
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
    return len(returned), changed or bool(returned)


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
    dispatch = lock_dispatch(actor, dispatch_id)
    digest = access_models.digest(claim_token)
    if not hmac.compare_digest(dispatch.claim_digest, digest):
        raise Conflict(
            f"the claim is no longer valid: {dispatch_id}",
            hint=(
                "The claim token is wrong, or the lease expired and the dispatch returned to "
                "the queue."
            ),
            dispatch_status=dispatch.status,
        )
    return dispatch


def _is_superseded(dispatch: Dispatch) -> bool:
    return dispatch.epoch < Mailbox.objects.get(thread=dispatch.thread_id).epoch


def _refuse_superseded(dispatch: Dispatch) -> None:
    if _is_superseded(dispatch):
        raise Conflict(
            f"dispatch superseded: {dispatch.public_id}",
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


def _move(actor: Actor, verb: str, dispatch: Dispatch, reason: str, **columns: Any) -> Dispatch:
    """Change a dispatch whose mailbox is locked. Returns the changed dispatch."""
    Dispatch.objects.filter(pk=dispatch.pk).update(updated_at=Now(), **columns)
    changed = dispatches_sql.refresh([dispatch.thread_id], actor.name)
    moved = find_dispatch(actor, dispatch.public_id)
    record_verb(actor, verb, moved, reason, status=moved.status)
    if changed:
        journal.align_feed_clock(actor)
    return moved


def record_verb(actor: Actor, verb: str, dispatch: Dispatch, reason: str, **detail: Any) -> None:
    journal.record(actor, [_trace(verb, dispatch, **detail)], reason=reason)


def _trace(verb: str, dispatch: Dispatch, **detail: Any) -> journal.Trace:
    return journal.Trace(
        f"dispatch.{verb}",
        key=dispatch.public_id,
        thread=dispatch.thread.public_id,
        run=dispatch.run.public_id if dispatch.run else "",
        detail=detail,
    )
