"""What the palette finds in recent rows: messages, and the middle of words."""

from __future__ import annotations

import re
from dataclasses import replace

import psycopg
import pytest
from django.db import connection
from django.test import Client

from state_admin.models import hot, recent_sql
from state_admin.services.entries import delete_entry
from state_admin.web import palette
from tests.builders import Person, append, make_namespace, make_thread, put

PARTIAL = {"HX-Request": "true", "HX-Request-Type": "partial"}


@pytest.fixture
def travel(alice: Person) -> Person:
    """Two entries and two threads, one of which has messages."""
    make_namespace(alice.actor, "trips")
    put(alice.actor, "trips", "Lisbon/AM-LI-7", {"seat": 1})
    put(alice.actor, "trips", "porto", {"seat": 2, "notes": ["TULIPS", "geraniums"]})
    make_thread(alice.actor, "parcel-9", title="Refund for Zoë")
    make_thread(alice.actor, "chat")
    append(
        alice.actor,
        "parcel-9",
        {"role": "user", "content": "an AISLE seat, 50 % off <b>"},
        {"role": "assistant", "content": "no window"},
    )
    return alice


def found(client: Client, query: str) -> list[str]:
    """The URLs of the results, without the searches of lists."""
    page = client.get("/go", {"q": query}, headers=PARTIAL).content.decode()
    return re.findall(r'id="hit-[0-9]+" href="(/(?:state/|threads/)[^"]+)"', page)


ENTRY = "/state/trips/Lisbon%2FAM-LI-7"
THREAD = "/threads/parcel-9"
MESSAGE = "/threads/parcel-9?message=1#m1"


@pytest.mark.parametrize(
    ("query", "urls"),
    [
        ("isbon", [ENTRY]),
        ("eat: 1", []),
        ("ulip", ["/state/trips/porto"]),
        ("ulip eranium", ["/state/trips/porto"]),
        ("m-li", [ENTRY]),
        ("bon li-7", [ENTRY]),
        ("trips/bon", [ENTRY]),
        ("bon/am", [ENTRY]),
        ("other/bon", []),
        ("rip", []),
        ("arcel", [THREAD]),
        ("efund", [THREAD]),
        ("efund 9", [THREAD]),
        ("aisle", [MESSAGE]),
        ("seat isle", [MESSAGE]),
        ("50 %", [MESSAGE]),
        ("window aisle", []),
        ("_isbon", []),
        ("%sbon", []),
        ("\\isbon", []),
        ("hat", ["/threads/chat"]),
        ("u", []),
        ("%%", []),
        ("arcel " * 40, []),
    ],
)
def test_palette__middle_of_a_word_or_text_of_a_message__is_found(
    query: str, urls: list[str], admin: Client, travel: Person
) -> None:
    assert found(admin, query) == urls


def test_palette__message__has_its_thread_and_text(admin: Client, travel: Person) -> None:
    page = admin.get("/go?q=aisle").content.decode()
    assert "Refund for Zoë" in page
    assert ">an AISLE seat, 50 % off &lt;b&gt;<" in page


def test_palette__viewer_and_other_workspace__find_what_they_may_read(
    viewer: Client, stranger: Client, travel: Person
) -> None:
    for query, url in (("isbon", ENTRY), ("efund", THREAD), ("aisle", MESSAGE)):
        assert found(viewer, query) == [url]
        assert found(stranger, query) == []


def test_palette__condition__is_compared_with_a_limited_number_of_values(
    admin: Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_namespace(alice.actor, "notes")
    put(alice.actor, "notes", "old", {"price": 2})
    for number in range(palette._EACH + 1):
        put(alice.actor, "notes", f"new{number}", {"price": 0})
    assert found(admin, "/price > 1") == ["/state/notes/old"]
    monkeypatch.setattr(palette, "_MOST_OPENED", 1)
    assert found(admin, "/price > 1") == []
    assert len(found(admin, "/price < 1")) == palette._EACH


def test_palette__deleted_entry__is_not_found(admin: Client, travel: Person) -> None:
    delete_entry(actor=travel.actor, namespace="trips", key="Lisbon/AM-LI-7")
    assert found(admin, "isbon") == []


def test_palette__limited_actor__finds_nothing_beyond_its_limits(travel: Person) -> None:
    make_namespace(travel.actor, "hotels")
    put(travel.actor, "hotels", "lisbon", 1)
    limited = replace(travel.actor, namespaces=("hot*",), thread_prefixes=("ch",))
    assert recent_sql.find_entries(travel.actor, ["isb"], "", 9) == [
        ("hotels", "lisbon"),
        ("trips", "Lisbon/AM-LI-7"),
    ]
    assert recent_sql.find_entries(limited, ["isb"], "", 9) == [("hotels", "lisbon")]
    assert recent_sql.find_entries(limited, ["isb"], "trips", 9) == []
    put(travel.actor, "hotels", "rome", {"view": "GARDEN"})
    put(travel.actor, "hotels", "long", "garden" * 1_000 + " ".join(map(str, range(3_000))))
    assert recent_sql.find_values(limited, ["arde"], 9) == [
        (("hotels", "rome"), '{"view": "GARDEN"}')
    ]
    assert recent_sql.find_values(limited, ["uli"], 9) == []
    assert recent_sql.find_threads(limited, ["c"], 9) == [("chat", "")]
    assert len(recent_sql.find_active(travel.actor, 9)) == 2
    assert len(recent_sql.find_active(limited, 9)) == 1


def test_palette__many_threads__those_that_changed_last_are_searched(
    admin: Client, travel: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(palette, "_MESSAGES", 2)
    for number in range(3):
        make_thread(travel.actor, f"later-{number}")
        append(travel.actor, f"later-{number}", {"role": "user", "content": "nothing"})
    assert found(admin, "aisle") == []
    append(travel.actor, "parcel-9", {"role": "user", "content": "the aisle?"})
    monkeypatch.setattr(palette, "_MESSAGES", 3)
    assert found(admin, "aisle") == ["/threads/parcel-9?message=3#m3"]


def test_palette__many_entries__first_keys_and_newest_changes_are_compared(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_namespace(alice.actor, "trips")
    for key in ("a-lisbon", "b-lisbon", "c-lisbon"):
        put(alice.actor, "trips", key, 1)
    limited = recent_sql._ENTRIES
    for limit in (recent_sql.CHANGES, recent_sql.KEYS):
        assert limited.count(f"LIMIT {limit}\n") == 1
        limited = limited.replace(f"LIMIT {limit}\n", "LIMIT 1\n")
    monkeypatch.setattr(recent_sql, "_ENTRIES", limited)
    found = recent_sql.find_entries(alice.actor, ["isbon"], "", 9)
    assert [key for _, key in found] == ["c-lisbon", "a-lisbon"]


def test_first_keys__plan_for_any_parameters__sorts_no_keys(travel: Person) -> None:
    """A sort would read the keys of all namespaces."""
    statement, _ = hot.number(
        recent_sql._FIRST_KEYS, {"workspace": 1, "globs": "", "namespace": ""}
    )
    with connection.cursor() as cursor:
        explain = b"EXPLAIN (GENERIC_PLAN, FORMAT JSON) " + statement
        (found,) = psycopg.RawCursor(cursor.connection).execute(explain).fetchone() or ()
    nodes = [found[0]["Plan"]]
    for node in nodes:
        assert node["Node Type"] in ("Limit", "Nested Loop"), node
        inner = node.get("Plans", [])
        # The outer side of the join has the namespaces, and sorts them if need be.
        nodes += inner[:1] if node["Node Type"] == "Limit" else []
    assert len(nodes) == 2
