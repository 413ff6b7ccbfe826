"""Entries and namespaces through the client, against a real server."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any

import pytest
from commonhold import (
    AsyncCommonhold,
    BadRequest,
    Commonhold,
    Invalid,
    InvalidArgument,
    NotFound,
    NotRegistered,
    Problem,
    Threads,
    Unauthenticated,
    VersionConflict,
)

from tests.builders import TEAM_SCHEMA, Person
from tests.clients.python.conftest import SWIFT
from tests.loops import run
from tests.project.running import Running

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def notes(state: Commonhold) -> Commonhold:
    state.namespaces.register("notes")
    return state


def test_read__no_entry__returns_the_default_and_version_zero(state: Commonhold) -> None:
    state.namespaces.register("team", schema=TEAM_SCHEMA, default={"goal": ""})
    entry = state.get("team", "global")
    assert (entry.exists, entry.version, entry.value) == (False, 0, {"goal": ""})


def test_write__with_a_version__compares_it(notes: Commonhold) -> None:
    made = notes.put("notes", "k", {"n": 1}, if_version=0, tags=["a"], reason="weil: schön")
    assert (made.version, made.tags, made.actor) == (1, ["a"], "alice's token")
    assert made.updated_at is not None
    assert made.updated_at.tzinfo is not None
    assert notes.put("notes", "k", {"n": 2}, if_version=1).version == 2
    with pytest.raises(VersionConflict, match=r"^version conflict: expected 1, actual 2") as caught:
        notes.put("notes", "k", {"n": 3}, if_version=1)
    conflict = caught.value
    assert (conflict.expected, conflict.actual) == (1, 2)
    assert (conflict.base, conflict.theirs, conflict.yours) == ({"n": 1}, {"n": 2}, {"n": 3})
    assert [clash["pointer"] for clash in conflict.clashes] == ["/n"]
    with pytest.raises(VersionConflict):
        notes.put("notes", "k", 0, if_version=0)
    assert notes.put("notes", "k", {"n": 2, "m": 1}, if_version=1, merge=True).version == 3
    with pytest.raises(BadRequest, match="On-Conflict requires If-Match"):
        notes.put("notes", "k", {"n": 4}, merge=True)
    assert notes.history("notes", "k").items[-1].reason == "weil: schön"


def test_write__merge_over_version_0__merges_with_what_another_client_created(
    state: Commonhold,
) -> None:
    state.namespaces.register("team", default={"goal": "", "budget": 0})
    state.put("team", "k", {"goal": "Lisbon", "budget": 0})
    merged = state.put("team", "k", {"goal": "", "budget": 5}, if_version=0, merge=True)
    assert (merged.version, merged.value) == (2, {"goal": "Lisbon", "budget": 5})
    with pytest.raises(VersionConflict) as caught:
        state.put("team", "k", {"goal": "Porto", "budget": 0}, if_version=0, merge=True)
    assert [clash["pointer"] for clash in caught.value.clashes] == ["/goal"]


def test_patch_and_update__calls__are_executed_by_the_server(notes: Commonhold) -> None:
    notes.put("notes", "k", {"n": 1, "list": []})
    notes.patch("notes", "k", {"title": "x"})
    notes.patch("notes", "k", [{"op": "remove", "path": "/title"}], kind="json")
    changed = notes.update(
        "notes",
        "k",
        {"op": "add", "path": "/n", "value": 4},
        {"op": "append", "path": "/list", "value": "a"},
    )
    assert changed.value == {"n": 5, "list": ["a"]}


def test_history_diff_restore_delete__calls__return_the_servers_results(notes: Commonhold) -> None:
    for n in (1, 2):
        notes.put("notes", "k", {"n": n})
    assert notes.get("notes", "k", at_version=1).value == {"n": 1}
    assert [row["pointer"] for row in notes.diff("notes", "k", 1, 2).rows] == ["/n"]
    assert notes.restore("notes", "k", 1).value == {"n": 1}
    notes.delete("notes", "k")
    notes.delete("notes", "k")
    assert not notes.get("notes", "k").exists
    rows = notes.history("notes", "k", values=True)
    assert [row.operation for row in rows] == ["delete", "restore", "put", "put"]
    assert rows.items[-1].value == {"n": 1}


def test_lists_search_and_batches__calls__return_typed_items(notes: Commonhold) -> None:
    outcomes = notes.batch(
        [
            {"op": "put", "namespace": "notes", "key": f"k{n}", "value": {"t": f"word{n}"}}
            for n in range(3)
        ]
    )
    assert [each.status for each in outcomes] == [201, 201, 201]
    first = notes.list("notes", limit=2, values=True)
    assert [entry.key for entry in first] == ["k0", "k1"]
    rest = notes.list("notes", limit=2, values=True, cursor=first.next_cursor)
    assert ([entry.key for entry in rest], rest.next_cursor) == (["k2"], None)
    assert [hit.key for hit in notes.search("word1", namespace="notes")] == ["k1"]
    assert [entry.namespace for entry in notes.list_key("k1")] == ["notes"]
    assert notes.clear_key("k1")["deleted"] == 1
    assert notes.me().workspace == "acme"


def test_batch__minimal__returns_versions_of_writes_and_entries_of_reads(
    notes: Commonhold,
) -> None:
    k = {"namespace": "notes", "key": "k"}
    put = {"op": "put", **k, "value": {"n": 1}}
    written, read = notes.batch([put, {"op": "get", **k}], minimal=True)
    assert (written.status, written.version, written.entry) == (201, 1, None)
    assert read.entry is not None
    assert read.entry.value == {"n": 1}


def test_list__descending_from_a_key__returns_all_pages_below_it(notes: Commonhold) -> None:
    for key in ("a/1", "a/2", "a/3", "b/1"):
        notes.put("notes", key, key)
    down = Commonhold.list("notes", prefix="a/", order="desc", values=True, limit=1)
    assert [each.value for each in notes.every(down)] == ["a/3", "a/2", "a/1"]
    below = Commonhold.list("notes", order="desc", before="a/3", limit=1)
    assert [each.key for each in notes.every(below)] == ["a/2", "a/1"]
    assert [each.key for each in notes.list("notes", before="a/2")] == ["a/1"]
    with pytest.raises(BadRequest, match="order must be one of: asc, desc"):
        notes.request("GET", "/state/notes", order="up")
    page = notes.list("notes", order="desc", limit=1)
    with pytest.raises(BadRequest, match="cursor does not match the filters"):
        notes.list("notes", limit=1, cursor=page.next_cursor)


@pytest.fixture
def seven(notes: Commonhold) -> Commonhold:
    """Seven entries and a thread of seven messages."""
    operations = [{"op": "put", "namespace": "notes", "key": f"k{n}", "value": n} for n in range(7)]
    notes.batch(operations)
    notes.threads.create("t1")
    notes.threads.append("t1", *({"role": "user", "content": str(n)} for n in range(7)))
    return notes


def test_every__page_or_call__yields_the_items_of_all_pages(seven: Commonhold) -> None:
    page = seven.threads.messages("t1", limit=3)
    assert (len(page), page.next_cursor is None) == (3, False)
    expected = [str(n) for n in range(7)]
    assert [message.content for message in seven.every(page)] == expected
    call = Threads.messages("t1", limit=3)
    assert [message.content for message in seven.every(call)] == expected
    listed = seven.every(seven.list("notes", limit=3, values=True))
    assert [entry.value for entry in listed] == list(range(7))


def test_every__search__sends_the_cursor_in_the_body(seven: Commonhold) -> None:
    seven.batch(
        [{"op": "put", "namespace": "notes", "key": f"s{n}", "value": "oat"} for n in range(5)]
    )
    found = seven.every(seven.search("oat", limit=2))
    assert sorted(entry.key for entry in found) == [f"s{n}" for n in range(5)]


def test_every__not_a_list__is_refused_with_a_hint(seven: Commonhold) -> None:
    wrong: list[Any] = [seven.threads.get("t1"), Threads.get("t1"), "t1"]
    for each in wrong:
        with pytest.raises(TypeError, match=r"^every\(\) takes a page, such as "):
            list(seven.every(each))


def test_every__async__accepts_pages_calls_and_awaitables(
    seven: Commonhold, web: Running, alice: Person
) -> None:
    async def work() -> list[list[Any]]:
        async with AsyncCommonhold(f"http://127.0.0.1:{web.port}", alice.token) as state:
            page = await state.threads.messages("t1", limit=3)
            lists: list[Any] = [
                page,
                Threads.messages("t1", limit=3),
                state.threads.messages("t1", limit=3),
            ]
            return [[message.content async for message in state.every(each)] for each in lists]

    assert run(work()) == 3 * [[str(n) for n in range(7)]]


def test_clear__by_prefix__counts_then_deletes_matching_entries(notes: Commonhold) -> None:
    for key in ("a/1", "a/2", "ab"):
        notes.put("notes", key, 1)
    dry = notes.clear("notes", prefix="a/", dry_run=True)
    assert dry == {"matched": 2, "deleted": 0, "dry_run": True}
    assert notes.clear("notes", prefix="a/")["deleted"] == 2
    assert [each.key for each in notes.list("notes")] == ["ab"]


@pytest.mark.parametrize("key", ["a/b", "a//b", "..", ".", "%2F", "x y", "🙂::ü", "?q#f", "a+b"])
def test_keys__any_valid_characters__are_transmitted_unchanged(notes: Commonhold, key: str) -> None:
    assert notes.put("notes", key, key).key == key
    assert notes.get("notes", key).value == key


def test_numbers__any_spelling__round_trip(web: Running, alice: Person, notes: Commonhold) -> None:
    notes.put("notes", "big", 10**40)
    assert notes.get("notes", "big").value == 10**40
    url = f"http://127.0.0.1:{web.port}"
    with Commonhold(url, alice.token, decimals=True, retries=SWIFT) as exact:
        digits = Decimal("0.10000000000000000000001")
        exact.put("notes", "d", {"price": digits, "one": Decimal("1.0")})
        assert str(exact.get("notes", "d").value["price"]) == str(digits)
        assert str(exact.get("notes", "d").value["one"]) == "1.0"


def test_problems__each_type__has_its_class(notes: Commonhold, web: Running) -> None:
    with pytest.raises(NotRegistered, match=r"^profile key not registered: nobody") as caught:
        notes.get("nobody", "k")
    assert caught.value.status == 404
    assert caught.value.request_id
    with pytest.raises(NotFound):
        notes.threads.get("nobody")
    notes.namespaces.register("team", schema=TEAM_SCHEMA, default={})
    with pytest.raises(Invalid) as invalid:
        notes.put("team", "k", {"goal": 1})
    assert [error["pointer"] for error in invalid.value.errors] == ["/goal"]
    assert "/goal" in str(invalid.value)
    with pytest.raises(BadRequest):
        notes.request("GET", "/changes", nobody="knows")
    with (
        Commonhold(f"http://127.0.0.1:{web.port}/api/v1/", "ch_wrong", retries=SWIFT) as stranger,
        pytest.raises(Unauthenticated),
    ):
        stranger.me()
    with pytest.raises(Problem, match="path not found"):
        notes.request("GET", "/nowhere")


def test_long_poll__newer_version__is_returned(notes: Commonhold) -> None:
    notes.put("notes", "k", 1)
    assert notes.get("notes", "k", wait=30, since=0).version == 1


def test_async_client__compared_with_sync__has_the_same_methods(
    web: Running, alice: Person
) -> None:
    async def work() -> list[int]:
        async with AsyncCommonhold(
            f"http://127.0.0.1:{web.port}", alice.token, retries=SWIFT
        ) as state:
            await state.namespaces.register("notes")
            made = await asyncio.gather(*(state.put("notes", f"k{n}", n) for n in range(5)))
            assert [entry.version for entry in made] == [1] * 5
            with pytest.raises(NotRegistered):
                await state.get("nobody", "k")
            return [entry.value for entry in await state.list("notes", values=True)]

    assert run(work()) == [0, 1, 2, 3, 4]


def test_from_env__missing_variable__is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMMONHOLD_URL", "http://127.0.0.1:1")
    monkeypatch.delenv("COMMONHOLD_TOKEN", raising=False)
    with pytest.raises(KeyError, match="set COMMONHOLD_TOKEN"):
        Commonhold.from_env()


def test_send__with_an_idempotency_key__has_one_effect_over_restarts(
    web: Running, notes: Commonhold, alice: Person
) -> None:
    count = Commonhold.update("notes", "n", {"op": "add", "path": "", "value": 1})
    notes.put("notes", "n", 0)
    assert notes.send(count, idempotency_key="d1-count").value == 1
    with Commonhold(f"http://127.0.0.1:{web.port}", alice.token) as restarted:
        assert restarted.send(count, idempotency_key="d1-count").value == 1
        assert restarted.send(count).value == 2
        clear = {"idempotency_key": "d1-clear", "prefix": "n"}
        for _ in range(2):
            assert restarted.request("DELETE", "/state/notes", **clear)["deleted"] == 1

    async def again() -> Any:
        async with AsyncCommonhold(f"http://127.0.0.1:{web.port}", alice.token) as state:
            return await state.send(count, idempotency_key="d1-count")

    assert run(again()).value == 1
    with pytest.raises(Invalid, match="this Idempotency-Key was used for a different request"):
        notes.send(Commonhold.delete("notes", "n"), idempotency_key="d1-count")


@pytest.mark.parametrize(
    ("call", "key", "message"),
    [
        (Commonhold.get("notes", "k"), "d1", "GET /state/notes/k takes no idempotency_key"),
        (Commonhold.delete("notes", "k"), " ", "idempotency_key must not be empty"),
        (Commonhold.delete("notes", "k"), 1, "idempotency_key must be a str, not 1"),
    ],
)
def test_send__impossible_idempotency_key__is_refused(
    notes: Commonhold, call: Any, key: Any, message: str
) -> None:
    with pytest.raises(InvalidArgument, match=message):
        notes.send(call, idempotency_key=key)
