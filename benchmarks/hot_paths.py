"""Compares read, write, batch and commit with the empty view of the same server, in one run.

    python -m benchmarks.hot_paths [--seconds 3] [--rounds 3] [--connections 8]

Requires wrk. Each round runs every row once, so that other load on the machine affects all alike.
The table shows medians, and the ratio to the empty authenticated view in the same rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

WRK = shutil.which("wrk") or ""

_REQUESTS = """
local methods, paths, bodies = %s, %s, %s
local turn = 0
wrk.headers["Authorization"] = "Bearer %s"
wrk.headers["Content-Type"] = "application/json"
request = function()
  turn = turn %% #paths + 1
  return wrk.format(methods[turn], paths[turn], nil, bodies[turn])
end
local failed = 0
response = function(status) if status >= 300 then failed = failed + 1 end end
done = function(summary) io.write("status_errors " .. summary.errors.status .. "\\n") end
"""


@dataclass(frozen=True)
class Row:
    name: str
    calls: list[tuple[str, str, str]]  # method, path, body
    items: int = 1  # entries per call


@dataclass(frozen=True)
class Measure:
    per_second: float
    p50_ms: float
    p99_ms: float


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=int, default=3)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--connections", type=int, default=8)
    arguments = options.parse_args()
    if not WRK:
        sys.exit("benchmarks need wrk: apt-get install wrk")
    with server() as (url, token, rows):
        found: dict[str, list[Measure]] = {row.name: [] for row in rows}
        for _ in range(arguments.rounds):
            for row in rows:
                found[row.name].append(
                    measure(url, token, row, arguments.seconds, arguments.connections)
                )
    report(rows, found, arguments.connections)


def report(rows: list[Row], found: dict[str, list[Measure]], connections: int) -> None:
    base = statistics.median(m.per_second for m in found[rows[0].name])
    print(f"\n{connections} connections, medians of {len(found[rows[0].name])} rounds\n")
    print(f"{'':34}{'calls/s':>9}{'x empty':>9}{'entries/s':>11}{'p50 ms':>8}{'p99 ms':>8}")
    for row in rows:
        rate = statistics.median(m.per_second for m in found[row.name])
        p50 = statistics.median(m.p50_ms for m in found[row.name])
        p99 = statistics.median(m.p99_ms for m in found[row.name])
        entries = f"{rate * row.items:11,.0f}"
        print(f"{row.name:34}{rate:9,.0f}{rate / base:9.2f}{entries}{p50:8.2f}{p99:8.2f}")


def measure(url: str, token: str, row: Row, seconds: int, connections: int) -> Measure:
    def lua(values: list[str]) -> str:
        return "{" + ", ".join(f"[==[{value}]==]" for value in values) + "}"

    columns = zip(*row.calls, strict=True)
    script = _REQUESTS % (*(lua(list(column)) for column in columns), token)
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as file:
        file.write(script)
        file.flush()
        output = subprocess.run(
            [WRK, "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", "-s", file.name, url],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    failed = re.search(r"status_errors (\d+)", output)
    if failed is None or int(failed.group(1)):
        sys.exit(f"{row.name}: the server refused requests\n{output}")
    rate = re.search(r"Requests/sec:\s+([\d.]+)", output)
    assert rate is not None, output
    return Measure(float(rate.group(1)), _latency(output, "50%"), _latency(output, "99%"))


def _latency(output: str, percentile: str) -> float:
    found = re.search(rf"{percentile}\s+([\d.]+)(us|ms|s)", output)
    assert found is not None, output
    return float(found.group(1)) * {"us": 0.001, "ms": 1.0, "s": 1000.0}[found.group(2)]


@contextmanager
def server() -> Iterator[tuple[str, str, list[Row]]]:
    """Run a server with its own embedded PostgreSQL, and the data that the rows need."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {
            "DJANGO_SETTINGS_MODULE": "benchmarks.settings",
            "COMMONHOLD_DATA_DIR": folder,
            "PORT": str(port),
            "LOG_LEVEL": "ERROR",
        }
        token, rows = prepare()
        child = subprocess.Popen(
            [
                sys.executable,
                "-c",
                "import django; django.setup(); from project.server import serve; serve()",
            ],
            cwd=Path(__file__).parent.parent,
        )
        try:
            url = f"http://127.0.0.1:{port}"
            wait_for(f"{url}/api/v1/bench-empty", token)
            yield url, token, rows
        finally:
            child.send_signal(signal.SIGTERM)
            child.wait(20)
            from django.db import connections

            connections.close_all()


def wait_for(url: str, token: str) -> None:
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
    deadline = time.monotonic() + 30
    while True:
        try:
            with urllib.request.urlopen(request, timeout=5):
                return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def prepare() -> tuple[str, list[Row]]:
    """Create the namespaces, threads and runs. Returns a token and the rows of the table."""
    import django

    django.setup()
    from django.core.management import call_command

    from state_admin.domain.access import Role
    from state_admin.services.actors import system_actor
    from state_admin.services.tokens import create_token
    from state_admin.services.workspaces import ensure_workspace
    from tests import builders

    call_command("migrate", verbosity=0)
    workspace, _ = ensure_workspace("bench")
    actor = system_actor(workspace.pk, "bench")
    _, token = create_token(actor=actor, name="bench", role=Role.ADMIN)
    builders.make_namespace(actor, "bench", schema={"type": "object"}, default={})
    value = {
        "goal": "Ship the feature",
        "steps": [{"id": n, "title": f"step {n}", "done": n % 3 == 0} for n in range(20)],
        "notes": "x" * 150,
    }
    for number in range(1600):
        builders.put(actor, "bench", f"k{number}", value)
    body = json.dumps({"value": value})

    def batch(op: str, first: int, **fields: object) -> tuple[str, str, str]:
        """Each of 16 batches has its own keys, so that waiting for locks is not measured."""
        keys = [f"k{number}" for number in range(first, first + 100)]
        calls = [{"op": op, "namespace": "bench", "key": key, **fields} for key in keys]
        return "POST", "/api/v1/state/batch", json.dumps({"operations": calls})

    for name in ("a", "b", "c"):
        builders.make_state_key(actor, name)
    for size in ("empty", "heavy"):
        for number in range(8):
            thread = f"{size}-{number}"
            builders.make_thread(actor, thread)
            builders.make_run(actor, thread, f"run-{thread}", lease_seconds=86_400)
            if size == "heavy":
                fill(actor, thread)
    step = {
        "updates": [{"key": name, "update": {"n": 1, "text": "y" * 100}} for name in "abc"],
        "messages": [
            {"role": "user", "content": "What is next? " * 5},
            {"role": "assistant", "content": "The next step is this one. " * 10},
        ],
    }
    base = "/api/v1"
    rows = [
        Row("empty authenticated view", [("GET", f"{base}/bench-empty", "")]),
        Row("read one entry, 1 KB", [("GET", f"{base}/state/bench/k{n}", "") for n in range(200)]),
        Row(
            "write one entry, 1 KB", [("PUT", f"{base}/state/bench/k{n}", body) for n in range(200)]
        ),
        Row(
            "batch of 100 reads",
            [batch("get", first) for first in range(0, 1600, 100)],
            items=100,
        ),
        Row(
            "batch of 100 writes",
            [batch("put", first, value=value) for first in range(0, 1600, 100)],
            items=100,
        ),
    ]
    for size, words in (("empty", "empty thread"), ("heavy", "1,000 messages, 50 KB")):
        calls = [
            ("POST", f"{base}/runs/run-{size}-{n}/commits", json.dumps(step)) for n in range(8)
        ]
        rows.append(Row(f"commit, {words}", calls))
    return token, rows


def fill(actor: object, thread: str) -> None:
    """Store 1,000 messages and 50 KB of state in ten keys."""
    from tests import builders

    log = builders.conversation(250, rounds=1, words=40)[:1000]
    builders.append(actor, thread, *log)  # type: ignore[arg-type]
    for number in range(10):
        builders.make_state_key(actor, f"held{number}")  # type: ignore[arg-type]
    updates = {f"held{number}": {"text": "z" * 5000} for number in range(10)}
    builders.commit(actor, f"run-{thread}", updates)  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
