"""deploy/ha under faults: no acknowledged write is lost, no version is missing or written twice, and
no reader of the change feed misses a change. `make chaos` runs this and reports the numbers."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.availability.cell import Cell, Node
from tests.availability.traffic import Record, Traffic, check_history
from tests.project.running import wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

SWITCHOVERS = 20
# Longer than the lease of Patroni's leader (ttl in patroni.yml).
EXPIRY = 25.0


def leader(cell: Cell) -> Node:
    return wait_for(cell.leader, "a leader")


def kill_postgres(cell: Cell) -> Callable[[], None]:
    leader(cell).kill_postgres()
    return lambda: None  # Patroni starts it again


def kill_patroni(cell: Cell) -> Callable[[], None]:
    node = leader(cell)
    node.kill_patroni()
    cell.wait_for_another_leader(node)
    return node.start


def kill_node(cell: Cell) -> Callable[[], None]:
    node = leader(cell)
    node.signal(signal.SIGKILL)
    cell.wait_for_another_leader(node)
    return node.start


def stop_leader(cell: Cell) -> Callable[[], None]:
    """The machine hangs and continues after another node has taken over."""
    node = leader(cell)
    pids = node.pids()
    node.signal(signal.SIGSTOP, *pids)
    cell.wait_for_another_leader(node)
    return lambda: node.signal(signal.SIGCONT, *pids)


def kill_standby(cell: Cell) -> Callable[[], None]:
    node = next(each for each in cell.nodes if each is not leader(cell))
    node.signal(signal.SIGKILL)
    time.sleep(EXPIRY)
    return node.start


def kill_etcd(cell: Cell) -> Callable[[], None]:
    """One of three: a majority remains."""
    cell.etcd["etcd1"].kill_all()
    time.sleep(EXPIRY)
    return lambda: cell.start_etcd("etcd1")


def kill_all_etcd(cell: Cell) -> Callable[[], None]:
    """The leader continues while it reaches the other nodes (failsafe_mode)."""
    for process in cell.etcd.values():
        process.kill_all()
    time.sleep(EXPIRY)

    def repair() -> None:
        for name in list(cell.etcd):
            cell.start_etcd(name)

    return repair


def kill_broker(cell: Cell) -> Callable[[], None]:
    cell.redis.kill_all()
    time.sleep(5)
    return cell.start_redis


def kill_web(cell: Cell) -> Callable[[], None]:
    """One of two web processes is killed, and started again."""
    process, port = cell.web[0], str(cell.web[0].port)
    process.kill_all()

    def repair() -> None:
        cell.web[0] = cell.run("web", PORT=port)

    return repair


@contextmanager
def measured(traffic: Traffic, record: Record) -> Iterator[None]:
    """Report the longest time without a write."""
    since, before = time.monotonic(), sum(traffic.refused.values())
    yield
    traffic.wait_for_more()
    record("seconds without writes", round(traffic.longest_pause(since), 1))
    record("calls repeated", sum(traffic.refused.values()) - before)


@pytest.mark.parametrize(
    "fault",
    [
        kill_postgres,
        kill_patroni,
        kill_node,
        stop_leader,
        kill_standby,
        kill_etcd,
        kill_all_etcd,
        kill_broker,
        kill_web,
    ],
)
def test_fault__under_load__is_survived(
    cell: Cell,
    traffic: Traffic,
    record_property: Record,
    fault: Callable[[Cell], Callable[[], None]],
) -> None:
    with measured(traffic, record_property):
        repair = fault(cell)
        traffic.wait_for_more()
        repair()
        cell.wait_until_whole()


def test_switchovers__under_load__are_survived(
    cell: Cell, traffic: Traffic, record_property: Record
) -> None:
    with measured(traffic, record_property):
        for _ in range(SWITCHOVERS):
            before = leader(cell)
            cell.switch_over(before)
            wait_for(lambda old=before: cell.leader() not in (None, old), "another leader")
            cell.wait_until_whole()
            traffic.wait_for_more(10)


def test_history__after_all_faults__is_complete(
    cell: Cell, traffic: Traffic, record_property: Record
) -> None:
    check_history(traffic, record_property)
