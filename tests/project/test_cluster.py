"""The embedded PostgreSQL: which process starts and stops it, and the state after a kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from project.postgres.binaries import ClusterError
from project.postgres.cluster import Cluster
from project.postgres.server import PORT
from project.postgres.session import PRIVATE_LOG
from tests.patience import PATIENCE
from tests.project.running import Running, children, is_alive, wait_for

USER = """
import sys
from pathlib import Path
from project.postgres.cluster import Cluster
cluster = Cluster(Path(sys.argv[1]))
cluster.acquire()
print("up", cluster.postmaster(), flush=True)
sys.stdin.read() if len(sys.argv) > 2 else None
"""


def ask(cluster: Cluster, statement: str) -> str:
    with psycopg.connect(
        host=str(cluster.socket_folder), port=PORT, user="postgres", dbname="postgres"
    ) as connection:
        row = connection.execute(statement.encode()).fetchone()
        assert row is not None
        return str(row[0])


def running_pid(cluster: Cluster) -> int:
    pid = cluster.postmaster()
    assert pid is not None
    return pid


def another_user(folder: Path) -> subprocess.Popen[str]:
    """A process that has acquired the cluster and keeps it until its standard input ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", USER, str(folder), "stay"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith("up")
    return process


@pytest.fixture
def cluster(folder: Path):
    made = Cluster(folder / "c")
    yield made
    made.release()


def test_cluster__fresh_folder__starts_and_the_last_user_stops_it(cluster):
    cluster.acquire()
    pid = running_pid(cluster)

    assert ask(cluster, "SELECT 1") == "1"
    assert cluster.folder.stat().st_mode & 0o777 == 0o700

    cluster.release()
    assert not is_alive(pid)


def test_cluster__two_users__runs_until_the_second_leaves(cluster):
    cluster.acquire()
    pid = running_pid(cluster)
    other = another_user(cluster.folder)

    cluster.release()
    assert is_alive(pid)

    other.communicate()
    assert not is_alive(pid)


def test_cluster__ten_processes_on_an_empty_folder__share_one_server(cluster):
    users = [
        subprocess.Popen(
            [sys.executable, "-c", USER, str(cluster.folder), "stay"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(10)
    ]
    said = {user.stdout.readline() for user in users if user.stdout is not None}

    assert len(said) == 1
    for user in users:
        user.stdin.close()
        assert user.wait(PATIENCE) == 0
    assert cluster.postmaster() is None


def test_cluster__all_users_killed__next_one_uses_the_server(cluster):
    user = another_user(cluster.folder)
    pid = running_pid(cluster)
    user.kill()
    user.wait()
    assert is_alive(pid)

    cluster.acquire()
    assert cluster.postmaster() == pid

    cluster.release()
    assert not is_alive(pid)


def test_cluster__server_killed__acquire_starts_it_with_its_data(cluster):
    cluster.acquire()
    with psycopg.connect(
        host=str(cluster.socket_folder), port=PORT, user="postgres", autocommit=True
    ) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
    os.kill(running_pid(cluster), signal.SIGKILL)
    wait_for(lambda: cluster.postmaster() is None, "the server is seen as dead")

    cluster.acquire()

    assert ask(cluster, "SELECT answer FROM kept") == "42"


@pytest.mark.parametrize("whose", ["ours", "init", "nobody", "no number"])
def test_cluster__pidfile_of_another_process__starts(cluster, whose):
    cluster.acquire()
    cluster.release()
    pid = {"ours": os.getpid(), "init": 1, "nobody": 4194304, "no number": "x"}[whose]
    (cluster.data / "postmaster.pid").write_text(f"{pid}\n{cluster.data}\n1\n5432\n\n\n\nready\n")

    cluster.acquire()

    assert ask(cluster, "SELECT 1") == "1"


def test_cluster__initdb_was_interrupted__starts_over(cluster):
    (cluster.folder / "pg.init" / "base").mkdir(parents=True)

    cluster.acquire()

    assert ask(cluster, "SELECT 1") == "1"


def test_cluster__start_interrupted_before_the_pid_file__is_stopped(cluster, monkeypatch):
    cluster.acquire()
    cluster.release()

    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    others = set(children(os.getpid()))
    with monkeypatch.context() as patched:
        patched.setattr("project.postgres.server.time.sleep", interrupt)
        with pytest.raises(KeyboardInterrupt):
            cluster.acquire()
    started = set(children(os.getpid())) - others
    assert started
    cluster.release()
    # Processes that the server has just forked may end after it.
    wait_for(lambda: not any(is_alive(pid) for pid in started), "the server has ended")


def test_cluster__socket_deleted__restarts(cluster):
    cluster.acquire()
    (cluster.socket_folder / f".s.PGSQL.{PORT}").unlink()

    cluster.acquire()

    assert ask(cluster, "SELECT 1") == "1"


def test_cluster__path_too_long_for_a_socket__uses_a_short_private_folder(folder):
    cluster = Cluster(folder / ("long" * 30))
    cluster.acquire()
    try:
        assert ask(cluster, "SELECT 1") == "1"
        assert not cluster.socket_folder.is_relative_to(folder)
        assert cluster.socket_folder.stat().st_mode & 0o777 == 0o700
    finally:
        cluster.release()
        cluster.socket_folder.rmdir()


def test_cluster__socket_folder_of_another_user__is_refused(folder):
    cluster = Cluster(folder / ("long" * 30))
    cluster.socket_folder.symlink_to(folder)
    try:
        with pytest.raises(ClusterError, match="belongs to another user"):
            cluster.acquire()
    finally:
        cluster.socket_folder.unlink()


def test_cluster__created_by_another_version__error_says_so(cluster):
    cluster.acquire()
    cluster.release()
    (cluster.data / "PG_VERSION").write_text("14\n")

    with pytest.raises(ClusterError, match=r"made by PostgreSQL 14.*EMBEDDED_PG_BIN"):
        cluster.acquire()


def test_cluster__invalid_setting__error_names_it(cluster):
    cluster.acquire()
    cluster.release()
    with (cluster.data / "postgresql.conf").open("a") as conf:
        conf.write("no_such_setting = 1\n")

    with pytest.raises(ClusterError, match="exited with 1"):
        cluster.acquire()


@pytest.mark.parametrize("setting", ["fsync", "synchronous_commit", "full_page_writes"])
def test_cluster__durability_disabled_in_its_files__remains_on(cluster, setting):
    cluster.acquire()
    cluster.release()
    with (cluster.data / "postgresql.conf").open("a") as conf:
        conf.write(f"{setting} = off\n")
    (cluster.data / "postgresql.auto.conf").write_text(f"{setting} = off\n")

    cluster.acquire()

    assert ask(cluster, f"SHOW {setting}") == "on"


def test_cluster__statements_logged_by_its_files__are_not(cluster):
    cluster.acquire()
    cluster.release()
    with (cluster.data / "postgresql.conf").open("a") as conf:
        conf.write("log_statement = all\nlog_min_duration_statement = 0\n")
    cluster.log.chmod(0o644)

    cluster.acquire()

    assert ask(cluster, "SELECT 'canary'") == "canary"
    assert "canary" not in cluster.log.read_text()
    for name, value in PRIVATE_LOG.items():
        assert ask(cluster, f"SELECT current_setting('{name}')") == value
    assert cluster.log.stat().st_mode & 0o777 == 0o600


def test_cluster__own_settings_after_the_include__have_priority(cluster):
    cluster.acquire()
    cluster.release()
    with (cluster.data / "postgresql.conf").open("a") as conf:
        conf.write("max_connections = 33\n")

    cluster.acquire()

    assert ask(cluster, "SHOW max_connections") == "33"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has to become someone else")
def test_cluster__root_without_user_namespaces__runs_as_another_user(folder, monkeypatch):
    monkeypatch.setenv("EMBEDDED_PG_ROOT", "setuid")
    folder.chmod(0o711)
    cluster = Cluster(folder / "data" / "c")
    cluster.acquire()
    try:
        assert ask(cluster, "SELECT 1") == "1"
        assert Path(f"/proc/{running_pid(cluster)}").stat().st_uid != 0
    finally:
        cluster.release()


def test_cluster__wrong_bin_folder__says_so(cluster, monkeypatch):
    monkeypatch.setenv("EMBEDDED_PG_BIN", "/nowhere")

    with pytest.raises(ClusterError, match="EMBEDDED_PG_BIN=/nowhere"):
        cluster.acquire()


def test_process__killed__server_is_stopped_by_the_next_last_user(
    folder: Path, start: Callable[..., Running]
):
    killed = start("-c", USER, str(folder / "c"))
    killed.wait()
    assert "up" in killed.output()
    assert Cluster(folder / "c").postmaster() is None  # by atexit
