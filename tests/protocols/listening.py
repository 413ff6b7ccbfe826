"""A client of the protocols' event streams."""

from __future__ import annotations

import http.client
import itertools
import json
from collections.abc import Iterator
from typing import Any

from tests.patience import PATIENCE
from tests.streams.listening import Connection


class Reader(Connection):
    """One connection. Iterating yields the contents of the `data:` lines; `last_id` is the position
    to resume from."""

    def __init__(
        self,
        port: int,
        token: str,
        path: str,
        body: Any = None,
        *,
        last_event_id: str = "",
        timeout: float = PATIENCE,
    ) -> None:
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        if last_event_id:
            headers["Last-Event-ID"] = last_event_id
        self.last_id = ""
        self.client = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
        sent = None if body is None else json.dumps(body)
        method = "GET" if body is None else "POST"
        self.client.request(method, f"/api/v1{path}", sent, headers)
        self.socket = self.client.sock
        self.answer = self.client.getresponse()
        self.status = self.answer.status

    def __iter__(self) -> Iterator[Any]:
        for block in self.blocks():
            for line in block:
                if line.startswith("data: "):
                    data = line.removeprefix("data: ")
                    yield data if data == "[DONE]" else json.loads(data)

    def blocks(self) -> Iterator[list[str]]:
        """The lines between two empty ones."""
        assert self.status == 200, self.answer.read()
        lines: list[str] = []
        while line := self.answer.readline():
            if line != b"\n":
                lines.append(line.decode().rstrip("\n"))
                continue
            self.last_id = next((x[4:] for x in lines if x.startswith("id: ")), self.last_id)
            yield lines
            lines = []

    def take(self, count: int) -> list[Any]:
        return list(itertools.islice(self, count))

    def settle(self) -> str:
        """Read up to the next id: what follows is new."""
        before = self.last_id
        for _ in self.blocks():
            if self.last_id != before:
                break
        return self.last_id
