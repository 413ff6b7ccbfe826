"""A folder for each test that starts processes, all of which are killed at its end."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from kombu import pools

from project import job_notifications
from project.postgres import binaries
from project.postgres.cluster import Cluster
from project.postgres.server import Server
from tests.project.lanes import lane_workspaces, sides
from tests.project.running import Running, is_alive, wait_for
from tests.project.sites import connect

__all__ = ["lane_workspaces", "sides"]

SHOWN = 4000  # characters of a process's output

Start = Callable[..., Running]


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder for servers. At the end, a PostgreSQL that still runs in it is ended, and the folder is
    deleted. The path is short because it contains PostgreSQL's socket."""
    path = Path(tempfile.mkdtemp(prefix="ch"))
    postgres = binaries.identity()
    if postgres.uid is not None:
        os.chown(path, postgres.uid, postgres.gid or -1)
    try:
        yield path
    finally:
        end_postgresql(path)
        shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def folder() -> Iterator[Path]:
    with temporary_folder() as path:
        yield path


@pytest.fixture
def cluster(folder: Path) -> Iterator[Cluster]:
    """A PostgreSQL of the test's own, with an empty database `commonhold`."""
    cluster = Cluster(folder / "database")
    cluster.acquire()
    try:
        with connect(cluster, "postgres") as database:
            database.execute("CREATE DATABASE commonhold")
        yield cluster
    finally:
        cluster.release()


@pytest.fixture
def start(folder: Path) -> Iterator[Start]:
    """Start a Python process in the test's folder; it is killed at the end. pytest shows the end of
    its output if the test failed."""
    started: list[Running] = []

    def begin(*arguments: str, **env: str) -> Running:
        running = Running(folder, *arguments, **env)
        started.append(running)
        return running

    yield begin
    for running in started:
        running.kill_all()
        if running.log.exists():  # a test may have removed its folder
            sys.stdout.write(f"{running.log}:\n{running.output()[-SHOWN:]}\n")


@pytest.fixture
def fresh_broker() -> Iterator[None]:
    """The broker as at the start of a process, neither paused nor connected by an earlier test. It
    does not stay connected, which would keep the test database from being dropped."""
    job_notifications._paused_until = 0.0
    pools.reset()
    yield
    job_notifications._paused_until = 0.0
    pools.reset()


def end_postgresql(path: Path) -> None:
    for pidfile in path.glob("**/pg/postmaster.pid"):
        if pid := Server(pidfile.parents[1]).postmaster():
            os.kill(pid, signal.SIGQUIT)
            wait_for(lambda pid=pid: not is_alive(pid), "PostgreSQL ends")
