"""Passwords: throttled by name and by address, without revealing which names exist."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext

from project import hashing
from state_admin.models import LoginAttempt, User
from state_admin.services import logins
from state_admin.services.errors import Conflict, RateLimited, Unavailable
from state_admin.services.logins import check_password, set_password
from state_admin.services.users import make_login_link, use_login_link
from tests.builders import Person
from tests.services.racing import interleave, race, split

GOOD, WRONG = "correct horse battery staple", "wrong"
HERE, ELSEWHERE = "192.0.2.1", "198.51.100.1"


@pytest.fixture
def hashes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The ranks of the executed hashes."""
    ranks: list[int] = []

    def run(work: Callable[[], str], rank: int) -> str:
        ranks.append(rank)
        return work()

    monkeypatch.setattr(hashing.QUEUE, "run", run)
    return ranks


@pytest.fixture
def with_password(alice: Person) -> User:
    set_password(user=alice.user, password=GOOD)
    return alice.user


def attempt(username: str = "alice", password: str = WRONG, address: str = HERE) -> User | None:
    return check_password(username=username, password=password, address=address)


def test_address__too_many_failures_with_any_names__is_refused(
    with_password: User, monkeypatch: pytest.MonkeyPatch, hashes: list[int]
) -> None:
    monkeypatch.setattr(logins, "MOST_FAILURES_OF_ADDRESS", 5)
    for number in range(5):
        assert attempt(f"name{number}") is None
    assert hashes == [0, 1, 2, 3, 4]
    for name in ("alice", "name6"):
        with pytest.raises(RateLimited):
            attempt(name, GOOD)
    assert len(hashes) == 5
    assert attempt(password=GOOD, address=ELSEWHERE) == with_password
    LoginAttempt.objects.update(at=Now() - logins.WINDOW - timedelta(seconds=1))
    assert attempt(password=GOOD) == with_password


def test_address__refused_attempts__are_not_counted(
    with_password: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logins, "MOST_FAILURES_OF_ADDRESS", 3)
    for number in range(9):
        try:
            attempt(f"name{number}")
        except RateLimited:
            assert number >= 3
    assert LoginAttempt.objects.count() == 3


def test_address__success_of_one_name__keeps_the_failures_of_others(with_password: User) -> None:
    for name in ("a", "b", "alice"):
        attempt(name)
    assert attempt(password=GOOD) == with_password
    assert set(LoginAttempt.objects.values_list("username", flat=True)) == {"a", "b"}


@pytest.mark.django_db(transaction=True)
def test_address__concurrent_attempts__are_hashed_up_to_the_limit(
    with_password: User, monkeypatch: pytest.MonkeyPatch, hashes: list[int]
) -> None:
    monkeypatch.setattr(logins, "MOST_FAILURES_OF_ADDRESS", 4)
    hashes.clear()
    _, refused = split(race([partial(attempt, f"name{number}") for number in range(12)]))
    assert len(hashes) == 4
    assert [type(error) for error in refused] == [RateLimited] * 8


def make_inactive(user: User) -> None:
    User.objects.filter(pk=user.pk).update(is_active=False)


def make_passwordless(user: User) -> None:
    user.set_unusable_password()
    user.save(update_fields=["password"])


@pytest.mark.parametrize("prepare", [lambda user: None, make_inactive, make_passwordless])
def test_name__unknown__costs_as_much_as_a_wrong_password(
    prepare: Callable[[User], None],
    with_password: User,
    hashes: list[int],
) -> None:
    def cost(username: str, address: str) -> tuple[int, list[str]]:
        hashes.clear()
        with CaptureQueriesContext(
            connection,
        ) as queries:
            assert attempt(username, address=address) is None
        verbs = [query["sql"].split(" ")[0] for query in queries]
        return len(hashes), verbs

    prepare(with_password)
    assert cost("alice", HERE) == cost("nobody", ELSEWHERE)
    assert len(hashes) == 1


def test_queue__full__attempt_is_refused_and_not_counted(
    with_password: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*_: object) -> str:
        raise hashing.Busy

    with monkeypatch.context() as patch:
        patch.setattr(hashing.QUEUE, "run", run)
        with pytest.raises(Unavailable):
            attempt(password=GOOD)
        assert not LoginAttempt.objects.exists()
        with pytest.raises(Unavailable):
            set_password(user=with_password, password="another fine password")
    assert attempt(password=GOOD) == with_password


def test_password__is_set__unused_login_links_stop_working(alice: Person, bob: Person) -> None:
    link, of_another = make_login_link(alice.user), make_login_link(bob.user)
    set_password(user=alice.user, password=GOOD)
    assert use_login_link(link) is None
    assert use_login_link(of_another) == bob.user


@pytest.mark.django_db(transaction=True)
def test_password__set_by_another_session_meanwhile__is_kept(
    with_password: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    stolen = User.objects.get(pk=with_password.pk)
    changed = "another fine password"
    # While the request of the other session waits for its hash.
    with (
        interleave(
            monkeypatch,
            User,
            "set_password",
            lambda: set_password(user=with_password, password=changed),
        ),
        pytest.raises(Conflict, match="changed in the meantime"),
    ):
        set_password(user=stolen, password="a password of a thief")
    assert attempt(password=changed) == with_password
