"""Reverts with real worker processes: notified by the commit, and continued when one is killed."""

from __future__ import annotations

import signal
from datetime import timedelta

import pytest
from django.db.models.functions import Now

from state_admin.models import Entry, EntryRevision, Revert
from state_admin.services import revert_jobs
from state_admin.tasks.sweeps import TASKS
from tests.builders import Person
from tests.project.running import wait_for
from tests.services.test_revert_jobs import write_many
from tests.tasks.conftest import Worker

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("fresh_broker")]


def test_worker__killed_between_batches__another_continues_and_reverts_each_once(
    alice: Person, worker: Worker
) -> None:
    write_many(alice, 4_000)
    first = worker()
    job = revert_jobs.request_revert(actor=alice.actor, request_id="r")
    rows = Revert.objects.filter(pk=job.pk)
    wait_for(lambda: rows.filter(reverted__gt=0).exists(), "the first batch is committed")
    first.signal(signal.SIGKILL)
    first.wait()
    job.refresh_from_db()
    assert (job.status, job.total) == ("running", 4_000)
    assert 0 < job.reverted < 4_000
    worker()
    rows.update(lease_expires_at=Now() - timedelta(seconds=1))
    TASKS["find lost reverts"]()
    wait_for(lambda: rows.filter(status="done").exists(), "another worker finishes it")
    job.refresh_from_db()
    assert (job.reverted, job.skipped) == (4_000, 0)
    assert job.claim >= 2  # on a slow machine the work takes several turns
    assert set(Entry.objects.values_list("value", "version")) == {("1", 3)}
    assert EntryRevision.objects.filter(request_id=job.public_id).count() == 4_000
