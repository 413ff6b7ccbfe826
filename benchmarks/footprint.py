"""The cost of an idle server: seconds to start, processor time, memory.

    python -m benchmarks.footprint [--starts 5] [--idle 20] [--load 60]

Memory is measured a second time after a minute of reads, writes and commits.
"""

from __future__ import annotations

import argparse
import re
import statistics
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from benchmarks.growth import find_pids, read_processor_time, read_processor_times
from benchmarks.load import measure
from benchmarks.own_server import (
    READ,
    STEP,
    WRITE,
    Api,
    Commonhold,
    find_works,
    free_port,
    run_commonhold,
    start_commonhold,
    stop,
)
from benchmarks.tables import NOTHING, format_table

# Until the first sweeps and the imports in the background are over.
SETTLE_SECONDS = 30

# By a part of the command line.
_ROLES = {
    "supervisor": "manage.py serve",
    "web": "project.processes web",
    "worker": "project.processes worker",
    "beat": "project.processes beat",
}


class Process(NamedTuple):
    name: str
    pids: tuple[int, ...]


class Memory(NamedTuple):
    """In MB."""

    rss: float
    # Memory that several processes share is divided among them.
    pss: float


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--starts", type=int, default=5)
    options.add_argument("--idle", type=float, default=20)
    options.add_argument("--load", type=float, default=60)
    arguments = options.parse_args()
    seconds, used_seconds = zip(*measure_starts(arguments.starts), strict=True)
    print(
        f"Ready after {statistics.median(seconds):.1f} s ({min(seconds):.1f} to {max(seconds):.1f}),"
        f" with {statistics.median(used_seconds):.1f} s of processor time; median of {arguments.starts}\n"
    )
    with run_commonhold() as running:
        works = find_works(running.api)
        time.sleep(SETTLE_SECONDS)
        processes = find_processes(running)
        used = measure_use(processes, arguments.idle)
        before = {process: read_memory(process) for process in processes}
        for work in works:
            if work.row in (READ, WRITE, STEP):
                measure(running.api.port, work, 32, arguments.load / 3)
        after = {process: read_memory(process) for process in processes}
    head = ["", "% of a core", "RSS MB", "PSS MB", "RSS MB after load", "PSS MB after load"]
    rows = [
        [process.name, f"{used[process]:.2f}", *show(before[process]), *show(after[process])]
        for process in processes
    ]
    first, last = (
        f"{sum(memory[process].pss for process in processes):.0f}" for memory in (before, after)
    )
    total = [f"{sum(used.values()):.2f}", NOTHING, first, NOTHING, last]
    print(format_table(head, [*rows, ["together", *total]]))


def measure_starts(count: int) -> list[tuple[float, float]]:
    """Seconds from the command to the first 200 of /readyz, each time with the same database; and
    the processor time of all processes until then."""
    with TemporaryDirectory(prefix="ch") as name:
        found = []
        for _ in range(count + 1):
            api = Api(free_port())
            start = time.monotonic()
            child = start_commonhold(Path(name), api.port)
            try:
                api.wait("/readyz", child, pause=0.02)
                took = time.monotonic() - start
                server = Commonhold(api, Path(name) / "data", child.pid)
                found.append((took, sum(read_processor_times(server))))
            finally:
                stop(child)
        # The first one creates the database.
        return found[1:]


def find_processes(running: Commonhold) -> list[Process]:
    own, database = find_pids(running)
    found = []
    for pid in own:
        command = read_text(pid, "cmdline").replace("\0", " ")
        names = [name for name, part in _ROLES.items() if part in command]
        found.append(Process(names[0] if names else command[:40], (pid,)))
    return [*found, Process(f"PostgreSQL, {len(database)} processes", tuple(sorted(database)))]


def read_text(pid: int, name: str) -> str:
    """A file of /proc about a process, "" if the process has ended: those of autovacuum come and go."""
    try:
        return Path(f"/proc/{pid}/{name}").read_text()
    except OSError:
        return ""


def measure_use(processes: list[Process], seconds: float) -> dict[Process, float]:
    """Percent of a core that each process uses."""

    def read() -> list[float]:
        return [sum(map(read_processor_time, process.pids)) for process in processes]

    before, start = read(), time.monotonic()
    time.sleep(seconds)
    took = time.monotonic() - start
    return {
        process: 100 * (b - a) / took
        for process, a, b in zip(processes, before, read(), strict=True)
    }


def read_memory(process: Process) -> Memory:
    rss = pss = 0
    for pid in process.pids:
        found = dict(re.findall(r"^(Rss|Pss): +(\d+) kB", read_text(pid, "smaps_rollup"), re.M))
        rss, pss = rss + int(found.get("Rss", 0)), pss + int(found.get("Pss", 0))
    return Memory(rss / 1024, pss / 1024)


def show(memory: Memory) -> list[str]:
    return [f"{memory.rss:.0f}", f"{memory.pss:.0f}"]


if __name__ == "__main__":
    main()
