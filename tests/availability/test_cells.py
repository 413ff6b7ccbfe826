"""deploy/cells: HAProxy routes each request to its cell, and a cell that is killed affects no other."""

from __future__ import annotations

import http.client
import json
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from project.env import BASE_DIR
from state_admin.services.errors import Unauthenticated, Unavailable
from tests.availability.cell import find
from tests.availability.traffic import Record, Traffic, check_history
from tests.project.conftest import temporary_folder
from tests.project.running import Process, Running, call_api, children, free_port, wait_for
from tests.project.sites import SETTINGS, Site, url_of

CONFIG = BASE_DIR / "deploy" / "cells" / "haproxy.cfg"
CELLS = ("eu1", "us1")
SHARED = "state.example"


class Front:
    """HAProxy with the configuration of deploy/cells. `webs`: the ports of the cells' web processes."""

    def __init__(self, folder: Path, webs: dict[str, int]) -> None:
        self.folder, self.port = folder, free_port()
        self.env = {
            "BIND": "127.0.0.1",
            "WEB_PORT": str(self.port),
            "STATUS_PORT": str(free_port()),
            "MAPS": str(folder),
            **{f"{cell.upper()}_WEB": f"127.0.0.1:{port}" for cell, port in webs.items()},
        }
        self.process = self._start()

    def _start(self, *options: str) -> Process:
        command = (find("haproxy"), "-f", str(CONFIG), *options)
        return Process(self.folder / "haproxy.log", *command, env=self.env, cwd="/")

    def reload(self) -> None:
        """Read the maps again. The old process ends after its requests."""
        old = self.process
        self.process = self._start("-sf", str(old.pid))
        old.wait()

    def get(self, path: str = "/", **headers: str) -> tuple[int, Any, http.client.HTTPMessage]:
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            client.request("GET", path, headers={"Host": SHARED} | headers)
            response = client.getresponse()
            return response.status, response.read(), response.headers
        finally:
            client.close()

    def is_up(self, host: str) -> bool:
        assert self.process.process.poll() is None, self.process.output()
        try:
            return self.get("/healthz", Host=host)[0] == 200
        except (OSError, http.client.HTTPException):
            return False


@contextmanager
def answering(name: str) -> Iterator[int]:
    """A server that returns its name; yields its port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(name.encode())

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


# Routes --------------------------------------------------------------------------------------

TOKENS = """\
ch_1234567890ab_ eu1
ch_eu1- eu1
ch_eu1-ffffffffffff_ us1
ch_us1- us1
"""
HOSTS = "eu1.state.example eu1\nus1.state.example us1\n"
REFUSED = "401"


@pytest.fixture(scope="module")
def front() -> Iterator[Front]:
    with temporary_folder() as folder, ExitStack() as stack:
        (folder / "tokens.map").write_text(TOKENS)
        (folder / "hosts.map").write_text(HOSTS)
        front = Front(folder, {cell: stack.enter_context(answering(cell)) for cell in CELLS})
        try:
            for cell in CELLS:
                wait_for(lambda cell=cell: front.is_up(f"{cell}.{SHARED}"), front.process.output)
            yield front
        finally:
            front.process.kill_all()


@pytest.mark.parametrize(
    ("authorization", "host", "expected"),
    [
        ("Bearer ch_eu1-000000000000_secret", SHARED, "eu1"),
        ("Bearer ch_us1-000000000000_secret", SHARED, "us1"),
        ("bearer ch_us1-000000000000_secret", SHARED, "us1"),
        # A token that is older than the cell, of a workspace that was moved.
        ("Bearer ch_eu1-ffffffffffff_secret", SHARED, "us1"),
        ("Bearer ch_1234567890ab_secret", SHARED, "eu1"),
        # The token takes precedence over the host name.
        ("Bearer ch_eu1-000000000000_secret", "us1.state.example", "eu1"),
        # Pages, and URLs that need no token.
        (None, "eu1.state.example", "eu1"),
        (None, "US1.State.Example:8443", "us1"),
        # Other credentials: the cell accepts (METRICS_TOKEN) or refuses them.
        ("Bearer unknown", "us1.state.example", "us1"),
        ("Basic Y2hfZXUxLTpzZWNyZXQ=", "us1.state.example", "us1"),
        # Tokens of no cell.
        (None, SHARED, REFUSED),
        (None, "127.0.0.1", REFUSED),
        ("Bearer ch_ap1-000000000000_secret", SHARED, REFUSED),
        ("Bearer ch_000000000000_secret", SHARED, REFUSED),
        ("Bearer ch_eu", SHARED, REFUSED),
        ("Bearer ch_eu12-000000000000_secret", SHARED, REFUSED),
        ("Bearer", SHARED, REFUSED),
        ("ch_eu1-000000000000_secret", SHARED, REFUSED),
        ("Basic ch_eu1-000000000000_secret", SHARED, REFUSED),
    ],
)
def test_route__by_token_then_by_host__leads_to_the_cell(
    front: Front, authorization: str | None, host: str, expected: str
) -> None:
    headers = {"Authorization": authorization} if authorization else {}
    status, body, answered = front.get("/api/v1/me", Host=host, **headers)
    if expected is not REFUSED:
        assert (status, body.decode()) == (200, expected)
        return
    assert status == 401
    problem = Unauthenticated("the token is not valid", hint="It is unknown, expired or revoked.")
    assert json.loads(body) == problem.document()
    assert answered["Content-Type"] == "application/problem+json"
    assert answered["WWW-Authenticate"] == 'Bearer realm="commonhold"'


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, "us1"),
        ({"Host": "eu1.state.example"}, "us1"),
        # The server reads it only without the other header.
        ({"Authorization": "Bearer ch_eu1-000000000000_secret"}, "eu1"),
    ],
)
def test_route__token_as_api_key__leads_to_the_cell(
    front: Front, headers: dict[str, str], expected: str
) -> None:
    """As LangGraph's SDK sends it to the Agent Protocol."""
    key = {"x-api-key": "ch_us1-000000000000_secret"}
    status, body, _ = front.get("/api/v1/agent-protocol/info", **key, **headers)
    assert (status, body.decode()) == (200, expected)


# Cells ---------------------------------------------------------------------------------------


class Sites:
    """Two cells, each a whole server with its PostgreSQL, behind HAProxy."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.maps = folder, folder / "maps"
        self.sites: dict[str, Site] = {}
        self.front: Front | None = None

    def start(self) -> None:
        for cell in CELLS:
            self.sites[cell] = Site(self.folder / cell, **self.environment(cell))
            self.manage(cell, "cells", "--output", str(self.maps))
        ports = {cell: site.running.port for cell, site in self.sites.items()}
        self.front = Front(self.maps, ports)
        for cell in CELLS:
            self.wait_until_up(cell)

    def environment(self, cell: str) -> dict[str, str]:
        return {
            "CELL": cell,
            "SITE_URL": f"http://{cell}.{SHARED}",
            "ALLOWED_HOSTS": f"{SHARED},127.0.0.1",
            "WEB_WORKERS": "1",
        }

    def run(self, cell: str, *arguments: str, **env: str) -> Running:
        settings = {**SETTINGS, **self.environment(cell), **env}
        return Running(self.folder / cell, "manage.py", *arguments, **settings)

    def manage(self, cell: str, *arguments: str, **env: str) -> str:
        """Run a management command in a cell; returns its output."""
        command = self.run(cell, *arguments, **env)
        assert command.wait(300) == 0, command.output()
        return command.output()

    def restart(self, cell: str) -> None:
        site = self.sites[cell]
        site.running.kill_all()
        site.running = self.run(cell, "serve", PORT=str(site.running.port))
        self.wait_until_up(cell)

    def wait_until_up(self, cell: str) -> None:
        assert self.front
        front = self.front
        wait_for(lambda: front.is_up(f"{cell}.{SHARED}"), self.sites[cell].running.output)

    def stop(self) -> None:
        for site in self.sites.values():
            site.running.kill_all()
        if self.front:
            self.front.process.kill_all()


@pytest.fixture(scope="module")
def sites() -> Iterator[Sites]:
    find("haproxy")
    with temporary_folder() as folder:
        sites = Sites(folder)
        try:
            sites.start()
            yield sites
        finally:
            sites.stop()


def kill(sites: Sites, cell: str) -> None:
    """All processes of the cell, with its PostgreSQL."""
    sites.sites[cell].running.kill_all()


def hang(sites: Sites, cell: str) -> None:
    """The machine of the cell hangs: its connections stay open."""
    running = sites.sites[cell].running
    for pid in [running.pid, *children(running.pid)]:
        os.kill(pid, signal.SIGSTOP)


@pytest.fixture(scope="module")
def traffic(sites: Sites) -> Iterator[dict[str, Traffic]]:
    """Clients of both cells, which use one address and tokens of the cells."""
    assert sites.front
    found = {cell: Traffic(sites.front.port, site.token) for cell, site in sites.sites.items()}
    yield found
    for each in found.values():
        each.stop()


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("fault", [kill, hang])
def test_fault__of_one_cell__affects_no_call_to_the_other(
    sites: Sites,
    traffic: dict[str, Traffic],
    record_property: Record,
    fault: Callable[[Sites, str], None],
) -> None:
    broken, other = CELLS
    front = sites.front
    assert front
    for cell, each in traffic.items():
        assert sites.sites[cell].token.startswith(f"ch_{cell}-")
        each.wait_for_more()
    since, before = time.monotonic(), Counter(traffic[other].refused)

    fault(sites, broken)
    # HAProxy has noticed it, and refuses calls at once.
    wait_for(lambda: not front.is_up(f"{broken}.{SHARED}"), "the cell is down")
    status, body, headers = front.get("/login", Host=f"{broken}.{SHARED}")
    assert (status, headers["Retry-After"]) == (503, "1")
    problem = Unavailable("the cell does not respond", hint="Retry later.")
    assert json.loads(body) == problem.document()
    assert front.get("/login", Host=f"{other}.{SHARED}")[0] == 200
    traffic[other].wait_for_more(500)
    assert traffic[other].refused == before
    pause = traffic[other].longest_pause(since)

    sites.restart(broken)
    traffic[broken].wait_for_more()
    assert traffic[other].refused == before
    refused = sum(traffic[broken].refused.values())
    assert refused > 0
    record_property("seconds without writes in the other cell", round(pause, 2))
    record_property("calls repeated in the broken cell", refused)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_move__to_the_other_cell_under_load__clients_continue_at_the_same_address(
    sites: Sites, record_property: Record
) -> None:
    source, target = CELLS
    assert sites.front
    named = ("--workspace", "moving", "--role", "admin", "--name", "agent")
    token = sites.manage(source, "create_token", *named).split()[-1]
    moving = Traffic(sites.front.port, token)
    try:
        moving.wait_for_more()
        sites.manage(target, "move_workspace", "moving", "--expect")
        url = url_of(sites.sites[target].cluster)
        since = time.monotonic()
        sites.manage(source, "move_workspace", "moving", MOVE_DATABASE_URL=url)
        for cell in CELLS:
            sites.manage(cell, "cells", "--output", str(sites.maps))
        sites.front.reload()
        moving.wait_for_more()
        record_property("seconds without writes", round(moving.longest_pause(since), 1))
        assert call_api(sites.sites[target].running.port, token, "GET", "/me")[0] == 200
    finally:
        moving.stop()
    assert set(moving.refused) <= {503}
    check_history(moving, record_property)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_history__of_both_cells_after_the_faults__is_complete(
    traffic: dict[str, Traffic], record_property: Record
) -> None:
    for each in traffic.values():
        check_history(each, record_property)
