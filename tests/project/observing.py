"""A server whose log and traces tests read."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from project.postgres.cluster import Cluster
from project.postgres.server import PORT
from tests.project.conftest import temporary_folder
from tests.project.running import Running, call_api, free_port, wait_for

Line = dict[str, Any]


class Server:
    """A server that logs JSON, with a thread and a run."""

    def __init__(self, running: Running) -> None:
        self.running = running
        running.wait_for_output("Ctrl-C stops it.")
        token = re.search(r"API token +(ch_\S+)", running.output())
        assert token is not None
        self.token = token[1]
        self.workspace = 1  # the first start creates it
        self.call("POST", "/threads", {"id": "t1"})
        self.call("POST", "/threads/t1/runs", {"id": "r1"})

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        named = {name.replace("_", "-"): text for name, text in headers.items()}
        return call_api(self.running.port, self.token, method, path, body, **named)[1]

    def lines(self, event: str) -> list[Line]:
        """The lines of an event."""
        lines = [each for each in self.running.output().splitlines() if each.startswith("{")]
        return [line for line in map(json.loads, lines) if line["event"] == event]

    def line(self, event: str, **ids: Any) -> Line:
        """The first line of an event with these ids, when there is one."""

        def find() -> Line | None:
            found = (line for line in self.lines(event) if ids.items() <= line.items())
            return next(found, None)

        line = wait_for(find, lambda: f"{event} {ids} in {self.running.output()}")
        assert line is not None
        return line

    def execute(self, statement: bytes) -> None:
        socket = Cluster(self.running.folder / "data" / "postgres").socket_folder
        with psycopg.connect(
            host=str(socket), port=PORT, user="postgres", dbname="commonhold"
        ) as database:
            database.execute(statement)


@contextmanager
def observed(**env: str) -> Iterator[Server]:
    """A server that logs JSON, with `env` in its environment."""
    with temporary_folder() as folder:
        running = Running(
            folder,
            *("manage.py", "serve"),
            PORT=str(free_port()),
            LOG_JSON="true",
            WEBHOOK_ALLOW_PRIVATE="true",
            WEB_WORKERS="1",
            **env,
        )
        try:
            yield Server(running)
            if running.process.poll() is None:
                running.signal(signal.SIGINT)
            running.wait()
        finally:
            running.kill_all()
