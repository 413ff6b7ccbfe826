"""The cost of reads and writes by size of the value, number of connections, and web workers.

    python -m benchmarks.growth [--seconds 2] [--rounds 3]

Two servers run side by side, with one web worker and with two. CPU time is that of the web
processes and of PostgreSQL, divided by the number of calls. Unlike rates, it hardly depends on
other load.
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.load import WARM_UP_SECONDS, Work, measure
from benchmarks.own_server import (
    Commonhold,
    create_namespace,
    find_entry_works,
    make_value,
    run_commonhold,
)
from benchmarks.tables import (
    Measurement,
    compute_ratio,
    find_medians,
    format_rate,
    format_ratio,
    format_table,
)
from tests.project.running import children

SIZES = {"0.1 KB": 100, "1 KB": 1_000, "32 KB": 32_000, "1,000 KB": 1_000_000}
CONNECTIONS = (1, 2, 8, 32)
# Values of this size are stored under fewer keys.
_LARGE, _FEW_KEYS, _KEYS = 32_000, 32, 256
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Cell:
    """The results of one server for one operation at one number of connections."""

    rounds: list[Measurement] = field(default_factory=list)
    # Milliseconds of a processor per call: web, PostgreSQL.
    costs: list[tuple[float, float]] = field(default_factory=list)

    def show(self, base: Cell) -> list[str]:
        found, first = find_medians(self.rounds), find_medians(base.rounds)
        web, postgres = (statistics.median(each) for each in zip(*self.costs, strict=True))
        ratio = format_ratio(compute_ratio(found.per_second, first.per_second))
        times = [f"{found.p50_ms:.2f}", f"{found.p99_ms:.1f}", f"{web:.2f}", f"{postgres:.2f}"]
        return [format_rate(found.per_second), ratio, *times]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=2)
    options.add_argument("--rounds", type=int, default=3)
    arguments = options.parse_args()
    with ExitStack() as stack:
        servers = {
            count: stack.enter_context(run_commonhold(WEB_WORKERS=str(count))) for count in (1, 2)
        }
        works = {count: prepare(running) for count, running in servers.items()}
        cells = {key: Cell() for key in list_cells(list(works[1]))}
        for _ in range(arguments.rounds):
            for (count, size, row, connections), cell in cells.items():
                work = next(work for work in works[count][size] if work.row == row)
                run(servers[count], work, connections, arguments.seconds, cell)
    print(report(cells))


def prepare(running: Commonhold) -> dict[str, list[Work]]:
    """Store a value of each size. Returns the operations by size."""
    create_namespace(running.api)
    works = {}
    for name, size in SIZES.items():
        keys = _FEW_KEYS if size >= _LARGE else _KEYS
        value = make_value(size)
        for number in range(keys):
            path = f"/api/v1/state/bench/{size}-k{number}"
            running.api.call("PUT", path, {"value": value})
        works[name] = find_entry_works(running.api, f"{size}-", size, keys)
    return works


def list_cells(sizes: list[str]) -> Iterator[tuple[int, str, str, int]]:
    """Yield (web workers, size, row, connections)."""
    for row in ("read an entry", "write an entry"):
        for size in sizes:
            yield 2, size, row, 8
        for connections in CONNECTIONS:
            for count in (1, 2):
                if (count, connections) != (2, 8):
                    yield count, "1 KB", row, connections


def run(running: Commonhold, work: Work, connections: int, seconds: float, cell: Cell) -> None:
    before = read_processor_times(running)
    found = measure(running.api.port, work, connections, seconds)
    after = read_processor_times(running)
    calls = found.per_second * (seconds + WARM_UP_SECONDS)
    web, postgres = (1000 * (b - a) / calls for a, b in zip(before, after, strict=True))
    cell.rounds.append(found)
    cell.costs.append((web, postgres))


def find_pids(running: Commonhold) -> tuple[list[int], set[int]]:
    """Return the processes of Commonhold and those of PostgreSQL."""
    postmaster = int((running.data / "postgres/pg/postmaster.pid").read_text().split()[0])
    database = {postmaster, *children(postmaster)}
    own = dict.fromkeys([running.pid, *children(running.pid)])
    return [pid for pid in own if pid not in database], database


def read_processor_times(running: Commonhold) -> tuple[float, float]:
    """Return the seconds of CPU time used so far by Commonhold and by PostgreSQL."""
    web, postgres = (sum(map(read_processor_time, pids)) for pids in find_pids(running))
    return web, postgres


def read_processor_time(pid: int) -> float:
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(words[11]) + int(words[12])) / _TICKS


def report(cells: dict[tuple[int, str, str, int], Cell]) -> str:
    head = ["calls/s", "ratio", "p50 ms", "p99 ms", "web ms", "PostgreSQL ms"]
    parts = []
    for row in ("read an entry", "write an entry"):
        base = cells[2, "1 KB", row, 8]
        lines = [[size, *cells[2, size, row, 8].show(base)] for size in SIZES]
        title = (
            f"### {row[0].upper()}{row[1:]}, by size of the value\n\n8 connections, 2 web workers"
        )
        parts.append(f"{title}\n\n{format_table(['', *head], lines)}\n")
        lines = [
            [
                f"connections: {connections}, web workers: {count}",
                *cells[count, "1 KB", row, connections].show(base),
            ]
            for connections in CONNECTIONS
            for count in (1, 2)
        ]
        title = f"### {row[0].upper()}{row[1:]}, by connections and web workers\n\nValues of 1 KB"
        parts.append(f"{title}\n\n{format_table(['', *head], lines)}\n")
    return "\n".join(parts)


if __name__ == "__main__":
    main()
