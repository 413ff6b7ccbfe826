"""Search over many entries: the time of a call, and with --explain the plans of its statements.

    python -m benchmarks.search [--entries 100000] [--rounds 20] [--explain]

In one process, without HTTP: the time of the service. Each round runs every row once; the table
shows medians. Writes are measured with and without the index, in the same rounds.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable
from typing import Any

from benchmarks.databases import begin, own_database

WORDS = [f"{a}{b}{c}" for a in "bdfgklmnprst" for b in "aeiou" for c in ("l", "n", "r", "st", "x")]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--entries", type=int, default=100_000)
    options.add_argument("--rounds", type=int, default=20)
    options.add_argument("--explain", action="store_true")
    arguments = options.parse_args()
    with own_database():
        run(arguments.entries, arguments.rounds, arguments.explain)


def run(count: int, rounds: int, explain: bool) -> None:
    actor = begin()
    from django.db import connection

    from state_admin.domain.search import Condition
    from state_admin.models import Entry, SearchDocument
    from state_admin.services import indexing, search
    from tests import builders

    namespace = builders.make_namespace(actor, "bench", schema={"type": "object"}, default={})
    fill(actor, count)

    def find(text: str = "", *where: tuple[str, Any], **more: Any) -> Callable[[], Any]:
        conditions = [Condition(pointer, "=", value) for pointer, value in where]
        return lambda: search.search_entries(actor=actor, text=text, where=conditions, **more)

    def write() -> None:
        for number in range(100):
            value = {"title": "written now", "n": number}
            builders.put(actor, "bench", f"hot{number}", value)

    middle = count // 2
    rows = {
        "a rare word": find(f"entry{middle:08}"),
        "a word in every fifth": find("bal"),
        "two words in a hundred or so": find("bal ban bar"),
        "a phrase of frequent words": find('"bal ban"'),
        "a prefix": find(f"entry{middle // 100:06}*"),
        "no hit": find("nowhere"),
        "equal at a path, one": find("", ("/n", middle)),
        "equal at a path, a tenth": find("", ("/owner/team", 3)),
        "word and path": find("bal", ("/n", middle)),
        "a word, in a prefix of keys": find("bal", prefix="k0000"),
    }
    print("without the index (the first page)")
    plain = measure({"a rare word": rows["a rare word"], "write 100": write}, 3)
    start = time.perf_counter()
    indexed = 0
    while made := indexing.index_entries()["indexed"]:
        indexed += made
    took = time.perf_counter() - start
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
        cursor.execute("SELECT pg_total_relation_size('entries')")
        (entries_bytes,) = cursor.fetchone()
        cursor.execute("SELECT pg_total_relation_size('search_documents')")
        (index_bytes,) = cursor.fetchone()
    show(plain)
    print(
        f"\nindexed {indexed:,} entries in {took:.1f} s ({indexed / took:,.0f}/s), "
        f"{index_bytes / 2**20:,.0f} MB beside {entries_bytes / 2**20:,.0f} MB\n"
    )
    print(f"with it ({SearchDocument.objects.count():,} documents)")
    show(measure(rows | {"write 100": write}, rounds))
    builders.put(actor, "bench", "fresh", {"title": "freshword"})
    print(f"\nfound right after the write: {len(find('freshword')().hits) == 1}")
    for number in range(1000):
        builders.put(actor, "bench", f"k{number:07}", {"title": "bal behind"})
    print("\n1,000 entries written since the last indexing")
    show(measure({name: rows[name] for name in ("a rare word", "no hit")}, rounds))
    if explain:
        from state_admin.domain.search import home_of, parse, tsquery
        from state_admin.models.search import find_candidates, read_coverage

        live = Entry.objects.visible_to(actor).live().filter(namespace=namespace)
        query = tsquery(parse(f"entry{middle:08}", []), home_of("w", actor.workspace_id))
        with connection.execute_wrapper(explained):
            find_candidates(
                live,
                actor.workspace_id,
                read_coverage(actor.workspace_id),
                query,
                before=None,
                limit=51,
            )


def fill(actor: Any, count: int) -> None:
    from state_admin.services.batches import BatchOperation, run_batch
    from tests.builders import raw

    chance = random.Random(7)
    for start in range(0, count, 1000):
        operations = []
        for number in range(start, min(start + 1000, count)):
            value = {
                "title": f"entry{number:08}",
                "notes": " ".join(chance.choices(WORDS, k=60)),
                "owner": {"team": number % 10, "name": chance.choice(WORDS)},
                "n": number,
            }
            operations.append(BatchOperation("put", "bench", f"k{number:07}", value=raw(value)))
        run_batch(actor=actor, operations=operations)


def measure(rows: dict[str, Callable[[], Any]], rounds: int) -> dict[str, tuple[float, int]]:
    times: dict[str, list[float]] = {name: [] for name in rows}
    hits = {}
    for _ in range(rounds):
        for name, call in rows.items():
            start = time.perf_counter()
            answer = call()
            times[name].append(time.perf_counter() - start)
            hits[name] = len(answer.hits) if answer is not None else 0
    return {name: (statistics.median(taken) * 1000, hits[name]) for name, taken in times.items()}


def show(measured: dict[str, tuple[float, int]]) -> None:
    print(f"{'':34}{'ms':>9}{'hits':>7}")
    for name, (taken, hits) in measured.items():
        print(f"{name:34}{taken:9.1f}{hits:7}")


def explained(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
    """Print the plan of the query, then run it."""
    execute(f"EXPLAIN (ANALYZE, BUFFERS) {sql}", params, many, context)
    print("\n" + "\n".join(row[0] for row in context["cursor"].fetchall()))
    return execute(sql, params, many, context)


if __name__ == "__main__":
    main()
