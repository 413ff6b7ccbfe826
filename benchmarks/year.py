"""Compares a database after a year of writes with an empty one, and measures the sweeps that keep it so.

    python -m benchmarks.year --keep FOLDER [--entries 10000000] [--threads 100000] [--seconds 2]
        [--rounds 3]

The year is seeded once (25 minutes, 15 GB): `entries` writes, evenly over 365 days, each with its version,
change and audit row. The feed keeps the whole year, so that a day's purge is a 365th of the largest table.
Two web servers run side by side. Each round measures every row on both. Sweeps run in this process,
because the servers have no worker. Each further run with the same folder purges further days.
"""

from __future__ import annotations

import argparse
import os
import re
import secrets
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks.databases import own_database, read_sizes
from benchmarks.load import Work, measure
from benchmarks.own_server import (
    MOST_CONNECTIONS,
    READ,
    ROOT,
    STEP,
    WRITE,
    Api,
    find_works,
    free_port,
    make_value,
    start_commonhold,
    stop,
    vary,
)
from benchmarks.seeded_rows import Seeding, Size
from benchmarks.tables import (
    Measurement,
    compute_ratio,
    find_medians,
    format_rate,
    format_ratio,
    format_table,
)

DAYS = 365
CONNECTIONS = 8
OLD_READ, OLD_WRITE = "read an entry of the year", "write an entry of the year"
_OLD_KEYS = 8192
_CHANGES = "list of changes, 100 after a cursor"
_LISTS = {
    "list of audit rows, newest 100": "/audit?limit=100",
    "list of entries, 100": "/state/bench?limit=100",
    "list of threads, newest 100": "/threads?limit=100",
}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--entries", type=int, default=10_000_000)
    options.add_argument("--threads", type=int, default=100_000)
    options.add_argument("--seconds", type=float, default=2)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--keep", type=Path, required=True)
    arguments = options.parse_args()
    size = Size(arguments.entries, arguments.threads, 20_000, 5, DAYS)
    with tempfile.TemporaryDirectory(prefix="ch") as empty, own_database(arguments.keep / "data"):
        from benchmarks.pages import prepare

        (arguments.keep / "data").mkdir(parents=True, exist_ok=True)
        prepare(size, arguments.keep / "data")
        with ExitStack() as stack:
            servers = {
                "empty": stack.enter_context(serve(Path(empty))),
                "year": stack.enter_context(serve(arguments.keep)),
            }
            works = {name: prepare_works(name, api) for name, api in servers.items()}
            print(compare(servers, works, arguments.rounds, arguments.seconds))
            print(measure_growth(servers["year"], works["year"][WRITE], arguments.seconds))
            print(purge_beside(servers, works, arguments.rounds, arguments.seconds))
            print(measure_sweeps())
            print(list_dead_rows())


@contextmanager
def serve(folder: Path) -> Iterator[Api]:
    """Run a web server without a worker on the data in the folder."""
    token = _create_token(folder / "data")
    api = Api(free_port(), {"Authorization": f"Bearer {token}"})
    child = start_commonhold(folder, api.port, "web", CHANGE_RETENTION_DAYS=str(2 * DAYS))
    try:
        api.wait("/readyz", child)
        yield api
    finally:
        stop(child)


def _create_token(data: Path) -> str:
    env = os.environ | {
        "COMMONHOLD_DATA_DIR": str(data),
        "DJANGO_SETTINGS_MODULE": "project.settings",
    }
    name = f"year-{secrets.token_hex(4)}"

    def manage(*arguments: str) -> str:
        return subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT, env=env, capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip

    manage("migrate")
    found = re.search(
        r"ch_\S+", manage("create_token", "--workspace", "acme", "--role", "admin", "--name", name)
    )
    assert found
    return found[0]


def prepare_works(name: str, api: Api) -> dict[str, Work]:
    end = api.call("GET", "/api/v1/changes")["next_cursor"]
    works = {work.row: work for work in find_works(api) if work.row in {READ, WRITE, STEP}}
    paths = [f"/api/v1/state/bench/k{n}" for n in range(1024)]
    if name == "year":
        paths = [f"/api/v1/state/facts/{key}" for key in _sample_keys()]
    reads = [api.render("GET", path) for path in paths]
    writes = [vary(api.render("PUT", path, {"value": make_value()})) for path in paths]
    for _ in range(100):
        api.call("POST", "/api/v1/threads", {"id": secrets.token_hex(8)})
    own = len(paths) // MOST_CONNECTIONS

    def pick(requests: Sequence[Any], connection: int, turn: int) -> Any:
        return requests[connection + MOST_CONNECTIONS * (turn % own)]

    works[OLD_READ] = Work(OLD_READ, lambda c, turn, _: pick(reads, c, turn))
    works[OLD_WRITE] = Work(OLD_WRITE, lambda c, turn, _: pick(writes, c, turn)(c, turn))
    for row, path in {_CHANGES: f"/changes?limit=100&cursor={end}", **_LISTS}.items():
        request = api.render("GET", f"/api/v1{path}")
        works[row] = Work(row, lambda *_, request=request: request)
    return works


def _sample_keys() -> list[str]:
    """Keys from everywhere in the large namespace of the seed."""
    with _cursor() as cursor:
        cursor.execute(
            "SELECT replace(e.key, '/', '%%2F') FROM entries e TABLESAMPLE SYSTEM (2)"
            " JOIN namespaces n ON n.id = e.namespace_id"
            " WHERE n.name = 'facts' AND NOT e.deleted ORDER BY random() LIMIT %s",
            [_OLD_KEYS],
        )
        return [key for (key,) in cursor.fetchall()]


def compare(
    servers: dict[str, Api], works: dict[str, dict[str, Work]], rounds: int, seconds: float
) -> str:
    found: dict[tuple[str, str], list[Measurement]] = {}
    for number in range(rounds):
        for row in works["empty"]:
            # Which server is first changes from round to round.
            for name, api in sorted(servers.items(), reverse=number % 2 == 1):
                result = measure(api.port, works[name][row], CONNECTIONS, seconds)
                found.setdefault((row, name), []).append(result)
    lines = [
        _row(row, find_medians(found[row, "empty"]), find_medians(found[row, "year"]))
        for row in works["empty"]
    ]
    head = ["", "empty, calls/s", "year, calls/s", "year / empty", *_TIMES]
    return f"\n### After a year\n\n{format_table(head, lines)}\n"


_TIMES = ("empty, p50 ms", "year, p50 ms", "empty, p99 ms", "year, p99 ms")


def _row(row: str, empty: Measurement, year: Measurement) -> list[str]:
    return [
        row,
        format_rate(empty.per_second),
        format_rate(year.per_second),
        format_ratio(compute_ratio(year.per_second, empty.per_second)),
        *(f"{each:.2f}" for each in (empty.p50_ms, year.p50_ms, empty.p99_ms, year.p99_ms)),
    ]


def purge_beside(
    servers: dict[str, Api], works: dict[str, dict[str, Work]], rounds: int, seconds: float
) -> str:
    """The cost of the purge, day after day of the year, and of a write meanwhile."""
    from django.db import connections

    from state_admin.models import changes_sql

    batches: list[float] = []
    days: list[tuple[int, float]] = []
    over = threading.Event()
    purge = changes_sql.purge

    def timed(**given: Any) -> Any:
        started = time.perf_counter()
        try:
            return purge(**given)
        finally:
            batches.append(time.perf_counter() - started)

    def run() -> None:
        try:
            while not over.is_set():
                started = time.perf_counter()
                days.append((purge_day(), time.perf_counter() - started))
        finally:
            connections.close_all()

    alone, beside = [], []
    with patch.object(changes_sql, "purge", timed):
        for _ in range(rounds):
            work = works["year"][WRITE]
            alone.append(measure(servers["year"].port, work, CONNECTIONS, seconds))
            over.clear()
            thread = threading.Thread(target=run)
            thread.start()
            beside.append(measure(servers["year"].port, work, CONNECTIONS, seconds))
            over.set()
            thread.join()
    rows, spent = map(sum, zip(*days, strict=True))
    line = _row("write an entry", find_medians(alone), find_medians(beside))
    head = ["", "alone, calls/s", "beside, calls/s", "beside / alone"]
    head += [each.replace("empty", "alone").replace("year", "beside") for each in _TIMES]
    return (
        f"\n### While the feed is purged\n\n{format_table(head, [line])}\n\n"
        f"{len(days)} days, {rows:,} changes, {rows / spent:,.0f} changes/s; a day"
        f" {1000 * statistics.median(each for _, each in days):.0f} ms, a batch"
        f" {1000 * statistics.median(batches):.1f} ms, at most {1000 * max(batches):.1f} ms\n"
    )


def purge_day() -> int:
    """Purge the oldest day of the feed, as the sweep would a day later."""
    from django.conf import settings

    from state_admin.services import maintenance

    with _cursor() as cursor:
        # The first rows are those of the services that prepared the seed, not the oldest ones.
        cursor.execute(
            "SELECT now() - min(at) FROM (SELECT at FROM changes ORDER BY id LIMIT 1000) first"
        )
        (age,) = cursor.fetchone()
    with patch.object(settings, "CHANGE_RETENTION", age - timedelta(days=1, hours=1)):
        purged: int = maintenance.purge_leftovers()["changes"]
    return purged


def measure_growth(api: Api, work: Work, seconds: float) -> str:
    """Bytes per row that the year stored, and per write at its end."""
    with _cursor() as cursor:
        before = read_sizes(cursor)
        cursor.execute("SELECT max(id) FROM audit")
        (first,) = cursor.fetchone()
        measure(api.port, work, CONNECTIONS, 5 * seconds)
        cursor.execute("SELECT max(id) FROM audit")
        (last,) = cursor.fetchone()
        after = read_sizes(cursor)
        lines = []
        for table in ("entries", "entry_revisions", "changes", "audit"):
            cursor.execute("SELECT reltuples FROM pg_class WHERE relname = %s", [table])
            (rows,) = cursor.fetchone()
            heap, indexes = before[table]
            grown = sum(after[table]) - sum(before[table])
            lines.append(
                [
                    table,
                    f"{rows:,.0f}",
                    f"{heap / rows:.0f}",
                    f"{indexes / rows:.0f}",
                    f"{grown / (last - first):.0f}",
                ]
            )
    head = ["", "rows", "bytes per row", "of indexes", "bytes per write of 1 KB"]
    return f"\n### Size\n\n{format_table(head, lines)}\n\n{last - first:,} writes\n"


def measure_sweeps() -> str:
    """The time of each sweep that finds nothing to do, and of those that read everything."""
    from benchmarks.plans import sweeps
    from state_admin.services import storage

    works: dict[str, Callable[[], object]] = sweeps() | {"measure storage": storage.measure_storage}
    from django.conf import settings

    lines = []
    # Only the purge of the other tests may find old changes.
    with patch.object(settings, "CHANGE_RETENTION", timedelta(days=2 * DAYS)):
        for name, work in works.items():
            times = []
            for _ in range(3):
                started = time.perf_counter()
                try:
                    work()
                except Exception as error:
                    print(f"{name}: {type(error).__name__}")
                times.append(1000 * (time.perf_counter() - started))
                if times[-1] > 20_000:
                    break
            lines.append([name, f"{times[0]:,.1f}", f"{statistics.median(times):,.1f}"])
    return f"\n### Sweeps\n\n{format_table(['', 'first, ms', 'median, ms'], lines)}\n"


def list_dead_rows() -> str:
    with _cursor() as cursor:
        cursor.execute(
            "SELECT relname, n_live_tup, n_dead_tup, n_tup_upd, n_tup_hot_upd, n_tup_del,"
            " autovacuum_count, autoanalyze_count FROM pg_stat_user_tables"
            " WHERE relname = ANY(%s) ORDER BY 1",
            [list(Seeding.BULK)],
        )
        rows = [[name, *(f"{number:,}" for number in rest)] for name, *rest in cursor.fetchall()]
    head = ["", "live", "dead", "updated", "HOT", "deleted", "vacuums", "analyzes"]
    return f"\n### Dead rows\n\n{format_table(head, rows)}\n"


def _cursor() -> Any:
    from django.db import connection

    return connection.cursor()


if __name__ == "__main__":
    main()
