"""The menu of columns of every list, in a workspace with rows for each."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from state_admin.web import threads
from tests.builders import Person
from tests.web.test_list_rows import alice, filled
from tests.web.test_lists import LISTS, OF

__all__ = ["alice", "filled"]

# Lists that are not data tables, the one whose columns depend on its values (test_entry_table.py),
# and the one in a tab (test_list_orders.py).
OTHERS = {
    "audit-list", "change-list", "entry-history", "entry-list", "inbox", "plugin-list", "sessions",
    "thread-runs", "ticket-list",
}  # fmt: skip
TABLES = [name for name in LISTS if name not in OTHERS]


class Page(HTMLParser):
    """The data table of a list with its menu of columns, and what its search form would send."""

    def __init__(self, client: Client, url: str, **query: str) -> None:
        super().__init__()
        self.headings: list[str] = []
        self.rows: list[int] = []  # the number of cells of each
        self.menu: list[str] = []
        self.checked: list[str] = []
        self.kept: dict[str, str] = {}
        self.links: list[str] = []
        self._inside: list[str] = []
        response = client.get(url, query)
        assert response.status_code == 200
        self.feed(response.content.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given: dict[str, Any] = dict(attrs)
        if tag == "table" and "data-table" in (given.get("class") or ""):
            self._inside.append("table")
        elif tag == "thead" and self._inside:
            self._inside.append("thead")
        elif tag == "tr" and self._inside == ["table"] and given.get("class") != "row-group":
            self.rows.append(0)
        elif tag in ("td", "th") and given.get("class") != "tick" and self._inside:
            if self._inside == ["table", "thead"]:
                self.headings.append("")
            elif tag == "td":
                self.rows[-1] += 1
        elif given.get("type") == "checkbox" and given.get("name") == "columns":
            self.menu.append(given["value"])
            self.checked += [given["value"]] if "checked" in given else []
        elif tag == "input" and given.get("form") == "filters":
            self.kept[given["name"]] = given["value"]
        elif tag == "a":
            self.links.append(given["href"])

    def handle_data(self, data: str) -> None:
        if self._inside == ["table", "thead"] and self.headings:
            self.headings[-1] += data.strip()

    def handle_endtag(self, tag: str) -> None:
        if self._inside and tag == self._inside[-1]:
            self._inside.pop()


def url_of(name: str) -> str:
    page = {"webhook-deliveries": "webhook-detail"}.get(name, name)
    return reverse(f"web:{page}", args=OF.get(name, []))


@pytest.mark.parametrize("name", TABLES)
def test_list__chosen_columns__are_shown_in_this_order_in_each_row(
    name: str, admin: Client, alice: Person
) -> None:
    url = url_of(name)
    default = Page(admin, url)
    width = len(default.headings)
    assert default.rows
    assert set(default.rows) == {width}
    assert default.menu == default.checked
    assert [re.sub(r"\W", "-", each.lower()) for each in default.headings[1:]] == default.menu
    for at, column in enumerate(default.menu, start=1):
        page = Page(admin, url, columns=column)
        assert page.headings == [default.headings[0], default.headings[at]]
        assert set(page.rows) == {2}
        assert page.checked == [column]
        assert sorted(page.menu) == sorted(default.menu)
    columns = ",".join(["gone", "/member", *reversed(default.menu)])
    page = Page(admin, url, columns=columns)
    assert page.headings[1:] == default.headings[:0:-1]
    assert set(page.rows) == {width}


@pytest.mark.parametrize("name", TABLES)
def test_list__form_of_the_menu__hides_and_moves_columns(
    name: str, admin: Client, alice: Person
) -> None:
    """As a browser without JavaScript sends it. What the page links to, and what its search form sends,
    keep the choice; the files do not have it."""
    url = url_of(name)
    first, *_, last = Page(admin, url).menu
    page = Page(admin, f"{url}?columns=key&columns={first}&columns={last}&left={last}")
    assert page.checked == [last, first]
    assert page.kept["columns"] == f"{last},{first}"
    assert Page(admin, f"{url}?columns=key").headings == Page(admin, url).headings[:1]
    orders = [link for link in page.links if link.startswith(f"{url}?sort=")]
    files = [link for link in page.links if re.search(r"\.(json|csv)(\?|$)", link)]
    assert all(f"columns={last}%2C{first}" in link for link in orders)
    assert files
    assert not [link for link in files if "columns=" in link]
    assert url in page.links  # the default columns


def test_list__next_page_and_saved_view__keep_the_columns(
    admin: Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "PAGE", 1)
    page = Page(admin, "/threads", columns="created,run")
    (following,) = {link for link in page.links if "after=" in link}
    assert Page(admin, following).headings == ["Thread", "Created", "Run"]
    view = {"page": "threads", "query": "columns=created,run", "name": "short"}
    assert admin.post("/views", view)["Location"] == "/threads?columns=created%2Crun"
