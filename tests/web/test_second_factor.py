"""Codes of an authenticator app beside the password, and what happens without the phone."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import time_machine
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value
from django.core.management import CommandError, call_command
from django.test import Client
from pytest_django import Settings

from state_admin.domain.access import Role
from state_admin.models import AuditRow, LoginAttempt, Membership
from state_admin.services import second_factors, workspace_freezes
from state_admin.services.encryption import newest_key_id
from state_admin.services.errors import RateLimited, Unreadable
from state_admin.services.logins import set_password
from state_admin.services.users import make_login_link
from state_admin.services.workspaces import add_member, ensure_workspace
from tests.builders import Person
from tests.services.moving import reset
from tests.services.racing import interleave, race
from tests.web.test_account import GOOD, with_password
from tests.web.test_single_sign_on import logged_in

__all__ = ["with_password"]


@pytest.fixture
def clock() -> Iterator[time_machine.Coordinates]:
    """A constant clock, in the middle of a code's half minute, until a test moves it."""
    with time_machine.travel(1_800_000_015, tick=False) as found:
        yield found


def code_of(secret: str, *, steps: int = 0) -> str:
    """The code that the app shows now, or so many half minutes later."""
    return format_hotp_value(hotp_value(secret, int(time.time()) // 30 + steps))


@pytest.fixture
def secret(with_password: Person) -> str:
    """The secret of alice's authenticator, whose last used code is two steps old."""
    secret = second_factors.make_secret()
    second_factors.enrol(actor=with_password.actor, secret=secret, code=code_of(secret))
    device = Authenticator.objects.get(type="totp")
    device.data["used"] -= 2
    device.save()
    return secret


def log_in(client: Client, **data: str) -> Any:
    return client.post("/login", {"username": "alice", "password": GOOD, **data})


def enter_code(client: Client, code: str) -> Any:
    return client.post("/login/code", {"code": code})


def shown_secret(client: Client) -> str:
    page = client.get("/sign-in/totp").content.decode()
    found = re.search(r"<code>([A-Z2-7 ]{39})</code>", page)
    assert found, page
    return found[1].replace(" ", "")


# Setting it up -------------------------------------------------------------------------------


def test_enrol__correct_code_and_password__shows_recovery_codes_once(
    client: Client, with_password: Person
) -> None:
    log_in(client)
    assert "Set up" in client.get("/sign-in").content.decode()
    page = client.get("/sign-in/totp").content.decode()
    assert 'src="data:image/svg+xml;base64,' in page
    secret = shown_secret(client)
    assert secret == shown_secret(client)  # reloading the page keeps the scanned secret
    response = client.post("/sign-in/totp", {"code": code_of(secret), "password": GOOD})
    assert response.status_code == 201
    assert "no-store" in response["Cache-Control"]
    codes = re.findall(r"\b\d{5} \d{5}\b", response.content.decode())
    assert len(set(codes)) == 10
    shown = client.get("/sign-in").content.decode()
    assert "10 recovery codes left" in shown
    assert not any(code in shown for code in codes)
    assert client.get("/sign-in/totp")["Location"] == "/sign-in"
    assert AuditRow.objects.get(action="totp.enrol").key == "alice"


@pytest.mark.parametrize(
    ("password", "right", "said"),
    [(GOOD, False, "code is incorrect"), ("wrong", True, "password is incorrect")],
)
def test_enrol__wrong_code__changes_nothing_and_keeps_the_secret(
    password: str, right: bool, said: str, client: Client, with_password: Person
) -> None:
    log_in(client)
    secret = shown_secret(client)
    code = code_of(secret) if right else "000000"
    response = client.post("/sign-in/totp", {"code": code, "password": password})
    assert response.status_code == 422
    assert said in response.content.decode()
    assert shown_secret(client) == secret
    assert not Authenticator.objects.exists()


def test_enrol__secrets__are_stored_encrypted(secret: str) -> None:
    stored = list(Authenticator.objects.values_list("data", flat=True))
    assert secret not in str(stored)
    keys = {
        data[name].partition(".")[0]
        for data in stored
        for name in ("secret", "seed")
        if name in data
    }
    assert keys == {newest_key_id("commonhold.totp")}


def test_check_code__altered_secret__cannot_be_decrypted(
    with_password: Person, secret: str
) -> None:
    device = Authenticator.objects.get(type=Authenticator.Type.TOTP)
    for altered in ("A" * 40, device.data["secret"].replace(".", "0."), device.data["secret"][:-4]):
        device.data["secret"] = altered
        device.save()
        with pytest.raises(Unreadable, match="cannot be decrypted"):
            second_factors.check_code(user=with_password.user, code=code_of(secret))


def test_enrol__twice_at_once__one_succeeds(with_password: Person, transactional_db: None) -> None:
    secret = second_factors.make_secret()

    def enrol() -> list[str]:
        return second_factors.enrol(actor=with_password.actor, secret=secret, code=code_of(secret))

    done = race([enrol, enrol])
    assert sorted(type(result).__name__ for result in done) == ["Conflict", "list"]
    assert Authenticator.objects.count() == 2


# The code at login ---------------------------------------------------------------------------


def test_login__enrolled__password_alone_is_not_enough(client: Client, secret: str) -> None:
    response = log_in(client, next="/threads")
    assert response["Location"] == "/login/code"
    assert not logged_in(client)
    assert "Two-factor authentication" in client.get("/login/code").content.decode()
    assert enter_code(client, "000000").status_code == 422
    assert not logged_in(client)
    assert enter_code(client, code_of(secret))["Location"] == "/threads"
    assert "with password and code" in client.get("/sessions").content.decode()


def test_login__by_link__requires_the_code_too(
    client: Client, secret: str, with_password: Person
) -> None:
    response = client.post(f"/login/once/{make_login_link(with_password.user)}")
    assert response["Location"] == "/login/code"
    assert not logged_in(client)
    assert enter_code(client, code_of(secret))["Location"] == "/password"
    assert b"old_password" not in client.get("/password").content


@pytest.mark.parametrize("steps", [-1, 0, 1])
def test_code__of_a_clock_half_a_minute_off__is_accepted_once(
    steps: int, client: Client, secret: str, clock: Any
) -> None:
    code = code_of(secret, steps=steps)
    device = Authenticator.objects.get(type="totp")
    device.data["used"] = 0
    device.save()
    log_in(client)
    assert enter_code(client, code)["Location"] == "/"
    other = Client()
    log_in(other)
    assert enter_code(other, code).status_code == 422
    assert not logged_in(other)


@pytest.mark.parametrize("steps", [-2, 2])
def test_code__of_a_clock_a_minute_off__is_refused(
    steps: int, client: Client, secret: str, clock: Any
) -> None:
    log_in(client)
    assert enter_code(client, code_of(secret, steps=steps)).status_code == 422


def test_code__older_than_one_that_was_used__is_refused(
    client: Client, secret: str, clock: Any
) -> None:
    log_in(client)
    assert enter_code(client, code_of(secret)).status_code == 302
    other = Client()
    log_in(other)
    assert enter_code(other, code_of(secret, steps=-1)).status_code == 422


def test_code__used_for_enrolment__cannot_sign_in(
    client: Client, with_password: Person, clock: Any
) -> None:
    secret = second_factors.make_secret()
    second_factors.enrol(actor=with_password.actor, secret=secret, code=code_of(secret))
    log_in(client)
    assert enter_code(client, code_of(secret)).status_code == 422


def test_code__used_twice_at_once__signs_in_once(
    with_password: Person, secret: str, transactional_db: None
) -> None:
    code = code_of(secret)

    def bring() -> bool:
        return second_factors.check_code(user=with_password.user, code=code)

    assert sorted(race([bring] * 4)) == [False, False, False, True]


def test_code__too_many_wrong_ones__refuses_even_the_correct_one(
    client: Client, secret: str, clock: Any
) -> None:
    log_in(client)
    for _ in range(second_factors.MOST_FAILURES):
        assert enter_code(client, "000000").status_code == 422
    elsewhere = Client(REMOTE_ADDR="10.0.0.9")
    log_in(elsewhere)
    refused = enter_code(elsewhere, code_of(secret))
    assert refused.status_code == 429
    assert "Too many wrong codes" in refused.content.decode()
    clock.shift(second_factors.WINDOW_SECONDS + 1)
    log_in(client)
    assert enter_code(client, code_of(secret)).status_code == 302


def test_code__concurrent_guesses__are_all_counted(
    with_password: Person, secret: str, transactional_db: None
) -> None:
    def guess() -> bool:
        return second_factors.check_code(user=with_password.user, code="000000")

    done = race([guess] * (second_factors.MOST_FAILURES + 3))
    assert sum(isinstance(result, RateLimited) for result in done) == 3


def test_code__without_a_password_before__redirects_to_the_login(
    client: Client, secret: str
) -> None:
    assert client.get("/login/code")["Location"] == "/login"
    assert enter_code(client, code_of(secret))["Location"] == "/login"
    assert not logged_in(client)


def test_code__eleven_minutes_later__login_starts_again(
    client: Client, secret: str, clock: Any
) -> None:
    log_in(client)
    clock.shift(11 * 60)
    assert enter_code(client, code_of(secret))["Location"] == "/login"


def test_code__password_changed_meanwhile__login_starts_again(
    client: Client, secret: str, with_password: Person
) -> None:
    log_in(client)
    set_password(user=with_password.user, password="a wholly new password")
    assert enter_code(client, code_of(secret))["Location"] == "/login"


def test_code__all_sessions_ended_meanwhile__login_starts_again(
    client: Client, secret: str, with_password: Person
) -> None:
    log_in(client)
    browser = with_password.browser()
    shown = browser.get("/sessions.json").json()["items"]
    assert [each["here"] for each in shown] == [True]  # nobody is signed in to the other one
    browser.post("/sessions/end")
    assert enter_code(client, code_of(secret))["Location"] == "/login"
    assert not logged_in(client)


def test_login__correct_password__resets_password_failures_but_not_those_of_codes(
    client: Client, secret: str
) -> None:
    log_in(client)
    enter_code(client, "000000")
    log_in(client)
    assert not LoginAttempt.objects.exists()
    assert len(Authenticator.objects.get(type="totp").data["failures"]) == 1


def test_code__encryption_key_missing__reports_it(
    client: Client, secret: str, settings: Settings
) -> None:
    log_in(client)
    device = Authenticator.objects.get(type="totp")
    device.data["secret"] = "gAAAAA"
    device.save()
    response = enter_code(client, "000000")
    assert response.status_code == 409
    assert "cannot be decrypted" in response.content.decode()


# Without the phone ---------------------------------------------------------------------------


def test_recovery_code__correct__signs_in_once(
    client: Client, with_password: Person, clock: Any
) -> None:
    secret = second_factors.make_secret()
    codes = second_factors.enrol(actor=with_password.actor, secret=secret, code=code_of(secret))
    log_in(client)
    assert enter_code(client, f"{codes[3][:5]} {codes[3][5:]}")["Location"] == "/"
    assert "9 recovery codes left" in client.get("/sign-in").content.decode()
    other = Client()
    log_in(other)
    assert enter_code(other, codes[3]).status_code == 422
    assert enter_code(other, codes[4]).status_code == 302


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("secret")
def test_recovery_codes__created_again_while_an_old_one_is_checked__it_is_right(
    with_password: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, *_ = second_factors.renew_codes(actor=with_password.actor)

    def renew() -> None:
        second_factors.renew_codes(actor=with_password.actor)

    with interleave(monkeypatch, RecoveryCodes, "validate_code", renew):
        assert second_factors.check_code(user=with_password.user, code=old)
    assert second_factors.find_state(with_password.user).codes_left == 10


def test_recovery_codes__created_again__replace_the_old_ones(
    client: Client, secret: str, with_password: Person
) -> None:
    old = second_factors.renew_codes(actor=with_password.actor)
    log_in(client)
    enter_code(client, code_of(secret))
    assert client.post("/sign-in/totp/codes", {"password": "wrong"}).status_code == 422
    response = client.post("/sign-in/totp/codes", {"password": GOOD})
    new = re.findall(r"\b\d{5} \d{5}\b", response.content.decode())
    assert len(new) == 10
    assert not second_factors.check_code(user=with_password.user, code=old[0])
    assert second_factors.check_code(user=with_password.user, code=new[0])


def test_remove__any__requires_the_password_again(client: Client, secret: str) -> None:
    log_in(client)
    enter_code(client, code_of(secret))
    assert client.get("/sign-in/totp/remove").status_code == 200
    for password in ("", "wrong"):
        assert client.post("/sign-in/totp/remove", {"password": password}).status_code == 422
    assert Authenticator.objects.count() == 2
    assert client.post("/sign-in/totp/remove", {"password": GOOD})["Location"] == "/sign-in"
    assert not Authenticator.objects.exists()
    assert AuditRow.objects.filter(action="totp.remove", key="alice").exists()
    assert log_in(Client())["Location"] == "/"


def test_remove__without_a_password__requires_a_code(
    admin: Client, secret: str, with_password: Person
) -> None:
    with_password.user.set_unusable_password()
    with_password.user.save()
    admin.force_login(with_password.user)
    assert admin.post("/sign-in/totp/remove", {"code": "000000"}).status_code == 422
    assert admin.post("/sign-in/totp/remove", {"code": code_of(secret)}).status_code == 302


# Required ------------------------------------------------------------------------------------


def test_required__not_enrolled__must_enrol_before_anything_else(
    client: Client, with_password: Person, settings: Settings
) -> None:
    settings.LOGIN_TOTP = "required"
    log_in(client)
    for path in ("/", "/password", "/tokens", "/sign-in", "/state.json"):
        assert client.get(path)["Location"] == "/sign-in/totp"
    part = client.get("/tokens", headers={"HX-Request": "true"})
    assert part["HX-Redirect"] == "/sign-in/totp"
    own = {"Sec-Fetch-Site": "same-origin"}
    assert client.get("/api/v1/changes/stream", headers=own).status_code == 401
    secret = shown_secret(client)
    client.post("/sign-in/totp", {"code": code_of(secret), "password": GOOD})
    assert logged_in(client)
    assert "Turn off" not in client.get("/sign-in").content.decode()
    assert client.post("/sign-in/totp/remove", {"password": GOOD}).status_code == 403
    assert Authenticator.objects.exists()


def test_required__session_from_before__signs_in_again_with_a_code(
    client: Client, secret: str, with_password: Person, settings: Settings
) -> None:
    client.force_login(with_password.user)
    settings.LOGIN_TOTP = "required"
    assert client.get("/")["Location"] == "/sign-in/totp"
    assert client.get("/sign-in/totp")["Location"] == "/login"
    log_in(client)
    assert enter_code(client, code_of(secret))["Location"] == "/"
    assert logged_in(client)


# Reset by others -----------------------------------------------------------------------------


def member(name: str) -> int:
    return Membership.objects.get(user__username=name, workspace__slug="acme").pk


@pytest.fixture
def bobs(bob: Person) -> Person:
    secret = second_factors.make_secret()
    second_factors.enrol(actor=bob.actor, secret=secret, code=code_of(secret))
    return bob


def test_reset__by_an_admin__removes_it_with_a_reason(admin: Client, bobs: Person) -> None:
    assert "Reset the authenticator of bob" in admin.get("/members").content.decode()
    path = f"/members/{member('bob')}/totp"
    assert "Reset the authenticator of bob?" in admin.get(path).content.decode()
    assert admin.post(path, {"reason": "lost phone"})["Location"] == "/members"
    assert not Authenticator.objects.exists()
    row = AuditRow.objects.get(action="totp.reset")
    assert (row.actor_name, row.key, row.reason) == ("alice", "bob", "lost phone")
    assert "Reset the authenticator" not in admin.get("/members").content.decode()
    assert admin.post(path).status_code == 404


def test_reset__by_other_roles_or_workspaces__is_refused(
    editor: Client, stranger: Client, bobs: Person
) -> None:
    path = f"/members/{member('bob')}/totp"
    assert editor.post(path).status_code == 403
    assert stranger.post(path).status_code == 404
    assert Authenticator.objects.exists()


def test_reset__of_ones_own__is_refused(secret: str, admin: Client) -> None:
    shown = admin.get("/members").content.decode()
    assert "End the sessions of alice" in shown
    assert "Reset the authenticator" not in shown
    assert admin.post(f"/members/{member('alice')}/totp").status_code == 403
    assert Authenticator.objects.exists()


def test_reset__member_of_other_workspaces_too__requires_an_operator(
    admin: Client, bobs: Person
) -> None:
    second, _ = ensure_workspace("second")
    add_member(workspace=second, user=bobs.user, role=Role.VIEWER)
    assert admin.post(f"/members/{member('bob')}/totp").status_code == 403
    assert Authenticator.objects.exists()
    call_command("reset_totp", "bob")
    assert not Authenticator.objects.exists()
    with pytest.raises(CommandError, match="no authenticator: bob"):
        call_command("reset_totp", "bob")
    with pytest.raises(CommandError, match="user not found: nobody"):
        call_command("reset_totp", "nobody")


# Rotation ------------------------------------------------------------------------------------


def test_rotate__new_key__old_one_can_be_removed(
    client: Client, with_password: Person, secret: str, settings: Settings, clock: Any
) -> None:
    codes = second_factors.renew_codes(actor=with_password.actor)
    settings.CONFIG_SECRET_KEYS = ["a new key"]
    call_command("rotate_secrets")
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "another", []
    assert second_factors.check_code(user=with_password.user, code=code_of(secret, steps=1))
    assert second_factors.check_code(user=with_password.user, code=codes[0])
    assert second_factors.find_state(with_password.user).codes_left == 9
    assert second_factors.rotate_secrets() == second_factors.Rotation(0, 2, [])
    assert [row.key for row in AuditRow.objects.filter(action="totp.rotate")] == ["alice"]


def test_rotate__used_codes_and_failures__are_kept(
    with_password: Person, secret: str, settings: Settings, clock: Any
) -> None:
    codes = second_factors.renew_codes(actor=with_password.actor)
    code = code_of(secret, steps=1)
    assert second_factors.check_code(user=with_password.user, code=codes[0])
    assert second_factors.check_code(user=with_password.user, code=code)
    assert not second_factors.check_code(user=with_password.user, code="000000")
    settings.CONFIG_SECRET_KEYS = ["a new key"]
    before = {d.type: set(d.data) for d in Authenticator.objects.all()}
    assert second_factors.rotate_secrets() == second_factors.Rotation(2, 0, [])
    assert {d.type: set(d.data) for d in Authenticator.objects.all()} == before
    assert not second_factors.check_code(user=with_password.user, code=codes[0])
    assert not second_factors.check_code(user=with_password.user, code=code)
    assert len(Authenticator.objects.get(type="totp").data["failures"]) == 3


def test_rotate__imported_codes__are_re_encrypted(
    with_password: Person, secret: str, settings: Settings
) -> None:
    """As allauth stores those imported from another system."""
    sealing = second_factors.EncryptingAdapter()
    Authenticator.objects.filter(type="recovery_codes").update(
        data={"migrated_codes": [sealing.encrypt("12345678"), sealing.encrypt("87654321")]}
    )
    settings.CONFIG_SECRET_KEYS = ["a new key"]
    assert second_factors.rotate_secrets().rotated == 2
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "another", []
    assert second_factors.check_code(user=with_password.user, code="87654321")
    assert second_factors.find_state(with_password.user).codes_left == 1


def test_rotate__key_missing__is_reported_and_changes_nothing(
    with_password: Person, secret: str, settings: Settings
) -> None:
    before = list(Authenticator.objects.order_by("pk").values_list("data", flat=True))
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "another", []
    with pytest.raises(CommandError, match="alice: totp\nalice: recovery_codes"):
        call_command("rotate_secrets")
    assert list(Authenticator.objects.order_by("pk").values_list("data", flat=True)) == before
    assert not AuditRow.objects.filter(action="totp.rotate").exists()


@pytest.mark.django_db(transaction=True)
def test_rotate__user_of_a_frozen_workspace__is_re_encrypted(
    with_password: Person, secret: str, settings: Settings
) -> None:
    settings.CONFIG_SECRET_KEYS = ["a new key"]
    workspace_freezes.freeze(with_password.workspace.pk, {}, lambda: None)
    try:
        assert second_factors.rotate_secrets().rotated == 2
    finally:
        reset()


@pytest.mark.django_db(transaction=True)
def test_rotate__concurrent_use_of_codes__loses_none(
    with_password: Person, secret: str, settings: Settings, clock: Any
) -> None:
    codes = second_factors.renew_codes(actor=with_password.actor)
    settings.CONFIG_SECRET_KEYS = ["a new key"]
    uses = [
        partial(second_factors.check_code, user=with_password.user, code=code) for code in codes[:3]
    ]
    results = race([*uses, second_factors.rotate_secrets])
    assert results[:3] == [True] * 3
    assert second_factors.find_state(with_password.user).codes_left == 7
    assert second_factors.rotate_secrets().rotated == 0
