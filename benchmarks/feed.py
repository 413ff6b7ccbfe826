"""From commit to subscriber, and what parked polls cost everybody else.

    python -m benchmarks.feed [--subscribers 500] [--rate 10] [--seconds 10]

Delays are measured from the statement that wrote the change (its `at`, by the clock of the same
machine) to the bytes in the subscriber's hands, so they hold the commit itself. Server, PostgreSQL,
writer and all subscribers share the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from benchmarks.hot_paths import wait_for

_AT = re.compile(rb'"at":"([^"]+)"')


@dataclass
class Server:
    port: int
    tokens: list[str]

    @property
    def token(self) -> str:
        return self.tokens[0]

    def call(self, method: str, path: str, body: object = None) -> bytes:
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        sent = json.dumps(body) if body is not None else None
        client.request(method, f"/api/v1{path}", sent, headers)
        answer = client.getresponse()
        found = answer.read()
        client.close()
        if answer.status >= 300:
            sys.exit(f"{method} {path}: {answer.status} {found!r}")
        return found

    def request(self, path: str, number: int) -> bytes:
        token = self.tokens[number % len(self.tokens)]
        return (
            f"GET /api/v1{path} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            f"Authorization: Bearer {token}\r\n\r\n"
        ).encode()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--subscribers", type=int, default=500)
    options.add_argument("--rate", type=int, default=10, help="writes per second")
    options.add_argument("--seconds", type=float, default=10)
    asked = options.parse_args()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with server(tokens=1 + asked.subscribers // 50) as running:
        print(f"\n{'streams':>9}{'writes/s':>10}{'events':>9}{'lost':>6}", end="")
        print(f"{'p50 ms':>9}{'p99 ms':>9}{'max ms':>9}{'feed conns':>12}{'other conns':>13}")
        few = max(1, asked.subscribers // 10)
        for count, rate in ((few, asked.rate), (asked.subscribers, asked.rate),
                            (asked.subscribers, asked.rate * 3)):  # fmt: skip
            asyncio.run(streams(running, count, rate, asked.seconds))
        print(f"\n{'parked polls':>14}{'reads':>8}{'p50 ms':>9}{'p99 ms':>9}{'woken in ms':>13}")
        for count in (0, asked.subscribers):
            asyncio.run(polls(running, count, asked.seconds / 2))


# Streams -------------------------------------------------------------------------------------


@dataclass
class Subscriber(asyncio.Protocol):
    request: bytes
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    delays: list[float] = field(default_factory=list)
    rest: bytes = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.write(self.request)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        now = time.time()
        whole, end, self.rest = (self.rest + data).rpartition(b"\n\n")
        for written in _AT.findall(whole + end):
            self.delays.append(now - datetime.fromisoformat(written.decode()).timestamp())
        self.ready.set()


async def streams(running: Server, count: int, rate: int, seconds: float) -> None:
    loop = asyncio.get_running_loop()
    path = "/changes/stream?kind=entry.put"
    subscribers = [Subscriber(running.request(path, number)) for number in range(count)]
    links = [
        await loop.create_connection(lambda s=s: s, "127.0.0.1", running.port)  # type: ignore[misc]
        for s in subscribers
    ]
    await asyncio.gather(*(s.ready.wait() for s in subscribers))
    written = await asyncio.to_thread(write, running, rate, seconds)
    await asyncio.sleep(1)
    connections = await asyncio.to_thread(count_connections)
    for transport, _ in links:
        transport.close()
    delays = sorted(1000 * delay for s in subscribers for delay in s.delays)
    lost = count * written - len(delays)
    print(f"{count:9}{rate:10}{len(delays):9}{lost:6}{_at(delays, 0.5):9.1f}", end="")
    print(f"{_at(delays, 0.99):9.1f}{delays[-1]:9.1f}{connections[0]:12}{connections[1]:13}")


def _at(values: list[float], share: float) -> float:
    return values[min(int(len(values) * share), len(values) - 1)]


def write(running: Server, rate: int, seconds: float) -> int:
    begun = time.monotonic()
    for number in range(int(rate * seconds)):
        time.sleep(max(0.0, begun + number / rate - time.monotonic()))
        running.call("PUT", f"/state/bench/k{number % 50}", {"value": number})
    return int(rate * seconds)


def count_connections() -> tuple[int, int]:
    """Connections of the feed's readers, and all others of the server's processes."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FILTER (WHERE application_name = 'commonhold feed'),"
            " count(*) FILTER (WHERE application_name = 'web')"
            " FROM pg_stat_activity WHERE datname = current_database()"
        )
        feed, others = cursor.fetchone()
    connection.close()
    return feed, others


# Polls ---------------------------------------------------------------------------------------


async def polls(running: Server, count: int, seconds: float) -> None:
    links = [await asyncio.open_connection("127.0.0.1", running.port) for _ in range(count)]
    for number, (_, writer) in enumerate(links):
        writer.write(running.request("/state/bench/polled?wait=30", number))
    await asyncio.sleep(2)  # they park
    delays = await asyncio.to_thread(read, running, seconds)
    begun = time.monotonic()
    await asyncio.to_thread(running.call, "PUT", "/state/bench/polled", {"value": time.time()})
    for reader, writer in links:
        status = await reader.readline()
        assert b" 200 " in status, status
        writer.close()
    woken = f"{1000 * (time.monotonic() - begun):13.1f}" if count else f"{'-':>13}"
    print(f"{count:14}{len(delays):8}{_at(delays, 0.5):9.2f}{_at(delays, 0.99):9.2f}{woken}")


def read(running: Server, seconds: float) -> list[float]:
    client = http.client.HTTPConnection("127.0.0.1", running.port, timeout=60)
    headers = {"Authorization": f"Bearer {running.token}"}
    delays = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        begun = time.monotonic()
        client.request("GET", "/api/v1/state/bench/k1", headers=headers)
        client.getresponse().read()
        delays.append(1000 * (time.monotonic() - begun))
    client.close()
    return sorted(delays)


# Server --------------------------------------------------------------------------------------


@contextmanager
def server(tokens: int) -> Iterator[Server]:
    """Two web workers on an embedded PostgreSQL, all of their own."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="ch") as folder:
        os.environ |= {
            "DJANGO_SETTINGS_MODULE": "project.settings",
            "COMMONHOLD_DATA_DIR": folder,
            "PORT": str(port),
            "LOG_LEVEL": "ERROR",
        }
        running = Server(port, prepare(tokens))
        child = subprocess.Popen(
            [sys.executable, "-m", "project.processes", "web"], cwd=Path(__file__).parent.parent
        )
        try:
            wait_for(f"http://127.0.0.1:{port}/api/v1/me", running.token)
            yield running
        finally:
            child.send_signal(signal.SIGTERM)
            child.wait(20)


def prepare(tokens: int) -> list[str]:
    import django

    django.setup()
    from django.core.management import call_command
    from django.db import connections

    from state_admin.domain.access import Role
    from state_admin.services.actors import system_actor
    from state_admin.services.tokens import create_token
    from state_admin.services.workspaces import ensure_workspace
    from tests import builders

    call_command("migrate", verbosity=0)
    workspace, _ = ensure_workspace("bench")
    actor = system_actor(workspace.pk, "bench")
    made = [create_token(actor=actor, name="bench", role=Role.ADMIN)[1] for _ in range(tokens)]
    builders.make_namespace(actor, "bench")
    connections.close_all()
    return made


if __name__ == "__main__":
    main()
