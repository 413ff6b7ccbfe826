"""The sweeps as Celery tasks."""

from __future__ import annotations

from celery import shared_task

from state_admin.services import audit_stream, indexing, maintenance, retention, storage


@shared_task(name="state_admin.tasks.maintenance.expire_entries")
def expire_entries() -> None:
    maintenance.run_sweep("expire entries", maintenance.expire_entries)


@shared_task(name="state_admin.tasks.maintenance.flag_stuck_runs")
def flag_stuck_runs() -> None:
    maintenance.run_sweep("flag stuck runs", maintenance.flag_stuck_runs)


@shared_task(name="state_admin.tasks.maintenance.expire_tickets")
def expire_tickets() -> None:
    maintenance.run_sweep("expire tickets", maintenance.expire_tickets)


@shared_task(name="state_admin.tasks.maintenance.compact_histories")
def compact_histories() -> None:
    maintenance.run_sweep("compact histories", retention.queue_histories)


@shared_task(name="state_admin.tasks.maintenance.compact_snapshots")
def compact_snapshots() -> None:
    maintenance.run_sweep("compact snapshots", retention.queue_snapshots)


@shared_task(name="state_admin.tasks.maintenance.purge_leftovers")
def purge_leftovers() -> None:
    maintenance.run_sweep("purge leftovers", maintenance.purge_leftovers)


@shared_task(name="state_admin.tasks.maintenance.measure_usage")
def measure_usage() -> None:
    maintenance.run_sweep("measure usage", maintenance.sweep_usage)


@shared_task(name="state_admin.tasks.maintenance.measure_storage")
def measure_storage() -> None:
    maintenance.run_sweep("measure storage", storage.sweep_storage)


@shared_task(name="state_admin.tasks.maintenance.index_entries")
def index_entries() -> None:
    maintenance.run_sweep("index entries", indexing.index_entries)


@shared_task(name="state_admin.tasks.maintenance.find_lost_compactions")
def find_lost_compactions() -> None:
    maintenance.run_sweep("find lost compactions", maintenance.find_lost_compactions)


@shared_task(name="state_admin.tasks.maintenance.schedule_compactions")
def schedule_compactions() -> None:
    maintenance.run_sweep("schedule compactions", maintenance.schedule_compactions)


@shared_task(name="state_admin.tasks.maintenance.stream_audit")
def stream_audit() -> None:
    maintenance.run_sweep("stream audit", audit_stream.stream_audit)
