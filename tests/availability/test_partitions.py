"""deploy/ha with a network that is cut between its machines: at no moment do two nodes accept writes.

Writers of the product run through HAProxy. Beside them, one writer per node tries to write to its node
directly, whatever the node's role is.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from threading import Event, Thread

import psycopg
import pytest

from tests.availability.cell import NODES, PASSWORD, Cell, Node, skip_without_programs
from tests.availability.network import SIDES, Side, open_network
from tests.availability.test_failover import EXPIRY, leader, measured
from tests.availability.traffic import Record, Traffic, check_history
from tests.project.conftest import temporary_folder
from tests.project.running import wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

# Two loops of Patroni (loop_wait in patroni.yml): what a node does after the lease has expired, it does
# within them.
LOOPS = 10.0


class Probes:
    """One writer per node. Each commit that a node has confirmed is in `confirmed`, in order."""

    def __init__(self, cell: Cell) -> None:
        self.cell = cell
        self.confirmed: list[tuple[str, int]] = []
        self._stopped = Event()
        with connect(leader(cell)) as database:
            database.execute("CREATE TABLE probes (node text, number int)")
        self._threads = [Thread(target=self._write, args=(node,)) for node in cell.nodes]
        for thread in self._threads:
            thread.start()

    def _write(self, node: Node) -> None:
        number = 0
        while not self._stopped.is_set():
            try:
                with connect(node) as database:
                    warnings: list[psycopg.errors.Diagnostic] = []
                    database.add_notice_handler(warnings.append)
                    # With a warning, a commit did not wait for a standby: it is not confirmed.
                    while not self._stopped.is_set() and not warnings:
                        number += 1
                        insert = "INSERT INTO probes VALUES (%s, %s)"
                        database.execute(insert, (node.name, number))
                        if not warnings:
                            self.confirmed.append((node.name, number))
                        time.sleep(0.05)
            except psycopg.Error:
                time.sleep(0.1)

    def writers(self, since: int) -> list[str]:
        """The nodes that confirmed commits, each as often as it began to, after the first `since`
        commits."""
        return [name for name, _ in itertools.groupby(self.confirmed[since:], lambda each: each[0])]

    def find_lost(self) -> set[tuple[str, int]]:
        """The confirmed commits that the leader does not have."""
        confirmed = set(self.confirmed)
        with connect(leader(self.cell)) as database:
            return confirmed - set(database.execute("SELECT node, number FROM probes"))

    def stop(self) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join()


def connect(node: Node) -> psycopg.Connection:
    """A node that cannot be reached any more is noticed after 5 seconds."""
    return psycopg.connect(
        host=node.machine.outer,
        port=node.port,
        user="commonhold",
        password=PASSWORD,
        dbname="commonhold",
        autocommit=True,
        connect_timeout=2,
        keepalives_idle=1,
        keepalives_interval=1,
        keepalives_count=4,
        tcp_user_timeout=5000,
        options="-c log_min_messages=panic",  # standbys refuse each attempt
    )


@pytest.fixture(scope="module")
def cell() -> Iterator[Cell]:
    skip_without_programs()
    with temporary_folder() as folder, open_network(len(NODES)) as network:
        cell = Cell(folder, network)
        try:
            yield cell
        finally:
            cell.stop()


@pytest.fixture(scope="module")
def probes(cell: Cell) -> Iterator[Probes]:
    probes = Probes(cell)
    try:
        wait_for(lambda: probes.confirmed, "a confirmed commit")
        yield probes
    finally:
        probes.stop()


@pytest.mark.parametrize("sides", [("inner",), SIDES], ids=["clients reach it", "nobody does"])
def test_leader__disconnected_from_the_others__is_replaced_and_confirms_nothing(
    cell: Cell,
    probes: Probes,
    traffic: Traffic,
    record_property: Record,
    sides: tuple[Side, ...],
) -> None:
    # Patroni elects only a standby of which etcd knows that it has every confirmed commit.
    cell.wait_until_whole()
    old = leader(cell)
    since = len(probes.confirmed)
    with measured(traffic, record_property):
        with cell.network.cut(sides, old.number):
            new = cell.wait_for_another_leader(old)
            traffic.wait_for_more()
            time.sleep(LOOPS)
            writers = probes.writers(since)
        cell.wait_until_whole()

    assert writers in ([old.name, new.name], [new.name])
    assert probes.find_lost() == set()


def test_all__disconnected_from_each_other__confirm_nothing_until_the_end(
    cell: Cell, probes: Probes, traffic: Traffic, record_property: Record
) -> None:
    old = leader(cell)
    with measured(traffic, record_property):
        with cell.network.cut(("inner",), *NODES):
            # Commits of the last moment may have been confirmed by a standby already.
            time.sleep(1)
            since, acknowledged = len(probes.confirmed), len(traffic.times)
            time.sleep(EXPIRY + LOOPS)
            confirmed = probes.writers(since), len(traffic.times) - acknowledged
            refused = set(traffic.refused)
        cell.wait_until_whole()

    assert confirmed == ([], 0)
    assert refused <= {0, 503}
    assert refused, old.name
    assert probes.find_lost() == set()


def test_standby__disconnected_from_the_others__delays_no_write(
    cell: Cell, probes: Probes, traffic: Traffic, record_property: Record
) -> None:
    old = leader(cell)
    standby = next(node for node in cell.nodes if node is not old)
    since = len(probes.confirmed)
    with measured(traffic, record_property):
        with cell.network.cut(SIDES, standby.number):
            time.sleep(EXPIRY)
            writers = probes.writers(since)
        cell.wait_until_whole()

    assert writers == [old.name]
    assert probes.find_lost() == set()


def test_history__after_all_faults__is_complete(
    probes: Probes, traffic: Traffic, record_property: Record
) -> None:
    record_property("confirmed commits of single nodes", len(probes.confirmed))
    record_property("confirmed commits of single nodes lost", len(probes.find_lost()))
    # Cursors may have been refused: a leader that loses its standbys shows writes that it could not
    # confirm.
    check_history(traffic, record_property, gone=True)
