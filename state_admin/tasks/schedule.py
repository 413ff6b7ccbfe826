"""The schedule of beat, with conditions. In code, so that changes are reviewed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from state_admin.services import audit_stream, deliveries, dispatches, indexing, maintenance

# Checked by beat before each start, so that jobs that run every second cost an idle server little.
CONDITIONS: dict[str, Callable[[], bool]] = {
    "webhooks": deliveries.has_work,
    "settle mailboxes": dispatches.has_due_work,
    "expire tickets": maintenance.any_ticket_due,
    "index entries": indexing.has_unindexed_changes,
    "stream audit": audit_stream.has_work,
}

BEAT_SCHEDULE: dict[str, dict[str, Any]] = {
    "expire entries": {"task": "state_admin.tasks.maintenance.expire_entries", "schedule": 15.0},
    "flag stuck runs": {"task": "state_admin.tasks.maintenance.flag_stuck_runs", "schedule": 15.0},
    "expire tickets": {"task": "state_admin.tasks.maintenance.expire_tickets", "schedule": 5.0},
    "index entries": {"task": "state_admin.tasks.maintenance.index_entries", "schedule": 5.0},
    "find lost compactions": {
        "task": "state_admin.tasks.maintenance.find_lost_compactions",
        "schedule": 15.0,
    },
    "schedule compactions": {
        "task": "state_admin.tasks.maintenance.schedule_compactions",
        "schedule": 300.0,
    },
    "measure usage": {"task": "state_admin.tasks.maintenance.measure_usage", "schedule": 60.0},
    "measure storage": {
        "task": "state_admin.tasks.maintenance.measure_storage",
        "schedule": 60.0,
        "options": {"expires": 60},
    },
    "compact histories": {
        "task": "state_admin.tasks.maintenance.compact_histories",
        "schedule": 3600.0,
    },
    "compact snapshots": {
        "task": "state_admin.tasks.maintenance.compact_snapshots",
        "schedule": 300.0,
    },
    "webhooks": {
        "task": "state_admin.tasks.webhooks.tick",
        "schedule": 1.0,
        # A worker that was down for an hour gets one pending job, not 3600.
        "options": {"expires": 5},
    },
    "purge deliveries": {"task": "state_admin.tasks.webhooks.purge", "schedule": 3600.0},
    "settle mailboxes": {
        "task": "state_admin.tasks.mailbox.settle",
        "schedule": 1.0,
        "options": {"expires": 5},
    },
    "stream audit": {
        "task": "state_admin.tasks.maintenance.stream_audit",
        "schedule": 2.0,
        "options": {"expires": 5},
    },
    "purge dispatches": {"task": "state_admin.tasks.mailbox.purge", "schedule": 3600.0},
    "purge leftovers": {
        "task": "state_admin.tasks.maintenance.purge_leftovers",
        "schedule": 300.0,
    },
}
