"""Lists of entries: over all namespaces, by tags, by validity within bounds."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from state_admin.models import Entry
from state_admin.services import batching, entries, listings, namespaces, redactions
from tests.builders import Person, call, make_namespace, make_token, put

Address = tuple[str, str]


def pages(person: Person, path: str, limit: int = 2) -> list[list[Address]]:
    """The URLs of every page."""
    found = []
    url = f"{path}{'&' if '?' in path else '?'}limit={limit}"
    cursor = ""
    while True:
        answer = person.api("GET", url + cursor)
        assert answer.status_code == 200, answer.content
        body = answer.json()
        found.append([(item["namespace"], item["key"]) for item in body["items"]])
        if body["next_cursor"] is None:
            return found
        cursor = f"&cursor={body['next_cursor']}"


def listed(person: Person, path: str, limit: int = 2) -> list[Address]:
    return [address for page in pages(person, path, limit) for address in page]


@pytest.fixture
def three_namespaces(alice: Person) -> Person:
    """Three namespaces, the third unregistered, and a deleted entry."""
    make_namespace(alice.actor, "a", plugin="kit")
    make_namespace(alice.actor, "a.b")
    make_namespace(alice.actor, "gone")
    for namespace, key in [("a.b", "k"), ("a", "z/1"), ("a", "k"), ("a", "dead"), ("gone", "k")]:
        put(alice.actor, namespace, key, {"at": key})
    entries.delete_entry(actor=alice.actor, namespace="a", key="dead")
    namespaces.unregister_namespace(actor=alice.actor, name="gone", entries="retain")
    return alice


# All namespaces ------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [1, 2, 200])
def test_list__of_all_namespaces__is_ordered_by_namespace_and_key(
    three_namespaces: Person, limit: int
) -> None:
    everywhere = [("a", "k"), ("a", "z/1"), ("a.b", "k"), ("gone", "k")]
    assert listed(three_namespaces, "/state", limit) == everywhere
    items = three_namespaces.api("GET", "/state?include=value").json()["items"]
    assert [item["registered"] for item in items] == [True, True, True, False]
    assert [item["value"] for item in items] == [{"at": key} for _, key in everywhere]
    assert "value" not in three_namespaces.api("GET", "/state").json()["items"][0]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("plugin=kit", [("a", "k"), ("a", "z/1")]),
        ("plugin=none", []),
        ("prefix=z/", [("a", "z/1")]),
        ("scope_kind=thread", []),
        ("updated_since=2100-01-01T00:00:00Z", []),
        ("plugin=kit&updated_since=2000-01-01T00:00:00Z", [("a", "k"), ("a", "z/1")]),
        ("valid=false", []),
        ("valid=true&prefix=k", [("a", "k"), ("a.b", "k"), ("gone", "k")]),
    ],
)
def test_list__of_all_namespaces__supports_the_filters(
    three_namespaces: Person, query: str, found: list[Address]
) -> None:
    assert listed(three_namespaces, f"/state?{query}") == found


def test_list__of_all_namespaces__contains_permitted_entries_only(
    three_namespaces: Person, mallory: Person
) -> None:
    assert listed(mallory, "/state") == []
    secret, _ = make_token(three_namespaces, namespaces=["a.*"])
    seen = call(secret, "GET", "/state").json()["items"]
    assert [(item["namespace"], item["key"]) for item in seen] == [("a.b", "k")]


def test_list__of_all_namespaces__reads_a_bounded_number_of_entries(
    three_namespaces: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deleted entries count too: a page may be short, and the cursor continues."""
    monkeypatch.setattr(listings, "MOST_OPENED", 3)
    put(three_namespaces.actor, "a.b", "tagged", 1, tags=["t"])
    found = pages(three_namespaces, "/state?tags=t", 3)
    assert found[0] == [], "the first window holds none"
    assert [page for page in found if page] == [[("a.b", "tagged")]]
    assert listed(three_namespaces, "/state?valid=true", 3) == listed(three_namespaces, "/state", 3)


@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize("filters", ["tags=t", "valid=true", "scope_kind=custom"])
def test_list__of_a_namespace_with_filters_without_an_index__examines_a_bounded_number_of_entries(
    alice: Person, monkeypatch: pytest.MonkeyPatch, filters: str, order: str
) -> None:
    monkeypatch.setattr(listings, "MOST_EXAMINED", 3)
    make_namespace(alice.actor)
    tagged = {"k0", "k8", "k9"}
    for number in range(10):
        tags = ["t"] if f"k{number}" in tagged else []
        put(alice.actor, "notes", f"k{number}", 1, tags=tags)
    for key in ("k1", "k3", "k4", "k5"):
        entries.delete_entry(actor=alice.actor, namespace="notes", key=key)
    expected = [f"k{n}" for n in range(10) if n not in (1, 3, 4, 5)]
    if filters == "tags=t":
        expected = sorted(tagged)
    if order == "desc":
        expected.reverse()
    for limit in (1, 2, 50):
        found = pages(alice, f"/state/notes?{filters}&order={order}", limit)
        assert [key for page in found for _, key in page] == expected
        assert all(len(page) <= 3 for page in found)
    if filters == "tags=t":
        assert [] in found, "a part without matches has a cursor to the next one"


# Tags ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/state/notes", "/state"])
def test_list__tags__are_all_required(alice: Person, path: str) -> None:
    make_namespace(alice.actor)
    for key, tags in {"1": ["a"], "2": ["b", "a"], "3": ["a", "b", "c"], "4": ["a,b"]}.items():
        put(alice.actor, "notes", key, 1, tags=tags)

    def keys(query: str) -> list[str]:
        return [key for _, key in listed(alice, f"{path}?{query}")]

    assert keys("tags=a") == keys("tag=a") == ["1", "2", "3"]
    assert keys("tags=a,b") == keys("tags=a&tags=b") == keys("tags=b&tag=a") == ["2", "3"]
    assert keys("tags=a,b&tags=c") == ["3"]
    assert keys("tag=a,b") == ["4"]
    assert keys("tags=") == ["1", "2", "3", "4"]
    first = alice.api("GET", f"{path}?tags=a&tags=b&limit=1").json()["next_cursor"]
    other = alice.api("GET", f"{path}?tags=c&tags=b&limit=1&cursor={first}")
    assert other.status_code == 400, "the cursor was made for other tags"


# Validity ------------------------------------------------------------------------------------


@pytest.fixture
def stale_numbers(alice: Person) -> Person:
    """Forty numbers of an older schema, of which k15, k25 and k35 are invalid under the new one,
    and ten of the new."""
    make_namespace(alice.actor, default=0)
    for number in range(40):
        put(alice.actor, "notes", f"k{number:02}", "text" if number % 10 == 5 else number)
    entries.delete_entry(actor=alice.actor, namespace="notes", key="k05")
    make_namespace(alice.actor, schema={"type": "integer"}, default=0)
    for number in range(40, 50):
        put(alice.actor, "notes", f"k{number:02}", number)
    return alice


INVALID = [("notes", f"k{number}") for number in (15, 25, 35)]


@pytest.mark.parametrize("path", ["/state/notes", "/state"])
@pytest.mark.parametrize("limit", [1, 2, 3, 200])
def test_list__by_validity__partitions_the_entries(
    stale_numbers: Person, path: str, limit: int
) -> None:
    refused = listed(stale_numbers, f"{path}?valid=false", limit)
    accepted = listed(stale_numbers, f"{path}?valid=true", limit)
    assert refused == INVALID
    assert len(accepted) == 46
    assert sorted(refused + accepted) == listed(stale_numbers, path, 200)
    for valid in ("true", "false"):
        items = stale_numbers.api("GET", f"{path}?valid={valid}&limit=200").json()["items"]
        assert {item["valid"] for item in items} == {valid == "true"}


def test_list__invalid_in_descending_order__is_reversed(stale_numbers: Person) -> None:
    assert listed(stale_numbers, "/state/notes?valid=false&order=desc", 1) == INVALID[::-1]
    assert listed(stale_numbers, "/state/notes?valid=false&before=k30", 1) == INVALID[:2]


@pytest.mark.parametrize("path", ["/state/notes", "/state"])
def test_list__redacted_value_that_was_not_validated__is_among_the_invalid(
    alice: Person, path: str
) -> None:
    """Its namespace has never changed its schema."""
    make_namespace(alice.actor, schema={"type": "integer"}, default=0)
    for key in ("k", "l"):
        put(alice.actor, "notes", key, 1)
    redactions.redact_entry(actor=alice.actor, namespace="notes", key="k", reason="why")
    assert listed(alice, f"{path}?valid=false") == [("notes", "k")]


@pytest.mark.parametrize("path", ["/state/notes", "/state"])
def test_list__few_invalid_among_many__reads_a_bounded_number_and_has_a_cursor(
    stale_numbers: Person, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr(listings, "MOST_OPENED", 10)
    opened: list[int] = []
    judge = listings.is_valid

    def counted(row: Entry) -> bool:
        opened.append(row.pk)
        return judge(row)

    monkeypatch.setattr(listings, "is_valid", counted)
    first = stale_numbers.api("GET", f"{path}?valid=false&limit=2").json()
    assert (first["items"], len(opened) <= 10) == ([], True)
    assert first["next_cursor"] is not None
    opened.clear()
    assert listed(stale_numbers, f"{path}?valid=false") == INVALID
    assert len(opened) == 39, "of the present schema none is opened, of the others each once"


@pytest.mark.parametrize("path", ["/state/notes", "/state"])
@pytest.mark.parametrize("name", ["tag", "tags", "prefix", "plugin", "before"])
def test_list__unusual_text__is_no_server_error(alice: Person, path: str, name: str) -> None:
    make_namespace(alice.actor)
    for text in ("\0", "%", "\\", "😀", '"{}"'):
        assert alice.api("GET", f"{path}?{name}={quote(text)}").status_code in (200, 400, 422)


# Values --------------------------------------------------------------------------------------


LISTS = ["/state", "/state/notes", "/state/notes?order=desc", "/state/notes?valid=true", "/keys/k2"]


@pytest.mark.parametrize("path", LISTS)
def test_list__without_values__reads_none(alice: Person, path: str) -> None:
    """Unless they were written under another schema version."""
    make_namespace(alice.actor)
    for key in ("k1", "k2"):
        put(alice.actor, "notes", key, {"text": "long"})
    url = f"/api/v1{path}"
    with CaptureQueriesContext(connection) as found:
        answer = alice.api("GET", url.removeprefix("/api/v1"))
    assert answer.json()["items"]
    reads = [query["sql"] for query in found if '"entries"."value"' in query["sql"]]
    assert bool(reads) == ("valid" in path)


@pytest.mark.parametrize("path", LISTS)
@pytest.mark.parametrize(("most", "sizes"), [(250, 2), (100, 1), (10, 1)])
def test_list__with_large_values__ends_a_page_before_they_are_too_many(
    alice: Person, monkeypatch: pytest.MonkeyPatch, path: str, most: int, sizes: int
) -> None:
    monkeypatch.setattr(listings, "MOST_BYTES", most)
    monkeypatch.setattr(batching, "MOST_BYTES", most)
    for namespace in ("notes", "plans", "tasks"):
        make_namespace(alice.actor, namespace)
        for key in ("k1", "k2", "k3"):
            put(alice.actor, namespace, key, "x" * 98)
    found = pages(alice, path + ("&" if "?" in path else "?") + "include=value", limit=200)
    assert {len(page) for page in found[:-1]} == {sizes}
    whole = pages(alice, path, limit=200)
    assert [address for page in found for address in page] == whole[0]
    assert len(whole) == 1


def test_list__of_values_of_an_older_schema__judges_them_in_all_lists(alice: Person) -> None:
    make_namespace(alice.actor, "plans", {"type": ["object", "string"]}, {})
    put(alice.actor, "plans", "k", "text")
    put(alice.actor, "plans", "l", {})
    make_namespace(alice.actor, "plans", {"type": "object"}, {})
    for path in ("/state", "/state/plans", "/keys/k"):
        items = alice.api("GET", path).json()["items"]
        assert [item["valid"] for item in items] == [item["key"] == "l" for item in items]
