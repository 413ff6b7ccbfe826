"""Measures time, statements and size of every admin page over a large database, against limits.

    python -m benchmarks.pages [--entries 200000] [--threads 5000] [--messages 20000]
        [--value-mb 5] [--rounds 9] [--keep FOLDER] [--only TEXT]

In one process, without a network: Django's handler with all its middleware, as a signed-in member.
Each page is requested once for warm-up, and so is each fragment that a page loads afterwards (marked
with + in the table). Then each round requests all of them once, so that other load on the machine
affects all alike. The table shows medians and the best round. The exit code is 1 if a page takes
longer than LIMIT_MS, a fragment takes longer than FRAGMENT_LIMIT_MS, a response other than the editor
is larger than LIMIT_KB, or a response has a status of 500 or more. With --keep the database is kept in FOLDER and used again.
"""

from __future__ import annotations

import argparse
import gc
import html
import json
import re
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.databases import migrate, own_database
from benchmarks.seeded_rows import Size
from benchmarks.seeding import seed

LIMIT_MS = 100
FRAGMENT_LIMIT_MS = 200
LIMIT_KB = 300
# The editor has the whole value, so its size has no limit.
_EDITOR = "/entry/edit/"
# An element that loads after the page; its id, address and target.
_LATER = re.compile(r'<[^>]*hx-trigger="load[" ,][^>]*>')
_ATTRIBUTE = re.compile(r'(?<![\w-])(id|hx-get|hx-target)="([^"]*)"')


@dataclass
class Measured:
    """A page, or a fragment with the headers of htmx."""

    page: str
    headers: dict[str, str]
    status: int
    kilobytes: float
    milliseconds: list[float] = field(default_factory=list)
    statements: int = 0
    sql_milliseconds: list[float] = field(default_factory=list)

    @property
    def is_fragment(self) -> bool:
        return bool(self.headers)

    @property
    def median(self) -> float:
        return statistics.median(self.milliseconds)

    @property
    def faults(self) -> str:
        found = []
        if self.median > (FRAGMENT_LIMIT_MS if self.is_fragment else LIMIT_MS):
            found.append("slow")
        if self.kilobytes > LIMIT_KB and not self.page.startswith(_EDITOR):
            found.append("large")
        if self.status >= 500:
            found.append("broken")
        return " ".join(found)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--entries", type=int, default=200_000)
    options.add_argument("--threads", type=int, default=5_000)
    options.add_argument("--messages", type=int, default=20_000)
    options.add_argument("--value-mb", type=float, default=5)
    options.add_argument("--rounds", type=int, default=9)
    options.add_argument("--keep", type=Path)
    options.add_argument("--only", default="")
    arguments = options.parse_args()
    size = Size(arguments.entries, arguments.threads, arguments.messages, arguments.value_mb)
    with own_database(arguments.keep):
        prepare(size, arguments.keep)
        measured = measure(arguments.rounds, arguments.only)
    show(measured)
    if any(each.faults for each in measured):
        sys.exit(1)


def prepare(size: Size, folder: Path | None) -> None:
    """Migrate, and seed unless the folder contains a seeded database."""
    migrate()
    mark = folder / "seeded.json" if folder else None
    if mark and mark.exists():
        print(f"as seeded: {mark.read_text()}")
        return
    seed(size)
    if mark:
        mark.write_text(json.dumps(asdict(size)))


def addresses() -> list[str]:
    """Return the pages of the sweep, pages far inside large lists, and lists as JSON."""
    from django.urls import reverse

    from state_admin.web.addresses import entry_action_url, entry_url, thread_url
    from state_admin.web.urls import urlpatterns
    from tests.e2e.pages import LISTS_OF, PAGES

    names = [str(getattr(pattern, "name", "")) for pattern in urlpatterns]
    lists = [
        reverse(f"web:{name}", args=LISTS_OF.get(name.removesuffix("-json"), []))
        for name in names
        if name.endswith("-json")
    ]
    deep = [
        "/state?namespace=facts",
        "/state?namespace=facts&scope=custom",
        "/state?namespace=facts&after=facts/customer/80",
        "/state?namespace=facts&tag=vip",
        "/state?namespace=facts&tag=nothing",
        "/state?namespace=facts&actor=nobody",
        "/state?namespace=facts&since=hour",
        "/state?namespace=area-000&show=invalid",
        "/state?namespace=area-000&sort=-changed",
        "/state?namespace=area-000&sort=actor&tag=vip",
        "/state?namespace=facts&sort=-size",
        "/state?prefix=thread::th-0012",
        "/state?prefix=customer/80",
        "/state?scope=custom",
        "/state?tag=nothing",
        "/state?text=customer",
        "/state?text=nothing-like-it",
        "/state?namespace=facts&text=a*&tag=nothing",
        '/state?namespace=facts&scope=custom&text="',
        "/state?since=day",
        "/state?show=invalid",
        "/entries/new?namespace=facts",
        "/namespaces/facts",
        "/namespaces/facts/edit",
        "/namespaces/facts/unregister",
        "/namespaces/facts/compact",
        entry_url("facts", "hot"),
        entry_url("facts", "hot", tab="history"),
        entry_url("facts", "hot", tab="history", before=1000),
        entry_url("facts", "hot", tab="history", diff="10..19000"),
        entry_url("facts", "hot", tab="blame"),
        entry_url("facts", "hot", version=77),
        entry_action_url("readers", "facts", "hot"),
        entry_action_url("readers", "facts", "hot", version=5),
        *(
            url
            for key in ("tree", "text")
            for url in (
                entry_url("huge", key),
                entry_url("huge", key, tab="text"),
                entry_url("huge", key, tab="history"),
                entry_url("huge", key, tab="history", diff="1..3"),
                entry_url("huge", key, tab="blame"),
                entry_url("huge", key, tab="code"),
                entry_url("huge", key, version=1),
                entry_action_url("edit", "huge", key),
                entry_action_url("delete", "huge", key),
                entry_action_url("restore", "huge", key, version=1),
            )
        ),
        entry_action_url("tree", "huge", "tree", pointer="/items"),
        entry_action_url("tree", "huge", "tree", pointer="/items", start=2000),
        "/go?q=thread::th-00",
        "/go?q=facts/customer/8",
        "/go?q=th-0000",
        "/go?q=run-00",
        "/go?q=nothing of the kind",
        "/changes?kind=thread.create",
        "/changes?actor=nobody",
        "/changes?namespace=area-199&kind=entry",
        "/audit?actor=nobody",
        "/audit?subject=facts/hot",
        "/audit?since=2020-01-01T00:00&actor=agent-1",
        "/threads?resource=user-77",
        "/threads?agent=helper-3",
        "/threads?status=idle",
        "/threads?status=stuck",
        "/threads?status=waiting",
        "/threads?prefix=th-0004",
        "/threads?text=trip",
        "/threads?text=nothing",
        "/threads?text=nothing&after=m2000",
        "/threads?sort=tokens",
        "/threads?sort=-updated",
        "/threads?sort=activity",
        "/threads?after=2000",
        "/threads?sort=oldest",
        "/threads?since=week&status=idle",
        "/threads?since=day&sort=tokens",
        "/threads?until=2020-01-31T18:30",
        thread_url("long"),
        thread_url("long", message=9000),
        thread_url("long", before=500),
        thread_url("long", tab="context"),
        thread_url("long", tab="context", max_tokens=8000),
        thread_url("long", tab="state"),
        thread_url("long", tab="state", at=9000),
        thread_url("long", tab="state", at=9000, **{"from": 100, "to": 15000}),
        thread_url("long", tab="compactions"),
        thread_url("long", tab="runs"),
        "/thread/delete/long",
        "/thread/compact-snapshots/long",
        "/thread/restore/long?at=9000",
        "/thread/fork/long?at=9000",
        thread_url("th-000000"),
        thread_url("th-000001"),
        thread_url("th-000005"),
        thread_url("huge"),
        thread_url("huge", tab="context"),
        thread_url("huge", tab="state"),
        thread_url("huge", tab="state", at=2, **{"from": 1, "to": 3}),
        "/thread/message/1/huge",
        "/thread/message/3/huge",
        "/thread/restore/huge?at=2",
        "/runs?status=stuck",
        "/runs?status=active",
        "/runs?status=done",
        "/runs?status=created",
        "/runs?agent=nobody",
        "/runs?agent=helper-1&status=waiting",
        "/runs?age=7d&status=running",
        "/runs?after=3000",
        "/runs?sort=oldest",
        "/runs?sort=-steps",
        "/runs?status=done&sort=-duration",
        "/runs?since=week&status=done",
        "/runs?since=week&agent=helper-1",
        "/runs?age=1h&status=waiting&sort=oldest",
        "/runs/r-long",
        "/runs/r-long?before=9000",
        "/runs/r-long?order=oldest",
        "/runs/r-long?order=oldest&after=9000",
        "/runs/r-huge",
        "/run/knowledge/r-huge",
        "/run/knowledge/r-long",
        "/run/knowledge/r-long?step=9000",
        "/run/cancel/r-long",
        "/run/resume/r-long?revision=9000",
        "/inbox?tool=tool-3",
        "/mailbox?status=Queued",
        "/mailbox?sort=-attempts",
        "/mailbox?agent=nobody",
        "/mailbox?thread=th-000101",
        "/compactions?status=failed",
        "/compactions?sort=-saved",
        "/compactions?status=running",
        "/compactions/compaction-0",
        "/webhooks/hook1?status=dead",
        "/usage?group=thread",
    ]
    return [*PAGES, *deep, *lists]


def allow_test_client() -> None:
    """Change the settings so that Django's test client gets pages."""
    from django.conf import settings

    settings.ALLOWED_HOSTS = ["testserver"]
    # Hashed file names exist only after collectstatic, which benchmarks skip.
    settings.STORAGES["staticfiles"]["BACKEND"] = (
        "django.contrib.staticfiles.storage.StaticFilesStorage"
    )


def measure(rounds: int, only: str) -> list[Measured]:
    from django.contrib.auth import get_user_model
    from django.test import Client

    allow_test_client()
    client = Client(raise_request_exception=False)
    client.force_login(get_user_model().objects.get(username="alice"))
    found = []
    waiting: list[tuple[str, dict[str, str]]] = [(each, {}) for each in addresses() if only in each]
    seen = set()
    while waiting:
        page, headers = waiting.pop(0)
        response = client.get(page, headers=headers)
        kilobytes = len(response.content) / 1024
        found.append(Measured(page, headers, response.status_code, kilobytes))
        if not headers:
            for later in fragments(response):
                if later[0] not in seen:
                    seen.add(later[0])
                    waiting.append(later)
    gc.freeze()  # so that garbage collections do not scan the objects that the warm-up left
    for _ in range(rounds):
        for each in found:
            with timed_statements() as statements:
                started = time.perf_counter()
                client.get(each.page, headers=each.headers)
                each.milliseconds.append((time.perf_counter() - started) * 1000)
            each.statements = len(statements)
            each.sql_milliseconds.append(sum(statements) * 1000)
    return found


def fragments(response: Any) -> list[tuple[str, dict[str, str]]]:
    """The addresses that htmx loads after the page, and the headers that the server uses."""
    found = []
    if response.get("Content-Type", "").startswith("text/html"):
        for tag in _LATER.findall(response.content.decode()):
            attributes = dict(_ATTRIBUTE.findall(tag))
            target = attributes.get("hx-target", "this").lstrip("#")
            target = attributes.get("id", "") if target == "this" else target
            headers = {
                "HX-Request": "true",
                "HX-Request-Type": "partial",
                "HX-Target": f"div#{target}",
            }
            if address := html.unescape(attributes.get("hx-get", "")):
                found.append((address, headers))
    return found


@contextmanager
def timed_statements() -> Iterator[list[float]]:
    """Record the seconds of each statement, of the ORM and hand-written ones."""
    from django.db import connection

    from state_admin.models import hot

    taken: list[float] = []

    def timed(ask: Callable[..., Any], *args: Any) -> Any:
        started = time.perf_counter()
        try:
            return ask(*args)
        finally:
            taken.append(time.perf_counter() - started)

    fetch_all = hot.fetch_all
    hot.fetch_all = lambda *args: timed(fetch_all, *args)
    try:
        with connection.execute_wrapper(timed):
            yield taken
    finally:
        hot.fetch_all = fetch_all


def show(measured: list[Measured]) -> None:
    print(f"\n{'page':64}{'ms':>8}{'best':>8}{'SQL':>5}{'SQL ms':>8}{'kB':>8}")
    for each in sorted(measured, key=lambda each: -each.median):
        sql = statistics.median(each.sql_milliseconds)
        note = each.faults or (str(each.status) if each.status != 200 else "")
        page = f"+ {each.page}" if each.is_fragment else each.page
        print(
            f"{page:64}{each.median:8.1f}{min(each.milliseconds):8.1f}"
            f"{each.statements:5}{sql:8.1f}"
            f"{each.kilobytes:8.1f}  {note}"
        )
    for kind, some in (
        ("pages", [each for each in measured if not each.is_fragment]),
        ("fragments", [each for each in measured if each.is_fragment]),
    ):
        if some:
            medians = [each.median for each in some]
            print(
                f"\n{len(some)} {kind}: median {statistics.median(medians):.1f} ms, slowest"
                f" {max(medians):.1f} ms, largest {max(each.kilobytes for each in some):.0f} kB,"
                f" {sum(bool(each.faults) for each in some)} over a limit"
            )


if __name__ == "__main__":
    main()
