"""Acknowledged writes survive `kill -9` of every process, at any moment, under load."""

from __future__ import annotations

import http.client
import os
import re
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from project.postgres.cluster import Cluster
from tests.availability.traffic import Record
from tests.project.running import Running, call_api, children, free_port, wait_for
from tests.project.test_server_requirements import Server

WRITERS = 3


@dataclass
class Traffic:
    """Writers of one key each, which continue while the server is down."""

    port: int
    token: str
    acknowledged: list[tuple[str, int, int]] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)

    def start(self) -> list[threading.Thread]:
        threads = [
            threading.Thread(target=self._write, args=(f"writer-{n}",)) for n in range(WRITERS)
        ]
        for thread in threads:
            thread.start()
        return threads

    def wait_for_more(self, count: int = 30) -> None:
        enough = len(self.acknowledged) + count
        wait_for(lambda: len(self.acknowledged) >= enough, f"{count} more writes")

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        return call_api(self.port, self.token, method, path, body)

    def find_lost(self) -> list[tuple[str, int, int]]:
        """The acknowledged writes that the server does not have. A later write may have got the version
        of a lost one."""
        lost = []
        for key, version, value in self.acknowledged:
            status, entry = self.call("GET", f"/state/durable/{key}?at_version={version}")
            if status != 200 or entry["value"] != value:
                lost.append((key, version, value))
        return lost

    def _write(self, key: str) -> None:
        number = 0
        while not self.stopped.is_set():
            number += 1
            with suppress(OSError, http.client.HTTPException, ValueError):
                status, entry = self.call("PUT", f"/state/durable/{key}", {"value": number})
                if status < 300:
                    self.acknowledged.append((key, entry["version"], number))


def kill(*pids: int | None) -> None:
    for pid in pids:
        if pid is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def begin(start: Callable[..., Running], port: str, **env: str) -> tuple[Running, Traffic]:
    """Start a server for the first time, and its writers' namespace."""
    running = start("manage.py", "serve", PORT=port, **env)
    running.wait_for_output("Ctrl-C stops it.")
    (token,) = re.findall(r"API token +(ch_\S+)", running.output())
    traffic = Traffic(int(port), token)
    assert traffic.call("PUT", "/namespaces/durable", {})[0] == 201
    return running, traffic


def test_write__acknowledged_before_every_process_is_killed__is_kept_with_its_version(
    start: Callable[..., Running], folder: Path, record_property: Record
) -> None:
    port = str(free_port())
    cluster = Cluster(folder / "data" / "postgres")
    first, traffic = begin(start, port)
    writers = traffic.start()
    try:
        traffic.wait_for_more()
        kill(*children(first.pid))  # web, worker and beat
        traffic.wait_for_more()
        kill(cluster.postmaster())
        traffic.wait_for_more()
        kill(first.pid, *children(first.pid), cluster.postmaster())
    finally:
        traffic.stopped.set()
        for writer in writers:
            writer.join()

    start("manage.py", "serve", PORT=port).wait_for_output("Ctrl-C stops it.")
    lost = traffic.find_lost()
    record_property("acknowledged writes", len(traffic.acknowledged))
    record_property("acknowledged writes lost", len(lost))
    assert lost == []


@pytest.mark.slow
def test_control__commits_are_not_flushed__finds_lost_writes(
    start: Callable[..., Running], folder: Path
) -> None:
    """The check of the test above detects what it is meant to detect. Connections that were opened
    before the setting was changed are not refused."""
    server = Server(folder / "other")
    server.execute("CREATE DATABASE commonhold")
    port, url = str(free_port()), server.url(database="commonhold")
    first, traffic = begin(start, port, DATABASE_URL=url)
    writers = traffic.start()
    try:
        traffic.wait_for_more()
        server.execute(
            "ALTER SYSTEM SET synchronous_commit = off",
            "ALTER SYSTEM SET wal_writer_delay = '10s'",
            "ALTER SYSTEM SET wal_writer_flush_after = '2GB'",
            "SELECT pg_reload_conf()",
        )
        traffic.wait_for_more(100)
        postmaster = server.cluster.postmaster()
        assert postmaster
        kill(postmaster, *children(postmaster))
    finally:
        traffic.stopped.set()
        for writer in writers:
            writer.join()
    first.kill_all()

    (server.cluster.data / "postgresql.auto.conf").write_text("")
    server.cluster.acquire()
    again = start("manage.py", "serve", PORT=port, DATABASE_URL=url)
    again.wait_for_output("Ctrl-C stops it.")
    assert traffic.find_lost() != []
