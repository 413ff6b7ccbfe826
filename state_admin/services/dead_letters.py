"""Replays and deletes dead letters, and deletes finished dispatches after their retention time."""

from __future__ import annotations

from typing import TypeAlias

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Now

from state_admin.contract.types import Cleared
from state_admin.domain.access import Actor, Role
from state_admin.models import Dispatch, DispatchStatus, Mailbox, Workspace, dispatches_sql
from state_admin.models.dispatches import OPEN

from . import journal
from .actors import require
from .batching import delete_in_batches
from .dispatches import find_dispatch, lock_dispatch, record_verb
from .errors import Conflict
from .threads import find_thread

Rows: TypeAlias = QuerySet[Dispatch, Dispatch]

_PURGE_BATCH = 2000


def replay_dispatch(*, actor: Actor, dispatch_id: str, reason: str = "") -> Dispatch:
    """Queue a dead letter again in the current epoch, with all its attempts. Raises Conflict if it
    is not a dead letter, or another dispatch with its dedupe key is open."""
    require(actor, Role.EDITOR)
    with transaction.atomic():
        letter = lock_dispatch(actor, dispatch_id)
        one = Dispatch.objects.filter(pk=letter.pk).dead()
        try:
            with transaction.atomic():
                replayed = _requeue(one)
        except IntegrityError as error:
            raise Conflict(f"dispatch already enqueued: {letter.dedupe_key}") from error
        if not replayed:
            raise Conflict(
                f"dispatch is not a dead letter: {dispatch_id}", dispatch_status=letter.status
            )
        dispatches_sql.refresh([letter.thread_id], actor.name)
        record_verb(actor, "replay", letter, reason)
        journal.align_feed_clock(actor)
        return find_dispatch(actor, dispatch_id)


def replay_dead_letters(
    *, actor: Actor, thread_id: str = "", agent_id: str = "", reason: str = ""
) -> int:
    """Replay all dead letters, of one thread or agent. Returns their number. Skipped are those with
    the dedupe key of an open dispatch or of a newer dead letter."""
    require(actor, Role.EDITOR)
    with transaction.atomic():
        letters = _lock_dead_letters(actor, thread_id, agent_id)
        same = {"thread": OuterRef("thread"), "dedupe_key": OuterRef("dedupe_key")}
        rivals = Dispatch.objects.filter(status__in=OPEN, **same)
        newer = letters.filter(pk__gt=OuterRef("pk"), **same)
        replayable = letters.filter(Q(dedupe_key="") | ~(Exists(rivals) | Exists(newer)))
        rows = Dispatch.objects.filter(pk__in=list(replayable.values_list("pk", flat=True)))
        traces = _traces("replay", rows)
        threads = sorted(set(rows.values_list("thread_id", flat=True)))
        number = _requeue(rows)
        if number:
            dispatches_sql.refresh(threads, actor.name)
            journal.record(actor, traces, reason=reason)
            journal.align_feed_clock(actor)
    return number


def clear_dead_letters(
    *,
    actor: Actor,
    thread_id: str = "",
    agent_id: str = "",
    dry_run: bool = False,
    reason: str = "",
) -> Cleared:
    """Delete dead letters permanently: all, or those of one thread or agent. `dry_run`: only count
    them."""
    require(actor, Role.ADMIN)
    with transaction.atomic():
        if dry_run:
            letters = _find_dead_letters(actor, thread_id, agent_id)
            return Cleared(matched=letters.count(), deleted=0)
        letters = _lock_dead_letters(actor, thread_id, agent_id)
        doomed = Dispatch.objects.filter(pk__in=list(letters.values_list("pk", flat=True)))
        traces = _traces("clear", doomed)
        number, _ = doomed.delete()
        if number:
            journal.record(actor, traces, reason=reason)
    return Cleared(matched=number, deleted=number)


def purge_dispatches() -> dict[str, int]:
    """Delete finished dispatches after their retention time. Dead letters are kept longer."""
    retention = dict.fromkeys(
        (DispatchStatus.ACKED, DispatchStatus.CANCELLED, DispatchStatus.SUPERSEDED),
        settings.DISPATCH_RETENTION,
    ) | {DispatchStatus.DEAD: settings.DISPATCH_DEAD_RETENTION}
    removed = 0
    frozen = Workspace.objects.frozen().filter(pk=OuterRef("workspace_id"))
    for status, age in retention.items():
        old = Dispatch.objects.filter(~Exists(frozen), status=status, finished_at__lt=Now() - age)
        removed += delete_in_batches(old, "finished_at", _PURGE_BATCH)
    return {"dispatches": removed}


def _find_dead_letters(actor: Actor, thread_id: str, agent_id: str) -> Rows:
    if thread_id:
        find_thread(actor, thread_id)
    rows = Dispatch.objects.visible_to(actor).dead()
    return rows.concerning(thread_id=thread_id, agent_id=agent_id)


def _lock_dead_letters(actor: Actor, thread_id: str, agent_id: str) -> Rows:
    """The dead letters, with the mailboxes of all of them locked."""
    letters = _find_dead_letters(actor, thread_id, agent_id)
    boxes = Mailbox.objects.filter(thread__in=letters.values("thread")).order_by("pk")
    # Those of other threads, which became dead letters since then, can still be changed by others.
    return letters.filter(thread__in=list(boxes.select_for_update().values_list("pk", flat=True)))


def _requeue(rows: Rows) -> int:
    epoch = Mailbox.objects.filter(thread=OuterRef("thread")).values("epoch")
    return rows.update(
        status=DispatchStatus.QUEUED,
        epoch=Subquery(epoch),
        attempts=0,
        replays=F("replays") + 1,
        available_at=Now(),
        finished_at=None,
        updated_at=Now(),
    )


def _traces(verb: str, rows: Rows) -> list[journal.Trace]:
    """One trace per thread, with the number of its dead letters."""
    counted = rows.order_by().values_list("thread__public_id").annotate(number=Count("pk"))
    return [
        journal.Trace(f"dispatch.{verb}", thread=thread, detail={"dispatches": number})
        for thread, number in counted
    ]
