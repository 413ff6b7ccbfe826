"""The sweeps that beat starts. Each is idempotent, may run twice at the same time, and is
recorded."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import structlog
from django.conf import settings
from django.db import OperationalError, connection, transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.db.models.functions import Now

from project.failures import describe_error
from state_admin.models import (
    Entry,
    IdempotencyRecord,
    LoginAttempt,
    LoginLink,
    OnExpiry,
    Operation,
    Presence,
    Revert,
    Run,
    Sweep,
    Ticket,
    Traffic,
    UserSession,
    Workspace,
    changes_sql,
    freezing_sql,
    limits,
    traffic,
    write_positions,
)
from state_admin.models.sessions import unexpired

from . import journal, notifications, retention, revert_jobs, tickets
from .actors import system_actor
from .batching import Report, Rest, delete_in_batches, repeat_in_batches, skip_frozen
from .clearing import clear_entries
from .compaction_jobs import count_lost
from .compactions import RUN

log = structlog.get_logger()

# The maximum number of rows per transaction. The change feed waits for an open transaction.
BATCH = 1000
PURGE_BATCH = 2000
# Ended reverts, each with the rows of its skipped entries.
_REVERT_RETENTION = timedelta(days=30)
_REVERT_BATCH = 10

_usage_rest = Rest()


def expire_entries() -> Report:
    """Delete entries after their TTL, with a version `expire` each. Reads already treat them as
    absent."""
    return {"expired": repeat_in_batches(_expire_batch, BATCH)}


def _expire_batch() -> int:
    due = list(
        Entry.objects.all()
        .expired()
        .filter(namespace__workspace__frozen_at=None)
        .order_by("expires_at")
        .values_list("namespace__workspace_id", "namespace_id", "namespace__name", "key")[:BATCH]
    )
    expired = 0
    for workspace_id in sorted({row[0] for row in due}):
        actor = system_actor(workspace_id, "expiry sweep")
        with skip_frozen(), transaction.atomic():
            rows = [row[1:] for row in due if row[0] == workspace_id]
            expired += clear_entries(actor, rows, "time to live expired", Operation.EXPIRE)
    return expired


def flag_stuck_runs() -> Report:
    """Flag stuck runs, with the reason in plain text. No run is ended."""
    flagged = 0
    for run in _runs_to_flag().select_related("thread")[:BATCH]:
        with skip_frozen(), transaction.atomic():
            stuck = Run.objects.filter(pk=run.pk, flagged_at=None).stuck()
            if stuck.update(flagged_at=Now()):
                # The reason may have changed since the run was found.
                run = Run.objects.timed().select_related("thread").get(pk=run.pk)
                actor = system_actor(run.workspace_id, "lease sweep")
                trace = journal.Trace(
                    "run.stuck",
                    thread=run.thread.public_id,
                    run=run.public_id,
                    detail={"reason": run.stuck_reason(run.read_at)},
                )
                journal.record(actor, [trace])
                flagged += 1
    return {"flagged": flagged}


def any_run_to_flag() -> bool:
    """Whether `flag_stuck_runs` would find work."""
    return _runs_to_flag().exists()


def _runs_to_flag() -> QuerySet[Run]:
    return Run.objects.all().stuck().filter(flagged_at=None, workspace__frozen_at=None)


def expire_tickets() -> Report:
    """Cancel the expired tickets whose `on_expiry` says so. Late decisions are refused even before
    this runs."""
    found = _due_tickets().select_related("run").order_by("expires_at")[:BATCH]
    expired = 0
    for ticket in found:
        with skip_frozen():
            expired += tickets.expire_ticket(ticket)
    return {"expired": expired}


def any_ticket_due() -> bool:
    """Whether `expire_tickets` would find work."""
    return _due_tickets().exists()


def _due_tickets() -> QuerySet[Ticket]:
    rows = Ticket.objects.pending().expired().filter(on_expiry=OnExpiry.CANCEL)
    return rows.filter(workspace__frozen_at=None)


def purge_leftovers() -> Report:
    """Delete rows after their retention time: changes, idempotency records, login links, reverts,
    sessions. Drop the triggers that a freeze has left that failed or whose process ended."""
    day = timedelta(days=1)
    _drop_triggers()
    links, _ = LoginLink.objects.filter(expires_at__lt=Now() - day).delete()
    attempts, _ = LoginAttempt.objects.filter(at__lt=Now() - day).delete()
    sessions, _ = UserSession.objects.exclude(unexpired()).delete()
    Presence.objects.filter(seen_at__lt=Now() - day).delete()
    write_positions.purge()
    minutes, _ = Traffic.objects.timed().filter(minute__lt=Now() - traffic.RETENTION).delete()
    ended = Revert.objects.filter(finished_at__lt=Now() - _REVERT_RETENTION)
    return {
        "changes": _purge_changes(),
        "idempotency_records": _purge_idempotency_records(day),
        "login_attempts": attempts,
        "login_links": links,
        "reverts": delete_in_batches(ended.in_open_workspaces(), "finished_at", _REVERT_BATCH),
        "sessions": sessions,
        "traffic_minutes": minutes,
    }


def _drop_triggers() -> None:
    if not freezing_sql.is_on():
        return
    try:
        freezing_sql.switch_off()
    except OperationalError as error:  # a table is locked: the next sweep tries again
        log.info("freeze.triggers_remain", error=describe_error(error))


def _purge_changes() -> int:
    """Delete the oldest changes until a batch has none that is old enough: the work is that of the
    changes deleted, however many there are. A change that was recorded before another with a lower
    id may wait for the next time."""
    after: int | None = 0

    def purge() -> int:
        nonlocal after
        # Later than documented: a cursor that is still valid must not point to purged changes.
        age = settings.CHANGE_RETENTION + timedelta(hours=1)
        after, purged = changes_sql.purge(age=age, after=after or 0, batch=PURGE_BATCH)
        return purged

    return repeat_in_batches(purge, 1)


def _purge_idempotency_records(age: timedelta) -> int:
    frozen = Workspace.objects.frozen().filter(pk=OuterRef("workspace_id"))
    old = IdempotencyRecord.objects.filter(~Exists(frozen), created_at__lt=Now() - age)
    return delete_in_batches(old, "created_at", PURGE_BATCH)


def sweep_usage() -> Report:
    """Measure the length of each workspace's queues, for the overview. Also measure what it stores, for
    quotas and the usage page, unless that was done recently (batching.Rest)."""
    traffic.measure_queues()
    return _usage_rest.run(lambda: {"workspaces": limits.measure_usage()})


def find_lost_compactions() -> Report:
    """Notify a worker for each job without one: its notification was lost, or its worker died."""
    lost, removals = count_lost(), retention.lost_jobs()
    for _ in range(lost):
        notifications.notify_worker(RUN)
    for compaction_id in removals:
        notifications.notify_worker(retention.RUN, compaction_id)
    return {"compactions": lost + len(removals)}


def any_compaction_lost() -> bool:
    """Whether `find_lost_compactions` would find work."""
    return bool(count_lost() or retention.lost_jobs())


def find_lost_reverts() -> Report:
    """The same for reverts, among them those that wait for another attempt."""
    lost = revert_jobs.lost_jobs()
    for number in lost:
        notifications.notify_worker(revert_jobs.RUN, str(number))
    return {"reverts": len(lost)}


def run_sweep(name: str, work: Callable[[], Report], seconds: float = 0) -> Report | None:
    """Run `work` as the sweep `name`, by one worker at a time, and record it.

    None: another worker is running it, or has ended it after a start within half of `seconds`, the time
    between two starts. So of the messages that waited for a worker, one has an effect. They cannot
    expire by the time in them, because the clocks of beat and of the worker may differ. An exception is
    recorded and raised.
    """
    row = Sweep.objects.filter(name=name)
    # Not what started in the future: the clock of the database may have been set back. Nor what has not
    # ended: its worker was killed.
    recent = Q(
        started_at__gt=Now() - timedelta(seconds=seconds / 2),
        started_at__lte=Now(),
        finished_at__gte=F("started_at"),
    )
    if row.filter(recent).exists():  # one statement, because thousands of messages may have waited
        return None
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(hashtext(%s))", [f"sweep {name}"])
        (mine,) = cursor.fetchone()
    if not mine:
        return None
    try:
        Sweep.objects.get_or_create(name=name)
        if not row.exclude(recent).update(started_at=Now(), runs=F("runs") + 1):
            return None
        try:
            report = work()
        except Exception as error:
            row.update(finished_at=Now(), error=describe_error(error))
            raise
        row.update(finished_at=Now(), report=report, error="")
        if any(report.values()):
            row.update(last_effect_at=Now(), last_effect=report)
            log.info("sweep.finished", sweep=name, **report)
        return report
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(hashtext(%s))", [f"sweep {name}"])
