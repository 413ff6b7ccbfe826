"""Lists ordered by the value of a column: the newest rows, which the database sorts for each page."""

from __future__ import annotations

import itertools
import re
from datetime import timedelta
from types import ModuleType

import pytest
from django.db.models import F
from django.test import Client
from django.urls import reverse

from state_admin.models import Dispatch, Run
from state_admin.services.runs import cancel_run
from state_admin.web import (
    compactions,
    mailbox,
    paging,
    reverts,
    runs,
    tables,
    threads,
    webhook_deliveries,
)
from tests.builders import Person, make_run, make_thread
from tests.e2e.pages import LISTS_OF, fill

from .test_list_filters import headings
from .test_threads import htmx, page, walk

LISTS = {
    "compaction-list": compactions,
    "mailbox": mailbox,
    "revert-list": reverts,
    "run-list": runs,
    "thread-list": threads,
    "thread-runs": runs,
    "webhook-deliveries": webhook_deliveries,
}
SORTS = [
    (name, sort)
    for name, module in LISTS.items()
    for sort in module._TABLE.orders
    if sort[:1] != "-"
]


@pytest.fixture(scope="module")
def filled(one_alice: Person) -> Person:
    fill(one_alice)
    for number in range(3):
        make_run(one_alice.actor, "t1-fork", f"f{number}", agent_id="b" if number else "a~1")
        cancel_run(actor=one_alice.actor, run_id=f"f{number}")
    Run.objects.filter(public_id="f1").update(input_tokens=5)
    return one_alice


@pytest.fixture
def alice(filled: Person, db: None) -> Person:
    return filled


def address(name: str, kind: str) -> str:
    args = ["t1-fork"] if name == "thread-runs" else LISTS_OF.get(name, [])
    return reverse(f"web:{name}-{kind}", args=args)


@pytest.mark.parametrize(("name", "sort"), SORTS)
def test_list__ordered__has_each_row_once_over_its_pages(
    name: str, sort: str, admin: Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"{address(name, 'json')}?sort={sort}"
    (whole,) = walk(admin, url)
    assert len(whole) == len(set(whole))
    assert sorted(whole) == sorted(walk(admin, address(name, "json"))[0])
    module: ModuleType = LISTS[name]
    monkeypatch.setattr(module, "PAGE", 1)
    assert walk(admin, url) == [[each] for each in whole]
    if f"-{sort}" in module._TABLE.orders:
        assert walk(admin, f"{address(name, 'json')}?sort=-{sort}") == [
            [each] for each in whole[::-1]
        ]


def test_runs__ordered_by_a_column__are_in_the_order_of_its_values(
    admin: Client, one_alice: Person, db: None
) -> None:
    alice = one_alice.actor
    for number, (agent, tokens, minutes) in enumerate([("b", 5, 9), ("a", 9, 3), ("c", 0, 6)]):
        make_thread(alice, f"o{number}")
        run = make_run(alice, f"o{number}", f"o{number}", agent_id=agent)
        if number:
            cancel_run(actor=alice, run_id=f"o{number}")
        rows = Run.objects.filter(pk=run.pk)
        ended = F("created_at") if number else None
        rows.update(input_tokens=tokens, created_at=F("created_at") - timedelta(minutes=minutes))
        rows.update(finished_at=ended and F("created_at") + timedelta(minutes=minutes))

    def ordered(sort: str) -> str:
        found = itertools.chain(*walk(admin, f"/runs.json?sort={sort}"))
        return "".join(each[1] for each in found if each.startswith("o"))

    assert ordered("agent") == "102"
    assert ordered("-tokens") == "102"
    assert ordered("-duration") == "210"  # an active run has none yet
    assert ordered("status")[0] == "0"


def test_mailbox__ordered_by_status__dead_letters_are_first(admin: Client, alice: Person) -> None:
    dead = Dispatch.objects.dead().get().public_id
    assert walk(admin, "/mailbox.json?sort=status")[0][0] == dead


def test_list__more_rows_than_are_sorted__has_the_newest_and_says_so(
    admin: Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    newest = walk(admin, "/runs.json")[0]
    monkeypatch.setattr(paging, "WINDOW", 2)
    shown = re.findall(r'<a data-row[^>]* href="/runs/([^"]+)"', page(admin, "/runs?sort=-steps"))
    assert sorted(shown) == sorted(newest[:2])
    for file in ("json", "csv"):
        refused = admin.get(f"/runs.{file}?sort=-steps")
        assert (refused.status_code, b"at most 2 rows" in refused.content) == (400, True)
    monkeypatch.setattr(runs, "PAGE", 1)
    monkeypatch.setattr(tables, "COUNTED", 2)
    assert "2+ runs; the newest 2 are sorted" in page(admin, "/runs?sort=-steps")
    assert "are sorted" not in page(admin, "/runs?sort=oldest")


def test_list__in_a_bounded_order__links_to_files_with_all_rows(
    admin: Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paging, "WINDOW", 2)
    shown = page(admin, "/runs?sort=-steps&status=done")
    assert '<a href="/runs.json?status=done" title="All rows, newest first">' in shown
    assert "Download the filtered list as CSV: all rows, newest first" in shown
    assert '<a href="/runs.json?sort=oldest">' in page(admin, "/runs?sort=oldest")


@pytest.mark.parametrize("after", ["x", "~1", "1~x", "1~" + "9" * 30])
def test_list__invalid_cursor__is_refused(after: str, admin: Client, alice: Person) -> None:
    assert admin.get(f"/runs?sort=-steps&after={after}").status_code == 400


def test_runs_of_a_thread__headings_and_menu__stay_in_the_tab(admin: Client, alice: Person) -> None:
    shown = page(admin, "/threads/t1-fork?tab=runs&columns=steps,status")
    assert headings(shown) == {
        "Run": ("", ""),
        "Steps": ("", "/threads/t1-fork?tab=runs&sort=-steps&columns=steps%2Cstatus"),
        "Status": ("", "/threads/t1-fork?tab=runs&sort=status&columns=steps%2Cstatus"),
    }
    assert '<input type="hidden" name="tab" value="runs">' in shown
    ordered = page(admin, "/threads/t1-fork?tab=runs&sort=-steps")
    assert headings(ordered)["Steps"] == ("descending", "/threads/t1-fork?tab=runs&sort=steps")
    headers = htmx("run-table") | {"HX-Source": "form#filters"}
    chosen = admin.get("/threads/t1-fork?tab=runs&columns=key&columns=steps", headers=headers)
    assert chosen["HX-Replace-Url"] == "/threads/t1-fork?tab=runs&columns=steps"


def test_compactions_of_a_thread__table__is_ordered_and_downloaded(
    admin: Client, alice: Person
) -> None:
    shown = page(admin, "/threads/t1?tab=compactions&columns=status,before,actions")
    assert headings(shown) == {
        "Compaction": ("", ""),
        "Status": ("", "/threads/t1?tab=compactions&sort=status&columns=status%2Cbefore%2Cactions"),
        "Before": (
            "",
            "/threads/t1?tab=compactions&sort=-before&columns=status%2Cbefore%2Cactions",
        ),
        "Actions": ("", ""),
    }
    (own,) = walk(admin, "/compactions.json?thread=t1")
    assert 'href="/compactions.json?thread=t1"' in shown
    ordered = page(admin, "/threads/t1?tab=compactions&sort=-before")
    assert headings(ordered)["Before"][0] == "descending"
    assert {each for each in own if f'href="/compactions/{each}"' in ordered} == set(own)
