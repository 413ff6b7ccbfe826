"""Writes with a synchronous standby: no answer claims more than what the standby has."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from project.postgres.cluster import Cluster
from project.postgres.server import PORT
from tests.project.running import Running, wait_for
from tests.project.sites import Site, address, connect, run

ONCE = {"Idempotency-Key": "one"}
DELETION = {"op": "delete", "namespace": "notes", "key": "b"}
COMMIT = """
from django.db import OperationalError, transaction
from state_admin.models import Sweep
try:
    with transaction.atomic():
        transaction.on_commit(lambda: print("hook"))
        Sweep.objects.get_or_create(name="test")
except OperationalError as error:
    print(type(error.__cause__).__name__, Sweep.objects.filter(name="test").count())
"""


class Standby:
    """A streaming standby of a cluster, on which every commit waits."""

    def __init__(self, primary: Cluster, data: Path) -> None:
        self.primary, self.data = primary, data
        run("pg_basebackup", *address(primary), "-D", data, "-c", "fast", "-R")
        self.start()
        with connect(primary) as database:
            database.execute("ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (*)'")
            database.execute("SELECT pg_reload_conf()")
        self.wait_until_connected()

    def start(self) -> None:
        options = f"-k {self.data} -p {PORT} -c listen_addresses="
        run("pg_ctl", "-D", self.data, "-w", "-l", self.data / "log", "-o", options, "start")

    def stop(self) -> None:
        run("pg_ctl", "-D", self.data, "-w", "-m", "immediate", "stop")

    def wait_until_connected(self) -> None:
        with connect(self.primary) as database:
            states = "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'quorum'"
            wait_for(lambda: database.execute(states).fetchone(), "the standby is connected")


@pytest.fixture
def pair(folder: Path) -> Iterator[tuple[Site, Standby]]:
    site = Site(folder, STANDBY_TIMEOUT_MS="1000")
    try:
        assert site.call("PUT", "/namespaces/notes", {"schema": True})[0] in (200, 201)
        yield site, Standby(site.cluster, folder / "standby" / "pg")
    finally:
        site.running.kill_all()


@contextmanager
def without(standby: Standby) -> Iterator[None]:
    standby.stop()
    yield
    standby.start()
    standby.wait_until_connected()


def assert_unconfirmed(answer: tuple[int, Any]) -> None:
    status, problem = answer
    assert status == 503, problem
    assert (
        problem["detail"] == "the change is stored, but no standby server has confirmed it in time"
    )
    assert "failover may lose it" in problem["hint"]


def diagnose(site: Site) -> str:
    return manage(site, "doctor")


def manage(site: Site, *command: str) -> str:
    running = Running(site.running.folder, "manage.py", *command, STANDBY_TIMEOUT_MS="1000")
    running.wait()
    return running.output()


def test_write__no_standby_confirms__is_503_until_one_does(pair: tuple[Site, Standby]) -> None:
    site, standby = pair
    put = "PUT", "/state/notes/a", {"value": 1}
    register = "PUT", "/namespaces/other", {"schema": True}
    assert site.call(*put)[0] == 201
    site.write("b")
    assert "standbys: 1 connected, 1 synchronous" in diagnose(site)

    with without(standby):
        assert "no synchronous standby is connected: writes get 503" in diagnose(site)
        for _ in range(2):  # a new connection behaves as the first
            assert_unconfirmed(site.call(*put))  # in the lane
            assert_unconfirmed(site.call(*register))  # in Django
        assert_unconfirmed(site.call(*put, **ONCE))
        assert_unconfirmed(site.call(*put, **ONCE))  # the stored response
        for _ in range(2):  # the second changes nothing
            assert_unconfirmed(site.call("POST", "/threads", {"id": "t1"}))
            assert_unconfirmed(site.call("POST", "/state/batch", {"operations": [DELETION]}))
        assert site.call("POST", "/search", {"text": "word"})[0] == 200
        status, entry = site.call("GET", "/state/notes/a")
        assert (status, entry["version"]) == (200, 4)

    status, entry = site.call(*put, **ONCE)
    assert (status, entry["version"]) == (200, 4)
    assert site.call(*put)[0] == 200
    assert site.call(*register)[0] == 200


def test_url__of_two_hosts__leads_to_the_primary_also_after_a_failover(folder: Path) -> None:
    primary = Cluster(folder / "primary")
    primary.acquire()
    with connect(primary, "postgres") as database:
        database.execute("CREATE DATABASE commonhold")
    standby = Standby(primary, folder / "standby" / "pg")
    hosts = f"host={standby.data},{primary.socket_folder}&port={PORT},{PORT}"
    url = f"postgresql://postgres@/commonhold?{hosts}&target_session_attrs=read-write"
    site = Site(folder / "site", DATABASE_URL=url)
    try:
        assert site.call("PUT", "/namespaces/notes", {"schema": True})[0] in (200, 201)
        site.write("before")
        primary.release()
        assert site.call("PUT", "/state/notes/meanwhile", {"value": 1})[0] == 503
        run("pg_ctl", "-D", standby.data, "-w", "promote")
        put = "PUT", "/state/notes/after", {"value": 1}
        wait_for(lambda: site.call(*put)[0] in (200, 201), "the other server accepts writes")
        assert site.follow()[0][:1] == ["before"]
    finally:
        site.running.kill_all()
        standby.stop()
        primary.release()


def test_commit__no_standby_confirms__does_what_waits_for_it(pair: tuple[Site, Standby]) -> None:
    site, standby = pair
    with without(standby):
        output = manage(site, "shell", "-v", "0", "-c", COMMIT)
    assert "hook" in output.partition("UnconfirmedCommit 1")[0]
    assert "UnconfirmedCommit 1" in output
