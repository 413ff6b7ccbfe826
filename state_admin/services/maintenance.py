"""The sweeps that beat starts: each idempotent, each safe to run twice at once, each on record."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import structlog
from django.conf import settings
from django.db import connection, transaction
from django.db.models import F
from django.db.models.functions import Now

from state_admin.domain.ids import uuid7
from state_admin.models import (
    Change,
    Compaction,
    CompactionKind,
    CompactionStatus,
    Entry,
    IdempotencyRecord,
    LoginLink,
    Namespace,
    Operation,
    Run,
    Sweep,
    Trigger,
    hot,
    limits,
)

from . import journal
from .actors import system_actor
from .clearing import clear_entries
from .compactions import claimable_compactions

Report = dict[str, int]

log = structlog.get_logger()

# Rows one sweep takes at most: short transactions, and the next sweep goes on.
BATCH = 1000


def expire_entries() -> Report:
    """Delete entries past their TTL, leaving an `expire` version each. Reads hid them already."""
    due = list(
        Entry.objects.all()
        .expired()
        .order_by("expires_at")
        .values_list("namespace__workspace_id", "namespace_id", "namespace__name", "key")[:BATCH]
    )
    expired = 0
    for workspace_id in sorted({row[0] for row in due}):
        actor = system_actor(workspace_id, "expiry sweep")
        with transaction.atomic():
            rows = [row[1:] for row in due if row[0] == workspace_id]
            expired += clear_entries(actor, rows, "its time to live ended", Operation.EXPIRE)
    return {"expired": expired}


# Beyond keep_last and older than keep_seconds; never the newest, never a pinned one.
_HISTORY = """
WITH ranked AS (
    SELECT r.entry_id, r.version, r.pinned, r.at,
        row_number() OVER (PARTITION BY r.entry_id ORDER BY r.version DESC) AS place
    FROM entry_revisions r JOIN entries e ON e.id = r.entry_id
    WHERE e.namespace_id = %(namespace)s
), doomed AS (
    SELECT entry_id, version FROM ranked
    WHERE place > 1 AND NOT pinned
        AND (%(keep_last)s::bigint IS NULL OR place > %(keep_last)s)
        AND (%(keep_seconds)s::bigint IS NULL
            OR at < now() - %(keep_seconds)s * interval '1 second')
    LIMIT %(batch)s
), removed AS (
    DELETE FROM entry_revisions r USING doomed d
    WHERE r.entry_id = d.entry_id AND r.version = d.version
    RETURNING 1
)
SELECT count(*) FROM removed
"""


def compact_histories() -> Report:
    """Remove entry revisions that their namespace's history policy no longer keeps."""
    report = {"namespaces": 0, "revisions": 0}
    policed = Namespace.objects.exclude(history_keep_last=None, history_keep_seconds=None)
    for namespace in policed.order_by("pk"):
        with transaction.atomic():
            row = hot.fetch_one(
                _HISTORY,
                {
                    "namespace": namespace.pk,
                    "keep_last": namespace.history_keep_last,
                    "keep_seconds": namespace.history_keep_seconds,
                    "batch": BATCH * 10,
                },
            )
            removed = row[0] if row else 0
            if not removed:
                continue
            actor = system_actor(namespace.workspace_id, "history compaction")
            Compaction.objects.create(
                workspace_id=namespace.workspace_id,
                public_id=uuid7(),
                kind=CompactionKind.HISTORY,
                status=CompactionStatus.DONE,
                trigger=Trigger.SCHEDULE,
                namespace=namespace,
                requested_by=actor.name,
                rows_removed=removed,
                started_at=Now(),
                finished_at=Now(),
            )
            trace = journal.Trace(
                "compaction.history", namespace=namespace.name, detail={"revisions": removed}
            )
            journal.record(actor, [trace])
        report["namespaces"] += 1
        report["revisions"] += removed
    return report


def flag_stuck_runs() -> Report:
    """Mark runs that went silent. Nothing is ended behind anyone's back (semantics §7)."""
    flagged = 0
    for run in Run.objects.all().stuck().filter(flagged_at=None).select_related("thread")[:BATCH]:
        with transaction.atomic():
            stuck = Run.objects.filter(pk=run.pk, flagged_at=None).stuck()
            if stuck.update(flagged_at=Now()):
                actor = system_actor(run.workspace_id, "lease sweep")
                trace = journal.Trace("run.stuck", thread=run.thread.public_id, run=run.public_id)
                journal.record(actor, [trace])
                flagged += 1
    return {"flagged": flagged}


def purge_leftovers() -> Report:
    """Delete what has outlived its promise: old changes, idempotency records, login links."""
    day = timedelta(days=1)
    # Later than promised: a cursor that is still good must not point among purged changes.
    old = Change.objects.filter(at__lt=Now() - settings.CHANGE_RETENTION - timedelta(hours=1))
    changes, _ = Change.objects.filter(
        pk__in=old.order_by("at").values("pk")[: BATCH * 50]
    ).delete()
    records, _ = IdempotencyRecord.objects.filter(created_at__lt=Now() - day).delete()
    links, _ = LoginLink.objects.filter(expires_at__lt=Now() - day).delete()
    return {"changes": changes, "idempotency_records": records, "login_links": links}


def measure_usage() -> Report:
    """Count what each workspace holds, for quotas and the usage page."""
    return {"workspaces": limits.measure_usage()}


def find_lost_compactions() -> tuple[Report, list[str]]:
    """Jobs that nobody works on, for the caller to start."""
    lost = claimable_compactions()
    return {"compactions": len(lost)}, lost


def run_sweep(name: str, work: Callable[[], Report]) -> Report | None:
    """Do `work` as the sweep `name`, once at a time over all workers; put it on record.

    None: another worker is at it. An exception is recorded and raised.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(hashtext(%s))", [f"sweep {name}"])
        (mine,) = cursor.fetchone()
    if not mine:
        return None
    try:
        Sweep.objects.get_or_create(name=name)
        row = Sweep.objects.filter(name=name)
        row.update(started_at=Now(), runs=F("runs") + 1)
        try:
            report = work()
        except Exception as error:
            row.update(finished_at=Now(), error=f"{type(error).__name__}: {error}")
            raise
        row.update(finished_at=Now(), report=report, error="")
        if any(report.values()):
            row.update(last_effect_at=Now(), last_effect=report)
            log.info("sweep.done", sweep=name, **report)
        return report
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(hashtext(%s))", [f"sweep {name}"])
