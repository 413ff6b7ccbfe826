"""The mailbox's sweep with a real worker process: it requeues the dispatches of dead claimers."""

from __future__ import annotations

import pytest
from django.db import connection

from project import job_notifications
from state_admin.models import Dispatch, Sweep
from state_admin.tasks.sweeps import CONDITIONS, TASKS
from tests.builders import Person, make_thread
from tests.project.running import wait_for
from tests.services.test_dispatches import enqueue, shift, status, take
from tests.tasks.conftest import Worker

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("fresh_broker")]


def test_settle__by_a_worker__requeues_dispatches_of_dead_claimers(
    alice: Person, worker: Worker
) -> None:
    make_thread(alice.actor, "t1")
    made = enqueue(alice)
    take(alice)
    shift(made, 31)
    worker()
    job_notifications.notify_worker("state_admin.tasks.mailbox.settle")
    wait_for(lambda: status(made) == "Queued", "the sweep has settled it")
    # The report is written after the work.
    wait_for(
        lambda: Sweep.objects.filter(name="settle mailboxes", report__returned=1).exists(),
        "the sweep is on record",
    )


def test_settle__nothing_due__is_not_started(alice: Person) -> None:
    make_thread(alice.actor, "t1")
    made = enqueue(alice)
    take(alice)
    assert not CONDITIONS["settle mailboxes"]()
    shift(made, 31)
    assert CONDITIONS["settle mailboxes"]()


def test_purge__nothing_old__keeps_all(alice: Person) -> None:
    make_thread(alice.actor, "t1")
    enqueue(alice)
    TASKS["purge dispatches"]()
    assert Dispatch.objects.count() == 1
    assert Sweep.objects.get(name="purge dispatches").report == {"dispatches": 0}


def test_messages__that_waited_for_a_worker__start_the_sweep_once(
    alice: Person, worker: Worker
) -> None:
    with connection.cursor() as cursor:  # workers that other tests killed may hold messages
        cursor.execute("SELECT to_regclass('pgmq.q_commonhold') IS NOT NULL")
        if cursor.fetchone() == (True,):
            cursor.execute("DELETE FROM pgmq.q_commonhold")

    def many_wait() -> bool:
        job_notifications.notify_worker("state_admin.tasks.mailbox.purge")
        return length_of_queue() >= 20

    wait_for(many_wait, "messages wait")  # a notification may be lost on a busy machine
    worker()
    wait_for(lambda: length_of_queue() == 0, "the messages are processed")
    assert Sweep.objects.get(name="purge dispatches").runs == 1


def length_of_queue() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pgmq.q_commonhold")
        (count,) = cursor.fetchone()
    return int(count)
