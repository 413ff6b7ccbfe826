"""Searching current values: immediately correct, whatever the index contains."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext

from state_admin.domain import values
from state_admin.domain.scopes import ScopeKind
from state_admin.domain.search import Condition
from state_admin.models import Change, SearchDocument, SearchPosition
from state_admin.models.search import is_behind
from state_admin.services import batching, entries, indexing, namespaces, search
from state_admin.services.entries import put_entries
from state_admin.services.errors import Invalid, NotRegistered
from tests.builders import Person, make_namespace, make_token, put, raw
from tests.services.test_entries import let_expire


def keys(person: Any, text: str = "", *where: tuple[str, object], **options: Any) -> list[str]:
    actor = getattr(person, "actor", person)
    conditions = [Condition(pointer, "=", equals) for pointer, equals in where]
    found = search.search_entries(actor=actor, text=text, where=conditions, **options)
    return [hit.entry.key for hit in found.hits]


@pytest.fixture(params=["not indexed", "indexed", "changed since"])
def indexed(request: pytest.FixtureRequest, alice: Person) -> Person:
    """notes/k1 … k4; the index contains none of them, all, or their previous values."""
    make_namespace(alice.actor)
    for number in range(1, 5):
        if request.param == "changed since":
            put(alice.actor, "notes", f"k{number}", {"title": "gone before", "n": -1})
    if request.param == "changed since":
        indexing.index_entries()
    for number in range(1, 5):
        value = {
            "title": f"Report {number}",
            "tags": ["draft", "urgent"][: number % 3],
            "n": number,
        }
        put(alice.actor, "notes", f"k{number}", value)
    if request.param == "indexed":
        assert indexing.index_entries() == {"indexed": 4, "removed": 0}
    return alice


def test_search__text_and_conditions__finds_exactly_what_matches(indexed: Person) -> None:
    assert keys(indexed, "report") == ["k4", "k3", "k2", "k1"]
    assert keys(indexed, "REP* urgent") == ["k2"]
    assert keys(indexed, "report", ("/n", 3.0)) == ["k3"]
    assert keys(indexed, "", ("/tags/0", "draft")) == ["k4", "k2", "k1"]
    assert keys(indexed, "", ("/tags", [])) == ["k3"]
    assert keys(indexed, '"report 4"') == ["k4"]
    assert keys(indexed, "title repo") == ["k4", "k3", "k2", "k1"]
    assert keys(indexed, "urge /n >= 2") == ["k2"]
    assert keys(indexed, "/n < 3 /tags contains draft") == ["k2", "k1"]
    assert keys(indexed, "/n != 2 /tags/0 exists") == ["k4", "k1"]
    assert keys(indexed, "k3") == ["k3"]
    assert keys(indexed, "k4 report") == ["k4"]
    assert keys(indexed, "k4 urgent") == []
    assert keys(indexed, "*EPOR") == ["k4", "k3", "k2", "k1"]
    assert keys(indexed, "*gent *raf") == ["k2"]
    assert keys(indexed, "*ort-4") == ["k4"]
    assert keys(indexed, "*4 report") == ["k4"]
    assert keys(indexed, "*efor") == keys(indexed, "*epor nothing") == []
    assert keys(indexed, "before") == keys(indexed, "", ("/n", -1)) == []


def test_search__deleted_or_inaccessible__is_never_returned(
    indexed: Person, mallory: Person
) -> None:
    actor = indexed.actor
    make_namespace(actor, "other")
    put(actor, "other", "orphan", "report")
    put(actor, "notes", "short", "report", ttl_seconds=60)
    let_expire("short")
    entries.delete_entry(actor=actor, namespace="notes", key="k4")
    put(actor, "notes", "k3", "nothing")
    namespaces.unregister_namespace(actor=actor, name="other", entries="retain")
    _, narrow = make_token(indexed, namespaces=["else.*"])
    for _ in range(2):
        assert keys(indexed, "report") == ["k2", "k1"]
        assert keys(narrow, "report") == []
        assert keys(mallory, "report") == []
        indexing.index_entries()
    make_namespace(actor, "other")
    assert keys(indexed, "report") == ["orphan", "k2", "k1"]


def test_search__filters__are_applied(indexed: Person) -> None:
    make_namespace(indexed.actor, "more")
    put(indexed.actor, "more", "thread::t1", "report")
    assert keys(indexed, "report", namespace="more") == ["thread::t1"]
    assert keys(indexed, "report", prefix="thread") == ["thread::t1"]
    assert keys(indexed, "report", scope_kind=ScopeKind.THREAD) == ["thread::t1"]
    assert keys(indexed, "report", scope_kind=ScopeKind.CUSTOM, prefix="k1") == ["k1"]
    with pytest.raises(NotRegistered):
        keys(indexed, "report", namespace="nope")
    with pytest.raises(Invalid):
        keys(indexed)


@pytest.mark.parametrize("text", ["report", "*epor"])
@pytest.mark.parametrize("most", [2000, 4, 1])
def test_search__pages__contain_every_hit_once(
    indexed: Person, most: int, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "MOST_OPENED", most)
    put(indexed.actor, "notes", "later", "report")
    seen, after, pages = [], None, 0
    while pages == 0 or after is not None:
        found = search.search_entries(actor=indexed.actor, text=text, limit=2, after=after)
        seen += [hit.entry.key for hit in found.hits]
        after, pages = found.after, pages + 1
        assert len(found.hits) <= 2
    assert seen == ["later", "k4", "k3", "k2", "k1"]


def test_search__short_page__has_a_cursor_if_there_is_more(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Candidates that do not match (here: the words in another order) are limited per call."""
    make_namespace(alice.actor)
    put(alice.actor, "notes", "hit", "red car")
    for number in range(6):
        put(alice.actor, "notes", f"miss{number}", "car red")
    indexing.index_entries()
    monkeypatch.setattr(search, "MOST_OPENED", 2)
    found = search.search_entries(actor=alice.actor, text='"red car"', limit=1)
    assert (found.hits, found.after is not None) == ([], True)
    while found.after is not None:
        before = found.after
        found = search.search_entries(
            actor=alice.actor, text='"red car"', limit=1, after=found.after
        )
        assert found.after is None or found.after < before
    assert [hit.entry.key for hit in found.hits] == ["hit"]


def test_search__many_candidates_without_a_hit__reads_them_with_few_statements(
    alice: Person, django_assert_max_num_queries: Callable[[int], AbstractContextManager[object]]
) -> None:
    make_namespace(alice.actor)
    for number in range(60):
        put(alice.actor, "notes", f"miss{number}", "car red")
    indexing.index_entries()
    with django_assert_max_num_queries(7):  # three of candidates, four of growing parts of values
        found = search.search_entries(actor=alice.actor, text='"red car"', limit=1)
    assert (found.hits, found.after) == ([], None)


def test_search__frequent_word__reads_as_many_documents_as_it_needs(alice: Person) -> None:
    make_namespace(alice.actor)
    puts = [("notes", f"k{number}", raw("frequent")) for number in range(1000)]
    put_entries(actor=alice.actor, puts=puts)
    indexing.index_entries()
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE entries, search_documents, namespaces")
    with CaptureQueriesContext(connection) as captured:
        assert keys(alice, "frequent", limit=2) == ["k999", "k998"]
    (walk,) = [each["sql"] for each in captured if ") newest" in each["sql"]]
    with connection.cursor() as cursor:
        # A thousand rows are so few that a join of all of them could be cheaper.
        cursor.execute("SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off")
        cursor.execute("EXPLAIN (ANALYZE, FORMAT JSON) " + walk)
        ((found,),) = cursor.fetchall()
    nodes = [found[0]["Plan"]]
    for node in nodes:
        nodes += node.get("Plans", [])
    reads = [
        node["Actual Rows"] for node in nodes if node.get("Relation Name") == "search_documents"
    ]
    assert reads == [200]


def test_search__large_and_unusual_values__are_found(alice: Person) -> None:
    make_namespace(alice.actor)
    many = " ".join(f"word{number:06}" for number in range(70_000))
    put(alice.actor, "notes", "huge", {"text": many})
    put(alice.actor, "notes", "long", {"text": "x" * 5000})
    put(alice.actor, "notes", "odd", {"quote ' \\ & | !": "it's 50% & \\ more"})
    for _ in range(2):
        assert keys(alice, "word069999 word000001") == ["huge"]
        assert keys(alice, "x" * 900 + "*") == ["long"]
        assert keys(alice, "it's") == ["odd"]
        assert keys(alice, "", ("/quote ' \\ & | !", "it's 50% & \\ more")) == ["odd"]
        assert indexing.index_entries()["removed"] == 0


@pytest.mark.parametrize(
    ("spelled", "word"),
    [
        (r'"Two\nwords"', "WORDS"),
        (r'"a\tb"', "b"),
        (r'"caf\u00e9"', "café"),
        ('"CAFÉ"', "café"),
        (r'"\u0072eport"', "report"),
        (r'{"deep": ["\ud83d\ude00 smile"]}', "smile"),
        ('"\uff52eport"', "report"),  # fullwidth r
        ('"\u212aelvin"', "kelvin"),  # the unit sign
        ('"日本語の本"', "本語"),
        (r'"caf\u00e9s"', "*AFÉ"),
        (r'"\tnew"', "*ew"),
        ('"\uff52\uff45port"', "*epo"),
    ],
)
def test_search__word_in_any_spelling__is_found(alice: Person, spelled: str, word: str) -> None:
    make_namespace(alice.actor)
    put(alice.actor, "notes", "other", "nothing of it: caf elvin two a port mile")
    entries.put_entry(actor=alice.actor, namespace="notes", key="k", value=values.read(spelled))
    for _ in range(2):
        assert keys(alice, word) == ["k"]
        indexing.index_entries()


# The index -----------------------------------------------------------------------------------


# The feed contains committed changes only.
@pytest.mark.django_db(transaction=True)
def test_index__deleted_entry__is_removed(alice: Person) -> None:
    make_namespace(alice.actor)
    put(alice.actor, "notes", "k", "word")
    assert is_behind()
    assert indexing.index_entries() == {"indexed": 1, "removed": 0}
    assert not is_behind()
    assert indexing.index_entries() == {"indexed": 0, "removed": 0}
    entries.delete_entry(actor=alice.actor, namespace="notes", key="k")
    assert indexing.index_entries() == {"indexed": 0, "removed": 1}
    assert SearchDocument.objects.count() == 0


# The feed contains committed changes only.
@pytest.mark.django_db(transaction=True)
def test_index__more_than_a_batch__continues_at_its_position(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "_CHUNK", 2)
    monkeypatch.setattr(indexing, "_MOST_STEPS", 1)
    make_namespace(alice.actor)
    for number in range(5):
        put(alice.actor, "notes", f"k{number}", "word")
    for indexed in (2, 2, 1, 0):
        assert indexing.index_entries()["indexed"] == indexed
        assert len(keys(alice, "word")) == 5
    for number in range(3):
        put(alice.actor, "notes", f"k{number}", "word again")
    for indexed in (2, 1, 0):
        assert indexing.index_entries()["indexed"] == indexed
        assert len(keys(alice, "again")) == 3


def test_index__behind_the_retention_of_changes__is_rebuilt(alice: Person) -> None:
    make_namespace(alice.actor)
    put(alice.actor, "notes", "k", "old")
    indexing.index_entries()
    put(alice.actor, "notes", "k", "new")
    Change.objects.all().delete()  # as retention would
    assert keys(alice, "new") == []
    SearchPosition.objects.update(at=Now() - timedelta(days=8))
    assert keys(alice, "new") == ["k"]
    assert indexing.index_entries()["indexed"] == 1
    assert keys(alice, "new") == ["k"]
    position = SearchPosition.objects.get()
    assert position.filled_to is None


def test_index__of_an_older_format__is_rebuilt(alice: Person) -> None:
    make_namespace(alice.actor)
    put(alice.actor, "notes", "k", {"price": 850})
    indexing.index_entries()
    Change.objects.all().delete()  # what is not indexed yet is always read
    with connection.cursor() as cursor:  # as an older version has written it
        cursor.execute(
            "UPDATE search_documents SET terms = ts_delete(terms, '{850,price}'::text[])"
        )
    assert keys(alice, "850") == []
    SearchPosition.objects.update(format=1)
    assert keys(alice, "850") == ["k"]
    assert is_behind()
    assert indexing.index_entries()["indexed"] == 1
    assert keys(alice, "price 850") == ["k"]
    assert SearchPosition.objects.get().format == 3


# The feed contains committed changes only.
@pytest.mark.django_db(transaction=True)
def test_index__document_of_an_older_version__is_found_and_written_again(alice: Person) -> None:
    make_namespace(alice.actor)
    put(alice.actor, "notes", "k", {"price": 850})
    indexing.index_entries()
    assert not is_behind()
    with connection.cursor() as cursor:  # a worker of the older version wrote it in the meantime
        old = "ts_delete(terms, '{850,price,~3}'::text[])"
        cursor.execute(f"UPDATE search_documents SET terms = {old}")
    assert keys(alice, "850") == ["k"]
    assert is_behind()
    assert indexing.index_entries()["indexed"] == 1
    assert not is_behind()
    assert "850" in str(SearchDocument.objects.get().terms)


def test_index__plan__uses_it_and_the_hot_table_has_none(alice: Person) -> None:
    make_namespace(alice.actor)
    put(alice.actor, "notes", "k", "word")
    indexing.index_entries()
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(
            "EXPLAIN SELECT entry_id FROM search_documents WHERE terms @@ %s::tsquery", ["'word'"]
        )
        plan = "\n".join(row[0] for row in cursor.fetchall())
        assert "search_documents_terms" in plan
        cursor.execute("SELECT indexdef FROM pg_indexes WHERE tablename = 'entries'")
        assert not [row for (row,) in cursor.fetchall() if "gin" in row]


# API -----------------------------------------------------------------------------------------


def test_api__search__returns_the_places_of_matches(alice: Person, bob: Person) -> None:
    make_namespace(alice.actor)
    for number in range(3):
        put(alice.actor, "notes", f"k{number}", {"text": f"<i>Plan</i> {number}", "n": number})
    told = bob.api("POST", "/search", {"text": "plan", "limit": 2}).json()
    assert [item["key"] for item in told["items"]] == ["k2", "k1"]
    assert told["items"][0]["matches"] == [{"pointer": "/text", "snippet": "<i>Plan</i> 2"}]
    assert "value" not in told["items"][0]
    rest = bob.api("POST", "/search", {"text": "plan", "limit": 2, "cursor": told["next_cursor"]})
    assert ([item["key"] for item in rest.json()["items"]], rest.json()["next_cursor"]) == (
        ["k0"],
        None,
    )
    other = bob.api("POST", "/search", {"text": "else", "cursor": told["next_cursor"]})
    assert other.status_code == 400
    where = [{"path": "/n", "equals": 1.0}]
    told = bob.api("POST", "/search", {"where": where, "include": "value"}).json()
    assert [item["value"]["n"] for item in told["items"]] == [1]
    assert told["items"][0]["matches"] == [{"pointer": "/n", "snippet": "1"}]
    where = [{"path": "/n", "operator": ">", "value": 0}, {"path": "/text", "operator": "exists"}]
    told = bob.api("POST", "/search", {"where": where}).json()
    assert [item["key"] for item in told["items"]] == ["k2", "k1"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 422),
        ({"text": "!"}, 422),
        ({"text": 1}, 422),
        ({"where": {}}, 422),
        ({"where": [{"path": "/a"}]}, 422),
        ({"where": [{"path": "/a", "operator": ">"}]}, 422),
        ({"where": [{"path": "/a", "value": 1}]}, 422),
        ({"where": [{"path": "/a", "operator": "~", "value": 1}]}, 422),
        ({"where": [{"path": "/a", "operator": "=", "value": 1, "equals": 1}]}, 422),
        ({"where": [{"path": "/a", "operator": "exists", "value": 1}]}, 422),
        ({"text": '/a = "\\x"'}, 422),
        ({"where": [{"path": "a", "equals": 1}]}, 422),
        ({"where": [{"path": "/a", "equals": 1, "x": 1}]}, 400),
        (b'{"where": [{"path": "/a", "equals": "\\u0000"}]}', 422),
        ({"text": "a", "limit": 201}, 422),
        ({"text": "a", "cursor": "nonsense"}, 400),
        ({"text": "a", "scope_kind": "nope"}, 422),
        ({"txt": "a"}, 400),
        ({"text": "a", "namespace": "nope"}, 404),
    ],
)
def test_api__invalid_search__is_refused(alice: Person, body: Any, status: int) -> None:
    assert alice.api("POST", "/search", body).status_code == status


def test_search__much_text_and_many_terms__ends_early_and_continues(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_namespace(alice.actor)
    for number in range(6):
        words = "b a" if number % 2 else "a b"
        put(alice.actor, "notes", f"k{number}", f"{words} {'x' * 1000}")
    monkeypatch.setattr(search, "MOST_WORK", 3000)
    monkeypatch.setattr(batching, "MOST_BYTES", 3000)
    for text, most in (('"a b"', 3), ('"a b" a b', 1)):
        found, pages, after = list[str](), 0, None
        while pages == 0 or after is not None:
            page = search.search_entries(actor=alice.actor, text=text, after=after)
            found += [hit.entry.key for hit in page.hits]
            pages, after = pages + 1, page.after
        assert found == ["k4", "k2", "k0"]
        assert 6 / most <= pages <= 6 / most + 1
