"""A copy of the database cannot be used to sign in: rows of sessions have only the digest of the
cookie."""

from __future__ import annotations

from datetime import timedelta

import pytest
from asgiref.sync import async_to_sync
from django.conf import settings
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from state_admin.models import UserSession
from state_admin.models.access import digest
from state_admin.models.sessions import SessionStore
from state_admin.services.logins import set_password
from state_admin.services.users import make_login_link
from tests.builders import Person
from tests.loops import in_thread
from tests.services.canary import tables_with

PASSWORD = "correct horse battery staple"


def cookie(client: Client) -> str:
    return client.cookies[settings.SESSION_COOKIE_NAME].value


def is_signed_in(client: Client) -> bool:
    return client.get("/sessions").status_code == 200


def with_cookie(value: str) -> Client:
    client = Client()
    client.cookies[settings.SESSION_COOKIE_NAME] = value
    return client


def sign_in(client: Client, person: Person, how: str) -> None:
    if how == "password":
        set_password(user=person.user, password=PASSWORD)
        client.post("/login", {"username": person.user.username, "password": PASSWORD})
    else:
        client.post(f"/login/once/{make_login_link(person.user)}")


@pytest.mark.parametrize("how", ["password", "link"])
def test_session__signed_in__cookie_is_in_no_table(how: str, client: Client, alice: Person) -> None:
    sign_in(client, alice, how)
    client.get("/sessions")
    assert is_signed_in(client)
    assert tables_with(digest(cookie(client))) == {"sessions"}
    assert tables_with(cookie(client)) == set()


def test_session__digest_as_a_cookie__is_not_signed_in(client: Client, alice: Person) -> None:
    sign_in(client, alice, "link")
    row = UserSession.objects.get(user=alice.user)
    assert not is_signed_in(with_cookie(row.session_key))
    assert is_signed_in(with_cookie(cookie(client)))


def test_session__password_set__old_key_is_invalid(client: Client, alice: Person) -> None:
    sign_in(client, alice, "link")
    before = cookie(client)
    client.post("/password", {"password": PASSWORD, "again": PASSWORD})
    assert is_signed_in(client)
    assert cookie(client) != before
    assert not is_signed_in(with_cookie(before))
    assert UserSession.objects.count() == 1


def test_session__signed_out__row_is_deleted(client: Client, alice: Person) -> None:
    sign_in(client, alice, "link")
    client.post("/logout")
    assert not UserSession.objects.exists()


def test_session__live_page__is_found_by_its_cookie(client: Client, alice: Person) -> None:
    sign_in(client, alice, "link")
    headers = {"Sec-Fetch-Site": "same-origin"}
    assert client.get("/api/v1/changes/stream", headers=headers).status_code == 200
    row = UserSession.objects.get(user=alice.user)
    thief = with_cookie(row.session_key)
    assert thief.get("/api/v1/changes/stream", headers=headers).status_code == 401


def test_clearsessions__expired__only_those_are_deleted(client: Client, alice: Person) -> None:
    sign_in(client, alice, "link")
    gone = alice.browser()
    UserSession.objects.filter(session_key=digest(cookie(gone))).update(
        expire_date=timezone.now() - timedelta(seconds=1)
    )
    assert not is_signed_in(gone)
    call_command("clearsessions")
    assert is_signed_in(client)
    assert UserSession.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_store__coroutines__keep_the_digest_only() -> None:
    async def story() -> str:
        store = SessionStore()
        await store.aset("mine", 1)
        await store.asave()
        key = str(store.session_key)
        assert await store.aexists(key)
        assert await SessionStore(key).aget("mine") == 1
        return key

    key = in_thread(async_to_sync(story))
    assert [row.session_key for row in UserSession.objects.all()] == [digest(key)]
    assert tables_with(key) == set()
    in_thread(async_to_sync(SessionStore(key).adelete))
    assert not UserSession.objects.exists()
