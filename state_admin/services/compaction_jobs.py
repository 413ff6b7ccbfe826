"""Performs the jobs of context compaction: claims them, plans, gets a summary and applies it.

One statement claims a job for a worker, under a lease. Each later step is an UPDATE that succeeds
only with the newest claim, so a job that was cancelled or taken over ends there. The summarizer is
called outside any transaction. A short transaction applies the summary if the boundary is still
valid. The broker only notifies workers: the sweep finds jobs whose notification was lost.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import structlog
from django.db import transaction
from django.db.models import F, QuerySet
from django.db.models.expressions import Combinable
from django.db.models.functions import Now

from project import log_context
from state_admin.domain import boundaries, retries, tokens, values
from state_admin.domain import summaries as rules
from state_admin.domain.boundaries import Plan, Skip
from state_admin.domain.ids import uuid7
from state_admin.domain.policies import Policy
from state_admin.domain.values import JSON
from state_admin.models import (
    Compaction,
    CompactionKind,
    CompactionStatus,
    Message,
    MessageRole,
    Phase,
    Thread,
    Visibility,
)
from state_admin.models.compactions import CompactionQuerySet, context_now
from state_admin.models.compactions_sql import claim_next
from state_admin.models.folds_sql import LogView
from state_admin.summarizers import Summary, SummaryFailed, SummaryRequest, prompts

from . import summaries
from .actors import system_actor
from .compactions import record_step
from .effective_views import active_summary, effective_messages, recount_context

LEASE = timedelta(seconds=120)
MAX_ATTEMPTS = 3
# Attempts whose worker died count too, so that a job that kills its workers ends.
GIVE_UP_AFTER = 5
# Before the second attempt; doubles from there.
RETRY_SECONDS = 20.0
_MOST_LOST = 100

log = structlog.get_logger()


class _JobLost(Exception):
    """The worker lost the job: it was cancelled, or another worker took it over."""


def run_next() -> CompactionStatus | None:
    """Perform the next job, taking workspaces in turn. None: there is none."""
    with transaction.atomic():
        compaction_id = claim_next(LEASE)
        job = _find_claimed(compaction_id) if compaction_id else None
    return _work(job) if job else None


def run_compaction(compaction_id: str) -> CompactionStatus | None:
    """Perform this job out of turn. None: another worker has it, or it is finished.

    Safe to call any number of times; only the holder of the newest claim can apply the summary.
    """
    job = claim(compaction_id, CompactionKind.CONTEXT)
    return _work(job) if job else None


def claim(compaction_id: str, *kinds: CompactionKind) -> Compaction | None:
    """Claim a job of these kinds for the length of LEASE. None: it is not free."""
    rows = Compaction.objects.filter(public_id=compaction_id, kind__in=kinds)
    free = rows.claimable().in_open_workspaces()
    with transaction.atomic():
        claimed = free.update(
            phase=Phase.CLAIMED, started_at=Now(), **CompactionQuerySet.claimed(LEASE)
        )
        return _find_claimed(compaction_id) if claimed else None


def _find_claimed(compaction_id: str) -> Compaction:
    """A job, in the transaction that has claimed it: its row has the claim of this worker, and cannot be
    deleted before it is read."""
    return Compaction.objects.select_related("thread", "namespace").get(public_id=compaction_id)


def count_lost() -> int:
    """Return the number of jobs without a worker, at most a hundred: queued ones whose notification
    was lost, and running ones whose worker died."""
    lost = Compaction.objects.filter(kind=CompactionKind.CONTEXT).claimable().in_open_workspaces()
    return lost[:_MOST_LOST].count()


def _work(job: Compaction) -> CompactionStatus:
    thread_id = job.thread.public_id if job.thread else ""
    try:
        with log_context.bound(workspace=job.workspace_id, thread_id=thread_id):
            return _do(job)
    except _JobLost:
        return CompactionStatus.SUPERSEDED


def _do(job: Compaction) -> CompactionStatus:
    thread = job.thread
    if thread is None:
        return _finish(job, CompactionStatus.SUPERSEDED, "the thread no longer exists")
    if job.attempts > GIVE_UP_AFTER:
        words = f"failed after {GIVE_UP_AFTER} attempts: no worker finished the last one"
        return _finish(job, CompactionStatus.FAILED, words)
    policy = Policy.from_json(values.load(job.policy or "{}"))
    _enter(job, Phase.PLANNING)
    standing = active_summary(thread)
    planned = boundaries.plan(LogView(thread.pk, standing), policy)
    if isinstance(planned, Skip):
        return _finish(job, CompactionStatus.SKIPPED, planned.reason)
    job.boundary_seq = planned.boundary_seq
    job.boundary_message_id = planned.boundary_message_id
    job.tokens_before = planned.tokens_before
    try:
        summary, detail = _summarize(job, policy, _request(thread, planned, policy))
    except SummaryFailed as failed:
        return _retry_or_end(job, failed)
    job.summary_text = rules.clean(summary.text, policy.summary_max_tokens)
    body = rules.wrap(job.summary_text)
    job.tokens_after = tokens.estimate_message(body)
    job.summarizer, job.model = summary.summarizer, summary.model
    saved = 1 - job.tokens_after / planned.tokens_before
    if saved < policy.min_savings_ratio:
        least = policy.min_savings_ratio
        return _finish(
            job,
            CompactionStatus.SKIPPED,
            f"the summary would save {saved:.0%}, less than min_savings_ratio {least:.0%}",
        )
    _enter(job, Phase.APPLYING, lease_expires_at=Now() + LEASE)
    return _apply(job, planned, standing, body, detail)


def _request(thread: Thread, planned: Plan, policy: Policy) -> SummaryRequest:
    """What to summarize: the messages up to the boundary, and the previous summary."""
    folded = effective_messages(thread, upto=planned.boundary_seq)
    bodies = [(message.folds_to, values.load(message.body or "{}")) for message in folded]
    return SummaryRequest(
        messages=[body for folds_to, body in bodies if folds_to is None],
        previous_summary=next((rules.unwrap(body) for to, body in bodies if to is not None), None),
        max_tokens=policy.summary_max_tokens,
        instructions=policy.prompt or "",
    )


def _summarize(job: Compaction, policy: Policy, request: SummaryRequest) -> tuple[Summary, str]:
    """The summary, and why it is not by the configured summarizer: if that fails, the policy's
    fallback writes it. Raises SummaryFailed."""
    try:
        engine = summaries.find_engine(job.workspace_id, policy)
        if engine.provider is not None and engine.model is not None:
            job.provider, job.instructions = engine.provider.id, prompts.instructions(request)
            job.model = engine.model.upstream_model[:128]
        return _ask(job, engine, request), ""
    except SummaryFailed as failed:
        if policy.fallback is None or _can_retry(job, failed):
            raise
        job.provider = job.model = job.instructions = ""
        engine = summaries.fallback_engine()
        summary = _ask(job, engine, request)
        return (
            summary,
            f"written by {summary.summarizer} as a fallback: {_describe_failure(failed)}",
        )


def _ask(job: Compaction, engine: summaries.Engine, request: SummaryRequest) -> Summary:
    """The summary. Records the model that the job waits for, extends the lease for that time, and adds
    the cost of the answer to the job. Raises SummaryFailed."""
    until = Now() + LEASE + timedelta(seconds=engine.seconds)
    _enter(job, Phase.ASKING, lease_expires_at=until, provider=job.provider, model=job.model)
    try:
        summary = summaries.ask(job.workspace_id, engine, request)
    except SummaryFailed as failed:
        _charge(job, failed)
        raise
    _charge(job, summary)
    return summary


def _charge(job: Compaction, answer: Summary | SummaryFailed) -> None:
    """Add the cost of a response to the job, even if another worker has taken the job over."""
    cost, read, written = answer.cost_usd or Decimal(0), answer.input_tokens, answer.output_tokens
    if cost or read or written:
        Compaction.objects.filter(pk=job.pk).update(
            cost_usd=F("cost_usd") + cost,
            input_tokens=F("input_tokens") + read,
            output_tokens=F("output_tokens") + written,
        )


def _retry_or_end(job: Compaction, failed: SummaryFailed) -> CompactionStatus:
    """Queue the job again for later, or end it without a summary."""
    words = _describe_failure(failed)
    if isinstance(failed, summaries.Closed):
        if failed.until is None:
            return _finish(job, CompactionStatus.SKIPPED, words)
        # Nothing was tried: the attempt does not count.
        return _queue_again(job, words, failed.until, attempts=job.attempts - 1)
    if not _can_retry(job, failed):
        return _finish(job, CompactionStatus.FAILED, words)
    pause = retries.pause_before_retry(job.attempts, base=RETRY_SECONDS, retry_after=failed.after)
    return _queue_again(job, words, Now() + timedelta(seconds=pause), attempts=job.attempts)


def _can_retry(job: Compaction, failed: SummaryFailed) -> bool:
    return failed.retry and job.attempts < MAX_ATTEMPTS


def _describe_failure(failed: SummaryFailed) -> str:
    return f"{failed}: {failed.quote}" if failed.quote else str(failed)


def _apply(
    job: Compaction, planned: Plan, standing: Message | None, body: dict[str, JSON], detail: str
) -> CompactionStatus:
    """Append the summary in one short transaction, if the boundary and the previous summary
    (`standing`; None: there was none) are still valid."""
    actor = system_actor(job.workspace_id, "compaction")
    with transaction.atomic():
        thread = Thread.objects.held().filter(pk=job.thread_id or 0).first()
        if thread is None or not _held(job).select_for_update().exists():
            raise _JobLost
        log_now = Message.objects.filter(thread=thread)
        if active_summary(thread) != standing:
            words = "the previous summary was undone or replaced in the meantime"
            return _finish(job, CompactionStatus.SUPERSEDED, words)
        unchanged = log_now.filter(
            public_id=planned.boundary_message_id, seq=planned.boundary_seq
        ).exists()
        if not unchanged:
            return _finish(
                job,
                CompactionStatus.SUPERSEDED,
                "the boundary of the compaction changed in the meantime",
            )
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
        recount_context(thread)
        record_step(actor, job, "apply", "")
        return _finish(job, CompactionStatus.DONE, detail)


def _held(job: Compaction) -> QuerySet[Compaction]:
    """The row of the job, as long as this worker holds it."""
    return Compaction.objects.held(job.pk, job.claim)


def _enter(job: Compaction, phase: Phase, **columns: Any) -> None:
    """Record the phase of the job. Raises _JobLost."""
    if not _held(job).update(phase=phase, **columns):
        raise _JobLost


def _finish(job: Compaction, status: CompactionStatus, detail: str) -> CompactionStatus:
    """End the job. Raises _JobLost."""
    closed = _held(job).update(
        status=status,
        phase="",
        detail=detail,
        finished_at=Now(),
        lease_expires_at=None,
        progress=context_now(),
        boundary_seq=job.boundary_seq,
        boundary_message_id=job.boundary_message_id,
        tokens_before=job.tokens_before,
        tokens_after=job.tokens_after,
        summary=job.summary,
        summary_text=job.summary_text,
        summarizer=job.summarizer,
        provider=job.provider,
        model=job.model,
        instructions=job.instructions,
    )
    if not closed:
        raise _JobLost
    log.info("compaction.finished", compaction=job.public_id, status=status.value)
    return status


def _queue_again(
    job: Compaction, words: str, at: datetime | Combinable, *, attempts: int
) -> CompactionStatus:
    """Queue the job again, for `at` or later. Raises _JobLost."""
    queued = _held(job).update(
        status=CompactionStatus.QUEUED,
        phase="",
        detail=words,
        lease_expires_at=None,
        attempts=attempts,
        available_at=at,
        provider=job.provider,
        model=job.model,
        instructions=job.instructions,
    )
    if not queued:
        raise _JobLost
    log.info("compaction.postponed", compaction=job.public_id)
    return CompactionStatus.QUEUED
