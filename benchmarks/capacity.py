"""Measures bytes, write-ahead log and processor time per entry, for the capacity model in docs/scaling.md.

    python -m benchmarks.capacity [--entries 100000] [--seconds 5]

A server with a worker gets `PUT`s over HTTP: first of new keys, then new versions of 1,024 keys, 8 at a
time. The processor time is that of all processes, including the search index. At the end, tables are
copied to measure what a column `workspace_id` with an index would add.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from benchmarks.databases import read_sizes
from benchmarks.growth import read_processor_times
from benchmarks.load import Work, measure
from benchmarks.own_server import KEYS, Commonhold, create_namespace, run_commonhold, vary
from benchmarks.tables import format_table
from project.postgres.cluster import Cluster
from tests.project.sites import connect

SIZES = (100, 1_000, 4_000)
CONNECTIONS = 8
# Two of the tables without `workspace_id`, and their keys.
TENANT_TABLES = {"entries": "id", "entry_revisions": "entry_id, version"}
_PATIENCE = 600
_CHANCE = random.Random(7)
_WORDS = ["".join(_CHANCE.choices("etaoinshrdlu", k=_CHANCE.randint(2, 9))) for _ in range(5_000)]
_TEXTS = 64
_WAL = "SELECT wal_bytes, wal_fpi FROM pg_stat_wal"


@dataclass(frozen=True)
class Moment:
    """What was used so far. `sizes`: bytes of tables and of their indexes."""

    sizes: dict[str, tuple[int, int]]
    wal_bytes: int
    wal_images: int
    seconds: tuple[float, float]


@dataclass(frozen=True)
class Cost:
    """What one write added."""

    row: str
    writes: int
    sizes: dict[str, tuple[float, float]]
    wal_bytes: float
    wal_images: float
    web_ms: float
    postgres_ms: float


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--entries", type=int, default=100_000)
    options.add_argument("--seconds", type=float, default=5)
    arguments = options.parse_args()
    with (
        run_commonhold(WEB_WORKERS="1") as running,
        closing(connect(Cluster(running.data / "postgres"))) as database,
    ):
        create_namespace(running.api)
        costs = []
        for size in SIZES:
            costs += measure_size(running, database, size, arguments.entries, arguments.seconds)
            print(report(costs[-2:]), flush=True)
        print(report_costs(costs))
        print(measure_column(database))


def measure_size(
    running: Commonhold, database: Any, size: int, entries: int, seconds: float
) -> list[Cost]:
    """The costs of a new entry and of a new version, with values of `size` bytes."""
    before = look(running, database)
    first = 0
    created = 0
    while created < entries:
        work, first = write_entries(running, size, f"{first}-"), first + 1
        created += write(running, database, work, seconds)
    index_entries(database)
    middle = look(running, database)
    overwrite = write_entries(running, size, "", keys=KEYS // CONNECTIONS)
    # The first write of each key is a new entry.
    write(running, database, overwrite, seconds)
    index_entries(database)
    then = look(running, database)
    written = 0
    while written < entries / 2:
        written += write(running, database, overwrite, seconds)
    index_entries(database)
    after = look(running, database)
    return [
        compare(f"new entry, {size:,} bytes", before, middle, created),
        compare(f"new version, {size:,} bytes", then, after, written),
    ]


def write_entries(running: Commonhold, size: int, prefix: str, keys: int = 10_000_000) -> Work:
    """Writes of `keys` keys per connection, such as `customer-1000-0-03-0000017`, with different texts."""
    path = f"/api/v1/state/bench/customer-{size}-{prefix}"
    requests = [
        vary(running.api.render("PUT", f"{path}$$-$$$$$$$", {"value": make_record(size)}))
        for _ in range(_TEXTS)
    ]

    def request(connection: int, turn: int, _: bytes) -> bytes:
        found = requests[turn % _TEXTS](connection, turn)
        return found.replace(b"$$-$$$$$$$", b"%02d-%07d" % (connection, turn % keys), 1)

    return Work("write", request)


def make_record(size: int) -> dict[str, Any]:
    """A JSON object of about `size` bytes, whose text has words."""
    text = ""
    while len(text) < size - 50:
        text += _CHANCE.choice(_WORDS) + " "
    return {"goal": "Ship the feature", "n": 0, "text": text[: max(0, size - 50)]}


def write(running: Commonhold, database: Any, work: Work, seconds: float) -> int:
    """Write for some seconds. Returns the number of versions."""
    before = count(database, "entry_revisions")
    measure(running.api.port, work, CONNECTIONS, seconds)
    return count(database, "entry_revisions") - before


def count(database: Any, table: str) -> int:
    return int(database.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def index_entries(database: Any) -> None:
    """Wait for the worker to index the newest entries for the search."""
    wait_for(
        lambda: database.execute(
            "SELECT NOT EXISTS (SELECT FROM entries e JOIN namespaces n ON n.id = e.namespace_id"
            " LEFT JOIN search_documents d ON d.entry_id = e.id"
            " WHERE n.name = 'bench' AND (d.entry_id IS NULL OR d.version < e.version))"
        ).fetchone()[0]
    )


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError("the search index is not written")
        time.sleep(0.5)


def look(running: Commonhold, database: Any) -> Moment:
    database.execute("VACUUM ANALYZE")
    database.execute("SELECT pg_stat_force_next_flush()")
    wal_bytes, images = database.execute(_WAL).fetchone()
    return Moment(
        read_sizes(database.cursor()), int(wal_bytes), int(images), read_processor_times(running)
    )


def compare(row: str, before: Moment, after: Moment, writes: int) -> Cost:
    web, postgres = (
        1000 * (b - a) / writes for a, b in zip(before.seconds, after.seconds, strict=True)
    )
    sizes = {
        name: tuple((b - a) / writes for a, b in zip(before.sizes[name], found, strict=True))
        for name, found in after.sizes.items()
    }
    return Cost(
        row,
        writes,
        {name: (each[0], each[1]) for name, each in sizes.items() if sum(each) >= 1},
        (after.wal_bytes - before.wal_bytes) / writes,
        (after.wal_images - before.wal_images) / writes,
        web,
        postgres,
    )


def report(costs: list[Cost]) -> str:
    parts = []
    for cost in costs:
        rows = [
            [name, f"{table:,.0f}", f"{indexes:,.0f}", f"{table + indexes:,.0f}"]
            for name, (table, indexes) in sorted(cost.sizes.items(), key=lambda each: -sum(each[1]))
        ]
        sums = [sum(each) for each in zip(*cost.sizes.values(), strict=True)]
        rows.append(["all", *(f"{each:,.0f}" for each in (*sums, sum(sums)))])
        head = ["bytes per write", "table", "indexes", "both"]
        parts.append(f"### {cost.row} ({cost.writes:,} writes)\n\n{format_table(head, rows)}\n")
    return "\n".join(parts)


def report_costs(costs: list[Cost]) -> str:
    head = ["per write", "WAL bytes", "page images", "web and worker ms", "PostgreSQL ms"]
    rows = [
        [
            cost.row,
            f"{cost.wal_bytes:,.0f}",
            f"{cost.wal_images:.2f}",
            f"{cost.web_ms:.2f}",
            f"{cost.postgres_ms:.2f}",
        ]
        for cost in costs
    ]
    return f"### WAL and processor time\n\n{format_table(head, rows)}\n"


def measure_column(database: Any) -> str:
    """Copy tables without and with a column `workspace_id` and an index on it and the id."""
    rows = []
    for table in TENANT_TABLES:
        number = count(database, table)
        plain = copy_table(database, table)
        columns = copy_table(database, table, column=True)
        indexed = copy_table(
            database, table, column=True, index=f"(workspace_id, {TENANT_TABLES[table]})"
        )
        for name, (table_bytes, index_bytes, log) in (
            ("", plain),
            ("with the column", columns),
            ("with column and index", indexed),
        ):
            values = (each / number for each in (table_bytes, index_bytes, log))
            rows.append([f"{table} {name}".strip(), *(f"{each:,.1f}" for each in values)])
    head = ["bytes per row", "table", "indexes", "log"]
    return f"### A column workspace_id\n\n{format_table(head, rows)}\n"


def copy_table(
    database: Any, table: str, *, column: bool = False, index: str = ""
) -> tuple[int, int, int]:
    """The bytes of a copy of a table, of its indexes, and of the log that it took."""
    definition, value = (", workspace_id bigint NOT NULL", ", 1") if column else ("", "")
    database.execute("DROP TABLE IF EXISTS copied")
    database.execute(f"CREATE TABLE copied (LIKE {table} INCLUDING ALL{definition})")
    if index:
        database.execute(f"CREATE INDEX ON copied {index}")
    database.execute("CHECKPOINT")
    (before,) = database.execute("SELECT pg_current_wal_insert_lsn()").fetchone()
    database.execute(
        f"INSERT INTO copied SELECT *{value} FROM {table} ORDER BY {TENANT_TABLES[table]}"
    )
    table_bytes, index_bytes, log = database.execute(
        "SELECT pg_table_size('copied'), pg_indexes_size('copied'),"
        " pg_wal_lsn_diff(pg_current_wal_insert_lsn(), %s)",
        [before],
    ).fetchone()
    database.execute("DROP TABLE copied")
    return int(table_bytes), int(index_bytes), int(log)


if __name__ == "__main__":
    main()
