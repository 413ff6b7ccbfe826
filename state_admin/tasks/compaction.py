"""Runs one compaction job. A lost or repeated message changes nothing: the row decides."""

from __future__ import annotations

from celery import shared_task

from state_admin.services import compactions


@shared_task(name="state_admin.tasks.compaction.run")
def run(compaction_id: str) -> None:
    compactions.run_compaction(compaction_id)
