"""Two values side by side."""

from __future__ import annotations

import json
import re

import pytest
from django.test import Client
from hypothesis import given

from state_admin.domain.access import Role
from state_admin.domain.values import JSON, same
from state_admin.web import side_by_side
from state_admin.web.side_by_side import SideRow, compare
from tests.builders import Person, make_namespace, make_person, put
from tests.domain.strategies import close_values, keyed_arrays

small_values = close_values | keyed_arrays


def lines(rows: list[SideRow], side: str) -> list[str]:
    """The lines of one side."""
    sides = [getattr(row, side) for row in rows]
    return ["".join(piece.text for piece in each) for each in sides if each is not None]


def marked(rows: list[SideRow]) -> list[tuple[str, list[str], list[str]]]:
    """The rows that differ, with the marked texts of both sides."""
    return [
        (
            row.kind,
            [piece.text for piece in row.before or () if piece.kind != "same"],
            [piece.text for piece in row.after or () if piece.kind != "same"],
        )
        for row in rows
        if row.kind not in ("same", "skipped")
    ]


@given(before=small_values, after=small_values)
def test_sides__any_two_values__are_the_values(before: JSON, after: JSON) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(side_by_side, "_CONTEXT", 1_000)
        rows, more = compare(before, after)
    assert not more
    if same(before, after):
        assert rows == []
        return
    assert same(json.loads("\n".join(lines(rows, "before"))), before)
    assert same(json.loads("\n".join(lines(rows, "after"))), after)
    assert marked(rows)


def test_sides__changes__are_marked_beside_what_they_replace() -> None:
    before = {"goal": "Book Lisbon", "ids": [{"id": 1}, {"id": 2}], "old": 1}
    after = {"goal": "Book Lisbon in May", "ids": [{"id": 0}, {"id": 1}, {"id": 2}], "n": 2}
    rows, _ = compare(before, after)
    assert marked(rows) == [
        ("changed", [], [" in May"]),
        ("added", [], ["{"]),
        ("added", [], ['"id": 0']),
        ("added", [], ["},"]),
        ("removed", ['"old": 1'], []),
        ("added", [], ['"n": 2']),
    ]


def test_sides__unchanged_parts__are_left_out_except_around_changes() -> None:
    rows, _ = compare({"a": list(range(100, 200)), "b": 1}, {"a": list(range(100, 200)), "b": 2})
    assert [row.skipped for row in rows if row.kind == "skipped"] == [100]
    assert lines(rows, "after") == ["    198,", "    199", "  ],", '  "b": 2', "}"]


def test_sides__large_change__is_cut() -> None:
    rows, more = compare([], [[str(n)] for n in range(2_000)])
    assert more
    assert len(rows) == side_by_side.MOST_ROWS
    rows, more = compare("a" * 100_000, ["b" * 900] * 200)
    assert more
    shown = sum(map(len, lines(rows, "before") + lines(rows, "after")))
    assert shown <= side_by_side.MOST_CHARACTERS


def test_compare__long_texts_that_differ_at_their_end__shows_the_end() -> None:
    start = "x" * 30_000
    ((kind, before, after),) = marked(compare({"a": start + "1"}, {"a": start + "2"})[0])
    assert (kind, before, after) == ("changed", [f'…{"x" * 100}1"'], [f'…{"x" * 100}2"'])
    (cut,) = marked(compare("y", "z" * 2_000)[0])[0][2]
    assert cut == f'"{"z" * 999}…'


def test_history__rows__compare_with_the_version_before_and_restore(
    admin: Client, alice: Person
) -> None:
    make_namespace(alice.actor, "n")
    for number in range(1, 4):
        put(alice.actor, "n", "k", {"goal": number})
    page = admin.get("/state/n/k?tab=history").content.decode()
    row_urls = re.findall(r'data-row id="v\d" href="([^"]+)"', page)
    assert row_urls == [
        "/state/n/k?tab=history&amp;diff=2..3",
        "/state/n/k?tab=history&amp;diff=1..2",
        "/state/n/k?version=1",
    ]
    restores = re.findall(r'<a href="(/entry/restore/[^"]+)"', page)
    assert restores == ["/entry/restore/n/k?version=2", "/entry/restore/n/k?version=1"]
    viewer = make_person("vic", "acme", Role.VIEWER).browser()
    assert "/entry/restore/" not in viewer.get("/state/n/k?tab=history").content.decode()


def test_history__first_version__has_nothing_to_compare(admin: Client, alice: Person) -> None:
    make_namespace(alice.actor, "n")
    for number in (1, 2):
        put(alice.actor, "n", "k", number)
        page = admin.get("/state/n/k?tab=history").content.decode()
        assert [part in page for part in ('name="old"', 'name="new"', "Compare</button>")] == (
            [number > 1] * 3
        )


def test_history__deleted_version__cannot_be_restored(admin: Client, alice: Person) -> None:
    make_namespace(alice.actor, "n")
    put(alice.actor, "n", "k", 1)
    admin.post("/entry/delete/n/k?version=1", {"version": "1"})
    put(alice.actor, "n", "k", 2)
    page = admin.get("/state/n/k?tab=history").content.decode()
    restores = re.findall(r'<a href="(/entry/restore/[^"]+)"', page)
    assert restores == ["/entry/restore/n/k?version=1"]


def test_history__side_by_side__stays_for_the_next_comparison(admin: Client, alice: Person) -> None:
    make_namespace(alice.actor, "n")
    for number in range(1, 4):
        put(alice.actor, "n", "k", {"goal": number})
    page = admin.get("/state/n/k?tab=history&diff=2..3&view=sides").content.decode()
    assert "<del>&quot;goal&quot;: 2</del>" in page
    assert "<ins>&quot;goal&quot;: 3</ins>" in page
    assert 'href="/state/n/k?tab=history&amp;diff=1..2&amp;view=sides"' in page
    assert 'href="/state/n/k?tab=history&amp;diff=2..3"' in page
