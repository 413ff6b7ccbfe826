"""Batches: all or nothing, or each operation separately; reads of one snapshot; no deadlocks."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any

import pytest
from django.db import connections

from state_admin.domain.access import Role
from state_admin.models import AuditRow, Entry, EntryRevision, entries_sql, hot
from state_admin.services import batches, clearing, entries, entry_views, quotas
from state_admin.services.batches import BatchOperation
from state_admin.services.errors import (
    Forbidden,
    Invalid,
    NotRegistered,
    TooLarge,
    VersionConflict,
)
from tests.builders import Person, make_namespace, make_token, put, raw
from tests.services.racing import overlap, race, split


def op(verb: str, key: str, value: Any = None, namespace: str = "notes", **options: Any) -> Any:
    if verb == "patch":
        return BatchOperation("patch", namespace, key, operations=value, **options)
    stored_values = raw(value) if verb == "put" else None
    return BatchOperation(verb, namespace, key, value=stored_values, **options)  # type: ignore[arg-type]


def run(
    person: Person, *operations: BatchOperation, **options: Any
) -> list[batches.OperationResult]:
    return batches.run_batch(actor=person.actor, operations=operations, **options)


def stored_values() -> dict[str, str]:
    return dict(Entry.objects.live().values_list("key", "value"))


@pytest.fixture
def notes(alice: Person) -> Person:
    make_namespace(alice.actor)
    for key in "ab":
        put(alice.actor, "notes", key, key)
    return alice


def test_atomic__several_kinds__have_results_in_the_requested_order(notes: Person) -> None:
    outcomes = run(
        notes,
        op("put", "z", 1),
        op("get", "a"),
        op("delete", "b"),
        op("patch", "a", {"x": 1}),
        op("get", "z"),
        op("get", "a"),
        op("get", "nothing"),
    )
    assert [outcome.op for outcome in outcomes] == [
        "put", "get", "delete", "patch", "get", "get", "get",
    ]  # fmt: skip
    assert (outcomes[0].created, outcomes[0].entry.version) == (True, 1)
    assert outcomes[2].version == 2
    shown = [outcomes[n].entry.value for n in (1, 4, 5, 6)]
    assert shown == ['"a"', "1", '{"x":1}', "null"]
    assert stored_values() == {"a": '{"x":1}', "z": "1"}


def test_atomic__operations_on_one_key__keep_their_order(notes: Person) -> None:
    outcomes = run(
        notes, op("put", "k", 1), op("put", "k", 2), op("delete", "k"), op("put", "k", 3)
    )
    assert [o.entry.version if o.entry else o.version for o in outcomes] == [1, 2, 3, 4]
    assert [o.created for o in outcomes] == [True, False, False, True]
    assert stored_values()["k"] == "3"


@pytest.mark.parametrize("atomic", [True, False])
def test_failure__one_stale_precondition__rolls_back_all_or_only_itself(
    notes: Person, atomic: bool
) -> None:
    operations = [op("put", "c", 1), op("put", "a", 2, if_version=9), op("delete", "b")]
    if atomic:
        with pytest.raises(VersionConflict) as refused:
            run(notes, *operations)
        sides = {"mergeable": False, "theirs": "a", "yours": 2}
        assert refused.value.data == {"expected": 9, "actual": 1, "index": 1, **sides}
        assert stored_values() == {"a": '"a"', "b": '"b"'}
        assert EntryRevision.objects.count() == 2
        return
    outcomes = run(notes, *operations, atomic=False)
    assert [type(outcome.problem) for outcome in outcomes] == [
        type(None),
        VersionConflict,
        type(None),
    ]
    assert stored_values() == {"a": '"a"', "c": "1"}


def test_failure__of_two__reports_the_first_of_the_request(notes: Person) -> None:
    """Operations are executed in key order; results and errors are in the requested order."""
    with pytest.raises(VersionConflict) as refused:
        run(notes, op("get", "a"), op("put", "b", 1, if_version=7), op("put", "a", 1, if_version=9))
    sides = {"mergeable": False, "theirs": "b", "yours": 1}
    assert refused.value.data == {"expected": 7, "actual": 1, "index": 1, **sides}
    assert stored_values() == {"a": '"a"', "b": '"b"'}


def test_each__only_gets__are_read_by_one_statement(
    notes: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    statements = []
    fetch_all = hot.fetch_all

    def counted(*arguments: Any) -> Any:
        statements.append(arguments)
        return fetch_all(*arguments)

    monkeypatch.setattr(hot, "fetch_all", counted)
    monkeypatch.setattr(entry_views, "read_entry", pytest.fail)
    outcomes = run(notes, *(op("get", k) for k in "aba"), op("get", "k", None, "no"), atomic=False)
    assert [o.entry.value for o in outcomes if o.entry] == ['"a"', '"b"', '"a"']
    assert isinstance(outcomes[3].problem, NotRegistered)
    assert "index" not in outcomes[3].problem.data
    assert len(statements) == 1


@pytest.mark.parametrize("verb", ["get", "put", "patch", "delete"])
def test_failure__unregistered_namespace__is_reported_with_its_index(
    notes: Person, verb: str
) -> None:
    with pytest.raises(NotRegistered) as refused:
        run(notes, op("put", "c", 1), op(verb, "k", 1, "nobody"))
    assert refused.value.detail == "profile key not registered: nobody"
    assert refused.value.data["index"] == 1
    assert "c" not in stored_values()


def test_failure__value_breaks_the_schema__has_its_index(notes: Person) -> None:
    make_namespace(notes.actor, "strict", schema={"type": "integer"}, default=0)
    for extra in ([], [op("get", "a")]):
        with pytest.raises(Invalid) as refused:
            run(notes, op("put", "c", 1), op("put", "k", "text", "strict"), *extra)
        assert refused.value.data["index"] == 1
        assert "c" not in stored_values()


@pytest.mark.parametrize("count", [0, 1001])
def test_size__empty_or_too_large__is_refused(notes: Person, count: int) -> None:
    with pytest.raises(Invalid):
        run(notes, *[op("get", "a")] * count)


def test_size__thousand_puts__are_stored(notes: Person) -> None:
    outcomes = run(notes, *[op("put", f"k{n:04d}", n) for n in range(1000)])
    assert [outcome.entry.value for outcome in outcomes] == [str(n) for n in range(1000)]
    assert AuditRow.objects.filter(action="entry.put", key__startswith="k").count() == 1000


def test_many_puts__with_ttl_tags_and_deleted_keys__equal_single_puts(notes: Person) -> None:
    make_namespace(notes.actor, "short", ttl_seconds=60)
    entries.delete_entry(actor=notes.actor, namespace="notes", key="a")
    put(notes.actor, "notes", "b", 1, tags=["x"], pinned=True)
    outcomes = run(
        notes, op("put", "a", 1), op("put", "b", 2), op("put", "c", 3), op("put", "k", 4, "short")
    )
    assert [(o.created, o.entry.version) for o in outcomes] == [
        (True, 3),
        (False, 3),
        (True, 1),
        (True, 1),
    ]
    assert (outcomes[1].entry.tags, outcomes[1].entry.pinned) == (["x"], True)
    assert outcomes[3].entry.expires_at is not None
    assert outcomes[2].entry.expires_at is None


def test_permissions__viewer__may_read_but_not_write(notes: Person, bob: Person) -> None:
    assert run(bob, op("get", "a"))[0].entry.value == '"a"'
    with pytest.raises(Forbidden):
        run(bob, op("get", "a"), op("put", "c", 1))


def test_permissions__restricted_token__has_no_access_to_other_data(notes: Person) -> None:
    _, narrow = make_token(notes, Role.EDITOR, namespaces=["else.*"])
    for verb in ("get", "put", "patch", "delete"):
        with pytest.raises(NotRegistered):
            batches.run_batch(actor=narrow, operations=[op(verb, "a", 1)])
    assert stored_values() == {"a": '"a"', "b": '"b"'}


@pytest.mark.django_db(transaction=True)
def test_race__batches_of_opposite_order__never_deadlock(notes: Person) -> None:
    keys = [f"k{n}" for n in range(12)]
    one = partial(run, notes, *[op("put", key, 1) for key in keys])
    other = partial(run, notes, *[op("put", key, 2) for key in reversed(keys)])
    mixed = partial(
        run, notes, *[op("patch" if n % 2 else "put", key, 3) for n, key in enumerate(keys)]
    )
    backward = partial(run, notes, *[op("put", key, 4) for key in reversed(keys)], op("get", "a"))
    for _ in range(3):
        _, lost = split(race([one, other, mixed, backward] * 3))
        assert lost == []
    values = {value for key, value in stored_values().items() if key in keys}
    assert len(values) == 1, "each batch is atomic: the last one stands on every key"
    assert EntryRevision.objects.filter(entry__key="k0").count() == 36


@pytest.mark.django_db(transaction=True)
def test_race__batch_of_single_operations_in_one_transaction__never_deadlocks(
    notes: Person,
) -> None:
    """With an Idempotency-Key they are one transaction."""
    puts = [
        {"op": "put", "namespace": "notes", "key": key, "value": 1, "if_version": 1} for key in "ba"
    ]
    body = {"atomic": False, "operations": puts}
    answer = overlap(
        partial(put, notes.actor, "notes", "a", 2),
        partial(notes.api, "POST", "/state/batch", body, Idempotency_Key="once"),
        partial(put, notes.actor, "notes", "b", 2),
    )
    assert [result["status"] for result in answer.json()["results"]] == [412, 412]


@pytest.mark.django_db(transaction=True)
def test_race__batch_against_clear_and_expiry__never_deadlocks(notes: Person) -> None:
    make_namespace(notes.actor, "more")
    works: list[Any] = []
    for _ in range(4):
        works += [
            partial(run, notes, op("put", "a", 1, "more"), op("put", "a", 1), op("put", "b", 1)),
            partial(
                run, notes, op("delete", "b"), op("delete", "a"), op("delete", "a", None, "more")
            ),
            partial(clearing.clear_key, actor=notes.actor, key="a"),
        ]
    _, lost = split(race(works))
    assert lost == []


@pytest.mark.django_db(transaction=True)
def test_race__reader_of_a_batch__sees_one_snapshot(notes: Person) -> None:
    """A writer changes both keys together; a batch of gets never sees one change without the
    other."""
    stop = threading.Event()

    def write() -> None:
        for number in range(60):
            run(notes, op("put", "a", number), op("put", "b", number))
        stop.set()

    torn: list[Any] = []

    def read() -> int:
        seen = 0
        run_once = False
        while not stop.is_set() or not run_once:
            run_once = True
            pair = [o.entry.value for o in run(notes, op("get", "a"), op("get", "b"))]
            if pair[0] != pair[1] and pair != ['"a"', '"b"']:
                torn.append(pair)
            seen += 1
        return seen

    outcomes = race([write, read, read])
    connections.close_all()
    assert torn == []
    assert min(outcomes[1:]) > 0


def test_patches__that_copy_too_much_in_total__are_refused(
    notes: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "MAX_PATCHED_BYTES", 200)
    grow = [op("patch", key, {f"m{n}": "x" * 60}) for n in range(4) for key in "ab"]
    with pytest.raises(TooLarge) as refused:
        run(notes, *grow)
    assert (refused.value.data["limit"], stored_values()) == (200, {"a": '"a"', "b": '"b"'})
    assert refused.value.hint.startswith("Combine the patches of one key")
    # In the order of the keys the last patch of a is refused first, then those of b.
    assert refused.value.data["index"] == 1
    outcomes = run(notes, *grow, op("put", "z", 1), atomic=False)
    done = [index for index, outcome in enumerate(outcomes) if outcome.problem is None]
    assert done == [0, 2, 8]


def test_atomic__plain_puts_only__are_one_statement(
    notes: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "_run_together", None)
    first, second = run(notes, op("put", "z", 1, reason="moved"), op("put", "a", 2))
    assert [(o.op, o.created, o.version) for o in (first, second)] == [
        ("put", True, 1),
        ("put", False, 2),
    ]
    assert EntryRevision.objects.get(entry__key="z").reason == "moved"


def test_atomic__gets_only__are_one_statement(
    notes: Person, monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: Any
) -> None:
    monkeypatch.setattr(batches, "_run_together", None)
    with django_assert_num_queries(0):  # not in a transaction, and the statement is not Django's
        found = run(notes, op("get", "b"), op("get", "absent"), op("get", "a"), op("get", "b"))
    assert [o.entry.value for o in found if o.entry] == ['"b"', "null", '"a"', '"b"']
    with pytest.raises(NotRegistered) as refused:
        run(notes, op("get", "a"), op("get", "k", namespace="no"), op("get", "k", namespace="none"))
    assert (refused.value.data["index"], refused.value.detail) == (
        1,
        "profile key not registered: no",
    )


def test_atomic__puts_that_all_have_a_version__are_conditional(notes: Person) -> None:
    assert [
        o.version
        for o in run(notes, op("put", "a", 1, if_version=1), op("put", "c", 1, if_version=0))
    ] == [2, 1]
    with pytest.raises(VersionConflict):
        run(notes, op("put", "a", 2, if_version=1), op("put", "b", 2, if_version=9))
    assert stored_values() == {"a": "1", "b": '"b"', "c": "1"}


def test_atomic__deletions_of_known_versions__are_one_statement(
    notes: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entries, "delete_entry", None)
    done = run(
        notes,
        op("put", "0", 1),
        op("delete", "b", if_version=1, reason="old"),
        op("delete", "a", if_version=1, reason="old"),
    )
    assert [(o.op, o.version) for o in done] == [("put", 1), ("delete", 2), ("delete", 2)]
    assert stored_values() == {"0": "1"}
    assert EntryRevision.objects.get(entry__key="a", version=2).reason == "old"


def test_atomic__deletion_of_another_version__rolls_back_and_has_its_index(notes: Person) -> None:
    with pytest.raises(VersionConflict) as refused:
        run(
            notes,
            op("delete", "b", if_version=7),
            op("put", "0", 1),
            op("delete", "a", if_version=1),
            op("delete", "c", if_version=1),
        )
    assert refused.value.data["index"] == 0
    assert stored_values() == {"a": '"a"', "b": '"b"'}


def test_atomic__many_deletions_of_other_versions__run_together_once(
    notes: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups = []
    delete_entries = entries.delete_entries

    def count(**options: Any) -> dict[str, int]:
        groups.append(len(options["versions"]))
        return delete_entries(**options)

    monkeypatch.setattr(entries, "delete_entries", count)
    with pytest.raises(VersionConflict) as refused:
        run(notes, *(op("delete", key, if_version=7) for key in "edcba"))
    assert groups == [5]
    assert refused.value.data["index"] == 0
    assert stored_values() == {"a": '"a"', "b": '"b"'}


@pytest.mark.parametrize("atomic", [True, False])
def test_batch__put_with_attributes__keeps_them(notes: Person, atomic: bool) -> None:
    (done,) = run(notes, op("put", "z", 1, ttl_seconds=60, tags=["x"], pinned=True), atomic=atomic)
    assert (done.entry.tags, done.entry.pinned) == (["x"], True)
    assert done.entry.expires_at is not None


def test_batch__put_with_ttl_null__takes_that_of_the_namespace_as_a_single_put(
    notes: Person,
) -> None:
    put = {"op": "put", "namespace": "notes", "key": "z", "value": 1, "ttl_seconds": None}
    answer = notes.api("POST", "/state/batch", {"operations": [put]})
    (result,) = answer.json()["results"]
    assert (result["status"], result["entry"]["expires_at"]) == (201, None)


def test_each__result__names_its_operation(notes: Person) -> None:
    outcomes = run(
        notes,
        op("get", "a"),
        op("delete", "b", reason="old"),
        op("patch", "a", {"x": 1}, reason="new"),
        op("put", "z", 1, reason="first"),
        op("get", "a", namespace="nowhere"),
        op("patch", "z", {"x": 1}, if_version=2),
        atomic=False,
    )
    assert [o.op for o in outcomes] == ["get", "delete", "patch", "put", "get", "patch"]
    assert [o.version for o in outcomes] == [0, 2, 2, 1, 0, 0]
    problems = [type(o.problem) for o in outcomes]
    assert problems == [type(None)] * 4 + [NotRegistered, VersionConflict]
    written = EntryRevision.objects.exclude(reason="").values_list(
        "entry__key", "version", "reason"
    )
    assert set(written) == {("a", 2, "new"), ("b", 2, "old"), ("z", 1, "first")}


def test_atomic__get_after_a_delete__returns_the_default(notes: Person) -> None:
    before, _, after = run(notes, op("get", "a"), op("delete", "a"), op("get", "a"))
    assert (before.entry.value, before.entry.exists) == ('"a"', True)
    assert (after.entry.value, after.entry.exists, after.entry.version) == ("null", False, 0)


@pytest.mark.parametrize(
    "operations",
    [
        [op("get", "a"), op("get", "b")],
        [op("get", "a"), op("get", "a")],
        [op("put", "z", 1), op("get", "a"), op("get", "a")],
    ],
)
def test_gets__of_too_much__are_refused(
    notes: Person, monkeypatch: pytest.MonkeyPatch, operations: list[BatchOperation]
) -> None:
    for key in "ab":
        put(notes.actor, "notes", key, "x" * 90)
    monkeypatch.setattr(entries_sql, "MOST_READ", 160)
    with pytest.raises(TooLarge) as refused:
        run(notes, *operations)
    assert refused.value.data["limit"] == 160
    assert refused.value.hint == "Read the entries in several batches."
    outcomes = run(notes, *operations, atomic=False)
    assert [outcome.problem is None for outcome in outcomes][-2:] == [True, False]


@pytest.mark.parametrize("version", [None, 1])
def test_batch__deletions_at_the_quota__make_room_for_puts(
    notes: Person, version: int | None
) -> None:
    quotas.set_quota(actor=notes.actor, entries=2, bytes=None, threads=None)
    quotas.read_usage(notes.actor)  # measured before the batch
    run(
        notes,
        *(op("delete", key, if_version=version) for key in "ab"),
        *(op("put", key, 2) for key in "cd"),
    )
    assert stored_values() == {"c": "2", "d": "2"}
