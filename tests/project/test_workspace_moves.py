"""A workspace moves between two servers, each with its own PostgreSQL, while clients write to it: no
acknowledged write is lost or stored twice, and readers and webhooks continue."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.availability.traffic import WRITERS, Record, Traffic, check_history
from tests.project.conftest import end_postgresql
from tests.project.running import Running, wait_for
from tests.project.sites import SETTINGS, Site, url_of
from tests.receiving import Receiver, receiving

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

# Entries that the workspace has before the move.
ENTRIES = 2000
# Events that the webhook sends before the move, and after it.
SENT = 10


class Routed(Traffic):
    """Clients behind a load balancer that sends all requests of the token to `port`."""

    def __init__(self, port: int, token: str) -> None:
        self.problems: set[str] = set()
        super().__init__(port, token)

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        status, answer = super().call(method, path, body, **headers)
        if status >= 500:
            self.problems.add(answer["type"])
        return status, answer


class Cells:
    """Two servers, and a workspace of the first one under load."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.first = Site(folder / "a", CELL="a")
        self.second = Site(folder / "b", CELL="b")
        made = self.manage(
            self.first, "create_token", "--workspace", "acme", "--role", "admin", "--name", "agent"
        )
        self.token = made.split()[-1]

    def manage(self, site: Site, *arguments: str, **env: str) -> str:
        """Run a management command in the environment of a server; returns its output."""
        name = "a" if site is self.first else "b"
        command = Running(self.folder / name, "manage.py", *arguments, **SETTINGS, CELL=name, **env)
        assert command.wait(300) == 0, command.output()
        return command.output()

    def move(self, *options: str) -> str:
        url = url_of(self.second.cluster)
        return self.manage(self.first, "move_workspace", "acme", *options, MOVE_DATABASE_URL=url)

    def end(self) -> None:
        for site in (self.first, self.second):
            site.running.kill_all()
        end_postgresql(self.folder)


@pytest.fixture
def cells(folder: Path) -> Iterator[Cells]:
    cells = Cells(folder)
    try:
        yield cells
    finally:
        cells.end()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


def test_move__under_load__loses_no_acknowledged_write_and_skips_no_change(
    cells: Cells, receiver: Receiver, record_property: Record
) -> None:
    source = Traffic.call
    traffic = Routed(cells.first.running.port, cells.token)
    try:
        filled = [
            {"op": "put", "namespace": "filled", "key": f"k{n}", "value": {"n": n}}
            for n in range(ENTRIES)
        ]
        assert source(traffic, "PUT", "/namespaces/filled", {"schema": True})[0] == 201
        for start in range(0, ENTRIES, 100):
            batch = {"operations": filled[start : start + 100]}
            assert source(traffic, "POST", "/state/batch", batch)[0] == 200
        hook = {"name": "hook", "url": receiver.url, "filter": {"namespaces": ["filled"]}}
        assert source(traffic, "POST", "/webhooks", hook)[0] == 201
        send(traffic, "before")
        traffic.wait_for_more()
        cells.manage(cells.second, "move_workspace", "acme", "--expect")
        began = time.monotonic()
        assert "accepts writes" in cells.move()
        ended = time.monotonic()
        # Until the load balancer follows, the first server refers to the other one.
        wait_for(lambda: "/problems/workspace-moved" in traffic.problems, "a request is refused")
        traffic.port = cells.second.running.port
        traffic.wait_for_more()
        pause = traffic.longest_pause(began)
        send(traffic, "after")
    finally:
        traffic.stop()
    assert set(traffic.refused) <= {503}
    assert traffic.problems == {"/problems/workspace-frozen", "/problems/workspace-moved"}
    assert len(traffic.acknowledged) == WRITERS
    check_history(traffic, record_property)
    keys = {f"{when}-{n}" for when in ("before", "after") for n in range(SENT)}
    wait_for(lambda: keys <= set(receiver.keys), lambda: f"all events, not only {receiver.keys}")
    # A receiver that discards known ids discards nothing else.
    events = {(each.event["id"], each.key) for each in receiver.received}
    assert len({event_id for event_id, _ in events}) == len(events)
    assert sorted(key for _, key in events if key in keys) == sorted(keys)
    record_property("seconds without writes", round(pause, 1))
    record_property("seconds of the move", round(ended - began, 1))
    check_end(cells)


def check_end(cells: Cells) -> None:
    """The moved workspace is consistent, and can be deleted from the first server."""
    cells.manage(cells.second, "verify_state")
    assert "has deleted its rows" in cells.move("--forget")
    cells.manage(cells.first, "verify_state")
    with cells.first.connect() as database:
        found = database.execute("SELECT slug FROM workspaces ORDER BY 1").fetchall()
    assert found == [("default",)]


def send(traffic: Traffic, when: str) -> None:
    """Make changes that the webhook sends."""
    for number in range(SENT):
        status, _ = traffic.call("PUT", f"/state/filled/{when}-{number}", {"value": number})
        assert status == 201


def test_move__killed_again_and_again__ends_with_one_server_that_accepts_writes(
    cells: Cells, receiver: Receiver, record_property: Record
) -> None:
    traffic = Routed(cells.first.running.port, cells.token)
    try:
        traffic.wait_for_more()
        cells.manage(cells.second, "move_workspace", "acme", "--expect")
        url = url_of(cells.second.cluster)
        options = {**SETTINGS, "CELL": "a", "MOVE_DATABASE_URL": url}
        # Killed at the first sign of each step: "…" is a part of its message.
        for message in ("refuses writes", "entry_revisions:", "changes:", "is equal", "refers to"):
            command = Running(cells.folder / "a", "manage.py", "move_workspace", "acme", **options)
            wait_for(
                lambda c=command, m=message: m in c.output() or c.process.poll() is not None,
                message,
            )
            command.kill_all()
            if command.process.returncode == 0:
                break
        cells.move()
        traffic.port = cells.second.running.port
        traffic.wait_for_more()
    finally:
        traffic.stop()
    check_history(traffic, record_property)
    cells.manage(cells.second, "verify_state")


def test_undo__under_load__the_first_server_continues(
    cells: Cells, receiver: Receiver, record_property: Record
) -> None:
    traffic = Routed(cells.first.running.port, cells.token)
    try:
        traffic.wait_for_more()
        cells.manage(cells.second, "move_workspace", "acme", "--expect")
        cells.move()
        assert "accepts writes" in cells.move("--undo")
        traffic.wait_for_more()
    finally:
        traffic.stop()
    check_history(traffic, record_property)
    with cells.second.connect() as database:
        assert database.execute("SELECT slug FROM workspaces").fetchall() == [("default",)]
