"""Rate limits per token."""

from __future__ import annotations

import threading
import time

import pytest
from django.db import connections

from state_admin.domain.access import Role
from state_admin.models import RateBucket
from state_admin.services import throttles, tokens
from state_admin.services.errors import RateLimited
from tests.builders import Person, call
from tests.services.racing import race, split


@pytest.fixture(autouse=True)
def no_leases() -> None:
    throttles._leases.clear()


def limited(person: Person, rate: int) -> tuple[str, int]:
    row, secret = tokens.create_token(
        actor=person.actor, name="slow", role=Role.VIEWER, rate_per_minute=rate
    )
    return secret, row.pk


def test_call__beyond_the_limit__is_429_with_retry_after(alice: Person) -> None:
    secret, _ = limited(alice, 3)
    answers = [call(secret, "GET", "/me") for _ in range(4)]
    assert [a.status_code for a in answers] == [200, 200, 200, 429]
    # One call refills in twenty seconds.
    assert 1 <= int(answers[3]["Retry-After"]) <= 20
    assert answers[3]["Content-Type"] == "application/problem+json"
    assert answers[3].json()["limit"] == 3
    assert {a["RateLimit-Policy"] for a in answers} == {'"token";q=3;w=60'}
    left = [a["RateLimit"].partition(";t=") for a in answers]
    assert [each[0] for each in left] == ['"token";r=2', '"token";r=1', *['"token";r=0'] * 2]
    assert [left[0][2], left[1][2]] == ["20", "40"], "seconds until all calls are there again"
    assert left[3][2] == answers[3]["Retry-After"]


def test_call__token_without_limit__is_not_counted(alice: Person) -> None:
    for _ in range(5):
        answer = alice.api("GET", "/me")
        assert answer.status_code == 200
        assert "RateLimit" not in answer
    assert not RateBucket.objects.exists()


def test_bucket__time_passes__refills_evenly(alice: Person) -> None:
    _, token_id = limited(alice, 60)
    for _ in range(60):
        throttles.spend(token_id, 60)
        throttles._leases.clear()
    with pytest.raises(RateLimited):
        throttles.spend(token_id, 60)
    # Two seconds ago by the database's clock: two calls are available again.
    from datetime import timedelta

    from django.db.models import F

    RateBucket.objects.update(at=F("at") - timedelta(seconds=2))
    throttles.spend(token_id, 60)
    throttles.spend(token_id, 60)
    with pytest.raises(RateLimited):
        throttles.spend(token_id, 60)


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of calls taken from the bucket, per statement."""
    asked: list[int] = []
    real = throttles.take_tokens

    def note(**options: int) -> tuple[float, float]:
        asked.append(options["requested"])
        return real(**options)

    monkeypatch.setattr(throttles, "take_tokens", note)
    return asked


def test_bucket__busy_token__uses_few_statements(
    alice: Person, taken: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(throttles, "_LEASE", 60.0)
    _, token_id = limited(alice, 6000)
    left = [throttles.spend(token_id, 6000) for _ in range(300)]
    assert taken == [1, 2, 4, 8, 16, 32, 64, 100, 100]
    remaining = [each.remaining for each in left if each]
    assert len(remaining) == 300
    assert all(6000 - n <= each <= 6000 for n, each in enumerate(remaining, 1)), "what fills counts"
    assert remaining[-1] < 6000


def count_until_refused(token_id: int, rate: int) -> int:
    allowed = 0
    try:
        while True:
            throttles.spend(token_id, rate)
            allowed += 1
    except RateLimited:
        return allowed


def test_bucket__slow_client_of_many_processes__is_counted_per_call(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, token_id = limited(alice, 600)
    for _ in range(300):
        throttles._leases.clear()  # as in another process
        throttles.spend(token_id, 600)
    # each call is more than a second after the previous one
    monkeypatch.setattr(throttles, "_LEASE", 0.0)
    for _ in range(299):
        throttles.spend(token_id, 600)
    assert RateBucket.objects.get().level >= 0.5


def test_bucket__unused_lease__is_returned(
    alice: Person, taken: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(throttles, "_LEASE", 60.0)
    _, token_id = limited(alice, 600)
    for _ in range(8):
        throttles.spend(token_id, 600)
    monkeypatch.setattr(throttles, "_LEASE", 0.0)
    RateBucket.objects.update(level=600)
    throttles.spend(token_id, 600)
    assert taken == [1, 2, 4, 8, 1 - 7]
    assert RateBucket.objects.get().level <= 600, "no more than a minute's worth"


def test_bucket__last_calls__are_available_to_a_busy_process(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fewer calls than it would take at once are still granted one by one."""
    monkeypatch.setattr(throttles, "_LEASE", 60.0)
    _, token_id = limited(alice, 600)
    assert count_until_refused(token_id, 600) >= 600


@pytest.mark.django_db(transaction=True)
def test_bucket__many_threads_of_a_process__lose_no_call(
    alice: Person, taken: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(throttles, "_LEASE", 60.0)
    _, token_id = limited(alice, 1200)

    def work() -> None:
        for _ in range(100):
            throttles.spend(token_id, 1200)

    _, refused = split(race([work] * 8))
    assert refused == []
    held, statements = sum(taken) - 800, len(taken)
    for _ in range(held):
        throttles.spend(token_id, 1200)
    assert len(taken) == statements, "all that was taken can be spent"


@pytest.mark.django_db(transaction=True)
def test_bucket__many_processes__never_exceed_the_limit(alice: Person) -> None:
    """Each thread has its own connection and no reserved calls."""
    _, token_id = limited(alice, 20)
    gate, allowed = threading.Barrier(8), []

    def go() -> None:
        gate.wait()
        waits = [
            throttles.take_tokens(token_id=token_id, per_minute=20, requested=1)[1]
            for _ in range(10)
        ]
        allowed.extend(wait for wait in waits if wait == 0.0)
        connections.close_all()

    began = time.monotonic()
    threads = [threading.Thread(target=go) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    refilled = (time.monotonic() - began) * 20 / 60
    assert 20 <= len(allowed) <= 20 + refilled
