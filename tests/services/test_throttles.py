"""Rate limits per token."""

from __future__ import annotations

import threading

import pytest
from django.db import connections

from state_admin.domain.access import Role
from state_admin.models import RateBucket
from state_admin.services import throttles, tokens
from state_admin.services.errors import RateLimited
from tests.builders import Person, call


@pytest.fixture(autouse=True)
def nothing_held() -> None:
    throttles.forget_leases()


def limited(person: Person, rate: int) -> tuple[str, int]:
    row, secret = tokens.create_token(
        actor=person.actor, name="slow", role=Role.VIEWER, rate_per_minute=rate
    )
    return secret, row.pk


def test_call__beyond_the_limit__is_429_with_retry_after(alice: Person) -> None:
    secret, _ = limited(alice, 3)
    answers = [call(secret, "GET", "/me") for _ in range(4)]
    assert [a.status_code for a in answers] == [200, 200, 200, 429]
    # A third of a minute fills one call.
    assert 1 <= int(answers[3]["Retry-After"]) <= 20
    assert answers[3]["Content-Type"] == "application/problem+json"
    assert answers[3].json()["limit"] == 3


def test_call__token_without_limit__is_never_counted(alice: Person) -> None:
    for _ in range(5):
        assert alice.api("GET", "/me").status_code == 200
    assert not RateBucket.objects.exists()


def test_bucket__time_passes__fills_evenly(alice: Person) -> None:
    _, token_id = limited(alice, 60)
    for _ in range(60):
        throttles.spend(token_id, 60)
        throttles.forget_leases()
    with pytest.raises(RateLimited):
        throttles.spend(token_id, 60)
    # Two seconds ago by the database's clock: two calls are there again.
    from datetime import timedelta

    from django.db.models import F

    RateBucket.objects.update(at=F("at") - timedelta(seconds=2))
    throttles.spend(token_id, 60)
    throttles.spend(token_id, 60)
    with pytest.raises(RateLimited):
        throttles.spend(token_id, 60)


def test_bucket__busy_token__costs_one_statement_a_second(
    alice: Person, django_assert_num_queries: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, token_id = limited(alice, 6000)
    taken: list[int] = []
    real = throttles.take_tokens

    def count(**asked: int) -> float:
        taken.append(asked["wanted"])
        return real(**asked)

    monkeypatch.setattr(throttles, "take_tokens", count)
    for _ in range(100):
        throttles.spend(token_id, 6000)
    assert taken == [100]


@pytest.mark.django_db(transaction=True)
def test_bucket__many_processes__never_exceed_the_limit(alice: Person) -> None:
    """Each thread has a connection of its own and holds nothing in advance."""
    _, token_id = limited(alice, 20)
    gate, allowed = threading.Barrier(8), []

    def go() -> None:
        gate.wait()
        waits = [
            throttles.take_tokens(token_id=token_id, per_minute=20, wanted=1) for _ in range(10)
        ]
        allowed.extend(wait for wait in waits if wait == 0.0)
        connections.close_all()

    threads = [threading.Thread(target=go) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # What filled while they ran may be there too: at most one call in three seconds.
    assert 20 <= len(allowed) <= 22
