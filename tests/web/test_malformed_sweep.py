"""Every page, URL and form with each of its values made invalid: no response is a server error."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from django.db import transaction
from django.test import Client
from django.urls import NoReverseMatch, resolve, reverse

from state_admin.web.urls import urlpatterns
from tests.builders import Person
from tests.e2e.pages import PAGES
from tests.web.test_list_rows import alice, filled
from tests.web.test_malformed import client

__all__ = ["alice", "client", "filled"]

NUL, SQUARED, HUGE = "a\0b", "²", str(10**30)
_READ = re.compile(r'(?:\.get\(|(?:text|whole_number|choice)\(request, )"(\w+)"')
_IGNORED = {"csrfmiddlewaretoken", "page_workspace"}


class Forms(HTMLParser):
    """The forms of a page: their targets, and the names of their fields."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []
        self._open: dict[str, str] | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "form":
            self._open = {}
            if given.get("method") == "post":
                self.found.append((given.get("action") or "", self._open))
        elif self._open is not None and (name := given.get("name")) and name not in _IGNORED:
            self._open.setdefault(name, given.get("value") or "")

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._open = None


def asked_names(path: str) -> list[str]:
    """The parameters that the view of a URL, or another view of its module, reads."""
    view = inspect.unwrap(resolve(urlsplit(path).path).func)
    source = Path(inspect.getfile(view)).read_text()
    return sorted(set(_READ.findall(source)))


def bad_pages(bad: str) -> Iterator[str]:
    """Each page with each parameter of its query made invalid, and one page of each view with each
    parameter that its code reads."""
    tried = set()
    for page in PAGES:
        root, _, query = page.partition("?")
        given = dict(parse_qsl(query))
        view = resolve(root).func
        for name in {*given, *asked_names(root)} if bad != NUL else {*given, "anything"}:
            if name in given or (view, name) not in tried:
                tried.add((view, name))
                yield f"{root}?{urlencode({**given, name: bad})}"


def bad_addresses(bad: str) -> Iterator[str]:
    """Each URL of the pages with all its parts made invalid."""
    for pattern in urlpatterns:
        name = getattr(pattern, "name", None)
        parts = getattr(pattern.pattern, "converters", {}) or pattern.pattern.regex.groupindex
        if not (name and parts):
            continue
        given = {part: "models" if part == "kind" else bad for part in parts}
        try:
            yield reverse(f"web:{name}", kwargs=given)
        except NoReverseMatch:
            continue  # only numbers are accepted there


def status(client: Client, method: str, path: str, data: dict[str, str] | None = None) -> int:
    """The status of the response; what the request wrote is rolled back."""
    with transaction.atomic():
        response: Any = client.generic(
            method,
            path,
            urlencode(data or {}),
            content_type="application/x-www-form-urlencoded",
        )
        transaction.set_rollback(True)
    return int(response.status_code)


@pytest.fixture(scope="module")
def forms(filled: Person) -> dict[tuple[str, frozenset[str]], dict[str, str]]:
    """The fields of each form of the pages, by its URL and their names."""
    browser = filled.browser()
    found: dict[tuple[str, frozenset[str]], dict[str, str]] = {}
    for page in PAGES:
        for action, fields in Forms(browser.get(page).content.decode()).found:
            found.setdefault((action or page, frozenset(fields)), fields)
    return found


@pytest.mark.parametrize("bad", [NUL, SQUARED, HUGE], ids=["nul", "squared", "huge"])
def test_pages__invalid_query__is_no_server_error(bad: str, client: Client) -> None:
    answers = {path: status(client, "GET", path) for path in dict.fromkeys(bad_pages(bad))}
    assert {path: code for path, code in answers.items() if code >= 500} == {}
    if bad == NUL:
        assert {path: code for path, code in answers.items() if code != 400} == {}


@pytest.mark.parametrize("bad", [NUL, SQUARED, HUGE], ids=["nul", "squared", "huge"])
def test_urls__invalid_parts__are_no_server_error(bad: str, client: Client) -> None:
    answers = {
        (method, path): status(client, method, path)
        for path in bad_addresses(bad)
        for method in ("GET", "POST")
    }
    assert len(answers) > 100
    assert {at: code for at, code in answers.items() if code >= 500} == {}


@pytest.mark.parametrize("bad", [NUL, SQUARED, HUGE], ids=["nul", "squared", "huge"])
def test_forms__invalid_field__is_no_server_error(
    bad: str, client: Client, forms: dict[tuple[str, frozenset[str]], dict[str, str]]
) -> None:
    assert len(forms) > 60
    answers = {
        (action, name): status(client, "POST", action, {**fields, name: bad})
        for (action, _), fields in forms.items()
        for name in fields
    }
    assert len(answers) > 200
    assert {at: code for at, code in answers.items() if code >= 500} == {}
