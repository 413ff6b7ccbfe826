"""Context compactions: requests (manual, by size, by time), previews, and undo.

A job is a row. compaction_jobs.py performs it.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.db import IntegrityError, transaction
from django.db.models import F, Q
from django.db.models.functions import Now

from state_admin.domain import boundaries, tokens, values
from state_admin.domain import summaries as rules
from state_admin.domain.access import Actor, Role
from state_admin.domain.boundaries import Plan, Skip
from state_admin.domain.ids import uuid7
from state_admin.domain.policies import EffectivePolicy, Policy
from state_admin.models import (
    Compaction,
    CompactionKind,
    CompactionStatus,
    Message,
    Thread,
    Trigger,
)
from state_admin.models.compactions import UNFINISHED, CompactionQuerySet, context_now
from state_admin.models.compactions_sql import find_due_threads
from state_admin.models.folds_sql import LogView
from state_admin.models.messages import MessageQuerySet
from state_admin.summarizers import SummaryFailed

from . import journal, notifications, summaries
from .actors import require, system_actor
from .batching import Report, skip_frozen
from .effective_views import active_summary, recount_context
from .errors import Conflict
from .finding import find_row
from .policies import autocompact_policy, effective_policy
from .threads import find_thread

# The task that performs the next job. Its notification does not name a job.
RUN = "state_admin.tasks.compaction.run"
_BATCH = 500


def request_compaction(
    *,
    actor: Actor,
    thread_id: str,
    trigger: Trigger = Trigger.HAND,
    reason: str = "",
) -> Compaction:
    """Queue a context compaction of a thread and notify a worker. If one is unfinished already,
    return that one: a thread has at most one."""
    require(actor, Role.EDITOR)
    with transaction.atomic():
        thread = find_thread(actor, thread_id, lock=True)  # prevents its deletion meanwhile
        return _enqueue(actor, thread, effective_policy(thread).policy, trigger, reason)


def request_when_due(actor: Actor, thread: Thread, context_tokens: int) -> bool:
    """Queue a compaction if the context has reached the threshold. After a job that did not end
    with a summary, or was undone, this requires `min_gain_tokens` more. Returns whether a job was
    queued.

    Runs in the writer's transaction. Costs one read of the policy; above the threshold also a read
    of the newest job; if a compaction is due, also an insert.
    """
    policy = autocompact_policy(thread)
    if policy is None or policy.autocompact_threshold is None:
        return False
    threshold = policy.autocompact_threshold
    if context_tokens < threshold:
        return False
    newest = _newest(thread).values_list("status", "progress__context_tokens").first()
    if newest is not None:
        status, ended_with = newest
        if status in UNFINISHED:
            return False
        grown = context_tokens - (ended_with or 0)
        if status != CompactionStatus.DONE and grown < policy.min_gain_tokens:
            return False
    _enqueue(actor, thread, policy, Trigger.THRESHOLD, f"{context_tokens} tokens >= {threshold}")
    return True


def request_scheduled() -> Report:
    """Queue a compaction of every thread for which `every_hours` of its policy has passed."""
    requested = after = 0
    least = Policy().min_gain_tokens
    while due := find_due_threads(after=after, min_gain=least, limit=_BATCH):
        for thread_id in due:
            with skip_frozen(), transaction.atomic():
                # Locked, so that it cannot be deleted meanwhile.
                thread = Thread.objects.held().filter(pk=thread_id).first()
                if thread is None:
                    continue
                policy = effective_policy(thread).policy
                if policy.every_hours is None:  # changed meanwhile
                    continue
                actor = system_actor(thread.workspace_id, "compaction schedule")
                why = f"every {policy.every_hours} hours"
                _enqueue(actor, thread, policy, Trigger.SCHEDULE, why)
                requested += 1
        after = due[-1]
    return {"requested": requested}


def _newest(thread: Thread) -> CompactionQuerySet:
    """The context compaction of a thread that was requested last. If one is unfinished, that
    one."""
    return Compaction.objects.filter(thread=thread, kind=CompactionKind.CONTEXT).order_by("-pk")[:1]


def _enqueue(
    actor: Actor, thread: Thread, policy: Policy, trigger: Trigger, reason: str
) -> Compaction:
    kind, text = CompactionKind.CONTEXT, values.dump(policy.to_json())
    return enqueue(actor, Compaction(kind=kind, thread=thread, policy=text), trigger, reason)


def enqueue(
    actor: Actor, job: Compaction, trigger: Trigger, reason: str, remover: str = ""
) -> Compaction:
    """Store a job and notify a worker. If an unfinished job of the same kind exists for the same thread or
    namespace, return it. `remover`: the task that performs this job; if empty, the task RUN performs the
    next queued job."""
    job.workspace_id, job.public_id = actor.workspace_id, uuid7()
    job.trigger, job.requested_by, job.reason = trigger, actor.name, reason
    try:
        with transaction.atomic():
            job.save(force_insert=True)
    except IntegrityError:
        # An unfinished job exists. If it has just ended, it is still the newest.
        same = Compaction.objects.filter(kind=job.kind, thread=job.thread, namespace=job.namespace)
        return same.latest("pk")
    record_step(actor, job, "request", reason)
    if remover:
        notifications.notify_worker(remover, job.public_id)
    else:
        notifications.notify_worker(RUN)
    job.refresh_from_db()  # the database sets the times
    return job


def find_compaction(actor: Actor, compaction_id: str) -> Compaction:
    rows = Compaction.objects.visible_to(actor).select_related("thread", "namespace", "summary")
    return find_row(rows, "compaction", public_id=compaction_id)


def folded_messages(job: Compaction) -> MessageQuerySet:
    """The original messages that the summary of a job replaces, in order, even if the compaction
    was undone or discarded. Earlier summaries and the retained user message are not included; a job
    without a boundary has none."""
    log = Message.objects.filter(
        thread=job.thread_id, seq__lte=job.boundary_seq or 0, folds_to=None
    )
    if job.summary is not None and job.summary.fold_carries is not None:
        log = log.exclude(seq=job.summary.fold_carries)
    return log.in_order()


def built_upon(job: Compaction) -> Compaction | None:
    """The later compaction that is based on the summary of this one. It must be undone first."""
    if job.status != CompactionStatus.DONE or job.summary is None:
        return None
    standing = Message.objects.filter(thread=job.thread_id).active_summaries()
    outer = standing.filter(folds_to__gt=job.summary.folds_to).order_by("folds_to").first()
    return Compaction.objects.filter(summary=outer).first() if outer else None


def replaced_summary(job: Compaction) -> Compaction | None:
    """The newest earlier compaction whose summary this one has updated."""
    if job.summary is None:
        return None
    earlier = Message.objects.filter(thread=job.thread_id, seq__lt=job.summary.seq)
    earlier = earlier.filter(folds_to__lt=job.summary.folds_to)
    was_there = Q(fold_lifted_at=None) | Q(fold_lifted_at__gt=job.summary.created_at)
    inner = earlier.filter(was_there).order_by("-folds_to", "-seq").first()
    return Compaction.objects.filter(summary=inner).first() if inner else None


@dataclass(frozen=True)
class Preview:
    """What a compaction of a thread would do now: a plan, or the reason why there is none.

    `effective` has the source of each field of the policy. `tokens_after` is the largest size of
    the summary, so the savings are a lower bound. `problem`: why it cannot be written now.
    `warning`: what to know before it is requested.
    """

    effective: EffectivePolicy
    context_tokens: int
    plan: Plan | None
    skip: str = ""
    problem: str = ""
    warning: str = ""

    @property
    def policy(self) -> Policy:
        return self.effective.policy

    @property
    def tokens_after(self) -> int | None:
        if self.plan is None:
            return None
        frame = tokens.estimate_message(rules.wrap(""))
        return min(frame + self.policy.summary_max_tokens, self.plan.tokens_before)

    @property
    def savings_ratio(self) -> float | None:
        """The part of the summarized tokens that is saved, at least."""
        if self.plan is None or self.tokens_after is None:
            return None
        return 1 - self.tokens_after / self.plan.tokens_before

    @property
    def percent_saved(self) -> int:
        """The same in whole percent, rounded down."""
        return int(100 * (self.savings_ratio or 0))


def preview_compaction(*, actor: Actor, thread_id: str) -> Preview:
    """Plan a compaction by the rules of the job, without a summary. Stores nothing."""
    thread = find_thread(actor, thread_id)
    return plan_compaction(thread, effective_policy(thread))


def plan_compaction(
    thread: Thread, effective: EffectivePolicy, view: LogView | None = None
) -> Preview:
    """The same by any policy. `view`: of the thread; one serves several plans."""
    view = view or LogView(thread.pk, active_summary(thread))
    planned = boundaries.plan(view, effective.policy)
    if isinstance(planned, Skip):
        return Preview(effective, view.tokens, None, planned.reason)
    try:
        engine = summaries.find_engine(thread.workspace_id, effective.policy)
    except SummaryFailed as missing:
        return Preview(effective, view.tokens, planned, problem=str(missing))
    return Preview(effective, view.tokens, planned, warning=summaries.find_warning(engine))


def undo_compaction(*, actor: Actor, compaction_id: str, reason: str = "") -> Compaction:
    """Undo a compaction: the context has the original messages again.

    Raises Conflict if a later compaction is based on this one, or if it is not done. Nothing is
    deleted: the summary remains stored.
    """
    require(actor, Role.EDITOR)
    job = find_compaction(actor, compaction_id)
    if job.kind != CompactionKind.CONTEXT:
        raise Conflict(f"a {job.kind} compaction cannot be undone: it deletes what it removes")
    with transaction.atomic():
        thread = find_thread(actor, job.thread.public_id if job.thread else "", lock=True)
        job = find_compaction(actor, compaction_id)
        if job.status != CompactionStatus.DONE or job.summary is None:
            raise Conflict(
                f"only a compaction with the status done can be undone; its status is {job.status}"
            )
        later = built_upon(job)
        if later is not None:
            raise Conflict(
                "a later compaction depends on this one; undo the later one first",
                later=later.public_id,
            )
        Message.objects.filter(pk=job.summary.pk).update(fold_lifted_at=Now())
        Compaction.objects.filter(pk=job.pk).update(
            status=CompactionStatus.UNDONE, undone_at=Now(), undone_by=actor.name
        )
        recount_context(thread)
        # Record the length, so that the next message does not request a compaction again.
        Compaction.objects.filter(pk__in=_newest(thread).values("pk")).update(
            progress=context_now()
        )
        record_step(actor, job, "undo", reason)
    return find_compaction(actor, compaction_id)


def cancel_compaction(*, actor: Actor, compaction_id: str, reason: str = "") -> Compaction:
    """Stop a job that has not been applied. A running worker finds its claim invalid."""
    require(actor, Role.EDITOR)
    job = find_compaction(actor, compaction_id)
    left = {"progress": context_now()} if job.kind == CompactionKind.CONTEXT else {}
    with transaction.atomic():
        stopped = Compaction.objects.filter(pk=job.pk, status__in=UNFINISHED).update(
            status=CompactionStatus.CANCELLED, finished_at=Now(), claim=F("claim") + 1, **left
        )
        if not stopped:
            job = find_compaction(actor, compaction_id)
            raise Conflict(f"the compaction is already {job.status}")
        record_step(actor, job, "cancel", reason)
    return find_compaction(actor, compaction_id)


def retry_compaction(*, actor: Actor, compaction_id: str, reason: str = "") -> Compaction:
    """Request again what a failed, skipped, cancelled or superseded job was requested for."""
    require(actor, Role.EDITOR)
    job = find_compaction(actor, compaction_id)
    if job.kind != CompactionKind.CONTEXT:
        raise Conflict(f"a {job.kind} compaction cannot be retried; request a new one")
    if job.thread is None or job.status in (*UNFINISHED, CompactionStatus.DONE):
        raise Conflict(f"a compaction with the status {job.status} cannot be retried")
    return request_compaction(
        actor=actor, thread_id=job.thread.public_id, reason=reason or f"retry of {compaction_id}"
    )


def record_step(actor: Actor, job: Compaction, verb: str, reason: str, **detail: int) -> None:
    trace = journal.Trace(
        f"compaction.{verb}",
        thread=job.thread.public_id if job.thread else "",
        namespace=job.namespace.name if job.namespace else "",
        detail={"compaction": job.public_id, **detail},
    )
    journal.record(actor, [trace], reason=reason)
