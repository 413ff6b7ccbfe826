"""Browsers of the three users, and a committed baseline of queries per page."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from state_admin.domain.access import Role
from state_admin.models import hot
from tests.builders import Person, anonymous, make_person

BASELINE = Path(__file__).with_name("query_counts.json")
# UPDATE_QUERY_COUNTS=1 writes the file again; its diff is then reviewed.
UPDATE = "UPDATE_QUERY_COUNTS"


@pytest.fixture
def admin(alice: Person) -> Client:
    return alice.browser()


@pytest.fixture
def editor(alice: Person) -> Client:
    return make_person("erin", "acme", Role.EDITOR).browser()


@pytest.fixture
def viewer(bob: Person) -> Client:
    return bob.browser()


@pytest.fixture
def stranger(mallory: Person) -> Client:
    return mallory.browser()


@pytest.fixture
def client() -> Client:
    return anonymous()


@pytest.fixture
def count_queries(monkeypatch: pytest.MonkeyPatch) -> Callable[[Client, str], int]:
    """The number of statements of a page: the ORM's and the hand-written ones."""
    by_hand = 0
    fetch_all = hot.fetch_all
    mine = threading.get_ident()  # a server of another test may still respond to its browser

    def counted(*args: object) -> object:
        nonlocal by_hand
        by_hand += threading.get_ident() == mine
        return fetch_all(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(hot, "fetch_all", counted)

    def count(client: Client, path: str) -> int:
        nonlocal by_hand
        client.get(path)  # definitions are cached in a running process
        by_hand = 0
        with CaptureQueriesContext(connection) as captured:
            assert client.get(path).status_code == 200
        return by_hand + len(captured)

    return count


# Takes the name of a page, a client and the URL of the page.
CheckQueries = Callable[[str, Client, str], None]


@pytest.fixture
def check_queries(count_queries: Callable[[Client, str], int]) -> CheckQueries:
    """Compares a page's number of queries with the committed one; with UPDATE_QUERY_COUNTS=1, stores
    it."""
    known: dict[str, int] = json.loads(BASELINE.read_text()) if BASELINE.exists() else {}

    def check(page: str, client: Client, path: str) -> None:
        count = count_queries(client, path)
        if os.environ.get(UPDATE):
            latest = json.loads(BASELINE.read_text()) if BASELINE.exists() else {}
            latest[page] = count
            BASELINE.write_text(json.dumps(latest, indent=2, sort_keys=True) + "\n")
        else:
            assert count == known.get(page), f"{page} costs {count} queries; {UPDATE}=1 if meant"

    return check
