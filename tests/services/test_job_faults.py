"""Jobs are more than one transaction: after a failure at any statement, a later worker finishes them, with
one effect."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import OperationalError, transaction
from django.utils import timezone

from state_admin.models import AuditRow
from state_admin.services import (
    compaction_jobs,
    compactions,
    effective_views,
    entries,
    messages,
    retention,
    revert_jobs,
)
from state_admin.services.verification import verify_state
from tests import builders
from tests.builders import Person
from tests.services.faults import Faults, failing
from tests.services.test_faults import world

__all__ = ["world"]


def test_compaction_run__failure_at_any_statement__can_be_repeated_with_one_effect(
    world: Person,
) -> None:
    """A job is more than one transaction; a later worker must be able to finish it."""
    builders.append(world.actor, "t1", *builders.conversation(6, rounds=2))
    before = builders.Thread.objects.get(public_id="t1").message_count
    job = compactions.request_compaction(actor=world.actor, thread_id="t1").public_id
    number, done = 0, False
    while not done:
        number += 1
        with transaction.atomic():
            with failing(Faults(number)):
                try:
                    done = compaction_jobs.run_compaction(job) == "done"
                except OperationalError:
                    transaction.set_rollback(False)  # in production each is a transaction
            if not done:
                compactions.Compaction.objects.filter(public_id=job, status="running").update(
                    lease_expires_at=compactions.Now()
                )
                # The lease is compared with the later time of the statement.
                assert compaction_jobs.run_compaction(job) == "done"
            thread = builders.Thread.objects.get(public_id="t1")
            assert thread.message_count == before + 1
            summaries = messages.Message.objects.filter(thread=thread, folds_to__isnull=False)
            assert summaries.count() == 1
            view = effective_views.effective_messages(thread)
            assert thread.context_tokens == sum(m.estimated_tokens for m in view)
            transaction.set_rollback(True)
    assert number > 8


@pytest.mark.parametrize("since", [False, True])
def test_revert_run__failure_at_any_statement__can_be_repeated_with_one_effect(
    world: Person, since: bool
) -> None:
    for key in "xyz":
        builders.put(replace(world.actor, request_id="wrong"), "notes", f"wrong/{key}", 1)
    if since:
        at = timezone.now() - timedelta(hours=1)
        job = revert_jobs.request_revert(actor=world.actor, at=at, prefix="wrong/")
    else:
        job = revert_jobs.request_revert(actor=world.actor, request_id="wrong")
    number, done = 0, False
    while not done:
        number += 1
        with transaction.atomic():
            with failing(Faults(number)):
                try:
                    done = revert_jobs.run_revert(job.pk) == "done"
                except OperationalError:
                    transaction.set_rollback(False)  # in production each is a transaction
            if not done:
                jobs = revert_jobs.Revert.objects.filter(pk=job.pk, status="running")
                jobs.update(lease_expires_at=compactions.Now())
                assert revert_jobs.run_revert(job.pk) == "done"
            job.refresh_from_db()
            assert (job.total, job.reverted, job.skipped) == (3, 3, 0)
            rows = entries.Entry.objects.filter(key__startswith="wrong/")
            assert set(rows.values_list("version", "deleted")) == {(2, True)}
            trail = AuditRow.objects.filter(action="entry.restore", request_id=job.public_id)
            assert trail.count() == 3
            transaction.set_rollback(True)
    assert number > 8


@pytest.mark.parametrize("kind", ["snapshot", "history"])
def test_retention_run__failure_at_any_statement__can_be_repeated_with_one_effect(
    world: Person, kind: str
) -> None:
    if kind == "snapshot":
        job = retention.request_snapshots(actor=world.actor, thread_id="t1")
    else:
        job = retention.request_history(actor=world.actor, namespace="short")
    number, done = 0, False
    while not done:
        number += 1
        with transaction.atomic():
            with failing(Faults(number)):
                try:
                    done = retention.run_retention(job.public_id) == "done"
                except OperationalError:
                    transaction.set_rollback(False)  # in production each is a transaction
            if not done:
                compactions.Compaction.objects.filter(pk=job.pk, status="running").update(
                    lease_expires_at=compactions.Now()
                )
                assert retention.run_retention(job.public_id) == "done"
            job.refresh_from_db()
            assert (job.rows_removed, job.detail) == (
                (1, "2 snapshots deleted") if kind == "snapshot" else (1, "")
            )
            trail = AuditRow.objects.filter(action="compaction.remove")
            assert sum(row.detail.get("rows", 0) for row in trail) == 1
            broken = [fault for fault in verify_state().faults if "acme/t1" in fault]
            assert broken == []
            transaction.set_rollback(True)
    assert number > 5
