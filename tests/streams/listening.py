"""A client of GET /changes/stream, and a server on the database of the tests."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlencode

from django.conf import settings
from django.db import connection

from tests.patience import PATIENCE
from tests.project.running import Running, free_port


@dataclass(frozen=True)
class Event:
    id: str
    name: str
    data: dict[str, Any]

    @property
    def seen(self) -> tuple[str | None, int]:
        return self.data["key"], self.data["version"]


class Connection:
    """A connection on which a response may never end."""

    client: http.client.HTTPConnection
    socket: socket.socket | None
    answer: http.client.HTTPResponse

    def problem(self) -> dict[str, Any]:
        assert self.answer.headers["Content-Type"] == "application/problem+json"
        body: dict[str, Any] = json.loads(self.answer.read())
        return body

    def close(self) -> None:
        if self.socket is not None:
            with contextlib.suppress(OSError):
                self.socket.shutdown(socket.SHUT_RDWR)
        self.client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Listener(Connection):
    """One connection. Iterating yields the events until the server ends the stream."""

    def __init__(
        self,
        port: int,
        token: str,
        *,
        cursor: str = "",
        last_event_id: str = "",
        timeout: float = PATIENCE,
        headers: dict[str, str] | None = None,
        **filters: str,
    ) -> None:
        self.last_id = last_event_id
        self.retry = 0
        query = urlencode(filters | ({"cursor": cursor} if cursor else {}))
        sent = dict(headers or {})
        if token:
            sent["Authorization"] = f"Bearer {token}"
        if last_event_id:
            sent["Last-Event-ID"] = last_event_id
        self.client = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
        self.client.request("GET", f"/api/v1/changes/stream?{query}", headers=sent)
        self.socket = self.client.sock
        self.answer = self.client.getresponse()
        self.status = self.answer.status
        if self.status == 200:
            self._hello()

    def _hello(self) -> None:
        """Read the first block: from then on no change is missed."""
        for line in self._block():
            name, _, value = line.partition(": ")
            if name == "id":
                self.last_id = value
            if name == "retry":
                self.retry = int(value)

    def _block(self) -> list[str]:
        lines: list[str] = []
        while True:
            line = self.answer.readline()
            if not line:
                raise EOFError
            if line == b"\n":
                return lines
            lines.append(line.decode().rstrip("\n"))

    def __iter__(self) -> Iterator[Event]:
        assert self.status == 200, self.problem()
        while True:
            try:
                lines = self._block()
            except (EOFError, http.client.HTTPException):
                return
            fields = dict(line.split(": ", 1) for line in lines if not line.startswith(":"))
            self.last_id = fields.get("id", self.last_id)
            self.retry = int(fields.get("retry", self.retry))
            if "data" in fields:
                name = fields.get("event", "message")
                yield Event(self.last_id, name, json.loads(fields["data"]))

    def take(self, count: int) -> list[Event]:
        return list(itertools.islice(self, count))


def this_database() -> dict[str, str]:
    """The address of the running test's database: libpq's host, port and user."""
    params = connection.get_connection_params()
    if "host" not in params:
        connection.ensure_connection()
        params = connection.connection.info.get_parameters()
    return {key: str(params[key]) for key in ("host", "port", "user") if params.get(key)}


@contextlib.contextmanager
def run_web_process(folder: Path, django_db_blocker: Any, **env: str) -> Iterator[Running]:
    """Run a web process on the database of the tests until the end of the block, for fixtures of a module."""
    begun: list[Running] = []

    def begin(*arguments: str, **env: str) -> Running:
        begun.append(Running(folder, *arguments, **env))
        return begun[-1]

    try:
        with django_db_blocker.unblock():
            web = web_on_this_database(begin, **env)
        yield web
    finally:
        for process in begun:
            process.kill_all()


def web_on_this_database(start: Any, where: dict[str, str] | None = None, **env: str) -> Running:
    """A web process that serves the database of the running test; `where`: another address of
    it."""
    url = f"postgresql:///{connection.settings_dict['NAME']}?{urlencode(where or this_database())}"
    server: Running = start(
        *("-m", "project.processes", "web"),
        DATABASE_URL=url,
        SECRET_KEY=settings.SECRET_KEY,  # sessions of the tests are valid there
        PORT=env.pop("PORT", "") or str(free_port()),
        **env,
    )
    server.wait_until_it_answers("/healthz")
    return server
