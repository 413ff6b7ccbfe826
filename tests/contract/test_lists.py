"""Properties of every list: an order, a time range, and consistent pages
(docs/guides/requests.md)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from benchmarks.plans import GROWING
from benchmarks.seeded_rows import Seeding, Size
from state_admin.contract import OPERATIONS
from state_admin.contract.base import Paging, TimeRange
from state_admin.domain.access import Role
from state_admin.models import AuditRow, Run, Thread
from tests.builders import Person, call, make_person, make_run, make_thread
from tests.contract.test_permissions import TABLE, Row, World, world
from tests.contract.test_requests import operation_of
from tests.e2e.pages import fill

__all__ = ["world"]

# Lists that are not ordered by creation time; docs/guides/requests.md states the reasons.
TIMELESS = {"read_knowledge", "list_readers", "list_storage"}
# By namespace and key; its statement supports one direction.
ONE_WAY = {"list_state"}

LISTS: dict[str, Row] = {
    operation_of(row): row
    for row in TABLE
    if row.path != "unknown" and issubclass(OPERATIONS[operation_of(row)].query, Paging)
}
RANGED = {name: row for name, row in LISTS.items() if issubclass(OPERATIONS[name].query, TimeRange)}


def items(world: World, row: Row, query: str) -> list[Any]:
    url, _, _ = world.request_of(row)
    answer = call(world.secrets["admin"], "GET", f"{url}{'&' if '?' in url else '?'}{query}")
    assert answer.status_code == 200, (row.url, answer.content)
    return answer.json()["items"]  # type: ignore[no-any-return]


def test_lists__each_with_pages__has_a_time_range_and_an_order() -> None:
    assert LISTS.keys() - RANGED.keys() == TIMELESS
    ordered = {name for name in RANGED if "order" in OPERATIONS[name].parameters}
    assert RANGED.keys() - ordered == ONE_WAY


def test_time_range__every_list__is_half_open(world: World) -> None:
    wrong = {}
    for name, row in RANGED.items():
        everything = items(world, row, "limit=200")
        for query, expected in {
            "created_after=0001-01-01T00:00:00Z": everything,
            "created_after=0001-01-01T00:00:00%2B14:00": everything,
            "created_before=0001-01-01T00:00:00Z": [],
            "created_after=2000-01-01T00:00:00Z": everything,
            "created_before=2000-01-01T00:00:00Z": [],
            "created_after=2999-01-01T00:00:00Z": [],
            "created_before=2999-01-01T00:00:00Z": everything,
            "created_after=9999-12-31T23:59:59Z": [],
            "created_before=9999-12-31T23:59:59Z": everything,
            "created_before=9999-12-31T23:59:59-14:00": everything,
        }.items():
            if (found := items(world, row, f"limit=200&{query}")) != expected:
                wrong[name, query] = (len(found), len(expected))
    assert wrong == {}


def test_order__every_list__is_reversed(world: World) -> None:
    wrong = {}
    for name, row in RANGED.items():
        if name not in ONE_WAY:
            up, down = (items(world, row, f"limit=200&order={order}") for order in ("asc", "desc"))
            default = items(world, row, "limit=200")
            if up != down[::-1] or default not in (up, down):
                wrong[name] = (up, down)
    assert wrong == {}


@pytest.fixture
def dated(alice: Person) -> list[datetime]:
    """Threads t0 to t9, one per second; of two neighbours the later one has the lower id."""
    start = datetime.fromisoformat("2026-01-01T00:00:00+00:00")
    moments = [start + timedelta(seconds=number) for number in range(10)]
    for number in range(10):
        name = f"t{number ^ 1}"
        make_thread(alice.actor, name)
        Thread.objects.filter(public_id=name).update(created_at=moments[number ^ 1])
    return moments


@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize("limit", [1, 3, 200])
def test_time_range__pages__have_each_row_once(
    order: str, limit: int, dated: list[datetime], alice: Person
) -> None:
    query = f"/threads?order={order}&limit={limit}&created_after={dated[2].isoformat()}"
    query = f"{query}&created_before={dated[7].isoformat()}".replace("+", "%2B")
    found: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = alice.api("GET", f"{query}&cursor={cursor}" if cursor else query).json()
        found += [item["id"] for item in page["items"]]
        cursor = page["next_cursor"]
    expected = ["t3", "t2", "t5", "t4", "t6"]
    assert found == (expected if order == "asc" else expected[::-1])


def test_time_range__after_an_import_of_old_rows__has_all_rows(
    alice: Person, dated: list[datetime]
) -> None:
    """Imported rows keep their time and get new ids."""
    other = make_person("carol", "imported", Role.ADMIN)
    for number in range(30):
        make_thread(other.actor, f"old{number}")
        make_run(other.actor, f"old{number}", f"old{number}")
    make_run(alice.actor, "t0", "r0")
    ids = [row.pk for row in AuditRow.objects.filter(workspace=alice.workspace)]
    assert ids
    assert min(ids) < AuditRow.objects.filter(workspace=other.workspace).latest("pk").pk
    for model, column in ((Thread, "created_at"), (Run, "created_at"), (AuditRow, "at")):
        for person, age in ((alice, 1), (other, 2_000)):
            rows = model.objects.filter(workspace=person.workspace)
            rows.update(**{column: dated[0] - timedelta(days=age)})
    query = f"limit=200&created_after={dated[0] - timedelta(days=9):%Y-%m-%dT%H:%M:%SZ}"
    for path, count in (("threads", 10), ("runs", 1), ("audit", len(ids))):
        assert len(alice.api("GET", f"/{path}?{query}").json()["items"]) == count, path
        assert other.api("GET", f"/{path}?{query}").json()["items"] == [], path


def test_cursor__for_another_order_or_range__is_400(alice: Person) -> None:
    for number in range(3):
        make_thread(alice.actor, f"t{number}")
    cursor = alice.api("GET", "/threads?limit=1").json()["next_cursor"]
    for query in ("order=asc", "created_after=2020-01-01T00:00:00Z"):
        answer = alice.api("GET", f"/threads?limit=1&cursor={cursor}&{query}")
        assert (answer.status_code, answer.json()["detail"]) == (
            400,
            "cursor does not match the filters",
        )


# At scale ----------------------------------------------------------------------------------------

# More than a window of the lists, less than a table.
MOST_SORTED = 12_000

LARGE_LISTS = ("/threads", "/runs", "/audit", "/dispatches", "/compactions", "/state", "/state/{0}")


@pytest.fixture
def seeding(alice: Person) -> Iterator[Seeding]:
    fill(alice)
    with connection.cursor() as cursor:
        made = Seeding(
            alice.workspace.pk, Size(entries=50_000, threads=5_000, messages=20_000, value_mb=5)
        )
        made.cursor = cursor
        made.people()
        made.namespaces()
        made.entries()
        made.threads()
        made.work()
        cursor.execute("ANALYZE")
        yield made


def test_time_range__many_rows__no_table_is_read_or_sorted_completely(
    alice: Person, seeding: Seeding
) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT n.name FROM entries e JOIN namespaces n ON n.id = e.namespace_id"
            " GROUP BY n.name ORDER BY count(*) DESC LIMIT 1"
        )
        largest = cursor.fetchone()[0]
        cursor.execute(
            "SELECT percentile_disc(ARRAY[0.1, 0.9]) WITHIN GROUP (ORDER BY created_at) FROM threads"
        )
        early, late = cursor.fetchone()[0]
    faults = []
    for path in LARGE_LISTS:
        for query in (
            f"created_before={early.isoformat()}",
            f"created_after={late.isoformat()}",
            f"created_after={early.isoformat()}&created_before={late.isoformat()}",
        ):
            for order in ("", "&order=asc") if path != "/state" else ("",):
                url = f"{path.format(largest)}?{query}{order}".replace("+", "%2B")
                with CaptureQueriesContext(connection) as queries:
                    assert alice.api("GET", url).status_code == 200, url
                for each in queries:
                    faults += [f"{url}: {fault}" for fault in _faults(each["sql"], path[1:])]
    assert faults == []


def _faults(statement: str, listed: str) -> Iterator[str]:
    """What is wrong with the plan. `threads` is small here, so a join may read all of it."""
    if not statement.lstrip().startswith("SELECT"):
        return
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (FORMAT JSON) {statement.replace('%', '%%')}", ())
        (found,) = cursor.fetchone()
    nodes = [(json.loads(found) if isinstance(found, str) else found)[0]["Plan"]]
    for node in nodes:
        nodes += node.get("Plans", [])
        if node["Node Type"] == "Seq Scan" and node["Relation Name"] in GROWING | {listed}:
            yield f"reads all of {node['Relation Name']} {statement[:200]}"
        if node["Node Type"] == "Sort" and node["Plan Rows"] > MOST_SORTED:
            yield f"sorts {node['Plan Rows']} rows {statement[:200]}"


def test_runs__time_range__with_their_parents(alice: Person) -> None:
    make_thread(alice.actor, "t1")
    make_run(alice.actor, "t1", "r1")
    moment = Run.objects.get().created_at.isoformat().replace("+", "%2B")
    for query, count in (("created_after", 1), ("created_before", 0)):
        assert len(alice.api("GET", f"/runs?{query}={moment}").json()["items"]) == count
