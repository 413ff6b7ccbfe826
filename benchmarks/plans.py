"""The plans of all hot statements over a large database, compared with the committed ones.

    python -m benchmarks.plans [--entries 10000000] [--threads 100000] [--keep FOLDER] [--write]

Pages, lists of the API, writes and sweeps run in a transaction that is rolled back. For each, plans.json
has the node types and indexes with which PostgreSQL reads the large tables, without costs. The exit code
is 1 if a plan differs, or reads a whole table that no exception names. --write stores the plans.
--keep is as in benchmarks.pages, whose database this benchmark can use. tests/web/test_plans.py makes a
small database look as large to the planner, and compares with the same file.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from unittest.mock import patch

import psycopg

from benchmarks.databases import own_database
from benchmarks.seeded_rows import Seeding, Size

T = TypeVar("T", bound=Sequence[object])
# What each request reads: lines such as `Index Scan audit_workspace_newest`.
Plans = dict[str, list[str]]

FILE = Path(__file__).with_name("plans.json")
LARGE = frozenset(Seeding.BULK)
_OF_THREAD = {"messages_pkey", "messages_seq_unique", "messages_id_unique"}
# Those that grow with every write. The others have a row per thread or run, and a plan that reads a whole
# one may be right.
GROWING = frozenset(
    {"entries", "entry_revisions", "changes", "audit", "messages", "revisions", "state_values"}
)
# A page or a window of a list never sorts more rows than this.
MOST_SORTED = 1_000_000
SORT = f"Sort of more than {MOST_SORTED:,} rows"
# The plans that most pages have in common, those of the navigation.
EVERY_PAGE = "every page"
# The tables of which requests have to read everything. Such sweeps pause in proportion to their duration.
WHOLE = {"sweep: measure usage": {"entries"}}


class Recorder:
    """Explains each statement before it runs."""

    def __init__(self) -> None:
        self.plans: Plans = {}
        # Explain the plan that statements have for all parameters.
        self.generic = False
        self._found: set[str] = set()
        self._explaining = False
        self._tables: dict[str, str] = {}

    @contextmanager
    def recording(self) -> Iterator[None]:
        from django.db import connection

        from state_admin.models import hot

        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT indexrelid::regclass::text, indrelid::regclass::text FROM pg_index"
            )
            self._tables = dict(cursor.fetchall())
        number = hot.number

        def numbered(statement: str, parameters: Mapping[str, Any]) -> Any:
            found = number(statement, parameters)
            if self.generic:
                unbound = psycopg.ClientCursor(connection.connection)
                self._explain(
                    found[0].decode(),
                    lambda text: unbound.execute(text).fetchall(),
                    "GENERIC_PLAN,",
                )
            else:
                self._explain(statement, lambda text: hot.fetch_all(text, parameters))
            return found

        def executed(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
            def ask(text: str) -> Any:
                with connection.cursor() as cursor:
                    cursor.execute(text, params)
                    return cursor.fetchall()

            if not many:
                self._explain(sql, ask)
            return execute(sql, params, many, context)

        with patch.object(hot, "number", numbered), connection.execute_wrapper(executed):
            yield

    def note(self, request: str, work: Callable[[], object]) -> None:
        """Perform `work` and store the plans of its statements."""
        self._found = set()
        work()
        self.plans[request] = sorted(self._found)

    def _explain(self, statement: str, ask: Callable[[str], Any], how: str = "") -> None:
        verb = statement.split(None, 1)[0].upper()
        if self._explaining or verb not in {"SELECT", "WITH", "INSERT", "UPDATE", "DELETE"}:
            return
        self._explaining = True
        try:
            ((found,),) = ask(f"EXPLAIN ({how} FORMAT JSON) {statement}")
        finally:
            self._explaining = False
        found = json.loads(found) if isinstance(found, str | bytes) else found
        nodes = [found[0]["Plan"]]
        for node in nodes:
            nodes += node.get("Plans", [])
            index = node.get("Index Name")
            table = self._tables.get(index, node.get("Relation Name", ""))
            if "Scan" in node["Node Type"] and table in LARGE and "Heap" not in node["Node Type"]:
                self._found.add(f"{node['Node Type']} {index or table}")
            if node["Node Type"] == "Sort" and node["Plan Rows"] > MOST_SORTED:
                self._found.add(SORT)


class SameConnection:
    """Instead of a session of the event loop (project/postgres/sessions.py), which plans each statement
    once: Django's connection."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    async def fetch_each(self, calls: Sequence[Any], *, commit: bool = False) -> list[list[Any]]:
        from state_admin.models import hot

        self._recorder.generic = True
        try:
            return [hot.fetch_all(*call) for call in calls]
        finally:
            self._recorder.generic = False

    @asynccontextmanager
    async def transaction(self) -> Any:
        yield


def complete(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never waits, without an event loop, and check that it had results."""
    try:
        work.send(None)
    except StopIteration as done:
        results: T = done.value
        for result in results:
            if result is None or isinstance(result, Exception):
                raise RuntimeError("the joined call was not served") from result
        return results
    raise RuntimeError("the coroutine waits")


def collect(person: Any, addresses: Sequence[str]) -> Plans:
    """The plans of the pages at `addresses` and of all other hot statements, for a member of a seeded
    workspace (benchmarks.seeding). Its connection must be in a transaction that is rolled back."""
    from state_admin.models.limits import measure_usage

    measure_usage()
    recorder = Recorder()
    client = person.browser()
    with recorder.recording():
        for page in addresses:
            recorder.note(f"page {page}", partial(client.get, page))
        counts = Counter(plan for found in recorder.plans.values() for plan in found)
        common = {plan for plan, count in counts.items() if 2 * count > len(recorder.plans)}
        for request, found in recorder.plans.items():
            recorder.plans[request] = [each for each in found if each not in common]
        recorder.plans[EVERY_PAGE] = sorted(common)
        for path in lists():
            recorder.note(f"GET {path}", partial(_call, person, "GET", path))
        for request, work in writes(person, SameConnection(recorder)).items():
            recorder.note(request, work)
        for request, work in sweeps().items():
            recorder.note(f"sweep: {request}", work)
    return {request: found for request, found in sorted(recorder.plans.items()) if found}


def lists() -> list[str]:
    """Reads of the API: lists from their beginning and from within, with each kind of filter."""
    return [
        "/state/facts/hot",
        "/state/facts?limit=100",
        "/state/facts?prefix=thread::th-0012",
        "/state/facts?tag=vip",
        "/state/facts?updated_since=2020-01-01T00:00:00Z",
        "/state?prefix=customer/80",
        "/history/facts/hot",
        "/history/facts/hot?limit=100",
        "/reads/facts/hot",
        "/diff/facts/hot?from=10&to=150",
        "/changes",
        "/changes?limit=200&namespace=facts",
        "/changes?kind=thread.create",
        "/audit",
        "/audit?namespace=facts&key=hot",
        "/audit?actor=nobody",
        "/audit?created_after=2020-01-01T00:00:00Z",
        "/threads",
        "/threads?resource_id=user-77",
        "/threads/long",
        "/threads/long/messages",
        "/threads/long/context",
        "/threads/long/state",
        "/threads/long/state?revision=90",
        "/threads/long/snapshots",
        "/threads/long/lineage",
        "/runs",
        "/runs?status=running",
        "/runs?agent_id=helper-3",
        "/runs/r-long",
        "/runs/r-long/reads",
        "/runs/r-long/tickets",
        "/runs/r-long/knowledge",
        "/dispatches",
        "/dispatches/counts",
        "/tickets",
        "/compactions",
        "/usage",
        "/usage/storage",
        "/usage/storage/namespaces/facts",
        "/usage/storage/threads/long",
    ]


def writes(person: Any, joined: Any) -> dict[str, Callable[[], object]]:
    """One write of each kind, also as calls that are joined in the session `joined`."""
    from state_admin.api.commits import CommitCall, answer_commits
    from state_admin.api.joined_entries import WriteCall, answer_writes
    from state_admin.services import entry_views

    actor = person.actor
    value = {"title": "as ever", "n": 1}
    body = json.dumps({"value": value}).encode()
    step = {
        "messages": [{"role": "user", "content": "x"}],
        "updates": [{"key": "planned", "update": 1}],
    }
    put = WriteCall(actor, "facts", "hot", body, None, None, "", None, minimal=False)
    many = {
        "operations": [
            {"op": "put", "namespace": "facts", "key": f"b{n}", "value": value} for n in range(100)
        ]
    }

    def call(method: str, path: str, body: Any, **extra: Any) -> Callable[[], object]:
        return partial(_call, person, method, path, body, **extra)

    return {
        "PUT state key": call("PUT", "/state-keys/planned", {"scope": "thread"}),
        # First, because the joined calls need what it caches.
        "PUT entry": call("PUT", "/state/facts/hot", {"value": value}),
        "read an entry, joined": lambda: complete(
            entry_views.read_joined([(actor, "facts", "hot")], joined)
        ),
        "write an entry, joined": lambda: complete(answer_writes([put], joined)),
        "commit, joined": lambda: complete(
            answer_commits(
                [CommitCall(actor, "r-long", json.dumps(step).encode(), None, "", None)], joined
            )
        ),
        "PATCH entry": call(
            "PATCH", "/state/facts/hot", {"n": 2}, content_type="application/merge-patch+json"
        ),
        "DELETE entry": call("DELETE", "/state/facts/hot", None),
        "POST batch": call("POST", "/state/batch", many),
        "POST revert to a moment": lambda: _call(
            person,
            "POST",
            "/reverts?dry_run=true",
            {"at": datetime.now(UTC).isoformat(), "namespace": "facts"},
        ),
        "POST thread": call("POST", "/threads", {"id": "planned"}),
        "POST run": call("POST", "/threads/planned/runs", {"id": "planned", "agent_id": "x"}),
        "POST messages": call("POST", "/threads/planned/messages", {"messages": step["messages"]}),
        "POST commit": call("POST", "/runs/r-long/commits", step),
        "POST heartbeat": call("POST", "/runs/r-long/heartbeat", {}),
        "POST dispatch": call("POST", "/threads/th-000001/dispatches", {"payload": {}}),
    }


def sweeps() -> dict[str, Callable[[], object]]:
    """Everything that beat starts."""
    from state_admin.models import (
        audit_stream,
        dispatches_sql,
        limits,
        search,
        storage_sql,
        traffic,
        webhooks_sql,
    )
    from state_admin.services import (
        compactions,
        dead_letters,
        deliveries,
        maintenance,
        retention,
        revert_jobs,
    )

    def measure_usage() -> None:
        traffic.measure_queues()
        limits.measure_usage()

    def measure_storage() -> None:
        for walk in (storage_sql.entries(), storage_sql.histories(), storage_sql.threads()):
            next(walk, None)

    return {
        "expire entries": maintenance.expire_entries,
        "flag stuck runs": maintenance.flag_stuck_runs,
        "whether to flag stuck runs": maintenance.any_run_to_flag,
        "expire tickets": maintenance.expire_tickets,
        "whether to expire tickets": maintenance.any_ticket_due,
        "purge leftovers": maintenance.purge_leftovers,
        "purge deliveries": deliveries.purge_deliveries,
        "purge dispatches": dead_letters.purge_dispatches,
        "settle mailboxes": dispatches_sql.workspaces_with_due,
        "index entries": search.is_behind,
        "compact histories": retention.queue_histories,
        "compact snapshots": retention.queue_snapshots,
        "find lost compactions": maintenance.find_lost_compactions,
        "whether to find lost compactions": maintenance.any_compaction_lost,
        "whether to find lost reverts": revert_jobs.lost_jobs,
        "schedule compactions": compactions.request_scheduled,
        # With a destination, which the settings of the benchmark do not have.
        "stream audit": partial(audit_stream.has_work, "file:///audit"),
        "lag of the audit stream": partial(audit_stream.read_lag, "file:///audit"),
        "webhooks": webhooks_sql.has_work,
        "measure usage": measure_usage,
        "measure storage": measure_storage,
    }


def _call(person: Any, method: str, path: str, body: Any = None, **extra: Any) -> None:
    answer = person.api(method, path, body, **extra)
    if answer.status_code >= 400:
        raise RuntimeError(f"{method} {path}: {answer.status_code} {answer.content[:300]!r}")


def index_of(plan: str) -> str:
    """The index of a growing table, without the kind of scan, or an empty text. Indexes that begin with
    the thread of a message cost the same."""
    kind, _, name = plan.rpartition(" ")
    if not name.startswith(tuple(f"{table}_" for table in GROWING)) or kind == "Seq Scan":
        return ""
    return "messages" if name in _OF_THREAD else name


def whole_tables(plans: Plans) -> list[str]:
    """The requests that read or sort a whole growing table, and which."""
    return [
        f"{request}: {plan}"
        for request, found in plans.items()
        for plan in found
        if plan == SORT
        or (
            plan.startswith("Seq Scan")
            and plan.removeprefix("Seq Scan ") in GROWING - WHOLE.get(request, set())
        )
    ]


def compare(found: Plans, stored: Plans, view: Callable[[str], str] = str) -> list[str]:
    """The differences of requests that both have."""
    differences = []
    for request in sorted((found.keys() & stored.keys()) - {EVERY_PAGE}):
        now, was = (_all_plans(plans, request, view) for plans in (found, stored))
        differences += [f"{request}: now {plan}" for plan in sorted(now - was)]
        differences += [f"{request}: was {plan}" for plan in sorted(was - now)]
    return differences


def _all_plans(plans: Plans, request: str, view: Callable[[str], str]) -> set[str]:
    """Those of a request, for a page with those of every page."""
    common = plans[EVERY_PAGE] if request.startswith("page ") else []
    return {view(plan) for plan in (*plans[request], *common)}


@contextmanager
def rolled_back() -> Iterator[None]:
    from django.db import transaction

    class _RollBack(Exception):
        pass

    with suppress(_RollBack), transaction.atomic():
        yield
        raise _RollBack


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--entries", type=int, default=10_000_000)
    options.add_argument("--threads", type=int, default=100_000)
    options.add_argument("--keep", type=Path)
    options.add_argument("--write", action="store_true")
    arguments = options.parse_args()
    with own_database(arguments.keep):
        from benchmarks.pages import addresses, prepare

        prepare(Size(arguments.entries, arguments.threads, 20_000, 5), arguments.keep)
        plans = explain(addresses())
    faults = whole_tables(plans)
    if arguments.write:
        FILE.write_text(json.dumps(plans, indent=1) + "\n")
    else:
        faults += compare(plans, json.loads(FILE.read_text()))
    print("\n".join(faults) or f"{len(plans)} requests, plans as stored")
    if faults:
        sys.exit(1)


def explain(addresses: Sequence[str]) -> Plans:
    from benchmarks.pages import allow_test_client
    from state_admin.domain.access import Role
    from state_admin.services import batching
    from tests.builders import make_person

    allow_test_client()
    # One batch of each sweep.
    with patch.object(batching, "PATIENCE", 0.0), rolled_back():
        return collect(make_person("alice", "acme", Role.ADMIN), addresses)


if __name__ == "__main__":
    main()
