"""Removes old snapshots and old versions of entries, according to the policies.

A job is a row, and is claimed like one of context compaction. It runs in batches. Each is a short
transaction that also records the position, so a job whose worker died continues there. Removal
cannot be undone.

Snapshots are removed in two passes. The first marks revisions as dropped, so that reads of them are
refused. The second deletes the values that no kept revision needs. Readers are not blocked: a
reader of an old snapshot checks the mark after it has read the values (services/snapshots.py).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import psycopg
import structlog
from django.db import OperationalError, transaction
from django.db.models.functions import Now

from project import log_context
from state_admin.domain import values
from state_admin.domain.access import Actor, Role
from state_admin.domain.policies import KEEP_LAST, EffectivePolicy, Policy
from state_admin.domain.values import JSON
from state_admin.models import (
    Compaction,
    CompactionKind,
    CompactionStatus,
    Entry,
    EntryRevision,
    Namespace,
    Thread,
    Trigger,
    erasures_sql,
    retention_sql,
)
from state_admin.models.retention_sql import History, StoredSize

from . import journal
from .actors import require, require_open, system_actor
from .batching import skip_frozen
from .compaction_jobs import LEASE, claim
from .compactions import enqueue, record_step
from .errors import Gone, NotFound, NotRegistered
from .namespaces import require_history
from .policies import effective_policy
from .threads import find_thread

RUN = "state_admin.tasks.compaction.remove"
# The rows that one batch examines, in some hundredths of a second.
BATCH = 1000
# The maximum number of jobs that one sweep requests; and the number of removable snapshots with
# which a thread is due regardless of how many it keeps.
SWEEP = 100
DUE = 100
MAX_ATTEMPTS = 5
# A dialog waits no longer for the count of one batch.
_COUNT_TIMEOUT_MS = 2_000

_KINDS = (CompactionKind.SNAPSHOT, CompactionKind.HISTORY)

log = structlog.get_logger()


@dataclass(frozen=True)
class SnapshotPreview:
    """What snapshot compaction would do to a thread now: of `snapshots`, `dropped` would be
    removed. `weight` is that of the thread's state values."""

    effective: EffectivePolicy
    keep_last: int
    keep_every: int | None
    snapshots: int
    dropped: int
    weight: StoredSize


@dataclass(frozen=True)
class VersionCount:
    """The versions of the entries up to the key `after` (None: of all entries), and the removed
    part. `stopped`: the next entries have too many versions to count them in time."""

    size: StoredSize = field(default_factory=StoredSize)
    after: str | None = ""
    stopped: bool = False

    @property
    def complete(self) -> bool:
        return self.after is None


def preview_snapshots(
    *, actor: Actor, thread_id: str, rule: tuple[int | None, int | None] | None = None
) -> SnapshotPreview:
    """Plan by the rules of the job. Stores nothing. `rule`: snapshot_keep_last and
    snapshot_keep_every instead of those of the policy."""
    thread = find_thread(actor, thread_id)
    effective = effective_policy(thread)
    policy = effective.policy
    if rule:
        policy = replace(policy, snapshot_keep_last=rule[0], snapshot_keep_every=rule[1])
    keep_last, keep_every = _retention_of(policy)
    total, going, weight = retention_sql.preview_values(
        thread_id=thread.pk, until=_until(thread, policy), keep_every=keep_every
    )
    return SnapshotPreview(effective, keep_last, keep_every, total, going, weight)


def request_snapshots(*, actor: Actor, thread_id: str, reason: str = "") -> Compaction:
    """Queue a snapshot compaction of a thread. If one is unfinished, return that one."""
    require(actor, Role.ADMIN)
    with transaction.atomic():
        thread = find_thread(actor, thread_id, lock=True)  # prevents its deletion meanwhile
        return _enqueue(actor, thread, effective_policy(thread).policy, Trigger.HAND, reason)


def _enqueue(
    actor: Actor, thread: Thread, policy: Policy, trigger: Trigger, reason: str
) -> Compaction:
    job = Compaction(
        kind=CompactionKind.SNAPSHOT,
        thread=thread,
        to_revision=_until(thread, policy),
        policy=values.dump(policy.to_json()),
    )
    return enqueue(actor, job, trigger, reason, RUN)


def preview_history(*, actor: Actor, namespace: str) -> StoredSize:
    """All versions of the namespace's entries, and those that its `history` would remove now."""
    return retention_sql.measure_versions(_history(_find_namespace(actor, namespace)))


def count_old_versions(
    *,
    actor: Actor,
    namespace: str,
    seconds: float,
    rule: tuple[int | None, int | None] | None = None,
    since: VersionCount = VersionCount(),
) -> VersionCount:
    """Count as preview_history does, in the order of the entries' keys, for about `seconds`, and
    continue after `since`. `rule`: keep_last and keep_seconds of another `history` than the stored
    one."""
    row = _find_namespace(actor, namespace)
    history = History(row.pk, *rule) if rule else _history(row)
    size, after = since.size, since.after
    end = time.monotonic() + seconds
    try:
        with retention_sql.limited_statements(_COUNT_TIMEOUT_MS):
            while after is not None:
                after, more = retention_sql.count_versions(history, after=after, batch=BATCH)
                size = size.plus(more)
                if time.monotonic() >= end:
                    break
    except OperationalError as error:
        if isinstance(error.__cause__, psycopg.errors.QueryCanceled):
            return VersionCount(size, after, stopped=True)
        raise
    return VersionCount(size, after)


def request_history(
    *, actor: Actor, namespace: str, trigger: Trigger = Trigger.HAND, reason: str = ""
) -> Compaction:
    """Queue a history compaction of a namespace. If one is unfinished, return that one."""
    require(actor, Role.ADMIN)
    with transaction.atomic():
        row = _find_namespace(actor, namespace)
        keeps: dict[str, JSON] = {
            "keep_last": row.history_keep_last,
            "keep_seconds": row.history_keep_seconds,
        }
        job = Compaction(
            kind=CompactionKind.HISTORY, namespace=row, policy=values.dump({"history": keeps})
        )
        return enqueue(actor, job, trigger, reason, RUN)


def queue_snapshots() -> dict[str, int]:
    """Queue snapshot compactions of the threads that are due. Without a policy that sets
    `snapshot_keep_last`, none is."""
    queued = 0
    for thread_id in retention_sql.due_threads(most=DUE, limit=SWEEP):
        with skip_frozen(), transaction.atomic():
            thread = Thread.objects.held().filter(pk=thread_id).first()
            if thread is None:
                continue
            policy = effective_policy(thread).policy
            if policy.snapshot_keep_last is not None:  # changed meanwhile
                actor = system_actor(thread.workspace_id, "retention")
                _enqueue(actor, thread, policy, Trigger.SCHEDULE, "")
                queued += 1
    return {"threads": queued}


def queue_histories() -> dict[str, int]:
    """Queue history compactions of the namespaces with versions that their `history` does not
    keep."""
    policed = Namespace.objects.exclude(history_keep_last=None, history_keep_seconds=None)
    policed = policed.filter(workspace__frozen_at=None)
    due = [
        row
        for row in policed.order_by("pk")
        if retention_sql.any_old_version(_history(row), batch=BATCH)
    ]
    for row in due:
        with skip_frozen():
            request_history(
                actor=system_actor(row.workspace_id, "retention"),
                namespace=row.name,
                trigger=Trigger.SCHEDULE,
            )
    return {"namespaces": len(due)}


def lost_jobs() -> list[str]:
    """Return the jobs without a worker: queued ones whose notification was lost, and running ones
    whose worker died."""
    lost = (
        Compaction.objects.filter(kind__in=_KINDS).claimable().in_open_workspaces().order_by("pk")
    )
    return list(lost.values_list("public_id", flat=True)[:SWEEP])


def run_retention(compaction_id: str) -> CompactionStatus | None:
    """Perform a job to its end, batch by batch. None: another worker has it, it is finished, or it
    is of another kind.

    Safe to call any number of times; a worker that lost its claim stops before the next batch.
    """
    job = claim(compaction_id, *_KINDS)
    if job is None:
        return None
    thread_id = job.thread.public_id if job.thread else ""
    with log_context.bound(workspace=job.workspace_id, thread_id=thread_id):
        return _run(job)


def _run(job: Compaction) -> CompactionStatus:
    piece = _begin_snapshots(job) if job.kind == CompactionKind.SNAPSHOT else _remove_versions
    while True:
        with transaction.atomic():
            erasures_sql.lock_erasure(job.workspace_id, shared=True)
            # A deletion of the thread deletes this row before the values, so one waits for the
            # other.
            mine = Compaction.objects.held(job.pk, job.claim).select_for_update().first()
            if mine is None:
                return CompactionStatus.SUPERSEDED
            if job.attempts > MAX_ATTEMPTS:
                _close(mine, CompactionStatus.FAILED, f"failed after {MAX_ATTEMPTS} attempts")
                return CompactionStatus.FAILED
            before = (mine.rows_removed, mine.progress.get("dropped", 0))
            detail = piece(mine)
            if (mine.rows_removed, mine.progress.get("dropped", 0)) != before:
                _record(job, mine, before)
            if detail is not None:
                _close(mine, CompactionStatus.DONE, detail)
                break
            _save_progress(mine)
    log.info("compaction.finished", compaction=job.public_id)
    return CompactionStatus.DONE


def pin_version(
    *, actor: Actor, namespace: str, key: str, version: int, pinned: bool, reason: str = ""
) -> EntryRevision:
    """Pin a version of an entry, so that history compaction keeps it, or unpin it. Raises NotFound
    if it never existed, and Gone if it was removed."""
    require(actor, Role.EDITOR)
    require_open(namespace)
    with transaction.atomic():
        require_history(_find_namespace(actor, namespace))
        entries = Entry.objects.visible_to(actor).filter(namespace__name=namespace, key=key)
        entry = entries.select_for_update(of=("self",)).first()
        if entry is None or version > entry.version:
            raise NotFound(f"no version {version} of {namespace}/{key}")
        rows = EntryRevision.objects.filter(entry=entry, version=version)
        if not rows.update(pinned=pinned):
            raise Gone(f"version {version} of {namespace}/{key} was removed by history compaction")
        trace = journal.Trace(
            "entry.pin", namespace=namespace, key=key, version=version, detail={"pinned": pinned}
        )
        journal.record(actor, [trace], reason=reason)
        return rows.get()


# The batches: each changes the given job in memory and returns None, or the result of the job. ----

_Piece = Callable[[Compaction], str | None]


def _begin_snapshots(job: Compaction) -> _Piece:
    policy = Policy.from_json(values.load(job.policy or "{}"))
    _, keep_every = _retention_of(policy)
    thread_id, until = job.thread_id or 0, job.to_revision or 0
    kept: list[int] | None = None

    def piece(mine: Compaction) -> str | None:
        nonlocal kept
        done = {"marked": 0, "dropped": 0, "after": ["", 0]} | mine.progress
        mine.progress = done
        if done["marked"] < until:
            done["dropped"] += retention_sql.drop_revisions(
                thread_id=thread_id,
                after=done["marked"],
                until=until,
                keep_every=keep_every,
                batch=BATCH,
            )
            done["marked"] = min(done["marked"] + BATCH, until)
            return None
        if kept is None:  # read once: dropped revisions stay so, and new ones are above `until`
            kept = retention_sql.kept_revisions(thread_id=thread_id, until=until)
        page = retention_sql.remove_values(
            thread_id=thread_id, kept=kept, until=until, after=tuple(done["after"]), batch=BATCH
        )
        if page is None:
            return f"{done['dropped']:,} snapshots deleted"
        done["after"] = page.after
        _record_size(mine, page.weight)
        return None

    return piece


def _remove_versions(mine: Compaction) -> str | None:
    # Locked, so that its limits cannot change before the end of the batch.
    namespaces = Namespace.objects.select_for_update(no_key=True)
    namespace = namespaces.filter(pk=mine.namespace_id or 0).first()
    if namespace is None:
        return "the namespace no longer exists"
    history = _history(namespace)  # as it is now: it may keep more than when the job began
    if history.keep_last is None and history.keep_seconds is None:
        return "the namespace keeps every version"
    after = mine.progress.get("after", "")
    key, weight = retention_sql.remove_versions(history, after=after, batch=BATCH)
    if weight.rows_removed < BATCH:
        mine.progress["after"] = key
    else:  # these entries may have more: their remaining versions are counted by a later batch
        weight = weight._replace(rows=weight.rows_removed, bytes=weight.bytes_removed)
    _record_size(mine, weight)
    return "" if key is None else None


def _record_size(mine: Compaction, weight: StoredSize) -> None:
    mine.rows_before = (mine.rows_before or 0) + weight.rows
    mine.bytes_before = (mine.bytes_before or 0) + weight.bytes
    mine.rows_removed += weight.rows_removed
    mine.bytes_removed += weight.bytes_removed


# ------------------------------------------------------------------------------------------------


def _retention_of(policy: Policy) -> tuple[int, int | None]:
    """Return how many of the newest snapshots are kept, and of which number all multiples are."""
    return policy.snapshot_keep_last or KEEP_LAST, policy.snapshot_keep_every


def _until(thread: Thread, policy: Policy) -> int:
    """Return the newest revision that is not one of the newest ones to keep."""
    return max(thread.revision - _retention_of(policy)[0], 0)


def _history(row: Namespace) -> History:
    return History(row.pk, row.history_keep_last, row.history_keep_seconds)


def _find_namespace(actor: Actor, name: str) -> Namespace:
    row = Namespace.objects.visible_to(actor).filter(name=name).first()
    if row is None or (row.unregistered_at is not None and actor.kind != "system"):
        raise NotRegistered(name)
    return row


def _save_progress(mine: Compaction) -> None:
    mine.lease_expires_at = Now() + LEASE
    mine.save(update_fields=[*_PROGRESS, "lease_expires_at"])


def _close(job: Compaction, status: CompactionStatus, detail: str) -> None:
    job.status, job.detail = status, detail
    job.finished_at, job.lease_expires_at = Now(), None
    job.save(update_fields=[*_PROGRESS, "status", "detail", "finished_at", "lease_expires_at"])


_PROGRESS = ("progress", "rows_before", "rows_removed", "bytes_before", "bytes_removed")


def _record(job: Compaction, mine: Compaction, before: tuple[int, int]) -> None:
    """Record in audit and feed what one batch removed."""
    removed = {
        "rows": mine.rows_removed - before[0],
        "snapshots": mine.progress.get("dropped", 0) - before[1],
    }
    actor = system_actor(job.workspace_id, "retention")
    detail = {name: count for name, count in removed.items() if count}
    record_step(actor, job, "remove", job.reason, **detail)
