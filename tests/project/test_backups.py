"""Backups, restores and the move to a new server, by the commands in docs/operations.md: every version
and snapshot is there again, and no cursor of the change feed skips or repeats a change."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from project.env import BASE_DIR
from project.postgres import binaries
from project.postgres.cluster import Cluster
from project.postgres.server import PORT
from tests.project.conftest import end_postgresql, temporary_folder
from tests.project.running import wait_for
from tests.project.sites import SETTINGS, Site, connect, run, url_of
from tests.project.test_feed_eras import (
    KEPT,
    LOST,
    check_knowledge,
    check_search,
    commit_step,
)

# The test of 1 GB writes ten times as much to the disk.
pytestmark = pytest.mark.timeout(1800)

PAGE = BASE_DIR / "docs" / "operations.md"
_BLOCK = re.compile(r"<!-- drill: (?P<name>[\w ]+) -->\n```sh\n(?P<text>.*?)```", re.DOTALL)
BLOCKS = {found["name"]: found["text"] for found in _BLOCK.finditer(PAGE.read_text())}

# The bytes of entries before the backup, and of the database with them.
SIZES = [
    pytest.param((1_000_000, 0), id="small"),
    pytest.param((600_000_000, 1 << 30), id="1 GB", marks=[pytest.mark.exhaustive]),
]
# Entries of each batch, and the characters of their values.
BATCH, LENGTH = 30, 120_000


class Origin:
    """A stopped server with a namespace `notes`, a thread, and many bytes of other entries."""

    def __init__(self, folder: Path, filling: int, least: int) -> None:
        self.cluster = Cluster(folder / "origin")
        self.cluster.acquire()
        try:
            with connect(self.cluster, "postgres") as database:
                database.execute("CREATE DATABASE commonhold")
            site = Site(folder / "site", DATABASE_URL=url_of(self.cluster))
            self.token = site.token
            try:
                commit_step(site)
                for namespace in ("notes", "bulk"):
                    status, _ = site.call("PUT", f"/namespaces/{namespace}", {"schema": True})
                    assert status in (200, 201)
                for batch in range(filling // (BATCH * LENGTH)):
                    fill(site, batch)
            finally:
                site.running.kill_all()
            with connect(self.cluster) as database:
                found = database.execute("SELECT pg_database_size('commonhold')").fetchone()
            assert found
            assert found[0] >= least
        finally:
            self.cluster.release()


def fill(site: Site, batch: int) -> None:
    puts = [
        {
            "op": "put",
            "namespace": "bulk",
            "key": f"{batch}-{number}",
            # Random, so that PostgreSQL cannot compress it.
            "value": {"data": os.urandom(LENGTH // 2).hex()},
        }
        for number in range(BATCH)
    ]
    status, answer = site.call("POST", "/state/batch", {"operations": puts})
    assert status == 200, answer


class Drill:
    """A copy of the origin with a backup folder, and a place for the restored one."""

    def __init__(self, folder: Path, origin: Origin) -> None:
        self.folder, self.backup = folder, folder / "backup"
        self.backup.mkdir()
        self.first = Cluster(folder / "first")
        # Keeps the owner of the files.
        subprocess.run(["/bin/cp", "-a", origin.cluster.folder, self.first.folder], check=True)
        self.first.acquire()
        self.run("archive", self.first)
        self.first.release()
        self.first.acquire()  # again, because archive_mode needs a restart
        self.site = Site(folder / "site", origin.token, DATABASE_URL=url_of(self.first))

    def run(self, block: str, cluster: Cluster, **env: str) -> None:
        """Run the commands of a block of the page, as the user of the clusters."""
        host = cluster.socket_folder
        variables = {
            **SETTINGS,
            "PATH": f"{binaries.find()}:{os.environ['PATH']}",
            "PGHOST": str(host),
            "PGPORT": str(PORT),
            "PGUSER": "postgres",
            "PGDATABASE": "commonhold",
            "BACKUP": str(self.backup),
            "COMMONHOLD_DATA_DIR": str(self.folder / "operator"),
            "DATABASE_URL": f"postgresql://postgres@/commonhold?host={host}&port={PORT}",
            "DJANGO_SETTINGS_MODULE": "project.settings",
            **env,
        }
        # The commands have no quotes around variables, so no value may need them.
        settings = [f"export {name}='{value}'" for name, value in variables.items()]
        script = "\n".join(["set -eu", f"cd {BASE_DIR}", *settings, BLOCKS[block]])
        done = binaries.identity().run("bash", "-c", script)
        assert done.returncode == 0, f"{block}: {done.stdout}"

    def write(self) -> str:
        """Write what the backup must contain; returns the cursor after half of it."""
        self.site.write(*KEPT[:3])
        middle = self.site.follow_all(KEPT[:3])
        self.site.write(*KEPT[3:])
        return middle

    def lose(self) -> str:
        """Write more, and lose the server. Returns the cursor after all of it."""
        self.site.write(*LOST)
        lost = self.site.follow_all([*KEPT, *LOST])
        self.site.running.kill_all()
        return lost

    def check(self, url: str, middle: str, end: str, lost: str | None, *others: str) -> None:
        """Start a server on the new database, which has KEPT and `others`: cursors continue, except
        the one after the changes that are lost."""
        site = Site(self.folder / "restored", self.site.token, DATABASE_URL=url)
        try:
            assert site.follow(middle)[0] == [*KEPT[3:], *others]
            assert site.follow(end)[0] == []
            if lost is not None:
                site.check_lost(lost)
            site.write("new")
            wait_for(lambda: site.follow(end)[0] == ["new"], "the new change follows")
            assert site.follow()[0] == [*KEPT, *others, "new"]
            check_search(site, "new")
            check_knowledge(site)
        finally:
            site.running.kill_all()


def now(cluster: Cluster) -> str:
    with connect(cluster) as database:
        (moment,) = database.execute("SELECT clock_timestamp()::text").fetchone() or ("",)
    return str(moment)


@pytest.fixture(scope="module", params=SIZES)
def origin(request: pytest.FixtureRequest) -> Iterator[Origin]:
    if binaries.identity().uid is not None:
        pytest.skip("PostgreSQL does not run as root, and user namespaces are not permitted")
    with temporary_folder() as folder:
        yield Origin(folder, *request.param)


@pytest.fixture
def drill(folder: Path, origin: Origin) -> Iterator[Drill]:
    drill = Drill(folder, origin)
    try:
        yield drill
    finally:
        drill.site.running.kill_all()
        end_postgresql(folder)


def test_page__every_block__is_run_by_a_test() -> None:
    assert sorted(BLOCKS) == [
        *("archive", "base", "copy", "dump", "increment", "logical"),
        *("restore dump", "restore moment", "switch"),
    ]


def test_dump__restored_into_a_new_server__has_everything(drill: Drill) -> None:
    middle = drill.write()
    end = drill.site.follow_all(KEPT)
    drill.run("dump", drill.first)
    lost = drill.lose()

    second = Cluster(drill.folder / "second")
    second.acquire()
    try:
        with connect(second, "postgres") as database:
            database.execute("CREATE ROLE app LOGIN CREATEDB")  # not the owner of the origin
        url = url_of(second).replace("postgres@", "app@")
        drill.run("restore dump", second, PGUSER="app", DATABASE_URL=url)
        drill.check(url, middle, end, lost)
    finally:
        second.release()


def test_moment__between_two_backups_and_the_end__is_restored(drill: Drill) -> None:
    """The restored server has the base backup, an incremental one and the archived WAL until a moment."""
    drill.run("base", drill.first)
    middle = drill.write()
    drill.run("increment", drill.first)
    early = now(drill.first)
    drill.site.write("after-the-backups")
    end = drill.site.follow_all([*KEPT, "after-the-backups"])
    moment = now(drill.first)
    drill.site.write(*LOST)
    lost = drill.site.follow_all([*KEPT, "after-the-backups", *LOST])
    with connect(drill.first) as database:
        archived = database.execute("SELECT pg_walfile_name(pg_switch_wal())").fetchone()
        assert archived
        wait_for((drill.backup / "wal" / archived[0]).exists, "the newest segment is archived")
    drill.site.running.kill_all()
    drill.first.release()

    # First to a moment that turns out to be too early: that server has a timeline of its own, which must
    # not enter the archive.
    for name, until in (("rehearsal", early), ("second", moment)):
        data = drill.folder / name / "pg"
        data.parent.mkdir()
        drill.run("restore moment", drill.first, DATA=str(data), MOMENT=until)
        if until == early:
            run("pg_ctl", "--pgdata", data, "stop")

    url = f"postgresql://postgres@/commonhold?host={data}&port={PORT}"
    drill.check(url, middle, end, lost, "after-the-backups")


def test_moment__folder_that_exists__is_not_changed(tmp_path: Path) -> None:
    """As if the commands were pasted twice: recovery.signal would return a server that was kept to
    the moment at its next start."""
    data, programs = tmp_path / "data", tmp_path / "bin"
    data.mkdir()
    programs.mkdir()
    for name in ("pg_combinebackup", "pg_ctl"):
        (programs / name).write_text("#!/bin/sh\nexit 1\n")
        (programs / name).chmod(0o755)
    variables = {"DATA": data, "BACKUP": tmp_path, "MOMENT": "2026-05-01", "PGUSER": "postgres"}
    environment = {name: str(value) for name, value in variables.items()}
    environment |= {"PATH": f"{programs}:{os.environ['PATH']}", "PGDATABASE": "commonhold"}

    # Without `set -e`, as in a terminal.
    subprocess.run(["bash", "-c", BLOCKS["restore moment"]], cwd=tmp_path, env=environment)

    assert [path.name for path in data.iterdir()] == ["status"]


def test_new_server__copied_by_logical_replication__has_everything(drill: Drill) -> None:
    second = Cluster(drill.folder / "second")
    second.acquire()
    try:
        with connect(second, "postgres") as database:
            database.execute("CREATE ROLE commonhold LOGIN")
            database.execute("CREATE DATABASE commonhold OWNER commonhold")
        urls = {"OLD": url_of(drill.first), "NEW": url_of(second), "OWNER": "commonhold"}
        drill.run("logical", drill.first, **urls)
        drill.first.release()
        drill.first.acquire()
        wait_for(lambda: drill.site.call("GET", "/changes")[0] == 200, "the server reconnects")
        middle = drill.write()
        with connect(drill.first) as database:
            queue = "SELECT to_regclass('pgmq.q_commonhold')"
            wait_for(
                lambda: database.execute(queue).fetchone() != (None,),
                "the first job has created the queue, so that the copied tables are all",
            )
        drill.run("copy", drill.first, **urls)
        drill.site.write("after-the-copy")
        end = drill.site.follow_all([*KEPT, "after-the-copy"])
        drill.site.running.kill_all()
        drill.run("switch", drill.first, **urls)

        # As the role of the processes, which is not a superuser.
        url = urls["NEW"].replace("postgres@", "commonhold@")
        drill.check(url, middle, end, None, "after-the-copy")
    finally:
        second.release()
