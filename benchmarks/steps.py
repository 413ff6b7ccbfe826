"""Steps of an agent: the time of a commit, its size on disk, and the time of reading old revisions.

    python -m benchmarks.steps [--steps 200] [--revisions 10000] [--explain] [--peer PYTHON]

In one process, without HTTP: the time of the service. A step is 3 updates and 2 messages. The rows
are measured in turns, and the table shows medians. `--peer` is a Python with
benchmarks/peers/requirements.txt installed, which runs the same steps in the same cluster with
langgraph-checkpoint-postgres. Without it, that comparison is skipped.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.databases import begin, own_database
from benchmarks.own_server import make_step, make_text

CHANCE = random.Random(7)
TABLES = ("state_values", "revisions", "messages")
TRAIL = ("changes", "audit")
PEER = Path(__file__).parent / "peers" / "langgraph_steps.py"

SIZES = {"empty thread": 0, "1,000 messages, 50 KB": 1000}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--steps", type=int, default=200)
    options.add_argument("--revisions", type=int, default=10_000)
    options.add_argument("--explain", action="store_true")
    options.add_argument("--peer", default="", metavar="PYTHON")
    arguments = options.parse_args()
    with own_database():
        run(arguments)


def run(arguments: argparse.Namespace) -> None:
    actor = begin()
    commits(actor, arguments.steps)
    if arguments.peer:
        peer(arguments.peer, arguments.steps)
    else:
        print("\nlanggraph-checkpoint-postgres: skipped (requires --peer)")
    reads(actor, arguments.revisions, arguments.explain)


# Commits -------------------------------------------------------------------------------------


def commits(actor: Any, steps: int) -> None:
    """The same step on an empty and on a large thread, in turns."""
    from tests import builders

    for name in "abc":
        builders.make_state_key(actor, name)
    for number, (name, messages) in enumerate(SIZES.items()):
        builders.make_thread(actor, f"c{number}", title=name)
        builders.make_run(actor, f"c{number}", f"run-c{number}", lease_seconds=86_400)
        if messages:
            fill(actor, f"c{number}", messages)

    def step(number: int, turn: int) -> None:
        sent = make_step(turn)
        builders.commit(actor, f"run-c{number}", sent["updates"], messages=sent["messages"])

    for number in range(len(SIZES)):
        for turn in range(20):  # warm-up: plans and caches
            step(number, turn)
    before = sizes()
    found: dict[str, list[float]] = {name: [] for name in SIZES}
    for turn in range(steps):
        for number, name in enumerate(SIZES):
            found[name].append(timed(lambda number=number, turn=turn: step(number, turn)))
    after = sizes()
    brought = len(json.dumps(make_step(1)))
    print(f"commit of a step: 3 updates, 2 messages; medians of {steps} in turns\n")
    base = statistics.median(found["empty thread"])
    for name, times in found.items():
        took = statistics.median(times)
        print(f"{name:34}{took:8.2f} ms{took / base:8.2f} x empty")
    count = steps * len(SIZES)
    grown = {table: (after[table] - before[table]) / count for table in after}
    kept = sum(grown[table] for table in TABLES)
    trail = sum(grown[table] for table in TRAIL)
    print(
        f"\nbytes on disk per step, indexes included: {kept:,.0f} of thread"
        f" ({', '.join(f'{table} {grown[table]:,.0f}' for table in TABLES)})"
        f" and {trail:,.0f} of audit and feed; {kept / brought:.1f} and"
        f" {(kept + trail) / brought:.1f} times the {brought:,} that it brought"
    )


def fill(actor: Any, thread: str, messages: int) -> None:
    """Store many messages, and 50 KB of state in ten keys."""
    from tests import builders

    log = [{"role": "user", "content": make_text(270)} for _ in range(messages)]
    builders.append(actor, thread, *log)
    for number in range(10):
        builders.make_state_key(actor, f"held{number}")
    builders.commit(
        actor, f"run-{thread}", {f"held{n}": {"text": make_text(5000)} for n in range(10)}
    )


def sizes() -> dict[str, int]:
    """Return the bytes by table, after the space of dead rows is released."""
    from django.db import connection

    found = {}
    with connection.cursor() as cursor:
        for table in TABLES + TRAIL:
            cursor.execute(f"VACUUM FULL {table}")
            cursor.execute("SELECT pg_total_relation_size(%s)", [table])
            (found[table],) = cursor.fetchone()
    return found


def peer(python: str, steps: int) -> None:
    """Run the same steps with another library, in another database of the same cluster."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE peer")
    info = connection.connection.info
    settings = f"host={info.host} port={info.port} user={info.user} dbname=peer"
    print("\nlanggraph-checkpoint-postgres, the same steps", flush=True)
    subprocess.run(
        [python, str(PEER), f"{settings} password={info.password}", str(steps)], check=True
    )


# Reads ---------------------------------------------------------------------------------------


def reads(actor: Any, most: int, explain: bool) -> None:
    """Measure snapshots of threads with few and many revisions: the newest, and ones at all
    distances."""
    from state_admin.models import Thread, snapshots_sql
    from state_admin.services.snapshots import read_snapshot
    from tests import builders

    for number in range(50):
        builders.make_state_key(actor, f"k{number:02}")
    print("\nsnapshot of a thread; medians, and the ratio to its newest one\n")
    print(f"{'':34}{'newest':>10}{'oldest':>16}{'middle':>16}{'anywhere':>16}")
    for keys in (50, 1):
        for revisions in (10, 1000, most):
            thread = f"s{keys}-{revisions}"
            builders.make_thread(actor, thread)
            builders.make_run(actor, thread, f"run-{thread}", lease_seconds=86_400)
            whole = {f"k{n:02}": {"text": make_text(100)} for n in range(keys)}
            builders.commit(actor, f"run-{thread}", whole)
            for number in range(2, revisions):
                value = {"text": make_text(100), "n": number}
                builders.commit(actor, f"run-{thread}", {f"k{number % keys:02}": value})

            def read(revision: int | None, thread: str = thread) -> float:
                return timed(
                    lambda: read_snapshot(actor=actor, thread_id=thread, revision=revision)
                )

            places: dict[str, Callable[[], int | None]] = {
                "newest": lambda: None,
                "oldest": lambda: 2,
                "middle": lambda revisions=revisions: revisions // 2,  # type: ignore[misc]
                "anywhere": lambda revisions=revisions: CHANCE.randint(2, revisions - 1),  # type: ignore[misc]
            }
            found: dict[str, list[float]] = {name: [] for name in places}
            for _ in range(200):
                for name, place in places.items():
                    found[name].append(read(place()))
            medians = {name: statistics.median(times) for name, times in found.items()}
            row = f"{f'{revisions:,} revisions, 1 of {keys} keys each':34}"
            row += f"{medians['newest']:7.2f} ms"
            for name in ("oldest", "middle", "anywhere"):
                row += f"{medians[name]:7.2f} ms{medians[name] / medians['newest']:5.2f}x"
            print(row, flush=True)
            if explain:
                pk = Thread.objects.get(public_id=thread).pk
                explained(snapshots_sql._CURRENT, {"thread": pk})
                explained(snapshots_sql._AT_REVISION, {"thread": pk, "revision": revisions // 2})


def explained(statement: str, parameters: dict[str, int]) -> None:
    from state_admin.models import hot

    plan = hot.fetch_all(f"EXPLAIN (ANALYZE, BUFFERS, COSTS OFF) {statement}", parameters)
    print("\n".join(line for (line,) in plan), "\n")


def timed(work: Callable[[], Any]) -> float:
    """Return the duration in milliseconds."""
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1000


if __name__ == "__main__":
    main()
