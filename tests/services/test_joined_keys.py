"""Idempotency-Keys of writes that are joined."""

from __future__ import annotations

from collections import Counter
from functools import partial

import pytest
from django.db import transaction

from state_admin.models import (
    Entry,
    EntryRevision,
    IdempotencyRecord,
)
from state_admin.services import (
    idempotency,
)
from state_admin.services.joined_writes import store_joined
from tests.builders import Person, put
from tests.services.racing import race
from tests.services.test_joined_writes import (
    batch,
    item,
    key,
    notes,
    store,
    store_batches,
    stored,
    versions,
    versions_of_batches,
    write,
)
from tests.sessions import DjangoSession, run_in_test, run_on_loop

pytestmark = pytest.mark.django_db

__all__ = ["notes"]


def test_store_joined__key__is_kept_with_the_response(alice: Person) -> None:
    put(alice.actor, "notes", "held", 1)
    calls = [
        write(alice, "held", 2, once=key("one")),
        write(alice, "new", 1, once=key("two")),
        write(alice, "plain", 1),
    ]
    assert versions(store(calls)) == [2, 1, 1]
    kept = IdempotencyRecord.objects.order_by("scope").values_list("scope", "fingerprint", "status")
    assert list(kept) == [("one", "f", 200), ("two", "f", 200)]
    assert not IdempotencyRecord.objects.exclude(workspace_id=alice.actor.workspace_id).exists()
    assert versions(store(calls)) == [None, None, 2]
    assert stored(alice, "held") == ("2", 2)


def test_store_joined__one_key_twice_in_a_group__is_the_first_call_s(alice: Person) -> None:
    calls = [write(alice, name, 1, once=key("one")) for name in ("a", "b", "a")]
    assert versions(store(calls)) == [1, None, None]
    assert not Entry.objects.filter(key="b").exists()


def test_store_joined__write_that_is_refused__keeps_nothing(alice: Person) -> None:
    put(alice.actor, "notes", "k", 1)
    assert versions(store([write(alice, "k", 2, expected=7, once=key("one"))])) == [None]
    assert not IdempotencyRecord.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_store_joined__key_in_use_elsewhere__is_left_alone(alice: Person) -> None:
    put(alice.actor, "notes", "k", 1)
    calls = [write(alice, "k", 2, once=key("one")), write(alice, "other", 1, once=key("two"))]
    with transaction.atomic():
        assert idempotency.claim(key("one")) is None
        results = store(calls, run_on_loop)
    assert versions(results) == [None, 1]
    assert versions(store(calls)) == [2, None]


@pytest.mark.django_db(transaction=True)
def test_store_joined__one_key_from_many_threads__is_stored_once(alice: Person) -> None:
    stored: Counter[str] = Counter()

    def work(number: int) -> None:
        for turn in range(10):
            scopes = [f"all {turn}", f"own {number} {turn}"]
            calls = [write(alice, f"k{number}", turn, once=key(scope)) for scope in scopes]
            results = store(calls, run_on_loop)
            assert not [each for each in results if isinstance(each, Exception)]
            stored.update(s for s, each in zip(scopes, results, strict=True) if each is not None)

    race([partial(work, number) for number in range(3)])
    assert set(stored.values()) == {1}
    assert sum(scope.startswith("all") for scope in stored) >= 1
    assert set(IdempotencyRecord.objects.values_list("scope", flat=True)) == set(stored)
    assert EntryRevision.objects.count() == len(stored)


def test_store_joined__write_with_a_key__takes_two_round_trips(alice: Person) -> None:
    put(alice.actor, "notes", "k", 1)
    session = DjangoSession()
    writes = [write(alice, "k", 2, once=key("one"))]

    assert run_in_test(lambda _: store_joined(writes, session)) != [None]
    assert session.trips == [False, True]


def test_store_joined__batch_with_a_key__is_kept_once(alice: Person) -> None:
    calls = [
        batch(alice, item("a", 1), item("b", 1), once=key("one")),
        batch(alice, item("c", 1), item("d", 1), once=key("one")),
    ]
    assert versions_of_batches(store_batches(calls)) == [[1, 1], None]
    assert store_batches(calls) == [None, None]
    assert IdempotencyRecord.objects.count() == 1
