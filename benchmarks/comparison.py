"""Compares Commonhold with other stores of agents' state, and with baselines, in one run.

    python -m benchmarks.comparison [--seconds 2] [--rounds 3] [--peer PYTHON] [--only TEXT]

Servers are called over HTTP by benchmarks/load.py, frameworks in a separate process
(benchmarks/peers/frameworks.py). Each round runs every cell once, so that other load on the machine
affects all alike. The tables show medians, and Commonhold's rate divided by the other one.
`--peer` names a Python with benchmarks/peers/requirements.txt installed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import load, own_server, peer_servers
from benchmarks.database_floors import Database, Pgbench, run_redis
from benchmarks.own_server import Api
from benchmarks.tables import (
    NOTHING,
    Measurement,
    compute_ratio,
    find_medians,
    format_rate,
    format_ratio,
    format_table,
    summarize,
)
from project.env import DEFAULT_WEB_WORKERS
from project.postgres import binaries
from project.postgres.server import Server

CONNECTIONS = (1, 8, 32)
ROWS = (
    own_server.READ, own_server.WRITE, own_server.CAS, own_server.PATCH, own_server.BATCH_READ,
    own_server.BATCH_WRITE, own_server.STEP, own_server.LONG_STEP,
)  # fmt: skip
OURS = "Commonhold"
FRAMEWORKS = Path(__file__).parent / "peers" / "frameworks.py"
WORKERS, THREADS = DEFAULT_WEB_WORKERS, 4
# Peers that cannot be measured, and why.
NOT_INSTALLED = {
    "Letta server 0.16.8, its last one": "does not start with the versions of mcp, fastmcp and "
    "pydantic that its requirements, which have no upper limits, bring today"
}

# (row, connections, seconds)
Measure = Callable[[str, int, float], Measurement]


@dataclass
class System:
    """A measured system, and its rounds by row and connections."""

    name: str
    rows: list[str]
    measure: Measure
    rounds: dict[tuple[str, int], list[Measurement]] = field(default_factory=dict)

    def run(self, row: str, connections: int, seconds: float) -> None:
        found = self.measure(row, connections, seconds)
        self.rounds.setdefault((row, connections), []).append(found)

    def median(self, row: str, connections: int) -> Measurement | None:
        found = self.rounds.get((row, connections))
        return find_medians(found) if found else None


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=2)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--peer", default="", metavar="PYTHON")
    options.add_argument("--only", default="", metavar="TEXT", help="systems with this in the name")
    arguments = options.parse_args()
    peer = str(Path(arguments.peer).absolute()) if arguments.peer else ""
    with ExitStack() as stack:
        missing = dict(NOT_INSTALLED)
        ours = stack.enter_context(own_server.run_commonhold())
        api, database = ours.api, Database(str(Server(ours.data / "postgres").socket_folder))
        systems = [over_http(OURS, api, own_server.find_works(api))]
        for start in (start_floors, start_langgraph, start_frameworks):
            systems += start(stack, database, api, peer, missing)
        systems = [s for s in systems if arguments.only in s.name or s.name == OURS]
        run_rounds(systems, arguments.rounds, arguments.seconds, missing)
        print(describe_run(database, arguments.rounds, arguments.seconds))
    print(report(systems))
    print("\n## Not measured\n")
    for name, reason in missing.items():
        print(f"- {name}: {reason}")


def run_rounds(systems: list[System], rounds: int, seconds: float, missing: dict[str, str]) -> None:
    for number in range(rounds):
        for row in ROWS:
            for connections in CONNECTIONS:
                for system in systems:
                    if row in system.rows:
                        try:
                            system.run(row, connections, seconds)
                        except Exception as error:
                            if system is systems[0]:
                                raise
                            system.rows.remove(row)
                            missing[f"{system.name}, {row}"] = str(error) or repr(error)
        print(f"round {number + 1} of {rounds}", file=sys.stderr, flush=True)


# Systems -------------------------------------------------------------------------------------


def over_http(name: str, api: Api, works: list[load.Work]) -> System:
    by_row = {work.row: work for work in works}

    def measure(row: str, connections: int, seconds: float) -> Measurement:
        return load.measure(api.port, by_row[row], connections, seconds)

    return System(name, list(by_row), measure)


def start_floors(
    stack: ExitStack, database: Database, api: Api, peer: str, missing: dict[str, str]
) -> Iterator[System]:
    path = "/api/v1/bench-empty"
    works = peer_servers.find_empty_works(api, path, writes=False)
    yield over_http("floor: empty view of Commonhold, with a token", api, works)
    view = stack.enter_context(peer_servers.run_empty_view(WORKERS, THREADS))
    works = peer_servers.find_empty_works(view, "/empty", writes=True)
    yield over_http("floor: empty DRF view, granian", view, works)
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    pgbench = Pgbench(binaries.find(), database, folder)
    yield System("floor: pgbench, equivalent statements", list(pgbench.rows), pgbench.measure)
    for flush, name in ((True, "Redis, each write flushed"), (False, "Redis, in memory")):
        try:
            redis = stack.enter_context(run_redis(flush=flush))
        except FileNotFoundError as error:
            missing[name] = str(error)
        else:
            yield System(name, list(redis.rows), redis.measure)


def start_langgraph(
    stack: ExitStack, database: Database, api: Api, peer: str, missing: dict[str, str]
) -> Iterator[System]:
    if not peer:
        missing["LangGraph dev server, Aegra"] = "no environment with them (--peer)"
        return
    starts = {
        "LangGraph dev server, in memory": partial(peer_servers.run_langgraph, peer),
        "Aegra server, PostgreSQL": partial(peer_servers.run_aegra, peer, database),
    }
    for name, start in starts.items():
        try:
            server = stack.enter_context(start())
        except RuntimeError as error:
            missing[name] = str(error).strip().splitlines()[-1]
        else:
            yield over_http(name, server, peer_servers.find_langgraph_works(server))


def start_frameworks(
    stack: ExitStack, database: Database, api: Api, peer: str, missing: dict[str, str]
) -> Iterator[System]:
    if not peer:
        missing["frameworks in process"] = "no environment with them (--peer)"
        return
    database.create("frameworks")
    mastra = Path(peer).parent.parent / "mastra" / "frameworks.mjs"
    where = [database.host, database.user, "frameworks"]
    commands = {
        "Python": [peer, str(FRAMEWORKS), *where],
        "Mastra": [shutil.which("node") or "node", str(mastra), *where],
    }
    for title, command in commands.items():
        try:
            worker = stack.enter_context(run_frameworks(command))
        except (OSError, ValueError):
            missing[f"frameworks of {title}"] = f"{command[1]} does not start"
            continue
        for name, found in worker.peers.items():
            if "missing" in found:
                missing[name] = found["missing"]
            else:
                measure = worker.measure(name)
                yield System(f"{name} {found['version']}, in process", found["rows"], measure)


class Frameworks:
    """The process that calls frameworks: one request per line of input, one result per line of
    output."""

    def __init__(self, child: subprocess.Popen[str]) -> None:
        assert child.stdin
        assert child.stdout
        self._input, self._output = child.stdin, child.stdout
        self.peers: dict[str, Any] = json.loads(self._output.readline())

    def measure(self, peer: str) -> Measure:
        def measure(row: str, connections: int, seconds: float) -> Measurement:
            order = {"peer": peer, "row": row, "connections": connections, "seconds": seconds}
            self._input.write(json.dumps(order) + "\n")
            self._input.flush()
            found = json.loads(self._output.readline())
            if "missing" in found:
                raise RuntimeError(found["missing"])
            return summarize(found["latencies"], found["seconds"])

        return measure


@contextmanager
def run_frameworks(command: list[str]) -> Iterator[Frameworks]:
    """ValueError or OSError if it does not start."""
    child = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        yield Frameworks(child)
    finally:
        if child.stdin:
            with suppress(OSError):
                child.stdin.close()
        child.wait(20)


# Report --------------------------------------------------------------------------------------


def report(systems: list[System]) -> str:
    """A table per row: rates, and Commonhold's rate divided by the other's."""
    parts = []
    head = ["", *(f"{count} conn." for count in CONNECTIONS), "p50 ms at 8", "p99 ms at 8"]
    head += [f"ours / its, {count}" for count in CONNECTIONS]
    for row in ROWS:
        lines = [line for system in systems if (line := show_system(system, systems[0], row))]
        if not lines:
            continue
        parts.append(f"\n### {row[0].upper()}{row[1:]}\n\n{format_table(head, lines)}")
    return "\n".join(parts)


def show_system(system: System, ours: System, row: str) -> list[str] | None:
    """Return a line of the table, or None if the system does not support the operation."""
    if (row, CONNECTIONS[0]) not in system.rounds:
        return None
    rates, ratios = [], []
    for connections in CONNECTIONS:
        found, own = system.median(row, connections), ours.median(row, connections)
        rates.append(format_rate(found.per_second) if found else NOTHING)
        ratio = compute_ratio(own.per_second, found.per_second) if found and own else None
        ratios.append(NOTHING if system is ours else format_ratio(ratio))
    at_eight = system.median(row, 8)
    times = [f"{at_eight.p50_ms:.2f}", f"{at_eight.p99_ms:.1f}"] if at_eight else [NOTHING] * 2
    return [system.name, *rates, *times, *ratios]


def describe_run(database: Database, rounds: int, seconds: float) -> str:
    """The date, the machine and the method, in one line."""
    models = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    return (
        f"{datetime.now(UTC):%Y-%m-%d}; {os.cpu_count()} cores of {models[0] if models else platform.processor()},"
        f" shared by load generator, servers and PostgreSQL {database.version()};"
        f" Python {platform.python_version()};"
        f" medians of {rounds} rounds of {seconds:g} s; calls per second"
    )


if __name__ == "__main__":
    main()
