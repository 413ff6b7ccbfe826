"""A LangGraph graph with CommonholdSaver, over HTTP, and with PostgresSaver, in process.

    python -m benchmarks.checkpoints --peer PYTHON [--steps 1000] [--rounds 3]

The graph is in benchmarks/peers/langgraph_graph.py. Each round has a new server or database. Sizes
on disk are measured after VACUUM FULL and include indexes, audit and change feed, but not what was stored
before the steps: the state, and the first pages of tables.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import psycopg

from benchmarks.database_floors import Database
from benchmarks.own_server import ROOT, run_commonhold
from benchmarks.tables import format_table
from project.postgres.server import Server

GRAPH = Path(__file__).parent / "peers" / "langgraph_graph.py"
# The number of steps that are compared at the beginning and at the end of the thread.
_FEW = 100


class Round(NamedTuple):
    total_seconds: float
    first_ms: float
    last_ms: float
    history_ms: float
    bytes_per_step: float
    brought: float


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--steps", type=int, default=1000)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--peer", default="", metavar="PYTHON")
    arguments = options.parse_args()
    if not arguments.peer:
        print("skipped: requires --peer")
        return
    rows: dict[str, list[Round]] = {
        "CommonholdSaver, over HTTP": [],
        "PostgresSaver, in process": [],
    }
    for _ in range(arguments.rounds):
        with run_commonhold() as running:
            folder = Server(running.data / "postgres").socket_folder
            token = running.api.headers["Authorization"].removeprefix("Bearer ")
            places = {
                "commonhold": ("commonhold", f"http://127.0.0.1:{running.api.port}"),
                "postgres": ("peer", f"host={folder} user=postgres dbname=peer"),
            }
            Database(str(folder)).create("peer")
            for (kind, (database, where)), found in zip(places.items(), rows.values(), strict=True):
                dsn = f"host={folder} user=postgres dbname={database}"
                found.append(run(arguments.peer, kind, where, arguments.steps, dsn, token))
    print(report(rows))


def run(python: str, kind: str, where: str, steps: int, dsn: str, token: str) -> Round:
    def run_graph(steps: int) -> Any:
        done = subprocess.run(
            [python, str(GRAPH), kind, where, str(steps)],
            env=os.environ
            | {"PYTHONPATH": str(ROOT / "clients/python/src"), "COMMONHOLD_TOKEN": token},
            stdout=subprocess.PIPE,
            check=True,
        )
        return json.loads(done.stdout)

    run_graph(1)
    before = measure_size(dsn)
    found = run_graph(steps)
    grown = measure_size(dsn) - before
    seconds = found["seconds"]
    return Round(
        sum(seconds),
        1000 * statistics.median(seconds[:_FEW]),
        1000 * statistics.median(seconds[-_FEW:]),
        1000 * found["history"],
        grown / steps,
        found["brought"],
    )


def measure_size(dsn: str) -> int:
    """Return the bytes of all tables with their indexes, after the space of dead rows is
    released."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("VACUUM FULL")
        row = connection.execute(
            "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class"
            " WHERE relkind IN ('r', 'm') AND relnamespace::regnamespace::text !~ '^pg_|^information'"
        ).fetchone()
    assert row
    size: int = row[0]
    return size


def report(rows: dict[str, list[Round]]) -> str:
    head = [
        "", "seconds", "first 100 steps, ms", "last 100 steps, ms", "read 100 checkpoints, ms",
        "bytes per step", "x of what it brought",
    ]  # fmt: skip
    lines = []
    for name, rounds in rows.items():
        found = Round(*(statistics.median(each) for each in zip(*rounds, strict=True)))
        cells = [f"{found.total_seconds:.1f}", f"{found.first_ms:.1f}", f"{found.last_ms:.1f}"]
        cells += [f"{found.history_ms:.0f}", f"{found.bytes_per_step:,.0f}"]
        lines.append([name, *cells, f"{found.bytes_per_step / found.brought:.1f}"])
    return format_table(head, lines)


if __name__ == "__main__":
    main()
