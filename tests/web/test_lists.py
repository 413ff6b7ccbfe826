"""Every list as JSON and as CSV: the same rows, all of them, and never a formula."""

from __future__ import annotations

import csv
import io
import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from state_admin.services.webhooks import create_webhook
from state_admin.web import entry_detail, entry_list, runs, threads
from state_admin.web.addresses import entry_url
from state_admin.web.lists import cell
from state_admin.web.urls import urlpatterns
from tests.builders import (
    Person,
    make_namespace,
    make_record,
    make_run,
    make_thread,
    make_token,
    put,
)
from tests.e2e.pages import LISTS_OF as OF
from tests.e2e.pages import fill
from tests.web.stories import create_story

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
    return reverse(f"web:{name}-{kind}", args=OF.get(name, []))


def check(name: str, client: Client) -> None:
    """The CSV has the rows of the JSON, at least one; an absent field is an empty cell."""
    items = client.get(address(name, "json")).json()["items"]
    rows = read_csv(client, address(name, "csv"))
    assert items
    assert len(rows) >= len(items)
    assert [name for name in rows[0] if name in items[0]] == list(items[0])


def test_changes__csv__has_the_fields_and_rows_of_the_json(
    transactional_db: None, admin: Client, alice: Person
) -> None:
    """The feed contains committed changes only, so a transaction around the test would hide
    them."""
    fill(alice)
    check("change-list", admin)


def test_lists__all__are_tested() -> None:
    assert LISTS == [
        "audit-list",
        "change-list",
        "compaction-list",
        "config-list",
        "entry-history",
        "entry-list",
        "inbox",
        "mailbox",
        "member-list",
        "namespace-list",
        "plugin-list",
        "policy-list",
        "revert-list",
        "run-list",
        "sessions",
        "state-key-list",
        "thread-list",
        "thread-runs",
        "ticket-list",
        "token-list",
        "webhook-deliveries",
        "webhook-list",
    ]


def test_csv__many_pages__contains_all_rows_with_the_filters(
    admin: Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "PAGE", 2)
    for number in range(7):
        make_thread(alice.actor, f"a{number}")
    make_thread(alice.actor, "b")
    rows = read_csv(admin, "/threads.csv?prefix=a")
    assert [row["id"] for row in rows] == [f"a{number}" for number in range(7)]


def test_csv__pages_without_matches__continues_with_the_next(
    admin: Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entry_list, "PAGE", 1)
    monkeypatch.setattr(entry_list, "_WINDOW", 1)
    make_namespace(alice.actor, "team")
    for key in ("a", "b", "c"):
        put(alice.actor, "team", key, 1)
    rows = read_csv(admin, "/state.csv?namespace=team&since=hour")
    assert [row["key"] for row in rows] == ["a", "b", "c"]


def test_csv__invalid_filter__is_refused_before_it_starts(admin: Client) -> None:
    assert admin.get("/runs.csv?after=x").status_code == 400


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1"])
def test_cell__formula__is_escaped(text: str, admin: Client, alice: Person) -> None:
    assert cell(text) == f"'{text}"
    make_thread(alice.actor, "t", title=text)
    (row,) = read_csv(admin, "/threads.csv")
    assert row["title"][:1] == "'" or not row["title"]


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, ""), (-3, "-3"), (True, "true"), ("a,b", "a,b"), ({"a": "ü"}, '{"a":"ü"}')],
)
def test_cell__value__is_readable(value: object, shown: str) -> None:
    assert cell(value) == shown


def items(client: Client, path: str) -> list[dict[str, Any]]:
    """All items of a list as JSON, page by page."""
    found = []
    while path:
        answer = client.get(path)
        assert answer.status_code == 200, path
        found += answer.json()["items"]
        path = answer.json()["next"]
    return found


def test_lists__secrets__are_never_included(admin: Client, viewer: Client, alice: Person) -> None:
    key = "sk-live-0123456789abcdef"
    make_record(alice.actor, "providers", "openai", {"adapter": "openai", "api_key": key})
    _, secret = create_webhook(
        actor=alice.actor, name="h", url="https://hooks.example.com/services/T0/very-secret"
    )
    token, _ = make_token(alice)
    session = admin.cookies["commonhold_session"].value
    told = ""
    for name in set(LISTS) - {"entry-history", "thread-runs", "webhook-deliveries"}:
        told += admin.get(address(name, "json")).content.decode()
        told += "".join(map(str, read_csv(admin, address(name, "csv"))))
    for hidden in (key, key[-4:], secret, token, token[-20:], session):
        assert hidden not in told
    assert "very-secret" not in viewer.get("/webhooks.json").content.decode()
    assert items(admin, "/webhooks.json")[0]["url"].endswith("very-secret")


def test_history__any_key__is_listed_page_by_page_without_values(
    admin: Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entry_detail, "HISTORY_PAGE", 2)
    make_namespace(alice.actor, "team")
    for key in ("a.json", ".", "..", "a/../b", "x?y#z"):
        for number in range(3):
            put(alice.actor, "team", key, f"value {number}", reason="because")
        shown = admin.get(entry_url("team", key, tab="history")).content.decode()
        url = re.findall(r'href="([^"]+)">JSON</a>', shown)[0].replace("&#x27;", "'")
        found = items(admin, url)
        assert [item["version"] for item in found] == [3, 2, 1], key
        assert "value" not in found[0]
        assert found[0]["run_id"] is None
        assert found[0]["reason"] == "because"
        rows = read_csv(
            admin, url.replace(".json", ".csv") if key != "a.json" else f"{url[:-5]}.csv"
        )
        assert len(rows) == 3
    assert admin.get("/entry/history/nothing/k.json").status_code == 404


def test_runs_of_a_thread__list__contains_all_pages(
    admin: Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "PAGE", 1)
    create_story(alice.actor)
    make_thread(alice.actor, "t2")
    make_run(alice.actor, "t2", "r2")
    for thread_id, run_ids in (("t1", ["r1"]), ("t2", ["r2"])):
        shown = admin.get(f"/threads/{thread_id}?tab=runs").content.decode()
        (url,) = re.findall(r'href="([^"]+)">JSON</a>', shown)
        assert [item["id"] for item in items(admin, url)] == run_ids
    assert admin.get("/thread/runs/nothing.json").status_code == 404


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/config/models", "config-list"),
        ("/members", "member-list"),
        ("/tokens", "token-list"),
        ("/policies", "policy-list"),
        ("/webhooks", "webhook-list"),
        ("/state-keys", "state-key-list"),
        ("/state-keys", "plugin-list"),
        ("/sessions", "sessions"),
    ],
)
def test_page__of_a_list__links_to_json_and_csv(
    path: str, name: str, admin: Client, alice: Person
) -> None:
    create_story(alice.actor)
    create_webhook(actor=alice.actor, name="h", url="https://example.com/hook")
    shown = admin.get(path).content.decode()
    for kind in ("json", "csv"):
        url = reverse(f"web:{name}-{kind}", args=["models"] if name == "config-list" else [])
        assert f'href="{url}"' in shown
