"""The search in titles and messages of threads."""

from __future__ import annotations

import pytest
from django.test import Client

from state_admin.models import Thread
from state_admin.web import paging, thread_search, threads
from tests.builders import Person, append, make_thread
from tests.web.test_list_filters import headings
from tests.web.test_threads import page, walk


@pytest.fixture
def library(alice: Person) -> Person:
    """Five threads, of which some have titles and messages about refunds."""
    for name, title in (
        ("a", "Refund of order 9921"),
        ("b", "Seats"),
        ("c", "REFUND-2 for Zoë's trip"),
        ("d", "100 % of it's_all"),
        ("e", ""),
    ):
        make_thread(alice.actor, name, title=title)
    append(alice.actor, "b", {"role": "user", "content": "I want a\nrefund for my order"})
    append(alice.actor, "b", {"role": "assistant", "content": "Which one?"})
    blocks = [{"type": "text", "text": "Die Erstattung für Müller, 50 % sofort"}]
    append(alice.actor, "e", {"role": "user", "content": blocks})
    return alice


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("refund", ["c", "b", "a"]),
        ("REFUND order", ["b", "a"]),
        ("ref 9921", ["a"]),
        ("9921 refund nothing", []),
        ("efund", ["c", "b", "a"]),
        ("fund 992", ["a"]),
        ("refund-2", ["c"]),
        ("zoë", ["c"]),
        ("müller", ["e"]),
        ("50 %", ["e"]),
        ("it's_all", ["d"]),
        ("\\ refund", ["c", "b", "a"]),
        ("type", []),
        ("user", []),
    ],
)
def test_threads__text__is_found_in_titles_and_messages(
    text: str, found: list[str], admin: Client, library: Person
) -> None:
    items = admin.get("/threads.json", {"text": text}).json()["items"]
    assert [item["id"] for item in items] == found


def test_threads__text_in_a_message__is_shown_with_a_link(admin: Client, library: Person) -> None:
    shown = page(admin, "/threads?text=refund")
    assert 'href="/threads/b?message=1#m1">#1</a> I want a refund for my order</div>' in shown
    assert "&lt;b&gt;" not in shown


def test_threads__text_in_a_long_message__has_an_ellipsis_where_it_is_cut(
    admin: Client, library: Person
) -> None:
    append(library.actor, "b", {"role": "user", "content": "x" * 70 + " quince"})
    append(library.actor, "b", {"role": "user", "content": "medlar " + "y" * 200})
    assert f"</a> …{'x' * 59} quince</div>" in page(admin, "/threads?text=quince")
    assert f"</a> medlar {'y' * 193}…</div>" in page(admin, "/threads?text=medlar")


def test_threads__text__is_combined_with_filters(admin: Client, library: Person) -> None:
    Thread.objects.filter(public_id="a").update(message_count=10, resource_id="u1")
    for query in ("size=10", "resource=u1", "prefix=a", "sort=id&prefix=a"):
        assert walk(admin, f"/threads.json?text=refund&{query}") == [["a"]], query
    assert walk(admin, "/threads.json?text=refund&status=active") == [[]]


@pytest.mark.parametrize("text", ["-", "  ", "' \"", " ".join("abcdefghijklmnopqrstuvwxyz" * 2)])
def test_threads__text_without_words_or_with_too_many__says_so(
    text: str, admin: Client, library: Person
) -> None:
    response = admin.get("/threads", {"text": text})
    assert response.status_code == 200
    if text.strip():
        assert "Invalid query: " in response.content.decode()
        assert admin.get("/threads.json", {"text": text}).status_code == 422


def test_threads__text__each_match_is_on_one_page(
    admin: Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "PAGE", 2)
    monkeypatch.setattr(thread_search, "SEARCHED", 3)
    for number in range(12):
        title = "refund" if number % 4 == 0 else ""
        make_thread(alice.actor, f"n{number:02}", title=title)
        if number % 2:
            append(alice.actor, f"n{number:02}", {"role": "user", "content": "a refund"})
    pages = walk(admin, "/threads.json?text=refund")
    ids = [each for part in pages for each in part]
    assert len(ids) == len(set(ids))
    assert set(ids) == {f"n{number:02}" for number in range(12) if number % 2 or number % 4 == 0}


def test_threads__text__says_how_far_messages_were_searched(
    admin: Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thread_search, "MESSAGES", 5)
    for name, count in (("a", 1), ("b", 2), ("c", 3), ("d", 9)):
        make_thread(alice.actor, name)
        append(alice.actor, name, *({"role": "user", "content": "rain"} for _ in range(count)))
    make_thread(alice.actor, "e")
    assert walk(admin, "/threads.json?text=rain") == [["d"], ["c", "b"], ["a"]]
    shown = page(admin, "/threads?text=rain")
    assert "any text in the titles, ids and 5 messages of 2 threads, back to" in shown
    assert "<i>Next page</i> searches older messages." in shown
    monkeypatch.setattr(thread_search, "MESSAGES", 1_000)
    assert "Searched all threads" in page(admin, "/threads?text=rain")


@pytest.mark.parametrize("size", [{"MESSAGES": 50}, {"BYTES": 3_000}])
def test_threads__text_in_an_old_message__is_found_by_continuing(
    size: dict[str, int], admin: Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in size.items():
        monkeypatch.setattr(thread_search, name, value)
    for name in ("older", "long"):
        make_thread(alice.actor, name)
        append(alice.actor, name, {"role": "user", "content": f"rain in {name}"})
        append(alice.actor, name, *({"role": "user", "content": "sun"} for _ in range(119)))
    pages = walk(admin, "/threads.json?text=rain")
    assert [each for part in pages for each in part] == ["long", "older"]
    assert len(pages) > 2
    shown = page(admin, "/threads?text=rain")
    assert "No match yet. Searching older messages…" in shown
    assert 'hx-trigger="load delay:300ms"' in shown
    last = page(admin, "/threads?text=rain", headers={"Continued": str(paging.MOST_CONTINUED)})
    assert "No match yet. <i>Next page</i> searches older messages." in last
    assert "load delay" not in last


def test_threads__text_in_two_parts_of_a_thread__lists_it_once(
    admin: Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thread_search, "MESSAGES", 3)
    make_thread(alice.actor, "first")
    append(alice.actor, "first", {"role": "user", "content": "rain"})
    make_thread(alice.actor, "named-train")
    for name in ("named-train", "said"):
        if name == "said":
            make_thread(alice.actor, name)
        append(alice.actor, name, *({"role": "user", "content": "rain"} for _ in range(9)))
    pages = walk(admin, "/threads.json?text=rain")
    assert [each for part in pages for each in part] == ["said", "named-train", "first"]


def test_threads__text_in_a_large_message__is_found(
    admin: Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thread_search, "BYTES", 1_000)
    make_thread(alice.actor, "a")
    filler = " ".join(map(str, range(20_000)))
    append(alice.actor, "a", {"role": "user", "content": f"{filler} rain"})
    append(alice.actor, "a", {"role": "user", "content": "sun"})
    assert walk(admin, "/threads.json?text=rain") == [["a"]]


def test_threads__text__many_old_titles__hide_no_message(admin: Client, alice: Person) -> None:
    make_thread(alice.actor, "n000", title="refund")
    thread = Thread.objects.get()
    Thread.objects.bulk_create(
        Thread(
            workspace=thread.workspace,
            public_id=f"n{number:03}",
            title="refund" if number < 60 else "",
        )
        for number in range(1, 300)
    )
    append(alice.actor, "n130", {"role": "user", "content": "a refund"})
    append(alice.actor, "n030", {"role": "user", "content": "a refund"})
    ids = [each for part in walk(admin, "/threads.json?text=refund") for each in part]
    assert sorted(ids) == [*(f"n{number:03}" for number in range(60)), "n130"]


def test_threads__middle_of_a_word__is_found_page_by_page(
    admin: Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thread_search, "SEARCHED", 2)
    for name, title in (("parcel-1", ""), ("b", "Refund"), ("c", "A parcel"), ("d", ""), ("e", "")):
        make_thread(alice.actor, name, title=title)
    assert walk(admin, "/threads.json?text=arcel") == [[], ["c"], ["parcel-1"]]
    assert walk(admin, "/threads.json?text=parcel") == [["c"], [], ["parcel-1"]]


def test_threads__text__has_no_order_to_choose(admin: Client, library: Person) -> None:
    shown = page(admin, "/threads?text=refund&sort=oldest")
    assert headings(shown)["Created"] == ("descending", "")
    assert not any(url for _, url in headings(shown).values())
    assert 'hx-get="/threads?text=refund"' in shown


def test_threads__text_of_another_workspace__is_not_found(
    stranger: Client, library: Person
) -> None:
    assert walk(stranger, "/threads.json?text=refund") == [[]]
