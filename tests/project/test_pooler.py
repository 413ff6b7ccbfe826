"""PgBouncer in session mode between the server and PostgreSQL."""

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
pool_mode = session
server_check_delay = 0
"""


@pytest.fixture
def url(cluster: Cluster, folder: Path) -> Iterator[str]:
    """The URL of the database behind the pooler."""
    port = free_port()
    config = folder / "pgbouncer.ini"
    config.write_text(CONFIG.format(sockets=cluster.socket_folder, server=PORT, port=port))
    who = binaries.identity()
    if who.uid is not None:
        pytest.skip("PgBouncer does not run as root, and user namespaces are not permitted")
    command = [*who.prefix, str(PGBOUNCER), str(config)]
    process = Process(folder / "pgbouncer.log", *command, env={"PATH": os.environ["PATH"]})
    url = f"postgresql://postgres@127.0.0.1:{port}/commonhold"

    def answers() -> bool:
        try:
            psycopg.connect(url, connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    try:
        wait_for(answers, process.output)
        yield url
    finally:
        process.kill_all()


def test_server__behind_a_pooler__has_its_timeouts_bounds_commits_and_survives_a_restart(
    cluster: Cluster, folder: Path, url: str, start: Callable[..., Running]
) -> None:
    settings = {"DATABASE_URL": url, "STANDBY_TIMEOUT_MS": "1000", "STATEMENT_TIMEOUT_MS": "7000"}
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

    postmaster = cluster.postmaster()
    assert postmaster
    os.kill(postmaster, signal.SIGKILL)
    wait_for(lambda: cluster.postmaster() is None, "PostgreSQL is dead")
    cluster.acquire()
    standby.wait_until_connected()
    wait_for(
        lambda: call("PUT", "/state/notes/b", {"value": 1})[0] in (200, 201), "writes succeed again"
    )
