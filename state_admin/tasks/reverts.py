"""Runs reverts, one job per notification, for a limited time: the job is then queued again behind
others. A lost or repeated notification has no effect, because the rows decide what to do."""

from __future__ import annotations

from celery import shared_task

from state_admin.services import revert_jobs


@shared_task(name=revert_jobs.RUN)
def run(number: str) -> None:
    revert_jobs.run_revert(int(number))
