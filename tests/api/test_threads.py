"""The list of threads, searched by words of titles."""

from __future__ import annotations

import pytest

from state_admin.services import threads
from tests.builders import Person, make_thread


@pytest.fixture
def library(alice: Person) -> Person:
    for name, title in (("a", "Refund of order 9921"), ("b", "Seats"), ("c", "The REFUNDS")):
        make_thread(alice.actor, name, title=title)
    return alice


def ids(person: Person, path: str) -> list[str]:
    return [item["id"] for item in person.api("GET", path).json()["items"]]


@pytest.mark.parametrize("few", [10_000, 1])
@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("text=refund", ["c", "a"]),
        ("text=refund&order=asc", ["a", "c"]),
        ("text=order+refund", ["a"]),
        ("text=fund", []),
        ("text=refund&prefix=c", ["c"]),
    ],
)
def test_threads__text__finds_beginnings_of_words_in_titles(
    few: int, query: str, found: list[str], library: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "_FEW_TITLES", few)
    assert ids(library, f"/threads?{query}") == found


def test_threads__text__is_paged(library: Person) -> None:
    first = library.api("GET", "/threads?text=refund&limit=1").json()
    assert [item["id"] for item in first["items"]] == ["c"]
    assert ids(library, f"/threads?text=refund&limit=1&cursor={first['next_cursor']}") == ["a"]


@pytest.mark.parametrize("text", ["-", "+".join(["word"] * 40)])
def test_threads__text_without_words_or_with_too_many__is_refused(
    text: str, library: Person
) -> None:
    answer = library.api("GET", f"/threads?text={text}")
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith("invalid query: ")


def test_threads__text_of_another_workspace__is_not_found(library: Person, mallory: Person) -> None:
    assert ids(mallory, "/threads?text=refund") == []
