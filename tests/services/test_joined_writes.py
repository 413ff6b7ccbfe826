"""Writes of several calls in one transaction: each as if it were alone, none at another's expense."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import psycopg
import pytest
from django.db import OperationalError, transaction

from state_admin.domain.access import Actor
from state_admin.models import (
    AuditRow,
    Change,
    Entry,
    EntryRevision,
    Namespace,
)
from state_admin.services import (
    entries,
    entry_views,
    joined_writes,
    namespaces,
    quotas,
)
from state_admin.services.entries import WriteResult
from state_admin.services.idempotency import Key, StoredResponse
from state_admin.services.joined_writes import Item, PatchWrite, PutWrite, store_joined
from tests.builders import TEAM_SCHEMA, Person, make_namespace, make_token, put, raw
from tests.services.racing import overlap, race
from tests.sessions import DjangoSession, Work, run_in_test, run_on_loop

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def notes(alice: Person, mallory: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    """Namespaces whose definitions and quotas are in memory, without which no write is joined."""
    monkeypatch.setattr(quotas, "_FRESH", 3600)
    for person in (alice, mallory):
        make_namespace(person.actor)
        namespaces.find_definition(person.actor, "notes")
        quotas.limited(person.actor)


def respond(_: Sequence[WriteResult]) -> StoredResponse:
    return StoredResponse(200, {}, b"")


def item(key: str, value: Any, namespace: str = "notes", **options: Any) -> Item:
    return Item(namespace, key, raw(value), **options)


def batch(
    person: Person,
    *items: Item,
    reason: str = "",
    once: Key | None = None,
    actor: Actor | None = None,
) -> PutWrite:
    return PutWrite(actor or person.actor, reason, once, respond, items)


def put_by(
    actor: Actor, key: str, value: Any, *, reason: str = "", once: Key | None = None, **options: Any
) -> PutWrite:
    return PutWrite(actor, reason, once, respond, [item(key, value, **options)])


def write(person: Person, key: str, value: Any, **options: Any) -> PutWrite:
    return put_by(person.actor, key, value, **options)


def patch(person: Person, key: str, operations: Any, **options: Any) -> PatchWrite:
    given = {
        "expected": None,
        "reason": "",
        "once": None,
        "kind": "update",
        "namespace": "notes",
        **options,
    }
    return PatchWrite(actor=person.actor, key=key, operations=operations, respond=respond, **given)


def store_batches(
    writes: Sequence[PutWrite | PatchWrite], run: Callable[[Work[Any]], Any] = run_in_test
) -> list[Sequence[WriteResult] | Exception | None]:
    """What store_joined made of the writes: the results in place of the response."""
    found: list[Sequence[WriteResult]] = []

    def keep(results: Sequence[WriteResult]) -> StoredResponse:
        found.append(results)
        return StoredResponse(200, {}, str(len(found) - 1).encode())

    kept = [replace(write, respond=keep) for write in writes]
    return [
        found[int(each.body)] if isinstance(each, StoredResponse) else each
        for each in run(lambda session: store_joined(kept, session))
    ]


def store(
    writes: Sequence[PutWrite | PatchWrite], run: Callable[[Work[Any]], Any] = run_in_test
) -> list[WriteResult | Exception | None]:
    """store_batches for writes of one entry each."""
    return [
        each if each is None or isinstance(each, Exception) else each[0]
        for each in store_batches(writes, run)
    ]


def key(scope: str, fingerprint: str = "f") -> Key:
    return Key(scope, fingerprint)


def versions(results: list[WriteResult | Exception | None]) -> list[int | None]:
    return [each.entry.version if isinstance(each, WriteResult) else None for each in results]


def versions_of_batches(
    results: list[Sequence[WriteResult] | Exception | None],
) -> list[list[int | None] | None]:
    return [
        None if each is None or isinstance(each, Exception) else versions(list(each))
        for each in results
    ]


def stored(person: Person, key: str) -> tuple[str, int]:
    entry = entry_views.read_entry(actor=person.actor, namespace="notes", key=key)
    return entry.value, entry.version


def test_store_joined__calls_of_several_actors__each_leaves_its_own_trail(
    alice: Person, mallory: Person
) -> None:
    narrow = make_token(alice)[1]
    calls = [
        put_by(replace(alice.actor, request_id="q1", run_id="r1"), "a", 1, reason="x"),
        put_by(replace(narrow, request_id="q2"), "b", 2),
        put_by(replace(mallory.actor, request_id="q3"), "a", 3),
    ]
    assert versions(store(calls)) == [1, 1, 1]

    expected = [
        (alice.workspace.pk, "a", "r1", "alice", "x", "q1"),
        (alice.workspace.pk, "b", "", "narrow", "", "q2"),
        (mallory.workspace.pk, "a", "", "mallory", "", "q3"),
    ]
    audit = AuditRow.objects.filter(action="entry.put").values_list(
        "workspace_id", "key", "run", "actor_name", "reason", "request_id"
    )
    assert sorted(audit) == expected
    history = EntryRevision.objects.values_list(
        "entry__namespace__workspace_id", "entry__key", "run", "actor_name", "reason", "request_id"
    )
    assert sorted(history) == expected
    changes = Change.objects.filter(kind="entry.put").values_list(
        "workspace_id", "key", "run", "actor_name"
    )
    assert sorted(changes) == [row[:4] for row in expected]
    owners = Entry.objects.values_list("namespace__workspace_id", "key", "actor_name")
    assert sorted(owners) == [(row[0], row[1], row[3]) for row in expected]


def test_store_joined__one_entry_several_times__in_their_order(alice: Person) -> None:
    calls = [write(alice, "k", n, expected=n or None) for n in range(5)]
    assert versions(store(calls)) == [1, 2, 3, 4, 5]
    assert stored(alice, "k") == ("4", 5)


def test_store_joined__stale_version__is_left_out_alone(alice: Person) -> None:
    put(alice.actor, "notes", "a", 1)
    put(alice.actor, "notes", "b", 1)
    put(alice.actor, "notes", "b", 2)
    put(alice.actor, "notes", "gone", 1)
    entries.delete_entry(actor=alice.actor, namespace="notes", key="gone")
    calls = [
        write(alice, "a", 2, expected=1),
        write(alice, "b", 3, expected=1),
        write(alice, "absent", 1, expected=1),
        write(alice, "gone", 1, expected=2),
        write(alice, "c", 1),
    ]
    assert versions(store(calls)) == [2, None, None, None, 1]
    assert stored(alice, "b") == ("2", 2)
    assert stored(alice, "absent") == ("null", 0)
    assert not Entry.objects.filter(key="absent").exists()


def test_store_joined__refused_calls__leave_their_neighbours_alone(
    alice: Person, bob: Person
) -> None:
    make_namespace(alice.actor, "team", TEAM_SCHEMA, {})
    namespaces.find_definition(alice.actor, "team")
    narrow = replace(alice.actor, namespaces=("team",))
    calls = [
        write(alice, "k", {"goal": 1}, namespace="team"),
        write(alice, "k", 1, namespace="nowhere"),
        write(alice, "k", 1, namespace="config.models"),
        write(bob, "k", 1),  # a viewer
        put_by(narrow, "k", 1),
        write(alice, "k", {"goal": "go"}, namespace="team"),
    ]
    assert versions(store(calls)) == [None, None, None, None, None, 1]
    assert Entry.objects.count() == 1


def test_store_joined__tags_pin_and_expiry__are_those_of_a_plain_write(alice: Person) -> None:
    make_namespace(alice.actor, "short", ttl_seconds=60)
    for namespace in ("notes", "short"):
        put(alice.actor, namespace, "k", 1, tags=["t"], pinned=True, ttl_seconds=3600)
    store([write(alice, "k", 2), write(alice, "k", 2, namespace="short")])
    kept, short = Entry.objects.order_by("namespace__name")
    assert (kept.tags, kept.pinned, kept.expires_at) == (["t"], True, None)
    assert short.expires_at is not None
    assert (short.expires_at - short.updated_at).total_seconds() == pytest.approx(60, abs=1)
    store([write(alice, "k", 3, namespace="short", ttl_seconds=7200)])
    short.refresh_from_db()
    assert short.expires_at is not None
    assert (short.expires_at - short.updated_at).total_seconds() == pytest.approx(7200, abs=1)


def test_store_joined__deleted_entry__lives_again(alice: Person) -> None:
    put(alice.actor, "notes", "k", 1, tags=["t"])
    entries.delete_entry(actor=alice.actor, namespace="notes", key="k")
    result = store([write(alice, "k", 2)])[0]
    assert isinstance(result, WriteResult)
    assert (result.created, result.entry.version, result.entry.tags) == (True, 3, [])


def test_store_joined__quota__is_left_to_put_entry(alice: Person) -> None:
    quotas.set_quota(actor=alice.actor, entries=5, bytes=None, threads=None)
    assert store([write(alice, "k", 1)]) == [None]
    assert not Entry.objects.exists()


def test_store_joined__schema_that_is_costly__is_left_to_put_entry(alice: Person) -> None:
    schema = {"type": "array", "uniqueItems": True, "items": {"type": "object"}}
    make_namespace(alice.actor, "costly", schema, [])
    value = [{"n": n} for n in range(3000)]
    light = namespaces.find_definition(alice.actor, "costly").validator.is_light(value)
    assert (store([write(alice, "k", value, namespace="costly")]) == [None]) == (not light)


def test_store_joined__schema_changed_elsewhere__writes_nothing_by_the_old_one(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = namespaces.find_definition(alice.actor, "notes")
    Namespace.objects.filter(pk=old.id).update(schema_version=2)
    assert versions(store([write(alice, "k", 1)])) == [None]
    assert not Entry.objects.exists()


def test_store_joined__definition_or_quota_not_in_memory__is_left_to_put_entry(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_namespace(alice.actor, "new")
    call = write(alice, "k", 1, namespace="new")
    assert store([call]) == [None]
    namespaces.find_definition(alice.actor, "new")
    assert versions(store([call])) == [1]
    monkeypatch.setattr(quotas, "_FRESH", 0)
    assert store([call]) == [None]


@pytest.mark.django_db(transaction=True)
def test_store_joined__entry_locked_elsewhere__is_left_out_and_nobody_waits(alice: Person) -> None:
    put(alice.actor, "notes", "locked", 1)
    calls = [write(alice, "free", 1), write(alice, "locked", 2), write(alice, "locked", 3)]
    with transaction.atomic():
        assert Entry.objects.select_for_update().get(key="locked").version == 1
        assert versions(store(calls, run_on_loop)) == [1, None, None]
    assert versions(store(calls[1:])) == [2, 3]


@pytest.mark.django_db(transaction=True)
def test_store_joined__many_threads_and_keys__lose_no_write_and_make_no_deadlock(
    alice: Person,
) -> None:
    done: list[int] = []

    def work(seed: int) -> None:
        for turn in range(25):
            keys = [f"k{(seed * 7 + turn * n) % 11}" for n in range(1, 6)]
            results = store([write(alice, key, [seed, turn]) for key in keys], run_on_loop)
            assert not [each for each in results if isinstance(each, Exception)]
            done.append(sum(each is not None for each in results))

    race([partial(work, seed) for seed in range(4)])
    assert len(done) == 100
    assert (
        EntryRevision.objects.count()
        == sum(done)
        == sum(Entry.objects.values_list("version", flat=True))
    )


def add(number: int) -> list[dict[str, Any]]:
    return [{"op": "add", "path": "/count", "value": number}]


def test_store_joined__patches_of_one_entry__each_sees_the_one_before(alice: Person) -> None:
    put(alice.actor, "notes", "k", {"count": 1}, tags=["t"], ttl_seconds=3600)
    expires_at = Entry.objects.get().expires_at
    writes: list[PutWrite | PatchWrite] = [
        patch(alice, "k", add(1)),
        patch(alice, "k", {"name": "x"}, kind="merge"),
        write(alice, "other", 1),
        patch(alice, "k", add(10), expected=3),
        patch(alice, "k", add(100), expected=3),
    ]
    assert versions(store(writes)) == [2, 3, 1, 4, None]
    entry = Entry.objects.get(key="k")
    assert entry.value == '{"count":12,"name":"x"}'
    assert (entry.tags, entry.expires_at) == (["t"], expires_at)
    operations = EntryRevision.objects.filter(entry=entry).order_by("version")
    assert list(operations.values_list("operation", flat=True)) == ["put", *["patch"] * 3]
    kinds = Change.objects.filter(key="k").values_list("kind", flat=True)
    assert set(kinds) == {"entry.put", "entry.patch"}


def test_store_joined__patch_that_patch_entry_must_see__is_left_out(alice: Person) -> None:
    put(alice.actor, "notes", "k", {"count": 1})
    put(alice.actor, "notes", "large", {"text": "x" * 70_000, "count": 1})
    make_namespace(alice.actor, "team", TEAM_SCHEMA, {})
    put(alice.actor, "team", "k", {"count": 1})
    writes = [
        patch(alice, "absent", add(1)),
        patch(alice, "large", add(1)),
        patch(alice, "k", add(1), namespace="nowhere"),
        patch(alice, "k", [{"op": "nonsense"}]),
        patch(alice, "k", [{"op": "test", "path": "/count", "value": 2}], kind="json"),
        patch(alice, "k", {"count": "many"}, kind="merge", namespace="team"),
        patch(alice, "k", add(1), expected=7),
    ]
    assert versions(store(writes)) == [None] * 7
    assert EntryRevision.objects.count() == 3


@pytest.mark.django_db(transaction=True)
def test_store_joined__waits_for_an_entry_that_is_created__holds_no_other_meanwhile(
    alice: Person,
) -> None:
    """A batch under an Idempotency-Key creates one entry and then writes another. If the group waited
    for the first while it held the second, PostgreSQL would have to end one of the two."""
    put(alice.actor, "notes", "b", 1)
    writes = [write(alice, "a", 2), write(alice, "b", 2)]

    def write_the_other() -> None:
        assert put(alice.actor, "notes", "b", 3).version == 3

    results = overlap(
        lambda: put(alice.actor, "notes", "a", 1),
        lambda: store(writes, run_on_loop),
        write_the_other,
    )
    assert versions(results) == [2, 2]
    assert (stored(alice, "a"), stored(alice, "b")) == (("2", 2), ("3", 3))


@pytest.mark.django_db(transaction=True)
def test_store_joined__many_threads_add_to_one_entry__no_addition_is_lost_or_done_twice(
    alice: Person,
) -> None:
    put(alice.actor, "notes", "k", {"count": 0})
    added: list[int] = []

    def work() -> None:
        for _ in range(20):
            results = store([patch(alice, "k", add(1)) for _ in range(3)], run_on_loop)
            added.append(sum(isinstance(each, WriteResult) for each in results))

    race([work] * 4)
    assert len(added) == 80
    assert sum(added) > 0
    assert Entry.objects.get().value == f'{{"count":{sum(added)}}}'


@pytest.mark.parametrize(
    ("sqlstate", "known"), [("40P01", True), ("55P03", True), ("57P01", False), (None, False)]
)
def test_store_joined__error_of_the_database__says_whether_it_was_taken_back(
    sqlstate: str | None, known: bool, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = OperationalError("boom")
    cause = psycopg.OperationalError("boom")
    cause.sqlstate = sqlstate
    error.__cause__ = cause

    def fail(*args: Any) -> Any:
        raise error

    put(alice.actor, "notes", "c", 1)
    monkeypatch.setattr(joined_writes.entries_sql, "putting_absent", fail)
    results = store([write(alice, "a", 1), write(alice, "c", 2), write(alice, "c", 3)])
    assert versions(results) == [None, 2, None]
    assert results[0] is (None if known else error)
    assert results[2] is None


# Batches ---------------------------------------------------------------------------------------


def test_store_joined__batches__are_stored_whole_with_their_own_trail(alice: Person) -> None:
    make_namespace(alice.actor, "other")
    namespaces.find_definition(alice.actor, "other")
    put(alice.actor, "notes", "b", 0)
    put(alice.actor, "other", "a", 0)
    calls = [
        batch(alice, item("b", 1), item("a", 1, "other"), reason="one"),
        write(alice, "single", 1, reason="two"),
        batch(alice, item("y", 1), item("x", 2, ttl_seconds=60), reason="three"),
    ]
    assert versions_of_batches(store_batches(calls)) == [[2, 2], [1], [1, 1]]
    trail = [
        ("notes", "b", "one"),
        ("other", "a", "one"),
        ("notes", "single", "two"),
        ("notes", "x", "three"),
        ("notes", "y", "three"),
    ]
    audit = AuditRow.objects.exclude(reason="").order_by("id")
    rows = list(audit.values_list("namespace", "key", "reason"))
    assert sorted(rows) == sorted(trail)
    for reason in ("one", "three"):  # by key, as run_batch does
        assert [row for row in rows if row[2] == reason] == [r for r in trail if r[2] == reason]
    changed = Change.objects.filter(kind="entry.put", key__in="xy").order_by("id")
    assert list(changed.values_list("key", flat=True)) == ["x", "y"]


def test_store_joined__batch_with_one_entry_that_cannot_be_written__writes_none(
    alice: Person, mallory: Person
) -> None:
    make_namespace(alice.actor, "team", TEAM_SCHEMA, {})
    namespaces.find_definition(alice.actor, "team")
    put(alice.actor, "notes", "held", 1)
    put(alice.actor, "notes", "also", 1)
    refused = [
        item("k", {"goal": 1}, "team"),
        item("k", 1, "nowhere"),
        item("k", 1, "config.models"),
        item("also", 1, expected=7),
        item("absent", 1, expected=1),
        item("absent", 1),  # one exists, one does not: two statements could not write both or none
    ]
    calls = [batch(alice, item("held", 2), each) for each in refused]
    assert store_batches([*calls, write(mallory, "k", 1), write(alice, "k", 1)])[:-2] == [None] * 6
    assert stored(alice, "held") == ("1", 1)
    assert set(Entry.objects.values_list("key", flat=True)) == {"held", "also", "k"}
    assert AuditRow.objects.filter(action="entry.put").count() == 4


@pytest.mark.django_db(transaction=True)
def test_store_joined__batch_with_a_locked_entry__is_left_out_and_nobody_waits(
    alice: Person,
) -> None:
    for name in ("free", "locked", "other"):
        put(alice.actor, "notes", name, 1)
    calls = [
        batch(alice, item("free", 2), item("locked", 2)),
        batch(alice, item("other", 2), item("free", 3)),
        write(alice, "locked", 3),
    ]
    with transaction.atomic():
        assert Entry.objects.select_for_update().get(key="locked").version == 1
        assert versions_of_batches(store_batches(calls, run_on_loop)) == [None, [2, 2], None]
    assert versions_of_batches(store_batches(calls)) == [[3, 2], [3, 4], [3]]


def test_store_joined__batches_that_share_entries__are_stored_in_their_order(alice: Person) -> None:
    calls = [
        batch(alice, item("a", 1), item("b", 1)),
        batch(alice, item("b", 2), item("c", 2)),
        batch(alice, item("a", 3), item("c", 3)),
    ]
    # The second one creates an entry and replaces another.
    assert versions_of_batches(store_batches(calls)) == [[1, 1], None, None]
    calls = [batch(alice, item("a", n), item("b", n)) for n in range(3)]
    assert versions_of_batches(store_batches(calls)) == [[2, 2], [3, 3], [4, 4]]


@pytest.mark.django_db(transaction=True)
def test_store_joined__batches_of_many_threads__are_whole_and_make_no_deadlock(
    alice: Person,
) -> None:
    done: list[int] = []

    def work(seed: int) -> None:
        for turn in range(25):
            names = [f"k{(seed * 7 + turn * n) % 11}" for n in range(1, 6)]
            items = [item(name, [seed, turn]) for name in dict.fromkeys(names)]
            results = store_batches(
                [batch(alice, *items[:3]), batch(alice, *items[-3:])], run_on_loop
            )
            assert not [each for each in results if isinstance(each, Exception)]
            done.append(sum(len(each) for each in results if isinstance(each, list)))

    race([partial(work, seed) for seed in range(4)])
    assert len(done) == 100
    assert sum(done) > 0
    assert (
        EntryRevision.objects.count()
        == sum(done)
        == sum(Entry.objects.values_list("version", flat=True))
    )


def test_store_joined__batch_in_an_untracked_namespace__leaves_no_trail(alice: Person) -> None:
    make_namespace(alice.actor, "bare", tracked=False)
    namespaces.find_definition(alice.actor, "bare")
    calls = [batch(alice, item("a", n, "bare"), item("b", n, "bare")) for n in range(2)]
    assert versions_of_batches(store_batches(calls)) == [[1, 1], [2, 2]]
    assert not EntryRevision.objects.exists()
    assert not AuditRow.objects.filter(action="entry.put").exists()


def test_store_joined__namespace_that_grows__needs_one_statement_per_write(alice: Person) -> None:
    def count_trips(*items: Item) -> tuple[int, list[Any]]:
        session = DjangoSession()
        found = run_in_test(lambda _: store_joined([batch(alice, *items)], session))
        return len(session.trips), found

    joined_writes._growing.clear()
    trips = [count_trips(item(name, 1), item(name + "b", 1))[0] for name in "abc"]
    assert trips == [2, 1, 1]
    trips = [count_trips(item(name, 2), item(name + "b", 2))[0] for name in "abc"]
    assert trips == [2, 1, 1]
    store([write(alice, "d", 1)])
    assert count_trips(item("a", 3, expected=2)) == (1, [StoredResponse(200, {}, b"")])
    store([write(alice, "e", 1)])
    assert count_trips(item("a", 4), item("absent", 4)) == (2, [None])


# Idempotency keys ------------------------------------------------------------------------------


def test_store_joined__call_that_nobody_foresaw__leaves_its_neighbours_alone(
    alice: Person, mallory: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(mallory.actor, "notes", "k", {})
    apply = joined_writes.patch_text

    def overflow(kind: Any, text: Any, operations: Any) -> Any:
        if operations == {"op": "set", "path": "/a", "value": "overflow"}:
            raise RecursionError
        return apply(kind, text, operations)

    monkeypatch.setattr(joined_writes, "patch_text", overflow)
    bad, good = ({"op": "set", "path": "/a", "value": value} for value in ("overflow", "fine"))

    assert versions(
        store([patch(mallory, "k", bad), write(alice, "k", 1), patch(mallory, "k", good)])
    ) == [None, 1, 2]


# Attributes of rows that differ between two equal writes.
_UNIQUE = {"id", "entry_id", "at", "xid", "seq", "created_at", "updated_at", "expires_at"}


def rows_left(key: str) -> list[dict[str, Any]]:
    entry = list(Entry.objects.filter(key=key).values())
    history = list(EntryRevision.objects.filter(entry__key=key).order_by("pk").values())
    changes = list(Change.objects.filter(key=key).order_by("pk").values())
    audit = list(AuditRow.objects.filter(key=key).order_by("pk").values())
    rows = entry + history + changes + audit
    return [{name: row[name] for name in row.keys() - _UNIQUE} for row in rows]


@pytest.mark.parametrize("given", [{}, {"expected": 1}, {"expected": 2}, {"ttl_seconds": 60}])
@pytest.mark.parametrize("namespace", ["notes", "quiet"])
@pytest.mark.parametrize("before", ["present", "deleted", "expired", "tagged"])
def test_store_joined__write_alone__is_like_one_among_others(
    alice: Person, namespace: str, before: str, given: dict[str, Any]
) -> None:
    make_namespace(alice.actor, "quiet", tracked=False)
    namespaces.find_definition(alice.actor, "quiet")
    found = []
    for neighbours in ([], [write(alice, "other", 0)]):
        with transaction.atomic():
            tags = ["t"] if before == "tagged" else []
            put(alice.actor, namespace, "k", 1, tags=tags, pinned=bool(tags))
            if before == "deleted":
                entries.delete_entry(actor=alice.actor, namespace=namespace, key="k")
            if before == "expired":
                Entry.objects.filter(key="k").update(expires_at="2020-01-01T00:00Z")
            only = write(alice, "k", {"n": 2}, namespace=namespace, **given)
            result = store([only, *neighbours])[0]
            entry = Entry.objects.filter(key="k").first()
            lifetime = entry and entry.expires_at and entry.expires_at - entry.updated_at
            # Of one that expired before, the difference depends on the moment of the write.
            whole = lifetime and max(0, round(lifetime.total_seconds()))
            found.append((versions([result]), whole, rows_left("k")))
            transaction.set_rollback(True)
    assert found[0] == found[1]
