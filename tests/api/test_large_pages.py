"""Pages whose rows are large end early, and their cursors continue."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from state_admin.services import batching
from tests.builders import Person, append, make_namespace, make_thread, put

LARGE = "x" * 4_000


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "MOST_BYTES", 10_000)


def make_messages(alice: Person) -> str:
    make_thread(alice.actor)
    append(alice.actor, "t1", *({"role": "user", "content": LARGE} for _ in range(5)))
    return "/threads/t1/messages"


def make_history(alice: Person) -> str:
    make_namespace(alice.actor, "notes")
    for number in range(5):
        put(alice.actor, "notes", "k", f"{number}{LARGE}")
    return "/history/notes/k?include=value"


def make_threads(alice: Person) -> str:
    for number in range(5):
        alice.api("POST", "/threads", {"id": f"t{number}", "metadata": {"text": LARGE}})
    return "/threads?order=asc"


def make_dispatches(alice: Person) -> str:
    make_thread(alice.actor)
    for _ in range(5):
        alice.api("POST", "/threads/t1/dispatches", {"payload": LARGE})
    return "/dispatches"


def read_pages(person: Person, path: str) -> list[list[Any]]:
    pages: list[list[Any]] = []
    cursor = ""
    while cursor is not None:
        more = f"{'&' if '?' in path else '?'}cursor={cursor}" if cursor else ""
        page = person.api("GET", path + more).json()
        pages.append(page["items"])
        cursor = page["next_cursor"]
    return pages


@pytest.mark.parametrize("make", [make_messages, make_history, make_threads, make_dispatches])
def test_page__with_large_rows__ends_early(make: Callable[[Person], str], alice: Person) -> None:
    assert [len(page) for page in read_pages(alice, make(alice))] == [2, 2, 1]


def test_page__with_compressible_rows__counts_what_it_sends(alice: Person) -> None:
    make_namespace(alice.actor, "notes")
    for number in range(3):
        put(alice.actor, "notes", "k", [number] + [0] * 4_000)
    assert [len(page) for page in read_pages(alice, "/history/notes/k?include=value")] == [1, 1, 1]


def test_page__row_larger_than_a_page__has_it_alone(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batching, "MOST_BYTES", 1)
    path = make_history(alice)
    assert [len(page) for page in read_pages(alice, path)] == [1] * 5


def test_page__related_rows__are_not_counted(alice: Person) -> None:
    make_thread(alice.actor)
    alice.api("POST", "/threads/t1/runs", {"id": "r1", "metadata": {"text": LARGE * 3}})
    for _ in range(3):
        alice.api("POST", "/runs/r1/commits", {"messages": [{"role": "user", "content": "Hi"}]})
    assert [len(page) for page in read_pages(alice, "/threads/t1/messages")] == [3]


def test_history__without_values__reads_none(alice: Person) -> None:
    path = make_history(alice).partition("?")[0]
    alice.api("DELETE", "/state/notes/k")
    (page,) = read_pages(alice, path)
    assert [version["exists"] for version in page] == [False, True, True, True, True, True]


@pytest.mark.django_db(transaction=True)
def test_knowledge__large_entries__ends_early(alice: Person) -> None:
    make_thread(alice.actor)
    for number in range(5):
        make_namespace(alice.actor, f"notes{number}")
        put(alice.actor, f"notes{number}", "global", LARGE)
    alice.api("POST", "/threads/t1/runs", {"id": "r1"})
    pages = read_pages(alice, "/runs/r1/knowledge")
    assert [len(page) for page in pages] == [2, 2, 1]
    assert all(item["value"] == LARGE for page in pages for item in page)


def test_claim__of_large_payloads__takes_those_that_fit(alice: Person) -> None:
    for number in range(5):
        make_thread(alice.actor, f"t{number}")
        alice.api("POST", f"/threads/t{number}/dispatches", {"payload": LARGE})
    claims = [alice.api("POST", "/dispatches/claim", {"limit": 5}).json() for _ in range(4)]
    threads = [[each["thread_id"] for each in claim["items"]] for claim in claims]
    assert threads == [["t0", "t1"], ["t2", "t3"], ["t4"], []]


def test_claim__of_a_payload_beyond_the_limit__takes_it_alone(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batching, "MOST_BYTES", 100)
    for number in range(2):
        make_thread(alice.actor, f"t{number}")
        alice.api("POST", f"/threads/t{number}/dispatches", {"payload": LARGE})
    claimed = alice.api("POST", "/dispatches/claim", {"limit": 5}).json()["items"]
    assert [each["thread_id"] for each in claimed] == ["t0"]
