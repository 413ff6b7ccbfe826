"""Folds a long conversation into a summary, visibly and reversibly (semantics §8).

A job is a row. Asking for one inserts it; a worker claims it by conditional UPDATE, plans,
summarises outside any transaction, and applies in a short one if the boundary still stands. The
broker only wakes workers: whatever it loses, the sweep finds.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import structlog
from django.db import IntegrityError, transaction
from django.db.models import F
from django.db.models.functions import Now

from state_admin.domain import boundaries, tokens, values
from state_admin.domain.access import Actor, Role
from state_admin.domain.boundaries import Line, Plan, Policy, Skip
from state_admin.domain.ids import uuid7
from state_admin.domain.values import JSON
from state_admin.models import (
    Compaction,
    CompactionKind,
    CompactionStatus,
    Message,
    MessageRole,
    Thread,
    Trigger,
    Visibility,
)
from state_admin.models.compactions import UNFINISHED
from state_admin.summarizers import DEFAULT_SUMMARIZER, SUMMARIZERS, SummaryFailed, SummaryRequest

from . import doorbell, journal
from .actors import require, system_actor
from .errors import Conflict, NotFound
from .messages import effective_messages, standing_summary, sum_effective_tokens
from .threads import find_thread

LEASE = timedelta(seconds=120)
MAX_ATTEMPTS = 3
_OPENING, _CLOSING = "<conversation-summary>\n", "\n</conversation-summary>"

log = structlog.get_logger()


def effective_policy(thread: Thread) -> Policy:
    """The workspace's policy with the thread's own fields laid over it."""
    workspace = thread.workspace
    merged = {**values.load(workspace.policy or "{}"), **values.load(thread.policy or "{}")}
    return Policy.from_json(merged)


def request_compaction(
    *,
    actor: Actor,
    thread_id: str,
    trigger: Trigger = Trigger.HAND,
    reason: str = "",
) -> Compaction:
    """Queue a context compaction of a thread and wake a worker. If one is queued or running
    already, that one is the answer: single flight per thread."""
    require(actor, Role.EDITOR)
    with transaction.atomic():
        return _enqueue(actor, find_thread(actor, thread_id), trigger, reason)


def request_when_due(actor: Actor, thread: Thread, context_tokens: int) -> None:
    """Queue a compaction when the effective view has reached the threshold. Called in the
    writer's transaction; costs it one read of the policy and, when due, one insert."""
    policy = effective_policy(thread)
    threshold = policy.autocompact_threshold
    if threshold is None or context_tokens < threshold:
        return
    if not Compaction.objects.filter(thread=thread, status__in=UNFINISHED).exists():
        _enqueue(actor, thread, Trigger.THRESHOLD, f"{context_tokens} tokens >= {threshold}")


def _enqueue(actor: Actor, thread: Thread, trigger: Trigger, reason: str) -> Compaction:
    try:
        with transaction.atomic():
            job = Compaction.objects.create(
                workspace_id=thread.workspace_id,
                public_id=uuid7(),
                kind=CompactionKind.CONTEXT,
                trigger=trigger,
                thread=thread,
                requested_by=actor.name,
                policy=values.dump(effective_policy(thread).to_json()),
            )
    except IntegrityError:
        # The one in flight, or if it has just ended, the newest: nothing came after it.
        return Compaction.objects.filter(thread=thread, kind=CompactionKind.CONTEXT).latest("pk")
    _record(actor, job, thread, "request", reason)
    doorbell.ring("state_admin.tasks.compaction.run", job.public_id)
    job.refresh_from_db()  # the times are the database's
    return job


def find_compaction(actor: Actor, compaction_id: str) -> Compaction:
    job = (
        Compaction.objects.visible_to(actor)
        .select_related("thread", "summary")
        .filter(public_id=compaction_id)
        .first()
    )
    if job is None:
        raise NotFound(f"compaction not found: {compaction_id}")
    return job


@dataclass(frozen=True)
class Preview:
    """What compaction would do to a thread now: a plan, or the reason why not."""

    policy: Policy
    context_tokens: int
    plan: Plan | None
    skip: str = ""


def preview_compaction(*, actor: Actor, thread_id: str) -> Preview:
    """Plan without doing: the same rules as the job, no summary, nothing stored."""
    thread = find_thread(actor, thread_id)
    policy = effective_policy(thread)
    view = effective_messages(thread)
    total = sum(message.estimated_tokens for message in view)
    planned = boundaries.plan([line(message) for message in view], policy)
    if isinstance(planned, Skip):
        return Preview(policy, total, None, planned.reason)
    return Preview(policy, total, planned)


def run_compaction(compaction_id: str) -> CompactionStatus | None:
    """Do one job: claim, plan, summarise, apply. None: somebody else has it, or it is finished.

    Safe to call any number of times; only the holder of the newest claim can apply.
    """
    claimed = (
        Compaction.objects.filter(public_id=compaction_id)
        .claimable()
        .update(
            status=CompactionStatus.RUNNING,
            lease_expires_at=Now() + LEASE,
            started_at=Now(),
            attempts=F("attempts") + 1,
            claim=F("claim") + 1,
        )
    )
    if not claimed:
        return None
    job = Compaction.objects.select_related("thread").get(public_id=compaction_id)
    thread = job.thread
    if thread is None:
        return _finish(job, CompactionStatus.SUPERSEDED, "the thread is gone")
    policy = Policy.from_json(values.load(job.policy or "{}"))
    view = effective_messages(thread)
    planned = boundaries.plan([line(message) for message in view], policy)
    if isinstance(planned, Skip):
        return _finish(job, CompactionStatus.SKIPPED, planned.reason)

    folded = [
        message for message in view if message.seq <= planned.boundary_seq or message.folds_to
    ]
    previous = next((_summary_text(m) for m in folded if m.folds_to is not None), None)
    request = SummaryRequest(
        messages=[values.load(m.body or "{}") for m in folded if m.folds_to is None],
        previous_summary=previous,
        max_tokens=policy.summary_max_tokens,
    )
    wanted = policy.summarizer or DEFAULT_SUMMARIZER
    if wanted not in SUMMARIZERS:
        return _finish(job, CompactionStatus.FAILED, f"no such summarizer: {wanted}")
    try:
        summary = SUMMARIZERS[wanted]().summarize(request)
    except SummaryFailed as failed:
        return _retry(job, str(failed))
    body = {"role": "system", "content": f"{_OPENING}{summary.text}{_CLOSING}"}
    tokens_after = tokens.estimate_message(body)
    job.boundary_seq = planned.boundary_seq
    job.boundary_message_id = planned.boundary_message_id
    job.tokens_before, job.tokens_after = planned.tokens_before, tokens_after
    job.summary_text = summary.text
    job.summarizer, job.model, job.cost_usd = summary.summarizer, summary.model, summary.cost_usd
    saved = 1 - tokens_after / planned.tokens_before
    if saved < policy.min_savings_ratio:
        asked = policy.min_savings_ratio
        return _finish(
            job,
            CompactionStatus.SKIPPED,
            f"it would save {saved:.0%}, less than min_savings_ratio {asked:.0%}",
        )
    return _apply(job, planned, body)


def undo_compaction(*, actor: Actor, compaction_id: str, reason: str = "") -> Compaction:
    """Lift the fold: the effective view shows the original messages again.

    Refused (Conflict) when a later compaction was built on this one's summary, or when it is not
    done. Nothing is deleted: the summary stays in the log.
    """
    require(actor, Role.EDITOR)
    job = find_compaction(actor, compaction_id)
    with transaction.atomic():
        thread = find_thread(actor, job.thread.public_id if job.thread else "", lock=True)
        job = find_compaction(actor, compaction_id)
        if job.status != CompactionStatus.DONE or job.summary is None:
            raise Conflict(
                f"only a compaction that is done can be undone; this one is {job.status}"
            )
        standing = Message.objects.filter(thread=thread).standing_summaries()
        outer = standing.filter(folds_to__gt=job.summary.folds_to).order_by("folds_to").first()
        if outer is not None:
            raise Conflict(
                "a later compaction was built on this one; undo that one first",
                later=Compaction.objects.get(summary=outer).public_id,
            )
        standing.filter(pk=job.summary.pk).update(fold_lifted_at=Now())
        Compaction.objects.filter(pk=job.pk).update(
            status=CompactionStatus.UNDONE, undone_at=Now(), undone_by=actor.name
        )
        _recount(thread)
        _record(actor, job, thread, "undo", reason)
    return find_compaction(actor, compaction_id)


def cancel_compaction(*, actor: Actor, compaction_id: str, reason: str = "") -> Compaction:
    """Stop a job that has not been applied; a running worker finds its claim gone."""
    require(actor, Role.EDITOR)
    job = find_compaction(actor, compaction_id)
    with transaction.atomic():
        stopped = Compaction.objects.filter(pk=job.pk, status__in=UNFINISHED).update(
            status=CompactionStatus.CANCELLED, finished_at=Now(), claim=F("claim") + 1
        )
        if not stopped:
            job.refresh_from_db(fields=["status"])
            raise Conflict(f"the compaction is already {job.status}")
        _record(actor, job, job.thread, "cancel", reason)
    return find_compaction(actor, compaction_id)


def retry_compaction(*, actor: Actor, compaction_id: str, reason: str = "") -> Compaction:
    """Ask again for what a failed, skipped, cancelled or superseded job was asked for."""
    require(actor, Role.EDITOR)
    job = find_compaction(actor, compaction_id)
    if job.thread is None or job.status in (*UNFINISHED, CompactionStatus.DONE):
        raise Conflict(f"a compaction that is {job.status} cannot be retried")
    return request_compaction(
        actor=actor, thread_id=job.thread.public_id, reason=reason or f"retry of {compaction_id}"
    )


def claimable_compactions(limit: int = 100) -> list[str]:
    """Jobs nobody works on: queued ones whose doorbell was lost, running ones whose worker died."""
    rows = Compaction.objects.all().claimable().order_by("available_at")
    return list(rows.values_list("public_id", flat=True)[:limit])


def _apply(job: Compaction, planned: Plan, body: dict[str, JSON]) -> CompactionStatus:
    """Append the summary with its mark, in one short transaction, if the boundary still stands."""
    actor = system_actor(job.workspace_id, "compaction")
    with transaction.atomic():
        thread = Thread.objects.select_for_update().filter(pk=job.thread_id or 0).first()
        mine = Compaction.objects.filter(
            pk=job.pk, claim=job.claim, status=CompactionStatus.RUNNING
        ).select_for_update()
        if thread is None or not mine.exists():
            return CompactionStatus.SUPERSEDED
        log_now = Message.objects.filter(thread=thread)
        furthest = standing_summary(thread)
        moved = furthest is not None and (furthest.folds_to or 0) >= planned.boundary_seq
        stands = log_now.filter(
            public_id=planned.boundary_message_id, seq=planned.boundary_seq
        ).exists()
        if moved or not stands:
            return _finish(job, CompactionStatus.SUPERSEDED, "the boundary moved meanwhile")
        job.summary = Message.objects.create(
            thread=thread,
            seq=thread.message_count + 1,
            public_id=uuid7(),
            role=MessageRole.SYSTEM,
            visibility=Visibility.INTERNAL,
            body=values.dump(body),
            estimated_tokens=tokens.estimate_message(body),
            folds_from=1,
            folds_to=planned.boundary_seq,
            fold_carries=planned.carried_seq,
        )
        Thread.objects.filter(pk=thread.pk).update(
            message_count=F("message_count") + 1, updated_at=Now()
        )
        _recount(thread)
        _record(actor, job, thread, "apply", "")
        return _finish(job, CompactionStatus.DONE, "")


def _recount(thread: Thread) -> None:
    """Set the thread's context_tokens after a fold was laid or lifted."""
    Thread.objects.filter(pk=thread.pk).update(context_tokens=sum_effective_tokens(thread))


def _finish(job: Compaction, status: CompactionStatus, detail: str) -> CompactionStatus:
    """Close a job that this worker still holds."""
    Compaction.objects.filter(pk=job.pk, claim=job.claim).update(
        status=status,
        detail=detail,
        finished_at=Now(),
        lease_expires_at=None,
        boundary_seq=job.boundary_seq,
        boundary_message_id=job.boundary_message_id,
        tokens_before=job.tokens_before,
        tokens_after=job.tokens_after,
        summary=job.summary,
        summary_text=job.summary_text,
        summarizer=job.summarizer,
        model=job.model,
        cost_usd=job.cost_usd,
    )
    log.info("compaction.finished", compaction=job.public_id, status=status.value, detail=detail)
    return status


def _retry(job: Compaction, error: str) -> CompactionStatus:
    """Queue again with backoff, or give up after MAX_ATTEMPTS."""
    if job.attempts >= MAX_ATTEMPTS:
        return _finish(job, CompactionStatus.FAILED, error)
    Compaction.objects.filter(pk=job.pk, claim=job.claim).update(
        status=CompactionStatus.QUEUED,
        detail=error,
        lease_expires_at=None,
        available_at=Now() + timedelta(seconds=10 * 2**job.attempts),
    )
    return CompactionStatus.QUEUED


def _record(actor: Actor, job: Compaction, thread: Thread | None, verb: str, reason: str) -> None:
    trace = journal.Trace(
        f"compaction.{verb}",
        thread=thread.public_id if thread else "",
        detail={"compaction": job.public_id},
    )
    journal.record(actor, [trace], reason=reason)


def line(message: Message) -> Line:
    """What the rules of folding need to know of a message of the effective view."""
    return Line(
        seq=message.folds_to or message.seq,
        message_id=message.public_id,
        role=message.role,
        visibility=message.visibility,
        tokens=message.estimated_tokens,
        opens=tuple(message.opens),
        answers=message.answers,
    )


def _summary_text(message: Message) -> str:
    content: str = values.load(message.body or "{}")["content"]
    return content.removeprefix(_OPENING).removesuffix(_CLOSING)
