"""CommonholdStore: the guarantees of LangGraph's own stores, and further ones: no lost updates,
history, expiry without a sweeper."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from commonhold import Commonhold, Invalid, InvalidArgument, VersionConflict
from commonhold.langgraph import CommonholdStore
from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime
from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore


def until(what: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 30
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def keys(items: Any) -> list[str]:
    return [each.key for each in items]


# Items -------------------------------------------------------------------------------------------


def test_put_get_delete__of_an_item__are_as_in_every_store(store: CommonholdStore) -> None:
    assert store.get(("users", "1"), "prefs") is None
    store.put(("users", "1"), "prefs", {"theme": "dark"})
    made = store.get(("users", "1"), "prefs")
    assert made is not None
    assert (made.namespace, made.key) == (("users", "1"), "prefs")
    assert made.value == {"theme": "dark"}
    assert made.created_at == made.updated_at
    store.put(("users", "1"), "prefs", {"theme": "light"})
    changed = store.get(("users", "1"), "prefs")
    assert changed is not None
    assert changed.value == {"theme": "light"}
    assert changed.created_at == made.created_at
    assert changed.updated_at > made.updated_at
    store.delete(("users", "1"), "prefs")
    store.delete(("users", "1"), "prefs")
    assert store.get(("users", "1"), "prefs") is None
    assert store.search(("users",)) == []
    assert store.list_namespaces() == []


def test_async__has_the_same_methods(namespace: str) -> None:
    async def run() -> None:
        async with CommonholdStore.from_env(namespace=namespace) as store:
            await store.asetup()
            await store.aput(("a", "b"), "k", {"n": 1})
            item = await store.aget(("a", "b"), "k")
            assert item is not None
            assert item.value == {"n": 1}
            assert keys(await store.asearch(("a",), filter={"n": {"$gte": 1}})) == ["k"]
            assert await store.alist_namespaces(prefix=("a",)) == [("a", "b")]
            assert (
                await store.aupdate(("a",), "n", {"op": "add", "path": "/n", "value": 2})
            ).value == {"n": 2}
            assert (await store.aedit(("a",), "n", lambda v: {"n": v["n"] * 2})).value == {"n": 4}
            await store.adelete(("a", "b"), "k")
            assert await store.aget(("a", "b"), "k") is None

    asyncio.run(run())


@pytest.mark.parametrize(
    "value",
    [{}, {"a": None}, {"n": 2**70, "f": 1.0}, {"ü 🙂": [[], {"x": {}}]}, {"t": "x" * 500_000}],
)
def test_value__of_json__comes_back_exactly(store: CommonholdStore, value: dict[str, Any]) -> None:
    store.put(("v",), "k", value)
    (found,) = store.search(("v",))
    assert repr(found.value) == repr(value)


def test_value__that_is_no_json__is_refused_and_nothing_stored(store: CommonholdStore) -> None:
    with pytest.raises(TypeError):
        store.put(("v",), "k", {"o": object()})
    with pytest.raises(Invalid):
        store.put(("v",), "k", {"nul": "\0"})
    assert store.get(("v",), "k") is None


@pytest.mark.parametrize("key", ["a/b", "..", "%2F", "x y", "🙂", "a.b", "", "\n", "~"])
def test_key__of_any_spelling__is_its_own(store: CommonholdStore, key: str) -> None:
    store.put(("odd", "x/y"), key, {"k": key})
    store.put(("odd", "x"), f"y/{key}", {"k": "other"})
    found = store.get(("odd", "x/y"), key)
    assert found is not None
    assert (found.namespace, found.key, found.value) == (("odd", "x/y"), key, {"k": key})
    assert store.list_namespaces(prefix=("odd",)) == [("odd", "x"), ("odd", "x/y")]


def test_address__too_long_or_not_legal__is_refused_clearly(store: CommonholdStore) -> None:
    with pytest.raises(ValueError, match="namespace and key take more than 512 bytes"):
        store.put(("n" * 300,), "k" * 300, {})
    for labels in ((), ("",), ("a.b",), ("langgraph", "x")):
        with pytest.raises(InvalidNamespaceError):
            store.put(labels, "k", {})
    with pytest.raises(InvalidNamespaceError):
        store.batch([PutOp(("a.b",), "k", {})])
    with pytest.raises(InvalidNamespaceError):
        store.update(("a.b",), "k")


# Batches -----------------------------------------------------------------------------------------


def test_batch__of_everything__answers_as_in_memory(store: CommonholdStore) -> None:
    seen = []
    for each in (InMemoryStore(), store):
        each.batch([PutOp(("test", "foo"), "key1", {"data": "value1"})])
        each.put(("test", "bar"), "key2", {"data": "value2"})
        results = each.batch(
            [
                GetOp(("test", "foo"), "key1"),
                PutOp(("test", "bar"), "key2", {"data": "new"}),
                SearchOp(("test",), {"data": "value1"}, 10, 0),
                PutOp(("test", "foo"), "key3", {"data": "first"}),
                PutOp(("test", "foo"), "key3", {"data": "last"}),
                PutOp(("test", "foo"), "key1", None),
                ListNamespacesOp((MatchCondition("prefix", ("test",)),), None, 10, 0),
                GetOp(("test", "bar"), "key2"),
                GetOp(("test",), "missing"),
            ]
        )
        item, _, hits, _, _, _, namespaces, old, missing = results
        seen.append(
            (
                (item.key, item.value),
                [(hit.key, hit.value) for hit in hits],
                namespaces,
                old.value,
                missing,
                sorted((i.namespace, i.key, str(i.value)) for i in each.search(("test",))),
            )
        )
    assert seen[0] == seen[1]


def test_puts__of_one_batch__land_all_or_none(store: CommonholdStore) -> None:
    with pytest.raises(Invalid):
        store.batch([PutOp(("a",), str(n), {"t": "\0" if n == 7 else "x"}) for n in range(20)])
    assert store.search(("a",), limit=100) == []
    store.batch([PutOp(("a",), f"{n:04}", {"n": n}) for n in range(2500)])
    assert keys(store.search(("a",), limit=3, offset=2450)) == ["2450", "2451", "2452"]
    found = store.batch([GetOp(("a",), f"{n:04}") for n in range(2500)])
    assert [item.value["n"] for item in found] == list(range(2500))
    assert store.batch([]) == []


# Search ------------------------------------------------------------------------------------------


def test_prefix__of_a_namespace__is_by_segment(store: CommonholdStore) -> None:
    for labels in (("a",), ("a", "b"), ("ab",), ("a", "bc"), ("b", "a")):
        store.put(labels, "k", {"at": list(labels)})

    def found(*prefix: str) -> list[list[str]]:
        return [item.value["at"] for item in store.search(prefix)]

    assert found("a") == [["a", "b"], ["a", "bc"], ["a"]]
    assert found("a", "b") == [["a", "b"]]
    assert found("ab") == [["ab"]]
    assert len(found()) == 5
    assert found("c") == []


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({"n": 9}, ["b"]),
        ({"n": {"$eq": 9}}, ["b"]),
        ({"n": {"$ne": 9}}, ["a", "c", "d"]),
        ({"n": {"$gt": 9}}, ["a", "c"]),
        ({"n": {"$gte": 9}}, ["a", "b", "c"]),
        ({"n": {"$lt": 10}}, ["b", "d"]),
        ({"n": {"$lte": 10}}, ["a", "b", "d"]),
        ({"n": {"$gt": 5, "$lt": 20}}, ["a", "b"]),
        ({"n": {"$gt": "9.5"}}, ["a", "c"]),
        ({"n": {"$gte": 0}, "color": "red"}, ["a"]),
        ({"color": {"$ne": "red"}}, ["b", "c", "d"]),
        ({"in": {"deep": {"$gte": 2}}}, ["c"]),
        ({"in": {"deep": 1}}, ["b"]),
        ({"tags": ["x", "y"]}, ["d"]),
        ({"tags": ["x"]}, []),
        ({"nowhere": 1}, []),
        ({"nowhere": None, "n": 9}, ["b"]),
    ],
)
def test_filter__by_number_and_operators__is_as_in_memory(
    store: CommonholdStore, wanted: dict[str, Any], expected: list[str]
) -> None:
    items = {
        "a": {"n": 10, "color": "red", "in": {}},
        "b": {"n": 9, "color": "blue", "in": {"deep": 1}},
        "c": {"n": 100.5, "in": {"deep": 2, "more": 1}},
        "d": {"n": -3, "tags": ["x", "y"]},
    }
    memory = InMemoryStore()
    for each in (memory, store):
        for key, value in items.items():
            each.put(("f",), key, value)
    assert keys(store.search(("f",), filter=wanted)) == expected
    if "in" not in wanted or not isinstance(
        wanted["in"]["deep"], dict
    ):  # the missing ones cause the failure
        assert keys(memory.search(("f",), filter=wanted)) == expected


def test_filter__compares_numbers_never_text(store: CommonholdStore) -> None:
    for key, n in (("nine", 9), ("ten", 10), ("text", "10"), ("word", "many"), ("none", None)):
        store.put(("f",), key, {"n": n})
    store.put(("f",), "missing", {})
    assert keys(store.search(("f",), filter={"n": {"$gt": 9}})) == ["ten", "text"]
    with pytest.raises(ValueError, match="Unsupported operator: \\$near"):
        store.search(("f",), filter={"n": {"$near": 9}})


def test_search__limit_and_offset_over_pages__find_each_once(store: CommonholdStore) -> None:
    store.batch([PutOp(("p",), f"{n:03}", {"even": n % 2 == 0}) for n in range(450)])
    assert len(store.search(("p",))) == 10
    paged = [
        key
        for offset in range(0, 240, 60)
        for key in keys(store.search(("p",), filter={"even": True}, limit=60, offset=offset))
    ]
    assert paged == [f"{n:03}" for n in range(0, 450, 2)]
    assert keys(store.search(("p",), limit=5, offset=448)) == ["448", "449"]
    assert store.search(("p",), limit=0) == []
    # There is no vector index: a query neither sorts nor filters, and index has no effect.
    store.put(("q",), "k", {"text": "aisle"}, index=["text"])
    (found,) = store.search(("q",), query="window")
    assert found.score is None


def test_list_namespaces__by_prefix_suffix_depth_and_page__is_as_in_memory(
    store: CommonholdStore,
) -> None:
    labels = [
        ("a", "b", "c"),
        ("a", "b", "d", "e"),
        ("a", "b", "d", "i"),
        ("a", "b", "f"),
        ("a", "c", "f"),
        ("b", "a", "f"),
        ("users", "123"),
        ("users", "456", "settings"),
        ("admin", "users", "789"),
    ]
    questions: list[dict[str, Any]] = [
        {},
        {"prefix": ("a", "b")},
        {"suffix": ("f",)},
        {"prefix": ("a",), "suffix": ("f",)},
        {"prefix": ("a", "*", "f")},
        {"prefix": ("*", "users")},
        {"suffix": ("*", "f")},
        {"max_depth": 2},
        {"prefix": ("a", "b"), "max_depth": 3},
        {"limit": 2, "offset": 1},
        {"prefix": ("zzz",)},
        {"max_depth": 1, "offset": 3},
    ]
    memory = InMemoryStore()
    for each in (memory, store):
        for namespace in labels:
            each.put(namespace, "k", {})
            each.put(namespace, "l", {})
    for asked in questions:
        assert store.list_namespaces(**asked) == memory.list_namespaces(**asked), asked


# Time to live ------------------------------------------------------------------------------------

SECOND = 1 / 60


def test_ttl__over__reads_as_missing_everywhere(store: CommonholdStore) -> None:
    store.put(("t",), "short", {"n": 1}, ttl=SECOND)
    store.put(("t", "deep"), "short", {"n": 1}, ttl=SECOND)
    store.put(("t",), "long", {"n": 1}, ttl=10)
    store.put(("t",), "for good", {"n": 1})
    until(lambda: store.get(("t",), "short", refresh_ttl=False) is None)
    until(lambda: len(store.search(("t",), refresh_ttl=False)) == 2)
    assert store.list_namespaces(prefix=("t",)) == [("t",)]


def test_ttl__not_a_number__is_refused_with_its_unit(store: CommonholdStore) -> None:
    with pytest.raises(
        InvalidArgument, match="ttl must be a number of minutes, at least 0, not -1"
    ):
        store.put(("t",), "k", {"n": 1}, ttl=-1)


def test_ttl__read_again_and_again__lives_on(
    store: CommonholdStore, state: Commonhold, namespace: str
) -> None:
    store.put(("t",), "k", {"n": 1}, ttl=1)

    def expiry() -> Any:
        return state.get(f"{namespace}.store", "t/k").expires_at

    first = expiry()
    store.get(("t",), "k", refresh_ttl=False)
    store.search(("t",), refresh_ttl=False)
    assert expiry() == first
    store.get(("t",), "k")
    second = expiry()
    assert second > first
    store.search(("t",))
    third = expiry()
    assert third > second
    written = state.get(f"{namespace}.store", "t/k")
    assert round((third - written.updated_at).total_seconds()) == 60
    store.put(("t",), "k", {"n": 2})  # without a TTL: permanent
    assert expiry() is None


def test_ttl__items_larger_than_a_request__are_extended(
    store: CommonholdStore, state: Commonhold, namespace: str
) -> None:
    for number in range(10):
        store.put(("t",), f"k{number}", {"text": "x" * 1_000_000}, ttl=1)
    first = state.get(f"{namespace}.store", "t/k9").expires_at
    assert len(store.search(("t",))) == 10
    assert state.get(f"{namespace}.store", "t/k9").expires_at > first


def test_ttl__of_the_configuration__is_the_default(namespace: str, state: Commonhold) -> None:
    configured: Any = {"default_ttl": 5, "refresh_on_read": False}
    with CommonholdStore.from_env(namespace=namespace, ttl=configured) as store:
        store.put(("t",), "k", {})
        store.put(("t",), "kept", {}, ttl=None)
        before = state.get(f"{namespace}.store", "t/k").expires_at
        assert before is not None
        store.get(("t",), "k")
        assert state.get(f"{namespace}.store", "t/k").expires_at == before
        assert state.get(f"{namespace}.store", "t/kept").expires_at is None


# No lost update ----------------------------------------------------------------------------------


def test_update__by_a_hundred_at_once__loses_none(store: CommonholdStore) -> None:
    def count(n: int) -> None:
        store.update(
            ("race",),
            "counter",
            {"op": "add", "path": "/n", "value": 1},
            {"op": "append", "path": "/who", "value": n},
        )

    store.put(("race",), "counter", {"n": 0, "who": []})
    with ThreadPoolExecutor(20) as pool:
        list(pool.map(count, range(100)))
    found = store.get(("race",), "counter")
    assert found is not None
    assert found.value["n"] == 100
    assert sorted(found.value["who"]) == list(range(100))


def test_edit__by_a_hundred_at_once__loses_none(namespace: str) -> None:
    async def run() -> Any:
        async with CommonholdStore.from_env(namespace=namespace) as store:
            await store.asetup()
            await asyncio.gather(
                *(
                    store.aedit(("race",), "counter", lambda v: {"n": v.get("n", 0) + 1})
                    for _ in range(100)
                )
            )
            return await store.aget(("race",), "counter")

    assert asyncio.run(run()).value == {"n": 100}


def test_edit__never_first__gives_up_and_says_why(store: CommonholdStore) -> None:
    def slow(value: dict[str, Any]) -> dict[str, Any]:
        store.update(("race",), "k", {"op": "add", "path": "/n", "value": 1})
        return value

    with pytest.raises(VersionConflict, match="version conflict"):
        store.edit(("race",), "k", slow, attempts=3)
    found = store.get(("race",), "k")
    assert found is not None
    assert found.value == {"n": 3}


def test_edit__of_an_item_with_a_time_to_live__keeps_it(
    store: CommonholdStore, state: Commonhold, namespace: str
) -> None:
    store.put(("t",), "k", {"n": 1}, ttl=10)
    store.edit(("t",), "k", lambda v: {"n": v["n"] + 1})
    assert state.get(f"{namespace}.store", "t/k").expires_at is not None


# In a graph, and beside it -----------------------------------------------------------------------


def test_graph__with_the_store__shares_it_between_threads(store: CommonholdStore) -> None:
    def greet(state: dict[str, Any], runtime: Runtime[Any]) -> dict[str, Any]:
        assert runtime.store is not None
        known = runtime.store.get(("users",), state["user"])
        runtime.store.put(
            ("users",), state["user"], {"seen": (known.value["seen"] if known else 0) + 1}
        )
        return {}

    builder: Any = StateGraph(dict)
    builder.add_node("greet", greet)
    builder.add_edge(START, "greet")
    graph = builder.compile(store=store)
    for _ in range(3):
        graph.invoke({"user": "ana"})
    found = store.get(("users",), "ana")
    assert found is not None
    assert found.value == {"seen": 3}


def test_item__in_commonhold__is_an_entry_with_history(
    store: CommonholdStore, state: Commonhold, namespace: str
) -> None:
    store.put(("users", "1"), "prefs", {"theme": "dark"})
    store.put(("users", "1"), "prefs", {"theme": "light"})
    where = f"{namespace}.store"
    assert state.get(where, "users/1/prefs").value == {"theme": "light"}
    assert [each.version for each in state.history(where, "users/1/prefs")] == [2, 1]
    state.restore(where, "users/1/prefs", 1)
    found = store.get(("users", "1"), "prefs")
    assert found is not None
    assert found.value == {"theme": "dark"}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        # "users" would otherwise be the labels u, s, e, r, s.
        (lambda store: store.put("users", "k", {}), r"namespace must be a tuple of str"),
        (lambda store: store.search("users"), r"namespace_prefix must be a tuple of str"),
        (lambda store: store.put(("users",), "k", "text"), "value must be a dict, not str"),
        (lambda store: store.put(("users",), "k", [1]), "value must be a dict, not list"),
        (lambda store: store.put(("users",), "k", {"a": {1}}), "/operations/0/value/a: set is not"),
        (lambda store: store.put(("users",), "k", {}, ttl=-1), "ttl must be a number"),
        (lambda store: store.search(("users",), offset=-1), "limit and offset must be at least 0"),
        (lambda store: store.put(("users",), "k" * 600, {}), "namespace and key take more than"),
    ],
)
def test_call__mistaken_argument__is_named_and_stores_nothing(
    store: CommonholdStore, call: Callable[[Any], Any], message: str
) -> None:
    with pytest.raises(InvalidArgument, match=f"^{message}"):
        call(store)
    assert store.search(("users",)) == []
