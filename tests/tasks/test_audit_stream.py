"""The audit stream with a real worker process, also when it is killed."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from functools import partial
from socket import socket

import pytest

from project import job_notifications
from state_admin.models import AuditRow, AuditStream, Sweep
from tests.builders import Person, make_namespace, put
from tests.project.running import Running, wait_for
from tests.syslogging import SyslogReceiver, close, receiving_syslog
from tests.tasks.conftest import Worker

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("fresh_broker")]


@pytest.fixture
def receiver() -> Iterator[SyslogReceiver]:
    with receiving_syslog() as one:
        yield one


@pytest.fixture
def worker(start_worker: Callable[..., Running], receiver: SyslogReceiver) -> Worker:
    return partial(start_worker, AUDIT_STREAM=receiver.destination().url)


def tick() -> None:
    """Start the job, as beat does."""
    job_notifications.notify_worker("state_admin.tasks.maintenance.stream_audit")


def position() -> int:
    return AuditStream.objects.values_list("position", flat=True).first() or 0


def test_worker__killed_between_sending_and_storing_the_position__another_sends_again(
    receiver: SyslogReceiver, alice: Person, worker: Worker
) -> None:
    make_namespace(alice.actor, "notes")
    for number in range(5):
        put(alice.actor, "notes", f"k{number}", 1)
    ids = list(AuditRow.objects.order_by("pk").values_list("pk", flat=True))
    first = worker()

    def kill_once(connection: socket, number: int) -> None:
        """The receiver has all rows, and the worker does not know it yet."""
        if number == 1:
            first.signal(signal.SIGKILL)
            first.wait()
        close(connection, number)

    receiver.manners = kill_once
    tick()
    assert first.wait() == -signal.SIGKILL
    wait_for(lambda: receiver.connections == 1, "the receiver has the rows")
    assert receiver.ids == ids
    assert position() == 0

    second = worker()
    put(alice.actor, "notes", "later", 1)
    tick()
    wait_for(lambda: position() > ids[-1], f"the position is stored; {second.output()}")
    # At least once: each row that the first worker sent came twice, with the same id.
    later = AuditRow.objects.latest("pk").pk
    assert receiver.ids == [*ids, *ids, later]
    wait_for(lambda: Sweep.objects.get(name="stream audit").report, "the sweep is recorded")
