"""Starts Commonhold like `make run`, in a temporary folder, and defines its operations."""

from __future__ import annotations

import http.client
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.load import Work, render_request

ROOT = Path(__file__).parent.parent
KEYS = 1024
# The maximum number of connections of one measurement. Each has its own entries and threads, so
# that waiting for row locks is not measured.
MOST_CONNECTIONS = 32

READ, WRITE, CAS = "read an entry", "write an entry", "write with If-Match"
PATCH = "PATCH an entry"
BATCH_READ, BATCH_WRITE = "batch of 100 reads", "batch of 100 writes"
STEP, LONG_STEP = "commit of a step", "commit, 1,000 messages and 50 KB before"

_CHANCE = random.Random(7)
_TURN = b'"n": 0000000'


def make_text(length: int) -> str:
    """Return text that compresses badly."""
    return _CHANCE.randbytes(length // 2 + 1).hex()[:length]


def make_value(size: int = 1024) -> dict[str, Any]:
    """Return a JSON object of about `size` bytes."""
    return {"goal": "Ship the feature", "n": 0, "text": make_text(max(0, size - 50))}


def make_step(turn: int = 0) -> dict[str, Any]:
    """Return a typical step of an agent: 3 updates of state keys, 2 messages."""
    return {
        "updates": {name: {"n": turn, "text": make_text(100)} for name in "abc"},
        "messages": [
            {"role": "user", "content": make_text(70)},
            {"role": "assistant", "content": make_text(270)},
        ],
    }


def pick_key(connection: int, turn: int, keys: int = KEYS) -> int:
    """Return a key of the connection; each connection cycles through its own keys."""
    return connection + MOST_CONNECTIONS * (turn % (keys // MOST_CONNECTIONS))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass
class Api:
    """A JSON API on this machine: single calls, to prepare a measurement."""

    port: int
    headers: dict[str, str] = field(default_factory=dict)

    def call(self, method: str, path: str, body: object = None) -> Any:
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        sent = None if body is None else json.dumps(body)
        headers = self.headers | ({"Content-Type": "application/json"} if sent else {})
        client.request(method, path, sent, headers)
        answer = client.getresponse()
        found = answer.read()
        client.close()
        if answer.status >= 300:
            raise RuntimeError(f"{method} {path}: {answer.status} {found!r}")
        return json.loads(found) if found else None

    def wait(
        self, path: str, child: subprocess.Popen[bytes], seconds: float = 90, pause: float = 0.1
    ) -> None:
        deadline = time.monotonic() + seconds
        while True:
            try:
                self.call("GET", path)
            except (OSError, RuntimeError, http.client.HTTPException):
                if child.poll() is not None or time.monotonic() > deadline:
                    raise
                time.sleep(pause)
            else:
                return

    def render(self, method: str, path: str, body: object = None, **headers: str) -> bytes:
        named = {name.replace("_", "-"): text for name, text in headers.items()}
        if body is None:
            return render_request(method, path, self.headers | named)
        typed = {"Content-Type": "application/json"} | self.headers | named
        return render_request(method, path, typed, json.dumps(body).encode())


def vary(request: bytes) -> Callable[[int, int], bytes]:
    """Vary a number in the request's value from call to call, at constant length."""
    before, found, after = request.replace(b'"n": 0', _TURN, 1).partition(_TURN)
    assert found
    length = re.search(rb"Content-Length: (\d+)", before)
    assert length
    # JSON forbids leading zeros, so the number starts at a million.
    added = len(_TURN) - len(b'"n": 0')
    before = before.replace(length[0], b"Content-Length: %d" % (int(length[1]) + added))
    return lambda connection, turn: (
        before + b'"n": %d' % (1_000_000 + connection * 100_000 + turn % 100_000) + after
    )


class Commonhold(NamedTuple):
    """A running server."""

    # With an admin's token.
    api: Api
    data: Path
    # Of the supervisor.
    pid: int


@contextmanager
def run_commonhold(root: Path = ROOT, **env: str) -> Iterator[Commonhold]:
    """Run the server of this checkout, or of another one with its own `.venv`."""
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="ch") as name:
        folder = Path(name)
        child = start_commonhold(folder, port, root=root, **env)
        log = folder / "log"
        try:
            deadline = time.monotonic() + 90
            while not (token := re.search(r"API token +(ch_\S+)", log.read_text())):
                if child.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(log.read_text())
                time.sleep(0.1)
            api = Api(port, {"Authorization": f"Bearer {token[1]}"})
            yield Commonhold(api, folder / "data", child.pid)
        finally:
            stop(child)


def start_commonhold(
    folder: Path, port: int, command: str = "serve", *, root: Path = ROOT, **env: str
) -> subprocess.Popen[bytes]:
    """Start a server, or one of its processes, with its data and its log in the folder."""
    ours = {
        "DJANGO_SETTINGS_MODULE": "benchmarks.settings",
        "COMMONHOLD_DATA_DIR": str(folder / "data"),
        "PORT": str(port),
        "LOG_LEVEL": "ERROR",
        "PYTHONDONTWRITEBYTECODE": "",
    }
    with (folder / "log").open("wb") as output:
        return subprocess.Popen(
            [sys.executable if root == ROOT else root / ".venv/bin/python", "manage.py", command],
            cwd=root,
            env=os.environ | ours | env,
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
        )


def stop(child: subprocess.Popen[bytes]) -> None:
    child.send_signal(signal.SIGTERM)
    child.wait(60)


def find_works(api: Api) -> list[Work]:
    """Prepare the data. Returns Commonhold's operation for each row."""
    base = "/api/v1"
    create_namespace(api)
    for name in [*"abc", *(f"held{n}" for n in range(10))]:
        api.call("PUT", f"{base}/state-keys/{name}", {"scope": "thread"})
    for first in range(0, KEYS, 128):
        puts = [_operation("put", n, value=make_value()) for n in range(first, first + 128)]
        api.call("POST", f"{base}/state/batch", {"operations": puts})
    return [
        *find_entry_works(api, ""),
        _compare_and_set(api),
        _patch(api),
        _batch(api, BATCH_READ, "get"),
        _batch(api, BATCH_WRITE, "put", value=make_value()),
        _commit(api, STEP, long=False),
        _commit(api, LONG_STEP, long=True),
    ]


def create_namespace(api: Api) -> None:
    limits = {"max_value_bytes": 2 * 1024 * 1024, "schema": {"type": "object"}, "default": {}}
    api.call("PUT", "/api/v1/namespaces/bench", limits)


def find_entry_works(api: Api, prefix: str, size: int = 1024, keys: int = KEYS) -> list[Work]:
    """Return reads and writes of values of `size` bytes, in `keys` keys with the prefix."""
    paths = [f"/api/v1/state/bench/{prefix}k{n}" for n in range(keys)]
    reads = [api.render("GET", path) for path in paths]
    writes = [vary(api.render("PUT", path, {"value": make_value(size)})) for path in paths]
    return [
        Work(READ, lambda c, turn, _: reads[pick_key(c, turn, keys)]),
        Work(WRITE, lambda c, turn, _: writes[pick_key(c, turn, keys)](c, turn)),
    ]


def _operation(op: str, number: int, **fields: object) -> dict[str, object]:
    return {"op": op, "namespace": "bench", "key": f"k{number}", **fields}


def _compare_and_set(api: Api) -> Work:
    """Each connection writes one entry, conditional on the version of its last response."""
    body = {"value": make_value()}
    path = "/api/v1/state/bench/k{}"
    first = [vary(api.render("PUT", path.format(n), body)) for n in range(MOST_CONNECTIONS)]
    mark = "0" * 8
    others = [
        vary(api.render("PUT", path.format(n), body, If_Match=mark))
        for n in range(MOST_CONNECTIONS)
    ]

    def make_request(connection: int, turn: int, etag: bytes) -> bytes:
        if not etag:
            return first[connection](connection, turn)
        return others[connection](connection, turn).replace(mark.encode(), etag, 1)

    return Work(CAS, make_request)


def _patch(api: Api) -> Work:
    """A JSON Merge Patch that changes one member."""
    patches = [
        vary(
            api.render(
                "PATCH",
                f"/api/v1/state/bench/k{n}",
                {"n": 0},
                Content_Type="application/merge-patch+json",
            )
        )
        for n in range(KEYS)
    ]
    return Work(PATCH, lambda c, turn, _: patches[pick_key(c, turn)](c, turn))


def _batch(api: Api, row: str, op: str, **fields: object) -> Work:
    """100 entries per call. Connections above ten share entries."""
    calls = [
        api.render(
            "POST",
            "/api/v1/state/batch",
            {"operations": [_operation(op, n, **fields) for n in range(first, first + 100)]},
        )
        for first in range(0, KEYS - 100, 100)
    ]
    return Work(row, lambda connection, turn, _: calls[connection % len(calls)], items=100)


def _commit(api: Api, row: str, *, long: bool) -> Work:
    """Each connection has a thread and a run, new ones in each round."""
    step = make_step()
    updates = [{"key": name, "update": update} for name, update in step["updates"].items()]
    body = {"updates": updates, "messages": step["messages"]}
    calls: list[Callable[[int, int], bytes]] = []

    def prepare(connections: int) -> None:
        calls.clear()
        for _ in range(connections):
            thread = make_text(16)
            api.call("POST", "/api/v1/threads", {"id": thread})
            run = {"id": f"run-{thread}", "agent_id": "bench", "lease_seconds": 3600}
            api.call("POST", f"/api/v1/threads/{thread}/runs", run)
            path = f"/api/v1/runs/run-{thread}/commits"
            if long:
                messages = [{"role": "user", "content": make_text(270)} for _ in range(1000)]
                api.call("POST", f"/api/v1/threads/{thread}/messages", {"messages": messages})
                held = [{"key": f"held{n}", "update": {"text": make_text(5000)}} for n in range(10)]
                api.call("POST", path, {"updates": held})
            calls.append(vary(api.render("POST", path, body)))

    return Work(row, lambda c, turn, _: calls[c](c, turn), prepare=prepare)
