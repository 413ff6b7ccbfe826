"""The orders of the state browser beside that by key: exact, page by page, and limited to as many
entries as the database can sort."""

from __future__ import annotations

import html
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from state_admin.models import Entry, ViewPage
from state_admin.services.entries import delete_entry
from state_admin.services.saved_views import save_view
from state_admin.web import entry_list, entry_orders
from state_admin.web.entry_orders import SORTS
from tests.builders import Person, make_namespace, put
from tests.web.test_list_filters import headings
from tests.web.test_threads import htmx, page, walk

START = datetime(2026, 1, 1, tzinfo=UTC)
# Of each entry: versions, size, author and day of the last change, with ties.
FACTS = {
    "a": (1, 10, "bob", 3),
    "b": (3, 10, "alice", 1),
    "thread::c": (1, 400, "zoe", 2),
    "d~\u2028 e": (2, 7, "alice", 3),
    "e": (3, 10, "it's\tme", 4),
}


@pytest.fixture
def entries(alice: Person) -> None:
    make_namespace(alice.actor, "team")
    make_namespace(alice.actor, "other")
    put(alice.actor, "other", "x", 1)
    for key, (version, size, author, day) in FACTS.items():
        put(alice.actor, "team", key, 1, tags=["vip"] if key in "abe" else [])
        Entry.objects.filter(key=key).update(
            version=version,
            size_bytes=size,
            actor_name=author,
            updated_at=START + timedelta(days=day),
        )


def ordered(column: int, *, descending: bool, keys: Any = FACTS) -> list[str]:
    """The keys by a fact and, among equal ones, by key."""
    return sorted(sorted(keys), key=lambda key: FACTS[key][column], reverse=descending)


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize(
    ("sort", "column"), [("version", 0), ("size", 1), ("changed", 3), ("actor", 2)]
)
@pytest.mark.parametrize("sign", ["", "-"])
def test_state__sorted__pages_have_each_entry_once_in_order(
    sort: str, column: int, sign: str, size: int, admin: Client, entries: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(entry_list, "PAGE", size)
    pages = walk(admin, f"/state.json?namespace=team&sort={sign}{sort}", "key")
    # sorted() keeps equal ones in order also if it is reversed, so this is ORDER BY … DESC, key.
    assert [key for each in pages for key in each] == ordered(column, descending=bool(sign))
    assert {len(each) for each in pages[:-1]} <= {size}


def test_state__sorted_and_filtered__only_matches_are_sorted(
    admin: Client, alice: Person, entries: None
) -> None:
    url = "/state.json?namespace=team&sort=-changed"
    assert walk(admin, f"{url}&tag=vip", "key") == [["e", "a", "b"]]
    assert walk(admin, f"{url}&actor=alice", "key") == [["d~\u2028 e", "b"]]
    assert walk(admin, f"{url}&scope=thread", "key") == [["thread::c"]]
    assert walk(admin, f"{url}&until=2026-01-04T00:00", "key") == [["thread::c", "b"]]
    delete_entry(actor=alice.actor, namespace="team", key="a")
    assert walk(admin, f"{url}&show=deleted", "key") == [["a"]]
    assert "a" not in walk(admin, url, "key")[0]


def test_state__more_entries_than_can_be_sorted__says_so_and_keeps_the_order_of_the_keys(
    admin: Client, alice: Person, entries: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entry_orders, "MOST", 4)
    shown = page(admin, "/state?namespace=team&sort=-changed")
    assert "supports at most 4 entries, including deleted ones" in shown
    assert headings(shown)["Key"] == ("ascending", "")
    refused = admin.get("/state.json?namespace=team&sort=-changed")
    assert refused.status_code == 400
    assert "supports at most 4 entries" in refused.content.decode()
    assert admin.get("/state.csv?namespace=team&sort=-changed").status_code == 400
    assert walk(admin, "/state.json?namespace=team&sort=-changed&scope=thread", "key") == [
        ["thread::c"]
    ]
    delete_entry(actor=alice.actor, namespace="team", key="a")
    shown = page(admin, "/state?namespace=team&sort=-changed")
    assert "including deleted ones" in shown, "deleted entries are read, too"
    monkeypatch.setattr(entry_orders, "MOST", 5)
    assert "including deleted ones" not in page(admin, "/state?namespace=team&sort=-changed")


def test_state__sorted_without_a_namespace__says_that_it_needs_one(
    admin: Client, entries: None
) -> None:
    shown = page(admin, "/state?sort=-size")
    assert "requires a namespace. Select a namespace." in shown
    assert not any(url for label, (_, url) in headings(shown).items() if label != "Key")
    assert admin.get("/state.json?sort=-size").status_code == 400


# By key: the member `fare`, in the ascending order.
FARES: dict[str, Any] = {
    "-5": -5,
    "-0.5": -0.5,
    "2": 2,
    "10": 10,
    "10 too": 10.0,
    "1e300": 1e300,
    "s": "850",
    "s1": "a\tb",
    "s2": "ä",
    "b": False,
    "c": True,
    "n0": None,
    "n1": [1],
    "n2": "absent",
    "n3": "large",
    "n4": "no object",
}


@pytest.mark.parametrize("size", [1, 3, 16])
@pytest.mark.parametrize("sign", ["", "-"])
def test_state__sorted_by_a_member__has_numbers_then_texts_and_the_others_last(
    size: int, sign: str, admin: Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_namespace(alice.actor, "trips")
    for key, fare in FARES.items():
        value: Any = {"fare": fare, "more": "x" * (20_000 if fare == "large" else 1)}
        if fare in ("absent", "no object"):
            value = {} if fare == "absent" else [{"fare": 1}]
        put(alice.actor, "trips", key, value)
    monkeypatch.setattr(entry_list, "PAGE", size)
    pages = walk(admin, f"/state.json?namespace=trips&sort={sign}/fare", "key")
    assert all(len(each) == size for each in pages[:-1])
    shown = [key for each in pages for key in each]
    ascending = list(FARES)
    if sign:
        numbers = ["1e300", "10", "10 too", "2", "-0.5", "-5"]
        ascending = [*numbers, "s2", "s1", "s", "c", "b", *ascending[11:]]
    assert shown == ascending


def test_state__heading_of_a_member__orders_the_list(admin: Client, alice: Person) -> None:
    make_namespace(alice.actor, "trips")
    for key, fare in {"a": 3, "b": 1, "c": 2}.items():
        put(alice.actor, "trips", key, {"fare, eur": fare, "to": "LIS"})
    found = headings(page(admin, "/state?namespace=trips"))
    most = page(admin, found["fare, eur"][1])
    assert headings(most)["fare, eur"][0] == "descending"
    assert re.findall(r'href="/state/trips/(\w)"', most)[::1][0] == "a"
    assert headings(page(admin, found["to"][1]))["to"][0] == "ascending"


@pytest.mark.parametrize(
    "after", ["a", "a\t1", "a\t1\t2", "a\tx\t1\ty", "a\t1\tx\ty", "a\t1\t1e5\ty", "a\t1\t\ty"]
)
def test_state__malformed_cursor_of_a_member__is_refused(
    after: str, admin: Client, entries: None
) -> None:
    query = {"namespace": "team", "sort": "/fare", "after": after}
    assert admin.get("/state.json", query).status_code == 400


@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize(
    "after", ["team/a", "a", "a\tx", "a\t1\t2", "\t", "a\t99999999999999999999"]
)
def test_state__malformed_cursor__is_refused(
    sort: str, after: str, admin: Client, entries: None
) -> None:
    response = admin.get("/state.json", {"namespace": "team", "sort": sort, "after": after})
    # Any text with a tab is a name.
    assert response.status_code == (200 if "actor" in sort and "\t" in after else 400)


def test_state__headings__order_the_list_by_their_columns(admin: Client, entries: None) -> None:
    root = "/state?namespace=team&columns=changed,size,actor,tags"
    encoded = root.replace(",", "%2C")
    shown = headings(page(admin, root))
    assert shown["Key"] == ("ascending", "")
    assert shown["Changed"] == ("", f"{encoded}&sort=-changed")
    assert shown["Written by"] == ("", f"{encoded}&sort=actor")
    assert shown["Tags"] == ("", "")
    newest = headings(page(admin, shown["Changed"][1]))
    assert newest["Changed"] == ("descending", f"{encoded}&sort=changed")
    assert newest["Key"] == ("", encoded)
    assert headings(page(admin, newest["Changed"][1]))["Changed"][0] == "ascending"
    searched = headings(page(admin, f"{root}&sort=-changed&text=a"))
    assert not any(order or url for order, url in searched.values())


def test_state__sorted__keeps_the_order_in_its_links_and_forms(
    admin: Client, alice: Person, entries: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entry_list, "PAGE", 2)
    shown = html.unescape(page(admin, "/state?namespace=team&sort=-changed&tag=vip"))
    assert shown.count('<input type="hidden" name="sort" value="-changed">') == 2
    assert re.search(r'href="/state\?[^"]*sort=-changed[^"]*after=[^"]*" rel="next"', shown)
    assert 'href="/state?namespace=team&scope=thread&sort=-changed"' in shown
    assert 'href="/state?namespace=team&sort=-changed"' in shown, "Clear filters"
    assert "row-group" not in shown
    headers = htmx("entry-browser") | {"HX-Source": "form#filters"}
    response = admin.get("/state?namespace=team&sort=-changed&tag=", headers=headers)
    assert response["HX-Replace-Url"] == "/state?namespace=team&sort=-changed"


def test_view__of_a_sorted_list__opens_it_sorted(
    admin: Client, alice: Person, entries: None
) -> None:
    data = {"page": "state", "name": "Newest", "query": "namespace=team&sort=-changed"}
    assert admin.post("/views", data).status_code == 302
    save_view(
        actor=alice.actor, page=ViewPage.STATE, name="Large", query="namespace=team&sort=-size",
        shared=True,
    )  # fmt: skip
    shown = html.unescape(page(admin, "/state"))
    assert 'href="/state?namespace=team&sort=-size"' in shown
    assert 'href="/state?namespace=team&sort=-changed"' in shown


def test_all_matching__of_a_sorted_list__are_all_matching(
    admin: Client, entries: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entry_list, "PAGE", 2)
    form = {"action": "tag", "all": "yes", "back": "/state?namespace=team&sort=-changed"}
    assert "5 entries" in admin.post("/entries/bulk", form).content.decode()
