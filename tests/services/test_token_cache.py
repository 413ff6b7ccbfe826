"""Cached credentials are never used after a revocation or a change."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from django.db import connection
from django.db.models.functions import Now

from state_admin.models import ApiToken
from state_admin.services import actors, token_cache, tokens
from state_admin.services.token_cache import CHANNEL, Credential, TokenCache
from tests.builders import Person, call
from tests.project.running import wait_for


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch) -> Iterator[TokenCache]:
    # No entry of the cache expires while the test waits.
    monkeypatch.setattr(token_cache, "SECONDS", 3600.0)
    made = TokenCache()
    made.enabled = True
    monkeypatch.setattr(token_cache, "cache", made)
    monkeypatch.setattr("state_admin.services.actors.cache", made)
    yield made
    made.stop()


def remembers(cache: TokenCache, person: Person) -> bool:
    """Whether a call with her token succeeds and is cached."""
    return call(person.token, "GET", "/me").status_code == 200 and bool(cache._held)


@pytest.mark.django_db(transaction=True)
def test_cache__second_call__queries_nothing(
    alice: Person, cache: TokenCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    call(alice.token, "GET", "/me")
    wait_for(lambda: remembers(cache, alice), "it is remembered")

    def asked(*_: object, **__: object) -> None:
        raise AssertionError("asked the database")

    monkeypatch.setattr("state_admin.services.actors._find_credential", asked)
    assert call(alice.token, "GET", "/me").status_code == 200


@pytest.mark.django_db(transaction=True)
def test_cache__token_revoked_elsewhere__is_removed_by_notification(
    alice: Person, cache: TokenCache
) -> None:
    wait_for(lambda: remembers(cache, alice), "it is remembered")
    with connection.cursor() as cursor:  # another process revokes it
        cursor.execute("UPDATE api_tokens SET revoked_at = now()")
        cursor.execute(f"NOTIFY {CHANNEL}")
    wait_for(lambda: call(alice.token, "GET", "/me").status_code == 401, "it is refused")


@pytest.mark.django_db(transaction=True)
def test_cache__listener_loses_its_connection__caches_nothing_until_it_reconnects(
    alice: Person, cache: TokenCache
) -> None:
    wait_for(lambda: remembers(cache, alice), "it is remembered")
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN %'"
            " OR (query = 'SELECT 1' AND pid <> pg_backend_pid() AND datname = current_database())"
        )
    wait_for(lambda: not cache._held, "nothing is remembered")
    wait_for(lambda: remembers(cache, alice), "it is remembered")


@pytest.mark.django_db(transaction=True)
def test_revoke__in_this_process__takes_effect_at_once(alice: Person, cache: TokenCache) -> None:
    wait_for(lambda: remembers(cache, alice), "it is remembered")
    me = alice.api("GET", "/me")
    assert me.status_code == 200
    for token in ApiToken.objects.all():
        tokens.revoke_token(actor=alice.actor, token_id=token.pk)
    assert call(alice.token, "GET", "/me").status_code == 401


@pytest.mark.django_db(transaction=True)
def test_cache__token_in_constant_use__is_read_again_in_time(
    alice: Person, cache: TokenCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_cache, "SECONDS", 1.0)
    wait_for(lambda: remembers(cache, alice), "it is remembered")
    ApiToken.objects.update(expires_at=Now())  # nobody announces that a token expires

    wait_for(lambda: call(alice.token, "GET", "/me").status_code == 401, "it is refused", 30)


@pytest.mark.django_db(transaction=True)
def test_cache__revoked_after_it_was_read__is_not_cached(
    alice: Person, cache: TokenCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait_for(lambda: remembers(cache, alice), "it is remembered")
    cache.clear()
    find, clear, cleared = actors._find_credential, cache.clear, list[str]()

    def note_clear() -> None:
        cleared.append(threading.current_thread().name)
        clear()

    def revoked_meanwhile(presented: str) -> Credential | None:
        found = find(presented)
        monkeypatch.setattr(cache, "clear", note_clear)
        (token,) = ApiToken.objects.all()
        tokens.revoke_token(actor=alice.actor, token_id=token.pk)
        wait_for(lambda: "revoked tokens" in cleared, "the notification arrives")
        return found

    monkeypatch.setattr(actors, "_find_credential", revoked_meanwhile)
    assert call(alice.token, "GET", "/me").status_code == 200  # began before
    monkeypatch.setattr(actors, "_find_credential", find)
    assert call(alice.token, "GET", "/me").status_code == 401


@pytest.mark.django_db(transaction=True)
def test_change__in_another_process__takes_effect_by_notification(
    alice: Person, cache: TokenCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait_for(lambda: remembers(cache, alice), "it is remembered")
    other = TokenCache()  # of the process that changes it
    monkeypatch.setattr(token_cache, "cache", other)
    (token,) = ApiToken.objects.all()
    tokens.change_token(actor=alice.actor, token_id=token.pk, changes={"role": "viewer"})
    wait_for(lambda: call(alice.token, "GET", "/tokens").status_code == 403, "it has the new role")
