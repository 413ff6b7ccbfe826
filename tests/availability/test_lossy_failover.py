"""deploy/ha without synchronous replication: a failover loses the newest acknowledged writes, and
the readers of their changes get an error."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from tests.availability.cell import Cell, Node, skip_without_programs
from tests.availability.test_failover import leader
from tests.availability.test_partitions import connect
from tests.project.conftest import temporary_folder
from tests.project.running import wait_for
from tests.project.sites import Notes

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

KEPT = [f"kept-{n}" for n in range(6)]
LOST = [f"lost-{n}" for n in range(6)]
LATER = [f"later-{n}" for n in range(9)]  # more than were lost: their numbers come again


@pytest.fixture
def cell() -> Iterator[Cell]:
    skip_without_programs()
    with temporary_folder() as folder:
        cell = Cell(folder, synchronous=False)
        try:
            yield cell
        finally:
            cell.stop()


def wait_for_standbys(node: Node) -> None:
    """Wait until both standbys have everything that the leader has written."""
    with connect(node) as database:
        (written,) = database.execute("SELECT pg_current_wal_lsn()").fetchone() or ()
        behind = "SELECT count(*) FROM pg_stat_replication WHERE replay_lsn >= %s"
        wait_for(
            lambda: database.execute(behind, [written]).fetchone() == (2,),
            "both standbys have replayed all writes",
        )


def stop_sending(node: Node) -> None:
    """Its standbys get nothing any more."""
    with connect(node) as database:
        senders = database.execute("SELECT pid FROM pg_stat_replication").fetchall()
    assert len(senders) == 2
    node.signal(signal.SIGSTOP, *(pid for (pid,) in senders))


def test_reader__failover_lost_its_changes__gets_410_and_others_skip_nothing(cell: Cell) -> None:
    notes = Notes(cell.web_port, cell.token)
    assert notes.call("PUT", "/namespaces/notes", {"schema": True})[0] in (200, 201)
    notes.write(*KEPT)
    kept = notes.follow_all(KEPT)
    old = leader(cell)
    wait_for_standbys(old)

    stop_sending(old)
    notes.write(*LOST)
    lost = notes.follow_all([*KEPT, *LOST])
    old.signal(signal.SIGKILL)
    wait_for(lambda: cell.leader() not in (None, old), lambda: f"a leader; {cell.outputs()}")
    wait_for(cell.serves, "the web processes reach the new leader")

    for key in [*KEPT, *LOST]:
        _, entry = notes.call("GET", f"/state/notes/{key}")
        assert entry["exists"] == (key in KEPT), entry
    assert notes.follow(kept)[0] == []
    notes.check_lost(lost)

    notes.write(*LATER)
    wait_for(lambda: notes.follow(kept)[0] == LATER, "the new changes follow")
    notes.check_lost(lost)

    old.start()
    cell.wait_until_whole()
    assert notes.follow()[0] == [*KEPT, *LATER]
    notes.check_lost(lost)
