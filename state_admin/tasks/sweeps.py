"""The sweeps as Celery tasks, and the schedule of beat. In code, so that changes are reviewed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from celery import shared_task

from state_admin.models import dispatches_sql, webhooks_sql
from state_admin.models.search import is_behind
from state_admin.services import (
    audit_stream,
    compactions,
    dead_letters,
    deliveries,
    dispatches,
    indexing,
    maintenance,
    retention,
    revert_jobs,
    storage,
    workspace_deletions,
)
from state_admin.services.batching import Report

from . import webhooks


@dataclass(frozen=True)
class Sweep:
    """A periodic job. `task`: the name of its Celery task within this package. `work`: see
    maintenance.run_sweep. `seconds`: between two starts.

    `has_work`: beat checks it before each start, so that jobs that run every second cost an idle
    server little.
    """

    name: str
    task: str
    work: Callable[[], Report]
    seconds: float
    has_work: Callable[[], object] | None = None


SWEEPS: Final = (
    # Without a condition: it shows that jobs run (WORKER_SILENCE, and the alerts of
    # deploy/observability).
    Sweep("expire entries", "maintenance.expire_entries", maintenance.expire_entries, 15),
    Sweep(
        "flag stuck runs",
        "maintenance.flag_stuck_runs",
        maintenance.flag_stuck_runs,
        15,
        maintenance.any_run_to_flag,
    ),
    Sweep(
        "expire tickets",
        "maintenance.expire_tickets",
        maintenance.expire_tickets,
        5,
        maintenance.any_ticket_due,
    ),
    Sweep("index entries", "maintenance.index_entries", indexing.index_entries, 5, is_behind),
    Sweep(
        "find lost compactions",
        "maintenance.find_lost_compactions",
        maintenance.find_lost_compactions,
        15,
        maintenance.any_compaction_lost,
    ),
    Sweep(
        "find lost reverts",
        "maintenance.find_lost_reverts",
        maintenance.find_lost_reverts,
        5,
        revert_jobs.lost_jobs,
    ),
    Sweep(
        "schedule compactions",
        "maintenance.schedule_compactions",
        compactions.request_scheduled,
        300,
    ),
    Sweep("measure usage", "maintenance.measure_usage", maintenance.sweep_usage, 60),
    Sweep("measure storage", "maintenance.measure_storage", storage.sweep_storage, 60),
    Sweep("compact histories", "maintenance.compact_histories", retention.queue_histories, 3600),
    Sweep("compact snapshots", "maintenance.compact_snapshots", retention.queue_snapshots, 300),
    Sweep("webhooks", "webhooks.tick", webhooks.start_deliveries, 1, webhooks_sql.has_work),
    Sweep("purge deliveries", "webhooks.purge", deliveries.purge_deliveries, 3600),
    Sweep(
        "settle mailboxes",
        "mailbox.settle",
        dispatches.settle_mailboxes,
        1,
        dispatches_sql.workspaces_with_due,
    ),
    Sweep(
        "stream audit",
        "maintenance.stream_audit",
        audit_stream.stream_audit,
        2,
        audit_stream.has_work,
    ),
    Sweep(
        "remove workspaces",
        "maintenance.remove_workspaces",
        workspace_deletions.remove_deleted,
        5,
        workspace_deletions.any_to_remove,
    ),
    Sweep("purge dispatches", "mailbox.purge", dead_letters.purge_dispatches, 3600),
    Sweep("purge leftovers", "maintenance.purge_leftovers", maintenance.purge_leftovers, 300),
)


def _name_of(sweep: Sweep) -> str:
    return f"state_admin.tasks.{sweep.task}"


def _create_task(sweep: Sweep) -> Callable[[], None]:
    @shared_task(name=_name_of(sweep))
    def run() -> None:
        maintenance.run_sweep(sweep.name, sweep.work, sweep.seconds)

    return run


TASKS: Final = {sweep.name: _create_task(sweep) for sweep in SWEEPS}

# See project/beat.py.
CONDITIONS: Final = {each.name: each.has_work for each in SWEEPS if each.has_work}

# RabbitMQ drops messages that no worker has taken after this time, by its own clock. Celery's `expires`
# would also let the worker compare the time of beat with its own, and the clocks may differ.
_SHORTEST_EXPIRATION: Final = 5

BEAT_SCHEDULE: Final[dict[str, dict[str, Any]]] = {
    each.name: {
        "task": _name_of(each),
        "schedule": each.seconds,
        "options": {"expiration": max(each.seconds, _SHORTEST_EXPIRATION)},
    }
    for each in SWEEPS
}
