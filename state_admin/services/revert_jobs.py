"""Jobs that revert the writes of a request, or all writes since a moment, to any number of entries.

A worker claims a job under a lease. It searches for the entries, those of a request in the audit log, and
then reverts them in batches. Each batch is a transaction that also removes its entries from the rest of the
job, so a job whose worker died continues there, and each entry is reverted once. A worker that lost its claim
stops before the next batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from itertools import takewhile
from time import monotonic
from typing import Any, Final, Unpack, cast

import structlog
from django.db import IntegrityError, transaction
from django.db.models import F
from django.db.models.functions import Now

from project import log_context, tracing
from state_admin.domain import retries, values
from state_admin.domain.access import Actor, Kind, Role, narrower
from state_admin.domain.ids import uuid7
from state_admin.domain.moments import timestamp
from state_admin.domain.scopes import ScopeKind
from state_admin.models import (
    ApiToken,
    AuditRow,
    EntryRevision,
    Membership,
    Revert,
    RevertEntry,
    RevertStatus,
    erasures_sql,
    moments_sql,
    reverts_sql,
)
from state_admin.models.browsing import EntryFilter
from state_admin.models.bulk_sql import Action
from state_admin.models.creation_times import OPEN, id_at
from state_admin.models.reverts import MIXED, UNFINISHED, RevertEntryQuerySet, RevertQuerySet
from state_admin.models.reverts_sql import NextEntry, WrittenEntry

from . import journal, notifications
from .actors import actor_of_row, require
from .batching import split_by_size
from .bulk import MOST, SelectedEntry, SkippedEntry, change_entries
from .errors import Conflict, Invalid, Problem
from .finding import find_row
from .restores import Filters, check_selection, restore_found
from .reverts import revert_entries

RUN = "state_admin.tasks.reverts.run"
LEASE = timedelta(seconds=60)
# Claims without a finished batch: the worker died, or a namespace changed during each.
MAX_ATTEMPTS = 5
# Rows of the audit log, or entries of the namespaces, that one step of the search examines. After it has
# found a row of the request, the search of the audit log ends when a step finds no further one. Until then it
# continues to the beginning of the log.
SPAN = 50_000
# The pause before the second attempt; it doubles with each further attempt.
RETRY_SECONDS = 1.0
# How long the request of a user works on a new revert before a worker continues.
AT_ONCE = 1.0
# How long a worker works on one revert before other jobs have their turn.
TURN_SECONDS = 20.0
_MOST_LOST = 100
_PROGRESS: Final = ("total", "reverted", "skipped", "progress")
_NOT_PERMITTED: Final = "the requester is no longer permitted to change entries"
_MIXED: Final = "the request changed several tags of it, or a tag and something else"
_NOTHING_FOUND: Final = "the audit log contains no changes to entries by this request"

log = structlog.get_logger()


def request_revert(
    *,
    actor: Actor,
    request_id: str = "",
    at: datetime | None = None,
    reason: str = "",
    **filters: Unpack[Filters],
) -> Revert:
    """Queue a revert of the writes of a request, or of all writes since `at` to the entries that the filters
    select, and notify a worker. If the actor has an unfinished one of the same, return that one. Raises
    Invalid if request_id is not valid, and the problems of a restore to a moment."""
    with transaction.atomic():
        job = _create(actor, request_id, None, at, filters, reason)
        notifications.notify_worker(RUN, str(job.pk))
    return job


def start_revert(
    *,
    actor: Actor,
    request_id: str = "",
    near: int | None = None,
    at: datetime | None = None,
    reason: str = "",
    **filters: Unpack[Filters],
) -> Revert:
    """The same for a user who waits: works on it for AT_ONCE seconds, and leaves the rest to a worker.
    `near`: the id of an audit row of the request, with which it is found sooner."""
    with transaction.atomic():
        job = _create(actor, request_id, near, at, filters, reason)
    run_revert(job.pk, seconds=AT_ONCE)
    job.refresh_from_db()
    return job


def preview_revert(
    *, actor: Actor, request_id: str, near: int
) -> tuple[list[tuple[str, str]], bool]:
    """The addresses of the entries that a revert would examine, among the SPAN audit rows on each side
    of `near`; and whether there may be more."""
    return reverts_sql.find_names(actor, request_id, position=near, rows=SPAN)


def preview_moment(
    *, actor: Actor, at: datetime, **filters: Unpack[Filters]
) -> tuple[list[str], bool]:
    """The addresses of the entries that a revert to a moment would examine, among the first SPAN entries that
    the filters select; and whether there may be more. Raises the problems of a restore to a moment."""
    check_selection(actor, at, **filters)
    return moments_sql.find_touched(actor, at, _entry_filter(dict(filters)), rows=SPAN)


def find_request(actor: Actor, namespace: str, key: str, version: int) -> tuple[str, int | None]:
    """The request id of a version of an entry, "" if the version has none, for example because the
    entry expired; and the id of an audit row near those of the request. Raises NotFound if the version
    is not kept."""
    history = EntryRevision.objects.visible_to(actor).of_key(namespace, key)
    written = find_row(history, "version", version=version)
    owner = {"workspace_id": actor.workspace_id}
    rows = AuditRow.objects.filter(**owner).until(written.at, owner)
    return written.request_id, rows.nth_newest(1)


def find_revert(actor: Actor, revert_id: str) -> Revert:
    return find_row(Revert.objects.visible_to(actor), "revert", public_id=revert_id)


def skipped_entries(actor: Actor, job: Revert) -> RevertEntryQuerySet:
    """The entries that the job has skipped so far, with the reasons, as far as the actor may see them: the
    limits of its token may have changed since the request."""
    return RevertEntry.objects.visible_to(actor).filter(revert=job).skipped()


def cancel_revert(*, actor: Actor, revert_id: str, reason: str = "") -> Revert:
    """Stop a job. What it has reverted stays so. Raises Conflict if it has ended."""
    require(actor, Role.EDITOR)
    job = find_revert(actor, revert_id)
    with transaction.atomic():
        stopped = Revert.objects.filter(pk=job.pk, status__in=UNFINISHED).update(
            status=RevertStatus.CANCELLED, detail="", finished_at=Now(), claim=F("claim") + 1
        )
        job.refresh_from_db()
        if not stopped:
            raise Conflict(f"the revert is already {job.status}")
        _forget_rest(job)
        _record(actor, job, "cancel", reason)
    return job


def lost_jobs() -> list[int]:
    """The numbers of the jobs without a worker: queued ones whose notification was lost, and running ones whose worker
    died."""
    lost = Revert.objects.all().claimable().in_open_workspaces().order_by("available_at")
    return list(lost.values_list("pk", flat=True)[:_MOST_LOST])


def run_revert(number: int, *, seconds: float = TURN_SECONDS) -> RevertStatus | None:
    """Work on the job with this number for `seconds` or to its end. None: another worker has it, or it
    has ended.

    Safe to call any number of times."""
    claimed = Revert.objects.filter(pk=number).claimable().in_open_workspaces()
    if not claimed.update(started_at=Now(), **RevertQuerySet.claimed(LEASE)):
        return None
    job = Revert.objects.get(pk=number)
    with log_context.bound(workspace=job.workspace_id, request_id=job.public_id):
        return _run(job, monotonic() + seconds)


def _run(job: Revert, until: float) -> RevertStatus:
    if job.attempts > MAX_ATTEMPTS:
        return _end(job, RevertStatus.FAILED, f"failed after {MAX_ATTEMPTS} attempts")
    while True:
        try:
            with transaction.atomic():
                erasures_sql.lock_erasure(job.workspace_id, shared=True)
                mine = Revert.objects.held(job.pk, job.claim).select_for_update().first()
                if mine is None:  # cancelled, or another worker has it
                    return RevertStatus(
                        Revert.objects.values_list("status", flat=True).get(pk=job.pk)
                    )
                actor = _author(mine)  # an erasure may have removed its run since the last batch
                if not _may_still_write(actor):
                    _finish(mine, actor, RevertStatus.FAILED, _NOT_PERMITTED)
                elif mine.total is not None:
                    _revert_next(actor, mine)
                elif mine.at is None:
                    _search(actor, mine)
                else:
                    _search_since(actor, mine, mine.at)
                if mine.status == RevertStatus.RUNNING:
                    _continue(mine)
                job.attempts = mine.attempts
        except Conflict as conflict:  # a namespace or an entry changed during the batch
            return _release(job, conflict.detail, attempts=job.attempts)
        except Problem as refused:
            return _end(job, RevertStatus.FAILED, refused.detail)
        if mine.status != RevertStatus.RUNNING:
            log.info("revert.finished", revert=job.public_id, status=str(mine.status))
            return RevertStatus(mine.status)
        if monotonic() >= until:
            return _release(job, "", attempts=0)


def _create(
    actor: Actor,
    request_id: str,
    near: int | None,
    at: datetime | None,
    filters: Filters,
    reason: str,
) -> Revert:
    require(actor, Role.EDITOR)
    selected = {name: text for name, text in filters.items() if text}
    if bool(request_id) == bool(at or selected):
        raise Invalid(
            "either request_id, or at with one or more filters, is required, and not both"
        )
    if len(request_id) > 64 or "\0" in request_id:
        raise Invalid("request_id must have 1 to 64 characters")
    target = request_id
    if not request_id:
        if at is None:
            raise Invalid("the filters require at", [values.Fault("/at", "is required")])
        check_selection(actor, at, **filters)
        digest = sha256(values.dump(sorted(selected.items())).encode()).hexdigest()
        target = f"{timestamp(at)} {digest[:16]}"
    same = Revert.objects.filter(workspace_id=actor.workspace_id, target=target).by(actor)
    job = Revert(
        workspace_id=actor.workspace_id,
        public_id=uuid7(),
        target=target,
        at=at,
        filters=selected,
        namespaces=list(actor.namespaces),
        run=actor.run_id,
        progress={} if near is None else {"near": near},
        **journal.stamp(actor, reason),
    )
    try:
        with transaction.atomic():
            job.save(force_insert=True)
    except IntegrityError:
        # An unfinished job exists. If it has just ended, it is still the newest.
        return same.latest("pk")
    # Without keys, because an erasure does not search the details of audit rows.
    where = {name: text for name, text in selected.items() if name in ("namespace", "scope_kind")}
    _record(actor, job, "request", reason, **({"at": timestamp(at), **where} if at else {}))
    job.refresh_from_db()  # the database sets the times
    return job


def _author(job: Revert) -> Actor:
    """The actor that requested the job, in a request of its own."""
    return Actor(
        kind=cast(Kind, job.actor_kind),
        id=job.actor_id,
        name=job.actor_name,
        workspace_id=job.workspace_id,
        role=Role.EDITOR,
        namespaces=tuple(job.namespaces),
        request_id=job.public_id,
        run_id=job.run,
        traceparent=tracing.traceparent(),
    )


def _may_still_write(actor: Actor) -> bool:
    """Whether the member is still an editor, or the token still valid, with the permissions of the job. The job
    may end long after the request, and in another cell, where users have other numbers and the same
    names."""
    own = {"workspace_id": actor.workspace_id}
    if actor.kind == "user":
        members = Membership.objects.filter(user__username=actor.name, user__is_active=True, **own)
        return members.exclude(role=Role.VIEWER).exists()
    if actor.kind != "token":
        return True
    token = ApiToken.objects.live().filter(pk=int(actor.id), **own).first()
    if token is None:
        return False
    now = actor_of_row(token)
    return not narrower(actor.role, actor.namespaces, now.thread_prefixes, creator=now)


# The steps: each is part of a transaction, and changes the given job in memory. -----------------


def _search(actor: Actor, mine: Revert) -> None:
    """Examine the next rows of the audit log: first those after `near`, then those before it.

    A revert may pause between its batches, so rows of others are between its own. The search for its
    writes ends at the time when it was requested, and not at a distance."""
    state = mine.progress
    if "down" not in state:
        earlier = Revert.objects.filter(workspace_id=mine.workspace_id, public_id=mine.target)
        near = state.get("near")
        newest = AuditRow.objects.filter(workspace_id=mine.workspace_id).nth_newest(1) or 0
        state |= {"up": near, "down": newest if near is None else near, "low": None, "found": 0}
        if (its := earlier.first()) is not None:
            owner = {"workspace_id": mine.workspace_id}
            low = id_at(AuditRow, "at", its.created_at - OPEN, owner)
            state |= {"up": None, "down": newest, "low": low}
    up = state["up"] is not None
    position = state["up"] if up else state["down"]
    part = reverts_sql.store_written(
        actor, mine.pk, mine.target, position=position, up=up, rows=SPAN
    )
    state["found"] += part.found
    last = part.rows < SPAN
    if up:
        state["up"] = None if last or not part.found else part.high
        return
    state["down"] = (part.low or 1) - 1
    if state["low"] is not None:
        last = last or state["down"] < state["low"]
    elif state["found"] and not part.found:
        last = True
    if last:
        _end_search(mine)
        if not mine.total:
            _finish(mine, actor, RevertStatus.FAILED, _NOTHING_FOUND)


def _search_since(actor: Actor, mine: Revert, at: datetime) -> None:
    """Examine the next entries that the filters select."""
    namespace, key = mine.progress.get("examined", ("", ""))
    filters = _entry_filter(mine.filters)._replace(after=(namespace, key))
    examined = moments_sql.store_touched(actor, mine.pk, at, filters, rows=SPAN)
    if examined is None:
        _end_search(mine)
    else:
        mine.progress = {"examined": examined}


def _entry_filter(filters: dict[str, Any]) -> EntryFilter:
    kind = filters.get("scope_kind")
    names = {name: filters.get(name, "") for name in ("namespace", "key", "prefix")}
    return EntryFilter(**names, scope=ScopeKind(kind) if kind else None, restorable=True)


def _end_search(mine: Revert) -> None:
    mine.total = RevertEntry.objects.filter(revert=mine).count()
    mine.progress = {"after": ["", ""]}


def _revert_next(actor: Actor, mine: Revert) -> None:
    """Revert the next entries: up to MOST, and of a size that fits into memory."""
    namespace, key = mine.progress["after"]
    target = mine.at or mine.target
    upcoming = reverts_sql.next_entries(mine.pk, target, after=(namespace, key), rows=MOST)
    if not upcoming:
        _finish(mine, actor, RevertStatus.DONE, "")
        return
    part = next(split_by_size(((each, each.size) for each in upcoming), MOST))
    # One statement per batch, because it locks its entries in order.
    part = list(takewhile(lambda each: each.tag_change == part[0].tag_change, part))
    _record(actor, mine, "apply", mine.reason, entries=len(part))
    if mine.at is None:
        skips = _change(actor, part, mine.reason or f"revert of request {mine.target}")
    else:
        reason = mine.reason or f"restored to {timestamp(mine.at)}"
        skips = restore_found(actor=actor, at=mine.at, found=part, reason=reason)
    reasons = {(each.namespace, each.key): each.why for each in skips}
    outcome = [(each.row_id, reasons.get((each.namespace, each.key))) for each in part]
    skipped = [(row_id, why) for row_id, why in outcome if why is not None]
    reverts_sql.settle([row_id for row_id, why in outcome if why is None], skipped)
    mine.reverted += len(part) - len(skipped)
    mine.skipped += len(skipped)
    mine.progress = {"after": [part[-1].namespace, part[-1].key]}


def _change(actor: Actor, part: list[NextEntry], reason: str) -> Sequence[SkippedEntry]:
    """Revert entries that a request wrote, and return those that were skipped."""
    change, tag = part[0].tag_change[:1], part[0].tag_change[1:]
    if change == MIXED:
        return [SkippedEntry(each.namespace, each.key, _MIXED) for each in part]
    if change:
        seen = [SelectedEntry(each.namespace, each.key, each.last) for each in part]
        action: Action = "tag" if change == "+" else "untag"
        result = change_entries(actor=actor, action=action, seen=seen, tag=tag, reason=reason)
        journal.align_feed_clock(actor)
        return result.skipped
    written = [WrittenEntry(each.namespace, each.key, each.first, each.last) for each in part]
    return revert_entries(actor=actor, written=written, reason=reason).skipped


# The row of the job. ----------------------------------------------------------------------------


def _continue(mine: Revert) -> None:
    mine.attempts, mine.detail, mine.lease_expires_at = 1, "", Now() + LEASE
    mine.save(update_fields=[*_PROGRESS, "attempts", "detail", "lease_expires_at"])


def _finish(mine: Revert, actor: Actor, status: RevertStatus, detail: str) -> None:
    """End a locked job."""
    mine.status, mine.detail = status, detail
    mine.finished_at, mine.lease_expires_at = Now(), None
    mine.save(update_fields=[*_PROGRESS, "status", "detail", "finished_at", "lease_expires_at"])
    _forget_rest(mine)
    _record(actor, mine, "finish", mine.reason)


def _end(job: Revert, status: RevertStatus, detail: str) -> RevertStatus:
    """End a job whose batch was rolled back."""
    with transaction.atomic():
        erasures_sql.lock_erasure(job.workspace_id, shared=True)
        mine = Revert.objects.held(job.pk, job.claim).select_for_update().first()
        if mine is not None:
            _finish(mine, _author(mine), status, detail)
    log.info("revert.finished", revert=job.public_id, status=status.value)
    return status


def _release(job: Revert, detail: str, *, attempts: int) -> RevertStatus:
    """Queue the job again, for another worker or attempt. `attempts`: 0 after progress."""
    pause = retries.pause_before_retry(attempts, base=RETRY_SECONDS) if attempts else 0.0
    with transaction.atomic():
        queued = Revert.objects.held(job.pk, job.claim).update(
            status=RevertStatus.QUEUED,
            detail=detail,
            attempts=attempts,
            lease_expires_at=None,
            available_at=Now() + timedelta(seconds=pause),
        )
        if queued and not pause:
            notifications.notify_worker(RUN, str(job.pk))
    return RevertStatus.QUEUED


def _forget_rest(job: Revert) -> None:
    """Delete the rows of the entries that an ended job did not examine."""
    RevertEntry.objects.filter(revert=job, why="").delete()


def _record(actor: Actor, job: Revert, verb: str, reason: str, **detail: Any) -> None:
    journal.record(
        actor, [journal.Trace(f"revert.{verb}", key=job.target, detail=detail)], reason=reason
    )
