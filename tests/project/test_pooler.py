"""PgBouncer between the server and PostgreSQL. Only its session mode is supported."""

from __future__ import annotations

import os
import re
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from project.postgres import binaries
from project.postgres.cluster import Cluster
from project.postgres.server import PORT
from tests.project.running import Process, Running, call_api, free_port, wait_for
from tests.project.sites import run
from tests.project.test_standbys import Standby, assert_unconfirmed, without

PGBOUNCER = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")

pytestmark = pytest.mark.skipif(PGBOUNCER is None, reason="Debian: apt install pgbouncer")

CONFIG = """
[databases]
commonhold = host={sockets} port={server} dbname=commonhold user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = {mode}
server_check_delay = 0
"""


class Pooler(Process):
    """PgBouncer in a folder, in front of the PostgreSQL whose socket is in `sockets`."""

    def __init__(self, folder: Path, sockets: Path, mode: str = "session") -> None:
        self.mode = mode
        self.config = folder / "pgbouncer.ini"
        self.port = free_port()
        self._write(sockets)
        command = [*binaries.identity().prefix, str(PGBOUNCER), str(self.config)]
        super().__init__(folder / "pgbouncer.log", *command, env={"PATH": os.environ["PATH"]})

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/commonhold"

    def lead_to(self, sockets: Path) -> None:
        """New connections lead to another PostgreSQL."""
        self._write(sockets)
        self.signal(signal.SIGHUP)

    def answers(self) -> bool:
        try:
            psycopg.connect(self.url, connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def _write(self, sockets: Path) -> None:
        self.config.write_text(
            CONFIG.format(sockets=sockets, server=PORT, port=self.port, mode=self.mode)
        )


@pytest.fixture
def pooler(cluster: Cluster, folder: Path) -> Iterator[Pooler]:
    if binaries.identity().uid is not None:
        pytest.skip("PgBouncer does not run as root, and user namespaces are not permitted")
    pooler = Pooler(folder, cluster.socket_folder)
    try:
        wait_for(pooler.answers, pooler.output)
        yield pooler
    finally:
        pooler.kill_all()


def test_server__behind_a_pooler__has_its_timeouts_bounds_commits_and_survives_failures(
    cluster: Cluster, folder: Path, pooler: Pooler, start: Callable[..., Running]
) -> None:
    settings = {
        "DATABASE_URL": pooler.url,
        "STANDBY_TIMEOUT_MS": "1000",
        "STATEMENT_TIMEOUT_MS": "7000",
    }
    setup = start("manage.py", "setup", **settings)
    assert setup.wait() == 0, setup.output()
    (token,) = re.findall(r"API token +(ch_\S+)", setup.output())
    web = start("manage.py", "web", PORT=str(free_port()), **settings)
    web.wait_until_it_answers("/readyz")

    def call(method: str, path: str, body: Any = None) -> tuple[int, Any]:
        return call_api(web.port, token, method, path, body)

    assert call("PUT", "/namespaces/notes", {"schema": True})[0] == 201
    assert call("PUT", "/state/notes/a", {"value": 1})[0] == 201
    timeout = (
        "from state_admin.models import hot; print(hot.fetch_one('SHOW statement_timeout', {}))"
    )
    shell = start("manage.py", "shell", "-v", "0", "-c", timeout, **settings)
    shell.wait()
    assert "('7s',)" in shell.output()

    standby = Standby(cluster, folder / "standby" / "pg")
    with without(standby):
        assert_unconfirmed(call("PUT", "/state/notes/a", {"value": 2}))
        assert_unconfirmed(call("PUT", "/namespaces/notes", {"schema": True, "default": 1}))
    assert call("PUT", "/state/notes/a", {"value": 3})[0] == 200

    def writes(key: str) -> bool:
        return call("PUT", f"/state/notes/{key}", {"value": 1})[0] in (200, 201)

    postmaster = cluster.postmaster()
    assert postmaster
    os.kill(postmaster, signal.SIGKILL)
    wait_for(lambda: cluster.postmaster() is None, "PostgreSQL is dead")
    cluster.acquire()
    standby.wait_until_connected()
    wait_for(lambda: writes("restarted"), "writes succeed after a restart")

    cluster.release()
    run("pg_ctl", "-D", standby.data, "-w", "promote")
    pooler.lead_to(standby.data)
    wait_for(lambda: writes("failed-over"), "writes succeed after a failover")
    for key, value in (("a", 3), ("restarted", 1)):
        status, entry = call("GET", f"/state/notes/{key}")
        assert (status, entry["value"]) == (200, value)


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_doctor__behind_a_pooler__names_its_transaction_mode(
    mode: str, cluster: Cluster, folder: Path, start: Callable[..., Running]
) -> None:
    if binaries.identity().uid is not None:
        pytest.skip("PgBouncer does not run as root, and user namespaces are not permitted")
    pooler = Pooler(folder, cluster.socket_folder, mode)
    try:
        wait_for(pooler.answers, "PgBouncer answers")
        doctor = start("manage.py", "doctor", "--no-color", DATABASE_URL=pooler.url)
        doctor.wait()
        told = "error    pooler: DATABASE_URL leads through a pooler in transaction mode"
        assert (told in doctor.output()) == (mode == "transaction"), doctor.output()
    finally:
        pooler.kill_all()
