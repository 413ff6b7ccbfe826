"""Concurrent writers of one entry: one wins, no write is lost."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from state_admin.models import AuditRow, Change, Entry
from state_admin.services import entries
from state_admin.services.entries import Precondition
from state_admin.services.errors import (
    Invalid,
    Problem,
)
from tests.builders import Person, make_namespace, put
from tests.loops import in_thread
from tests.services.racing import race, split
from tests.services.test_entries import delete, let_expire, operations_of, patch, read

RACERS = 32


@pytest.mark.django_db(transaction=True)
def test_race__32_writers_with_one_version__exactly_one_wins(alice: Person) -> None:
    make_namespace(alice.actor)
    for round_ in range(5):
        before = put(alice.actor, "notes", f"k{round_}", 0)
        write = partial(
            put, alice.actor, "notes", f"k{round_}", 1, precondition=Precondition(before.version)
        )
        won, lost = split(race([write] * RACERS))
        assert (len(won), len(lost)) == (1, RACERS - 1)
        assert {problem.detail for problem in lost} == {"version conflict: expected 1, actual 2"}
        assert operations_of(f"k{round_}") == [(1, "put"), (2, "put")]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("past", ["never", "deleted", "expired"])
def test_race__creators_of_one_key__exactly_one_wins(alice: Person, past: str) -> None:
    make_namespace(alice.actor)
    if past != "never":
        put(alice.actor, "notes", "k", 0, ttl_seconds=600)
    if past == "deleted":
        delete(alice)
    if past == "expired":
        let_expire()
    first = {"never": 1, "deleted": 3, "expired": 2}[past]
    write = partial(put, alice.actor, "notes", "k", 1, precondition=Precondition(0))
    won, lost = split(race([write] * 16))
    assert [view.version for view in won] == [first]
    assert {p.detail for p in lost} == {f"version conflict: expected 0, actual {first}"}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("held", [True, False])
def test_race__additions__none_is_lost(alice: Person, held: bool) -> None:
    make_namespace(alice.actor, default={"n": 0})
    if held:
        put(alice.actor, "notes", "k", {"n": 0})
    add = partial(patch, alice, {"op": "add", "path": "/n", "value": 1}, "update")
    won, lost = split(race([add] * 16))
    assert [problem.detail for problem in lost] == []
    assert len({put.entry.version for put in won}) == 16
    assert entries.values.load(read(alice).value) == {"n": 16}
    assert [op for _, op in operations_of()].count("patch") == 16


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("held", [True, False])
def test_patch__concurrent_writes_while_it_is_computed__blocks_nobody_and_loses_nothing(
    alice: Person, held: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_namespace(alice.actor, default={"n": 0})
    if held:
        put(alice.actor, "notes", "k", {"n": 0})
    add = partial(patch, alice, {"op": "add", "path": "/n", "value": 1}, "update")
    apply_patch, computed = entries.apply_patch, []

    def interrupted(*arguments: Any) -> Any:
        computed.append(arguments)
        if len(computed) == 1:  # with the row locked, this would never finish
            in_thread(add)
        return apply_patch(*arguments)

    monkeypatch.setattr(entries, "apply_patch", interrupted)
    assert add().entry.version == 2 + held
    assert entries.values.load(read(alice).value) == {"n": 2}
    assert len(computed) == 3


@pytest.mark.django_db(transaction=True)
def test_race__deleters_of_one_version__exactly_one_deletes(alice: Person) -> None:
    make_namespace(alice.actor)
    put(alice.actor, "notes", "k", 1)
    won, lost = split(race([partial(delete, alice, precondition=Precondition(1))] * 8))
    assert won == [2]
    assert {p.data["actual"] for p in lost} == {0}


@pytest.mark.django_db(transaction=True)
def test_race__all_operations__versions_are_consecutive_and_written_once(
    alice: Person,
) -> None:
    make_namespace(alice.actor, default=0)
    works = [partial(put, alice.actor, "notes", "k", n) for n in range(8)]
    works += [partial(delete, alice)] * 4
    works += [partial(patch, alice, n) for n in range(4)]
    _, lost = split(race(works))
    assert [p.detail for p in lost if not isinstance(p, Problem)] == []
    versions = [version for version, _ in operations_of()]
    assert versions == list(range(1, len(versions) + 1))
    assert AuditRow.objects.filter(key="k").count() == len(versions)
    assert Change.objects.filter(key="k").count() == len(versions)


@pytest.mark.django_db(transaction=True)
def test_race__schema_change_and_writers__every_value_is_valid_under_its_schema_version(
    alice: Person,
) -> None:
    make_namespace(alice.actor)
    writes = [partial(put, alice.actor, "notes", f"k{n}", "text") for n in range(12)]
    change = partial(make_namespace, alice.actor, schema={"type": "integer"}, default=0)
    _, lost = split(race([*writes, change]))
    assert {type(problem) for problem in lost} <= {Invalid}
    assert not Entry.objects.filter(schema_version=2).exists()
