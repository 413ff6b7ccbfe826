"""Every list as JSON and as CSV: the same rows, all of them, and never a formula."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from state_admin.web import entry_list, threads
from state_admin.web.lists import cell
from state_admin.web.urls import urlpatterns
from tests.builders import Person, make_namespace, make_thread, put
from tests.e2e.pages import fill

LISTS = sorted(
    name.removesuffix("-csv")
    for pattern in urlpatterns
    if (name := getattr(pattern, "name", None)) and name.endswith("-csv")
)


def read_csv(client: Client, path: str) -> list[dict[str, str]]:
    response: Any = client.get(path)
    assert response.status_code == 200
    assert response["Content-Type"] == "text/csv; charset=utf-8"
    assert response["Content-Disposition"].startswith("attachment; ")
    return list(csv.DictReader(io.StringIO(b"".join(response).decode())))


def address(name: str, kind: str) -> str:
    return reverse(f"web:{name}-{kind}", args=["hook1"] if "deliveries" in name else [])


def check(name: str, client: Client, alice: Person) -> None:
    """The CSV has the rows of the JSON, of which there are some."""
    fill(alice)
    items = client.get(address(name, "json")).json()["items"]
    rows = read_csv(client, address(name, "csv"))
    assert items
    assert len(rows) >= len(items)
    assert list(rows[0]) == list(items[0])


@pytest.mark.parametrize("name", [name for name in LISTS if name != "change-list"])
def test_list__csv__has_the_fields_and_rows_of_the_json(
    name: str, admin: Client, alice: Person
) -> None:
    check(name, admin, alice)


def test_changes__csv__has_the_fields_and_rows_of_the_json(
    transactional_db: None, admin: Client, alice: Person
) -> None:
    """The feed shows what is committed only, so a transaction around the test would hide it."""
    check("change-list", admin, alice)


def test_lists__known__are_these() -> None:
    assert LISTS == [
        "audit-list",
        "change-list",
        "compaction-list",
        "entry-list",
        "inbox",
        "mailbox",
        "namespace-list",
        "run-list",
        "thread-list",
        "ticket-list",
        "webhook-deliveries",
    ]


def test_csv__many_pages__all_rows_with_the_filters(
    admin: Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "PAGE", 2)
    for number in range(7):
        make_thread(alice.actor, f"a{number}")
    make_thread(alice.actor, "b")
    rows = read_csv(admin, "/threads.csv?prefix=a")
    assert [row["id"] for row in rows] == [f"a{number}" for number in range(7)]


def test_csv__pages_without_a_fit__go_on_to_the_next(
    admin: Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entry_list, "PAGE", 1)
    monkeypatch.setattr(entry_list, "_WINDOW", 1)
    make_namespace(alice.actor, "team")
    for key in ("a", "b", "c"):
        put(alice.actor, "team", key, 1)
    rows = read_csv(admin, "/state.csv?namespace=team&since=hour")
    assert [row["key"] for row in rows] == ["a", "b", "c"]


def test_csv__wrong_filter__is_refused_before_it_begins(admin: Client) -> None:
    assert admin.get("/runs.csv?before=x").status_code == 400


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1"])
def test_cell__formula__is_text(text: str, admin: Client, alice: Person) -> None:
    assert cell(text) == f"'{text}"
    make_thread(alice.actor, "t", title=text)
    (row,) = read_csv(admin, "/threads.csv")
    assert row["title"][:1] == "'" or not row["title"]


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, ""), (-3, "-3"), (True, "true"), ("a,b", "a,b"), ({"a": "ü"}, '{"a": "ü"}')],
)
def test_cell__value__as_people_write_it(value: object, shown: str) -> None:
    assert cell(value) == shown
