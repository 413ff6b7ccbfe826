"""The delay from a write to the subscribers of the change feed, and the cost of long polls.

    python -m benchmarks.feed [--subscribers 500] [--seconds 5] [--rounds 3]

Subscribers have a process of their own. Delays are measured with the clock of the machine, from the
start of a write's request, and from its response, to the arrival of the event. All processes share
the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import multiprocessing
import re
import resource
import statistics
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import psycopg
import uvloop

from benchmarks.load import WARM_UP_SECONDS, measure, render_request
from benchmarks.own_server import (
    READ,
    WRITE,
    Api,
    Commonhold,
    find_entry_works,
    find_works,
    run_commonhold,
)
from benchmarks.tables import NOTHING, format_table, pick_percentile
from project.postgres.server import Server

# A process serves at most 100 streams of one token.
_STREAMS_PER_TOKEN = 50
# Seconds for which events may still arrive after the last write.
_LAST_EVENTS = 1.0

_KEY = re.compile(rb'"key":"w(\d+)"')


class Case(NamedTuple):
    """A row of the table of delays."""

    name: str
    subscribers: int
    # Writes per second that the subscribers receive.
    rate: int
    # Connections that write other entries, without a pause.
    writers: int = 0


class Delays(NamedTuple):
    """One round of a case: delays in ms, from the start of the request and from its response."""

    from_request: list[float]
    from_response: list[float]
    missing: int
    feed_connections: int
    web_connections: int


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--subscribers", type=int, default=500)
    options.add_argument("--seconds", type=float, default=5)
    options.add_argument("--rounds", type=int, default=3)
    arguments = options.parse_args()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    few, many = max(1, arguments.subscribers // 10), arguments.subscribers
    cases = [
        Case(f"{few} subscribers, 10 writes/s", few, 10),
        Case(f"{many} subscribers, 10 writes/s", many, 10),
        Case(f"{many} subscribers, 30 writes/s", many, 30),
        Case(f"{many} subscribers, 10 writes/s, 8 connections write other entries", many, 10, 8),
    ]
    with run_commonhold() as running:
        tokens = create_tokens(running.api, 1 + many // _STREAMS_PER_TOKEN)
        find_works(running.api)
        rounds: dict[Case, list[Delays]] = {case: [] for case in cases}
        for _ in range(arguments.rounds):
            for case in cases:
                rounds[case].append(measure_delays(running, tokens, case, arguments.seconds))
        print(report_delays(rounds))
        rows = [asyncio.run(poll(running.api, tokens, n, arguments.seconds)) for n in (0, many)]
        head = [
            "long polls",
            "reads",
            "p50 ms of reads",
            "p99 ms of reads",
            "all responded after ms",
        ]
        print(f"\n{format_table(head, rows)}")


def create_tokens(api: Api, count: int) -> list[str]:
    created = [
        api.call("POST", "/api/v1/tokens", {"name": f"bench {n}", "role": "viewer"})
        for n in range(count)
    ]
    return [each["secret"] for each in created]


def render_get(path: str, tokens: Sequence[str], number: int) -> bytes:
    token = tokens[number % len(tokens)]
    return render_request("GET", f"/api/v1{path}", {"Authorization": f"Bearer {token}"})


# Streams -------------------------------------------------------------------------------------


def report_delays(rounds: dict[Case, list[Delays]]) -> str:
    head = [
        "", "p50 ms", "p99 ms", "p50 ms from response", "p99 ms from response", "events", "missing",
        "connections of the feed", "other connections of web",
    ]  # fmt: skip
    rows = []
    for case, found in rounds.items():
        cells = [
            f"{statistics.median(pick_percentile(delays, share) for delays in each):.1f}"
            for each in ([d.from_request for d in found], [d.from_response for d in found])
            for share in (0.5, 0.99)
        ]
        counts = [
            sum(len(each.from_request) for each in found),
            sum(each.missing for each in found),
            max(each.feed_connections for each in found),
            max(each.web_connections for each in found),
        ]
        rows.append([case.name, *cells, *(f"{count:,}" for count in counts)])
    return format_table(head, rows)


def measure_delays(running: Commonhold, tokens: list[str], case: Case, seconds: float) -> Delays:
    ours, theirs = multiprocessing.Pipe()
    requests = [
        render_get("/changes/stream?namespace=bench&prefix=w", tokens, number)
        for number in range(case.subscribers)
    ]
    child = multiprocessing.Process(target=subscribe, args=(running.api.port, requests, theirs))
    child.start()
    ours.recv()
    load = threading.Thread(target=write_others, args=(running.api, case.writers, seconds))
    load.start()
    time.sleep(WARM_UP_SECONDS)
    written = write(running.api, case.rate, seconds)
    feed, web = count_connections(running)
    load.join()
    time.sleep(_LAST_EVENTS)
    ours.send("stop")
    arrived: list[tuple[int, float]] = ours.recv()
    child.join()
    from_request, from_response = (
        sorted(1000 * (at - written[number][place]) for number, at in arrived) for place in (0, 1)
    )
    missing = len(written) * case.subscribers - len(arrived)
    return Delays(from_request, from_response, missing, feed, web)


def write(api: Api, rate: int, seconds: float) -> list[tuple[float, float]]:
    """Write an entry at regular intervals. Returns the start of each request and the time of its
    response."""
    client = http.client.HTTPConnection("127.0.0.1", api.port, timeout=60)
    headers = {"Content-Type": "application/json"} | api.headers
    body = json.dumps({"value": {"n": 1}})
    times = []
    first = time.monotonic()
    for number in range(int(rate * seconds)):
        time.sleep(max(0.0, first + number / rate - time.monotonic()))
        start = time.monotonic()
        client.request("PUT", f"/api/v1/state/bench/w{number}", body, headers)
        response = client.getresponse()
        times.append((start, time.monotonic()))
        found = response.read()
        assert response.status < 300, found
    client.close()
    return times


def write_others(api: Api, connections: int, seconds: float) -> None:
    if connections:
        (work,) = (work for work in find_entry_works(api, "") if work.row == WRITE)
        measure(api.port, work, connections, seconds)


def count_connections(running: Commonhold) -> tuple[int, int]:
    """Return the database connections of the feed's readers, and all others of the web
    processes."""
    folder = Server(running.data / "postgres").socket_folder
    statement = """SELECT count(*) FILTER (WHERE application_name = 'commonhold feed'),
        count(*) FILTER (WHERE application_name = 'web') FROM pg_stat_activity"""
    with psycopg.connect(f"host={folder} user=postgres dbname=postgres") as connection:
        found: tuple[int, int] | None = connection.execute(statement).fetchone()
    assert found
    return found


@dataclass
class Subscriber(asyncio.Protocol):
    """Stores what arrives and when; it is parsed after the round."""

    request: bytes
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    parts: list[tuple[float, bytes]] = field(default_factory=list)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.write(self.request)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        self.parts.append((time.monotonic(), data))
        self.ready.set()

    def find_events(self) -> list[tuple[int, float]]:
        """Return the number of the write and the time of arrival of each event."""
        found, rest = [], b""
        for at, data in self.parts:
            whole, end, rest = (rest + data).rpartition(b"\n\n")
            found += [(int(number), at) for number in _KEY.findall(whole + end)]
        return found


def subscribe(port: int, requests: list[bytes], pipe: Connection) -> None:
    """The main function of the subscribers' process. Runs until the other end of the pipe sends
    something."""
    pipe.send(uvloop.run(_subscribe(port, requests, pipe)))


async def _subscribe(port: int, requests: list[bytes], pipe: Connection) -> list[tuple[int, float]]:
    loop = asyncio.get_running_loop()
    subscribers = [Subscriber(request) for request in requests]
    links: list[Any] = [
        await loop.create_connection(lambda s=s: s, "127.0.0.1", port)  # type: ignore[misc]
        for s in subscribers
    ]
    await asyncio.gather(*(subscriber.ready.wait() for subscriber in subscribers))
    for subscriber in subscribers:
        status = subscriber.parts[0][1].split(b"\r\n", 1)[0]
        assert b" 200 " in status, subscriber.parts[0][1]
    pipe.send("ready")
    await loop.run_in_executor(None, pipe.recv)
    for transport, _ in links:
        transport.close()
    return [event for subscriber in subscribers for event in subscriber.find_events()]


# Long polls ----------------------------------------------------------------------------------


async def poll(api: Api, tokens: list[str], count: int, seconds: float) -> list[str]:
    """Return a row: reads beside `count` long polls of one entry, and the time until a write has
    ended all of them."""
    links = [await asyncio.open_connection("127.0.0.1", api.port) for _ in range(count)]
    for number, (_, writer) in enumerate(links):
        writer.write(render_get("/state/bench/polled?wait=30", tokens, number))
    await asyncio.sleep(2)  # they wait for a change
    work = next(work for work in find_entry_works(api, "") if work.row == READ)
    found = await asyncio.to_thread(measure, api.port, work, 1, seconds)
    start = time.monotonic()
    await asyncio.to_thread(api.call, "PUT", "/api/v1/state/bench/polled", {"value": {"n": start}})
    for reader, writer in links:
        status = await reader.readline()
        assert b" 200 " in status, status
        writer.close()
    ended = f"{1000 * (time.monotonic() - start):.0f}" if count else NOTHING
    reads = f"{found.per_second * seconds:,.0f}"
    return [f"{count}", reads, f"{found.p50_ms:.2f}", f"{found.p99_ms:.2f}", ended]


if __name__ == "__main__":
    main()
