"""The plans of hot statements at 10,000,000 rows, on a small database that looks as large to the
planner. `python -m benchmarks.plans` explains them on a large one.

UPDATE_PLANS=1 adds what requests use now to benchmarks/plans.json; look at the difference."""

from __future__ import annotations

import json
import os

import pytest
from django.db import connection

from benchmarks import plans
from benchmarks.pages import addresses
from benchmarks.seeded_rows import Seeding, Size
from state_admin.services import batching
from tests.builders import Person
from tests.e2e.pages import fill

SIZE = Size(entries=50_000, threads=1_000, messages=200, value_mb=5, days=365)
# How many times larger the database of plans.json is.
FACTOR = 200
COMPACTIONS = "page /threads/long?tab=compactions"
# Pages that have different plans on the small database. They are only checked for reading a whole table.
DIFFERENT = (COMPACTIONS, "page /state?namespace=area-000&sort=actor&tag=vip")


def enlarge() -> None:
    """Multiply the rows that the planner expects. It multiplies the rows per page that it has stored
    by the pages that it finds."""
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
        cursor.execute(
            "UPDATE pg_class SET reltuples = reltuples * %s WHERE oid IN (SELECT unnest(ARRAY["
            "indrelid, indexrelid]) FROM pg_index WHERE indrelid = ANY(%s::text[]::regclass[]))",
            [FACTOR, sorted(plans.LARGE)],
        )


def test_plans__as_many_rows_as_in_a_year__use_the_indexes_of_a_large_database(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batching, "PATIENCE", 0.0)
    fill(alice)
    with connection.cursor() as cursor:
        seeding = Seeding(alice.workspace.pk, SIZE)
        seeding.cursor = cursor
        for step in (
            seeding.people, seeding.namespaces, seeding.entries, seeding.threads,
            seeding.long_thread, seeding.work, seeding.samples, seeding.advance_sequences,
        ):  # fmt: skip
            step()
    enlarge()
    found = plans.collect(alice, [page for page in addresses() if "huge" not in page])
    # It plans the compaction of a thread with few messages, and this one looks larger than it is.
    found[COMPACTIONS].remove(plans.SORT)
    assert not plans.whole_tables(found)
    # Here, a different share of the rows was written within an hour, and the thread and the namespace are
    # smaller than in the large database. So the plans of these pages differ.
    found = {
        request: each
        for request, each in found.items()
        if "since=hour" not in request and request not in DIFFERENT
    }
    stored = json.loads(plans.FILE.read_text())
    # Only what is new: pages deep in the long thread of the large database do not exist here.
    differences = plans.compare(found, stored, plans.index_of)
    new = [each for each in differences if ": now " in each]
    if os.environ.get("UPDATE_PLANS"):
        for line in new:
            request, _, index = line.rpartition(": now ")
            index = "messages_pkey" if index == "messages" else index
            stored[request] = sorted([*stored[request], f"Index Scan {index}"])
        plans.FILE.write_text(json.dumps(stored, indent=1) + "\n")
        return
    assert not new, "\n".join(new)
