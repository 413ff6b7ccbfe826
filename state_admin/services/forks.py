"""Copies a thread, as of a revision, into a new and independent thread."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from django.db import transaction

from state_admin.domain.access import Actor, Role
from state_admin.domain.ids import uuid7
from state_admin.domain.values import Fault, Raw
from state_admin.models import (
    Compaction,
    CompactionKind,
    Message,
    Revision,
    RevisionKind,
    Thread,
    forks_sql,
)

from . import snapshots
from .actors import require
from .effective_views import sum_effective_tokens
from .errors import Invalid
from .snapshots import NewValue
from .state_keys import hold_registry
from .threads import find_thread, insert_thread, new_id
from .tool_calls import TOOL_CALLS, without_tickets


def fork_thread(
    *,
    actor: Actor,
    thread_id: str,
    fork_id: str | None = None,
    revision: int | None = None,
    message_count: int | None = None,
    title: str | None = None,
    metadata: Raw | None = None,
    reason: str = "",
) -> tuple[Thread, bool]:
    """Copy a thread. Returns the fork, and whether it is new (with the same id and content, the
    existing one is returned).

    Revision 1 of the fork has the state at `revision` (None: now), without values that live only
    until a run ends, without the lifecycle of the source's run, and without tool calls that have a
    ticket. Its messages are the first `message_count` ones (None: those of the revision, or all
    without one) with their summaries, so a compaction can be undone there too. It has no runs,
    tickets or parent. Resource, compaction policy and, unless given, title and metadata are those
    of the source.

    Raises NotFound and Gone (the revision), Conflict (the id exists) and QuotaExceeded.
    """
    require(actor, Role.EDITOR)
    content = {
        "forked_from": {
            "thread_id": thread_id,
            "revision": revision,
            "message_count": message_count,
        },
        "title": title,
        "metadata": metadata.value if metadata is not None else None,
    }
    with transaction.atomic():
        hold_registry(actor)
        source = find_thread(actor, thread_id, lock=True)
        fork, created = insert_thread(
            actor,
            new_id(actor, fork_id),
            content,
            # Called only for a new fork: a repeated request succeeds even if the source changed.
            forked_from=lambda: _origin(source, revision, message_count),
            resource_id=source.resource_id,
            title=source.title if title is None else title,
            metadata=source.metadata if metadata is None else metadata.text,
            policy=source.policy,
        )
        if created:
            _copy(actor, source, fork, reason)
            fork.refresh_from_db()
    return fork, created


def _origin(source: Thread, revision: int | None, message_count: int | None) -> dict[str, object]:
    """What to copy. Raises if the source does not have it."""
    at = source.revision if revision is None else revision
    snapshots.check_kept(source, at)
    if message_count is None:
        counts = Revision.objects.filter(thread=source, number=at)
        count = counts.values_list("message_count", flat=True).first() or 0
        message_count = source.message_count if revision is None else count
    elif message_count > source.message_count:
        fault = Fault("/message_count", f"the thread has {source.message_count} messages")
        raise Invalid(
            f"message_count exceeds the thread's {source.message_count} messages", [fault]
        )
    return {"thread_id": source.public_id, "revision": at, "message_count": message_count}


def _copy(actor: Actor, source: Thread, fork: Thread, reason: str) -> None:
    origin = fork.forked_from or {}
    count, revision = origin["message_count"], origin["revision"]
    forks_sql.copy_messages(source=source.pk, fork=fork.pk, count=count)
    _copy_compactions(source, fork)
    Thread.objects.filter(pk=fork.pk).update(
        message_count=count, context_tokens=sum_effective_tokens(fork)
    )
    rows = snapshots.read_kept(source, revision)
    state = {
        row.key: NewValue(row.value, row.scope, True)
        for row in rows
        if row.persistent and row.key != snapshots.LIFECYCLE
    }
    calls = state.pop(TOOL_CALLS, None)
    if calls and calls.text and (text := without_tickets(actor, calls.text)):
        state[TOOL_CALLS] = replace(calls, text=text)
    snapshots.advance(actor, fork, RevisionKind.FORK, state, action="thread.fork", reason=reason)


def _copy_compactions(source: Thread, fork: Thread) -> None:
    """The jobs of the copied summaries. Their cost is not copied, because it was paid once."""
    summaries = Message.objects.filter(thread=fork, folds_to__isnull=False)
    placed = {message.seq: message for message in summaries.defer("body")}
    jobs = Compaction.objects.filter(
        thread=source, kind=CompactionKind.CONTEXT, summary__seq__in=list(placed)
    )
    copies = []
    for job in jobs.select_related("summary").order_by("pk"):
        if job.summary is not None:
            job.summary = placed[job.summary.seq]
            job.pk, job.public_id, job.thread, job.cost_usd = None, uuid7(), fork, Decimal(0)
            job.progress = {}  # it contains the context length of the source
            copies.append(job)
    Compaction.objects.bulk_create(copies)
