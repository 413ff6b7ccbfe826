"""Signing in: password with throttling, one-time link, workspace, preferences."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from django.db import OperationalError
from django.test import Client
from django.utils import timezone

from project import command_lines, hashing
from project.env import BASE_DIR
from state_admin.domain.access import Actor, Role
from state_admin.models import AuditRow, Entry, LoginAttempt, LoginLink, User, UserSession
from state_admin.services import journal, logins
from state_admin.services.logins import MOST_FAILURES, set_password
from state_admin.services.members import end_own_sessions
from state_admin.services.users import make_login_link
from state_admin.services.workspaces import add_member, ensure_workspace
from tests.builders import Person, make_namespace, make_person, make_run, make_thread, put
from tests.services.racing import interleave

GOOD = "correct horse battery staple"


@pytest.fixture
def with_password(alice: Person) -> Person:
    set_password(user=alice.user, password=GOOD)
    return alice


def log_in(client: Client, password: str = GOOD, name: str = "alice", **data: str) -> Any:
    return client.post("/login", {"username": name, "password": password, **data})


def logged_in(client: Client) -> bool:
    return client.get("/password").status_code == 200


def test_login__correct_password__redirects_to_the_requested_page(
    client: Client, with_password: Person
) -> None:
    response = log_in(client, next="/state?prefix=a")
    assert response["Location"] == "/state?prefix=a"
    assert logged_in(client)


@pytest.mark.parametrize(
    "target",
    ["https://evil.example/", "//evil.example/", "javascript:alert(1)", "/\\evil", "/login"],
)
def test_login__next_on_another_site__redirects_to_the_start_page(
    target: str, client: Client, with_password: Person
) -> None:
    assert log_in(client, next=target)["Location"] == "/"


@pytest.mark.parametrize("url", ["http://localhost:8000", "http://127.0.0.1", "http://[::1]:8000"])
def test_login__address_of_the_readers_machine__names_the_command_for_a_link(
    url: str, db: None, client: Client, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.SITE_URL = url
    for name in ("COMMONHOLD_DATA_DIR", "SITE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PORT", "8100")
    monkeypatch.setattr(command_lines.sys, "prefix", str(BASE_DIR / ".venv"))
    monkeypatch.setitem(settings.DATABASES["default"], "EMBEDDED", True)
    command = "<code>PORT=8100 .venv/bin/python manage.py create_login_link --user admin</code>"
    assert command in client.get("/login").content.decode()
    assert command in log_in(client).content.decode()
    monkeypatch.setattr(command_lines.sys, "prefix", "/usr")  # as in a container
    assert "<code>manage.py create_login_link" in client.get("/login").content.decode()


def test_login__public_address__does_not_depend_on_the_users(
    db: None, client: Client, settings: Any
) -> None:
    settings.SITE_URL = "https://state.example.com"

    def page() -> str:
        # Tokens against request forgery differ each time.
        return re.sub(r"\b\w{64}\b", "", client.get("/login").content.decode())

    without_users = page()
    set_password(user=make_person("bob", "acme", Role.VIEWER).user, password=GOOD)
    assert page() == without_users
    assert "Ask the server operator" in without_users
    assert "manage.py" not in without_users


@pytest.mark.parametrize(("name", "password"), [("alice", "wrong"), ("nobody", GOOD), ("a\0", "x")])
def test_login__wrong_name_or_password__has_the_same_message(
    name: str, password: str, client: Client, with_password: Person
) -> None:
    response = client.post("/login", {"username": name, "password": password})
    assert response.status_code == 422
    assert b"Incorrect name or password" in response.content
    assert not logged_in(client)


def test_login__too_many_failures__refuses_even_the_correct_password(
    client: Client, with_password: Person
) -> None:
    for _ in range(MOST_FAILURES):
        assert log_in(client, "wrong").status_code == 422
    refused = log_in(client)
    assert refused.status_code == 429
    assert not logged_in(client)
    LoginAttempt.objects.update(at=timezone.now() - timedelta(minutes=16))
    assert log_in(client).status_code == 302


def test_login__address_failed_with_many_names__gets_a_retry_after(
    client: Client, with_password: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logins, "MOST_FAILURES_OF_ADDRESS", 2)
    for name in ("a", "b"):
        assert log_in(client, "wrong", name).status_code == 422
    refused = log_in(client)
    assert refused.status_code == 429
    assert refused["Retry-After"] == "900"
    assert b"Too many failed logins. Wait 15 minutes" in refused.content
    assert log_in(Client(REMOTE_ADDR="10.0.0.9")).status_code == 302


def test_passwords__queue_is_full__is_503_and_nothing_is_changed(
    client: Client, with_password: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*_: object) -> str:
        raise hashing.Busy

    log_in(client)
    with monkeypatch.context() as patch:
        patch.setattr(hashing.QUEUE, "run", run)
        refused = log_in(Client())
        assert refused.status_code == 503
        assert refused["Retry-After"] == "5"
        assert b"Try again in a few seconds" in refused.content
        form = {"old_password": GOOD, "password": GOOD + "!", "again": GOOD + "!"}
        assert client.post("/password", form).status_code == 503
    assert log_in(Client()).status_code == 302


def test_login__many_addresses_of_one_subscriber__are_throttled_together(
    client: Client, with_password: Person
) -> None:
    def refused(address: str) -> bool:
        said = {"username": "alice", "password": "wrong"}
        return client.post("/login", said, REMOTE_ADDR=address).status_code == 429

    for number in range(MOST_FAILURES):
        assert not refused(f"2001:db8:0:1:{number:x}::1")
    assert refused("2001:db8:0:1:ffff::1")
    assert not refused("2001:db8:0:2::1")
    # With a zone, as link-local sockets report it; and IPv4-mapped IPv6.
    assert not refused("fe80::1%eth0")
    assert not refused("::ffff:192.0.2.1")
    assert set(LoginAttempt.objects.values_list("address", flat=True)) == {
        "2001:db8:0:1::",
        "2001:db8:0:2::",
        "fe80::",
        "192.0.2.1",
    }


def test_login__throttled_name__does_not_affect_others(
    client: Client, with_password: Person, bob: Person
) -> None:
    set_password(user=bob.user, password=GOOD)
    for _ in range(MOST_FAILURES + 1):
        log_in(client, "wrong")
    assert log_in(client, name="bob").status_code == 302
    elsewhere = Client(REMOTE_ADDR="10.0.0.9")
    assert log_in(elsewhere).status_code == 302


def test_login__success__resets_failures(client: Client, with_password: Person) -> None:
    for _ in range(MOST_FAILURES - 1):
        log_in(client, "wrong")
    log_in(client)
    assert not LoginAttempt.objects.exists()


def test_link__opened_by_get__still_works(client: Client, alice: Person) -> None:
    secret = make_login_link(alice.user)
    assert b"<button" in client.get(f"/login/once/{secret}").content
    assert client.head(f"/login/once/{secret}").status_code in (200, 405)
    assert not logged_in(client)
    response = client.post(f"/login/once/{secret}")
    assert response["Location"] == "/password"
    page = client.get("/password").content
    assert b"Not now" in page
    assert b"old_password" not in page


def test_link__used__does_not_work_again(client: Client, alice: Person) -> None:
    secret = make_login_link(alice.user)
    client.post(f"/login/once/{secret}")
    again = Client().post(f"/login/once/{secret}")
    assert again.status_code == 410
    assert b"no longer valid" in again.content


def test_link__expired_or_unknown__does_not_work(client: Client, alice: Person) -> None:
    secret = make_login_link(alice.user)
    LoginLink.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert client.post(f"/login/once/{secret}").status_code == 410
    assert client.post("/login/once/nonsense").status_code == 410
    assert not logged_in(client)


def test_password__after_link__requires_no_old_one(client: Client, alice: Person) -> None:
    client.post(f"/login/once/{make_login_link(alice.user)}")
    response = client.post("/password", {"password": GOOD, "again": GOOD})
    assert response["Location"] == "/"
    assert logged_in(client)
    fresh = Client()
    assert log_in(fresh).status_code == 302


@pytest.mark.parametrize(
    ("old", "new", "again", "said"),
    [
        (GOOD, "short", "short", "too short"),
        (GOOD, "another fine password", "another fine passw0rd", "do not match"),
        ("wrong", "another fine password", "another fine password", "password is incorrect"),
    ],
)
def test_password__too_weak__states_the_reason(
    old: str, new: str, again: str, said: str, client: Client, with_password: Person
) -> None:
    log_in(client)
    response = client.post("/password", {"old_password": old, "password": new, "again": again})
    assert response.status_code == 422
    assert said in response.content.decode()


def test_password__changed__ends_other_sessions(client: Client, with_password: Person) -> None:
    other = Client()
    log_in(other)
    log_in(client)
    new = "a wholly new password"
    client.post("/password", {"old_password": GOOD, "password": new, "again": new})
    assert logged_in(client)
    assert not logged_in(other)


@pytest.mark.django_db(transaction=True)
def test_password__session_ended_meanwhile__is_not_set(
    client: Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.post(f"/login/once/{make_login_link(alice.user)}")

    def end() -> None:
        assert end_own_sessions(actor=alice.actor) == 1

    # While the request waits for the hash.
    with interleave(monkeypatch, User, "set_password", end):
        response = client.post("/password", {"password": GOOD, "again": GOOD})
    assert response.status_code == 409
    assert b"This session was ended" in response.content
    assert not UserSession.objects.exists()
    assert log_in(Client()).status_code == 422


@pytest.mark.django_db(transaction=True)
def test_password__sessions_are_ended_while_it_is_stored__ends_the_new_session_too(
    client: Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.post(f"/login/once/{make_login_link(alice.user)}")

    def end() -> None:
        assert end_own_sessions(actor=alice.actor) == 1

    with interleave(monkeypatch, logins, "cancel_login_links", end):
        client.post("/password", {"password": GOOD, "again": GOOD})
    assert not UserSession.objects.exists()


def test_logout__by_get__is_refused(client: Client, with_password: Person) -> None:
    log_in(client)
    assert client.get("/logout").status_code == 405
    client.post("/logout")
    assert not logged_in(client)


def test_workspace__chosen__is_shown_if_the_user_is_a_member(
    admin: Client, alice: Person, mallory: Person
) -> None:
    second, _ = ensure_workspace("second")
    add_member(workspace=second, user=alice.user, role=Role.VIEWER)
    make_namespace(alice.actor, "in-acme")
    assert b"in-acme" in admin.get("/namespaces").content
    assert admin.post("/workspaces", {"workspace": "second"}).status_code == 302
    assert b"in-acme" not in admin.get("/namespaces").content
    assert admin.get("/namespaces/+new").status_code == 403  # a viewer in that workspace
    assert admin.post("/workspaces", {"workspace": "rival"}).status_code == 404


def test_workspace__no_longer_member__another_one_is_shown(admin: Client, alice: Person) -> None:
    second, _ = ensure_workspace("second")
    membership = add_member(workspace=second, user=alice.user, role=Role.VIEWER)
    admin.post("/workspaces", {"workspace": "second"})
    membership.delete()
    assert b"acme" in admin.get("/").content


def test_workspace__no_longer_member__form_of_it_changes_no_other_one(
    admin: Client, alice: Person
) -> None:
    make_namespace(alice.actor, "notes")
    second, _ = ensure_workspace("second")
    membership = add_member(workspace=second, user=alice.user, role=Role.EDITOR)
    admin.post("/workspaces", {"workspace": "second"})
    membership.delete()
    form = {"value": "1", "base": 0}
    refused = admin.post("/entry/edit/notes/a", form)
    assert refused.status_code == 403
    assert b"You can no longer use the workspace second" in refused.content
    assert not Entry.objects.exists()
    assert b"acme" in admin.get("/").content
    assert admin.post("/entry/edit/notes/a", form).status_code == 302


@pytest.fixture
def second(alice: Person) -> Actor:
    """Alice in her other workspace, which has the entry notes/a, too."""
    workspace, _ = ensure_workspace("second")
    add_member(workspace=workspace, user=alice.user, role=Role.ADMIN)
    other = replace(alice.actor, workspace_id=workspace.pk, workspace="second")
    for actor in (alice.actor, other):
        make_namespace(actor, "notes")
        put(actor, "notes", "a", 1)
    return other


@pytest.mark.parametrize("way", ["header", "field"])
def test_workspace__switched_in_another_tab__form_changes_neither(
    way: str, admin: Client, alice: Person, second: Actor
) -> None:
    admin.post("/workspaces", {"workspace": "second"})
    form = {"value": "2", "base": "1"}
    headers = {"X-Workspace": "acme"} if way == "header" else {}
    field = {"page_workspace": "acme"} if way == "field" else {}
    refused = admin.post("/entry/edit/notes/a", form | field, headers=headers)
    assert refused.status_code == 409
    page = refused.content.decode()
    assert "This tab shows the workspace acme, but you have switched to second" in page
    assert "Nothing was changed. Reload the page to continue in second, or switch back." in page
    assert Entry.objects.filter(version=1).count() == 2
    admin.post("/workspaces", {"workspace": "acme", "page_workspace": "acme"}, headers=headers)
    assert admin.post("/entry/edit/notes/a", form | field, headers=headers).status_code == 302
    assert Entry.objects.visible_to(alice.actor).get().version == 2
    assert Entry.objects.visible_to(second).get().version == 1


def test_workspace__switched_in_another_tab__parts_of_its_pages_are_refused(
    admin: Client, second: Actor
) -> None:
    admin.post("/workspaces", {"workspace": "second"})
    htmx = {"HX-Request": "true", "HX-Request-Type": "partial", "X-Workspace": "acme"}
    for path in ("/state", "/live", "/entry/delete/notes/a"):
        refused = admin.get(path, headers=htmx)
        assert (refused.status_code, refused["HX-Retarget"]) == (409, "#problem")
        assert b"Nothing was changed" not in refused.content
        assert admin.get(path, headers=htmx | {"X-Workspace": "second"}).status_code == 200


def test_workspace__pages__say_which_one_they_show(admin: Client, second: Actor) -> None:
    for path in ("/", "/state/notes/a", "/entry/edit/notes/a", "/entry/delete/notes/a", "/none"):
        page = admin.get(path).content.decode()
        assert '"X-Workspace": "acme"' in page
        tokens = page.count('name="csrfmiddlewaretoken"')
        assert tokens == page.count('name="page_workspace" value="acme"') > 0
    htmx = {"HX-Request": "true", "HX-Request-Type": "partial"}
    assert b'value="acme"' in admin.get("/entry/delete/notes/a", headers=htmx).content


@pytest.mark.parametrize("path", ["/runs/r1?step=2", "/runs/r9?step=2", "/unknown"])
def test_workspace__page_not_found__offers_to_switch_and_to_return(
    path: str, admin: Client, alice: Person, second: Actor
) -> None:
    make_thread(second, "t1")
    make_run(second)
    missing = admin.get(path)
    assert missing.status_code == 404
    (link,) = re.findall(
        r'<a class="btn" href="([^"]+)">Switch workspace', missing.content.decode()
    )
    assert link == f"/workspaces?{urlencode({'next': path})}"
    assert f'name="next" value="{path}"' in admin.get(link).content.decode()
    response = admin.post("/workspaces", {"workspace": "second", "next": path})
    assert response["Location"] == path
    assert admin.get(path).status_code == (200 if "r1" in path else 404)


def test_workspace__page_not_found__member_of_one_cannot_switch(admin: Client) -> None:
    assert b">Switch workspace</a></p>" not in admin.get("/runs/r1").content


def test_workspace__next_on_another_site__opens_the_overview(admin: Client, second: Actor) -> None:
    form = {"workspace": "second", "next": "https://evil.example/"}
    assert admin.post("/workspaces", form)["Location"] == "/"


def test_workspace__pages_for_visitors__have_none(client: Client, db: None) -> None:
    page = client.get("/login").content
    assert b'name="csrfmiddlewaretoken"' in page
    assert b"page_workspace" not in page
    assert b"X-Workspace" not in page


def test_preferences__chosen__are_stored_in_cookies(client: Client, db: None) -> None:
    response = client.post(
        "/preferences",
        {"theme": "dark", "density": "compact", "shortcuts": "off", "next": "/login"},
    )
    assert response.status_code == 302
    chosen = b'data-theme="dark" data-density="compact" data-shortcuts="off"'
    assert chosen in client.get("/login").content
    client.post("/preferences", {"theme": "<evil>"})
    assert chosen in client.get("/login").content


def audit_rows(action: str) -> list[tuple[str, str, str, dict[str, Any]]]:
    rows = AuditRow.objects.filter(action=action).select_related("workspace").order_by("id")
    return [(row.workspace.slug, row.actor_name, row.key, row.detail) for row in rows]


def test_login__password__is_audited_in_each_workspace(
    client: Client, with_password: Person
) -> None:
    other = ensure_workspace("other")[0]
    add_member(workspace=other, user=with_password.user, role=Role.VIEWER)
    log_in(client, "wrong")
    assert audit_rows("session.start") == []
    log_in(client)
    told = ("alice", "alice", {"method": "password"})
    assert audit_rows("session.start") == [("acme", *told), ("other", *told)]
    row = AuditRow.objects.filter(action="session.start").first()
    assert row is not None
    assert row.request_id
    page = client.get("/audit?action=session").content.decode()
    assert "signed in as" in page


def test_login__link__is_audited_once_used(client: Client, alice: Person) -> None:
    secret = make_login_link(alice.user)
    client.get(f"/login/once/{secret}")
    assert audit_rows("session.start") == []
    client.post(f"/login/once/{secret}")
    client.post(f"/login/once/{secret}")
    assert audit_rows("session.start") == [("acme", "alice", "alice", {"method": "login link"})]


def test_login__audit_insert_fails__signs_nobody_in(
    client: Client, with_password: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OperationalError("the disk is full")

    monkeypatch.setattr(journal, "record", fail)
    client.raise_request_exception = False
    assert log_in(client).status_code == 503
    assert UserSession.objects.filter(user=with_password.user).count() == 0
    assert not logged_in(client)


def test_password__set__is_audited(client: Client, with_password: Person) -> None:
    assert audit_rows("password.set") == [("acme", "alice", "alice", {})]
    log_in(client)
    new = "another horse battery staple"
    data = {"old_password": GOOD, "password": "short", "again": "short"}
    assert client.post("/password", data).status_code == 422
    assert len(audit_rows("password.set")) == 1
    client.post("/password", data | {"password": new, "again": new})
    assert len(audit_rows("password.set")) == 2
    assert new not in str(AuditRow.objects.values_list("detail", "reason"))
    assert "set the password of" in client.get("/audit?action=password").content.decode()
