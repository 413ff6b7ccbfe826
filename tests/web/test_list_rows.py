"""Every list, of a workspace with rows for each: for its members, and for those of another one."""

from __future__ import annotations

import pytest
from django.test import Client

from tests.builders import Person
from tests.e2e.pages import fill
from tests.web.test_lists import LISTS, address, check

# The lowest role that may read a list.
ADMINS = {"audit-list", "member-list", "token-list"}


@pytest.fixture(scope="module")
def filled(one_alice: Person) -> Person:
    fill(one_alice)
    return one_alice


@pytest.fixture
def alice(filled: Person, db: None) -> Person:
    return filled


@pytest.mark.parametrize("name", [name for name in LISTS if name != "change-list"])
def test_list__csv__has_the_fields_and_rows_of_the_json(name: str, admin: Client) -> None:
    check(name, admin)


@pytest.mark.parametrize("name", LISTS)
def test_list__viewer__contains_what_the_page_shows(name: str, viewer: Client) -> None:
    status = 403 if name in ADMINS else 200
    assert viewer.get(address(name, "json")).status_code == status
    assert viewer.get(address(name, "csv")).status_code == status


@pytest.mark.parametrize("name", LISTS)
def test_list__other_workspace__contains_nothing_of_this_one(
    name: str, alice: Person, stranger: Client
) -> None:
    answer = stranger.get(address(name, "json"))
    if name in ("entry-history", "thread-runs", "webhook-deliveries"):
        assert answer.status_code == 404
    else:
        shown = answer.content.decode()
        names = ("alice", "t1", "r1", "team", "openai", "kit", "hook1", "example.com")
        assert [word for word in names if f'"{word}' in shown] == []
