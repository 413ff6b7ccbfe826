"""The text of every page: spaces before punctuation, words twice, values that have no text."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from django.test import Client

from tests.builders import Person, make_namespace, put
from tests.e2e.pages import EMPTY_PAGES, PAGES, fill

# Elements whose text is code, input, or a symbol.
NO_PROSE = {"code", "kbd", "pre", "script", "select", "style", "svg", "textarea", "title"}
BLOCKS = {
    "button", "caption", "dd", "div", "dt", "figcaption", "h1", "h2", "h3", "label", "legend", "li", "option",
    "p", "section", "summary", "td", "th",
}  # fmt: skip
FAULTS = re.compile(
    r"\S [,;:.?!](?=\s|$)"
    r"|[,;:] ?[,;:.](?=\s|$)"
    r"|\(\s*\)|\( | \)"
    r"|\b(?:None|nan|inf)\b"
    r"|\b(the|a|an|of|to|in|is|and|or|for|with) \1\b"
    r"|\b1 (?:entries|versions|messages|runs|threads|tokens|seconds|minutes|hours|days|rows|changes)\b"
)


class Prose(HTMLParser):
    """The text of a page as it is shown: blocks in lines of their own, spaces collapsed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text: list[str] = []
        self._hidden: list[str] = []
        self.feed(text)
        joined = re.sub(r"[ \n]*\0[ \n]*", "\0", re.sub(r"\s+", " ", "".join(self._text)))
        self.lines = [each for each in joined.split("\0") if each]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in NO_PROSE:
            self._hidden.append(tag)
            self._text.append("x")
        elif tag in BLOCKS:
            self._text.append("\0")

    def handle_endtag(self, tag: str) -> None:
        if self._hidden and tag == self._hidden[-1]:
            self._hidden.pop()
        elif tag in BLOCKS:
            self._text.append("\0")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self._text.append(data)


def faults_of(client: Client, url: str) -> list[str]:
    lines = Prose(client.get(url, follow=True).content.decode()).lines
    return [f"{url}: {line[:200]}" for line in lines if FAULTS.search(line)]


def test_prose__inline_elements__stay_in_the_line() -> None:
    shown = "<p>wrote <a>x</a>\n<ins>y</ins> added\n, z</p><p>by <code>f()</code>.</p>"
    lines = Prose(shown).lines
    assert lines == ["wrote x y added , z", "by x."]
    assert [bool(FAULTS.search(line)) for line in lines] == [True, False]


@pytest.mark.django_db
def test_pages__texts__have_no_faults(admin: Client, alice: Person) -> None:
    found = [fault for url in EMPTY_PAGES for fault in faults_of(admin, url)]
    fill(alice)
    make_namespace(alice.actor, "plans")
    for value in ({"a": 1}, {"a": 2, "b": [1], "c": "x"}, {"b": [1, 2, 3], "c": "y", "d": {}}):
        put(alice.actor, "plans", "one", value)
    found += [fault for url in PAGES for fault in faults_of(admin, url)]
    assert not found, "\n".join(sorted(set(found)))
