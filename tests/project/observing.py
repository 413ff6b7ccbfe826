"""A server whose log and traces tests read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.project.conftest import temporary_folder
from tests.project.running import wait_for
from tests.project.sites import Site

Line = dict[str, Any]


class Server:
    """A server that logs JSON, with a thread and a run."""

    def __init__(self, site: Site) -> None:
        self.site, self.running, self.token = site, site.running, site.token
        self.workspace = 1  # the first start creates it
        self.call("POST", "/threads", {"id": "t1"})
        self.call("POST", "/threads/t1/runs", {"id": "r1"})

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        named = {name.replace("_", "-"): text for name, text in headers.items()}
        return self.site.call(method, path, body, **named)[1]

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
        with self.site.connect() as database:
            database.execute(statement)


@contextmanager
def observed(**env: str) -> Iterator[Server]:
    """A server that logs JSON, with `env` in its environment."""
    with temporary_folder() as folder:
        site = Site(folder, LOG_JSON="true", WEB_WORKERS="1", **env)
        try:
            yield Server(site)
            if site.running.process.poll() is None:
                site.stop()
        finally:
            site.running.kill_all()
