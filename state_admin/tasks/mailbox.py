"""The periodic sweep and purge of mailboxes: settles dispatches that no claim settles."""

from __future__ import annotations

from celery import shared_task

from state_admin.services import dead_letters, dispatches, maintenance


@shared_task(name="state_admin.tasks.mailbox.settle")
def settle() -> None:
    maintenance.run_sweep("settle mailboxes", dispatches.settle_mailboxes)


@shared_task(name="state_admin.tasks.mailbox.purge")
def purge() -> None:
    maintenance.run_sweep("purge dispatches", dead_letters.purge_dispatches)
