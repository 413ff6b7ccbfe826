"""Signing in with an OpenID Connect provider (tests/providing.py), and who may."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt
import pytest
import requests
import time_machine
from allauth.socialaccount.models import SocialAccount
from cryptography.hazmat.primitives.asymmetric import rsa
from django.test import Client
from django.urls import get_resolver
from pytest_django import Settings
from structlog.testing import capture_logs

from state_admin.domain.access import Role
from state_admin.models import AuditRow, Change, Membership, User, UserSession
from state_admin.services.logins import set_password
from state_admin.services.users import ensure_user
from tests.builders import Person, make_person
from tests.patience import PATIENCE
from tests.providing import CLIENT, SECRET, Provider, providing, rs256

GOOD = "correct horse battery staple"


@pytest.fixture
def provider(settings: Settings) -> Iterator[Provider]:
    with providing() as found:
        settings.OIDC = replace(settings.OIDC, issuer=found.url)
        yield found


@pytest.fixture
def ann(db: None) -> Person:
    """A member whose name is her email address."""
    return make_person("alice@acme.example", "acme", Role.EDITOR)


def to_provider(client: Client, path: str = "/login/oidc") -> str:
    """The URL to which the server redirects the browser."""
    response = client.get(path)
    assert response.status_code == 302, response.content
    return response["Location"]


def back(client: Client, url: str) -> Any:
    """The server's response to the provider's redirect."""
    answer = requests.get(url, allow_redirects=False, timeout=PATIENCE)
    parts = urlsplit(answer.headers["Location"])
    return client.get(f"{parts.path}?{parts.query}")


def sign_in(client: Client, path: str = "/login/oidc") -> Any:
    return back(client, to_provider(client, path))


def logged_in(client: Client) -> bool:
    return client.get("/sessions").status_code == 200


def test_login_page__configured__offers_it_and_keeps_the_requested_page(
    client: Client, db: None
) -> None:
    shown = client.get("/login?next=/threads%3Fprefix%3Da").content.decode()
    assert "Sign in with Acme SSO" in shown
    assert "/login/oidc?next=%2Fthreads%3Fprefix%3Da" in shown


def test_sign_in__member_by_verified_email__succeeds_and_is_linked(
    client: Client, provider: Provider, ann: Person
) -> None:
    response = sign_in(client, "/login/oidc?next=/threads")
    assert response["Location"] == "/threads"
    assert "with Acme SSO" in client.get("/sessions").content.decode()
    assert UserSession.objects.filter(user=ann.user).count() == 1
    account = SocialAccount.objects.get()
    assert (account.user, account.provider, account.uid) == (ann.user, provider.url, "u1")
    row = AuditRow.objects.get(action="identity.link")
    assert (row.actor_name, row.detail) == ("alice@acme.example", {"issuer": provider.url})
    assert Change.objects.filter(kind="identity.link").exists()


def test_sign_in__request__has_state_nonce_and_pkce(
    client: Client, provider: Provider, ann: Person
) -> None:
    asked = {k: v[0] for k, v in parse_qs(urlsplit(to_provider(client)).query).items()}
    assert asked["code_challenge_method"] == "S256"
    assert len(asked["state"]) >= 16
    assert len(asked["nonce"]) == 64
    assert asked["redirect_uri"] == "http://127.0.0.1:8000/login/oidc/callback"
    assert SECRET not in str(asked)
    again = parse_qs(urlsplit(to_provider(client)).query)
    for name in ("state", "nonce", "code_challenge"):
        assert again[name] != [asked[name]]


def test_sign_in__already_linked__requires_no_email(
    client: Client, provider: Provider, ann: Person
) -> None:
    sign_in(client)
    provider.person = {"sub": "u1"}
    other = Client()
    assert sign_in(other)["Location"] == "/"
    assert logged_in(other)
    told = AuditRow.objects.filter(action="session.start", key="alice@acme.example")
    assert [row.detail for row in told] == [{"method": "Acme SSO"}] * 2


def test_sign_in__email_only_in_userinfo__is_used_for_the_same_subject(
    client: Client, provider: Provider, ann: Person
) -> None:
    def without_email(claims: dict[str, Any]) -> dict[str, Any]:
        return {k: v for k, v in claims.items() if not k.startswith("email")}

    provider.change = lambda claims: {**without_email(claims), "sub": "u2"}
    assert sign_in(client).status_code == 502
    provider.change = without_email
    assert sign_in(client)["Location"] == "/"


@pytest.mark.parametrize("verified", [False, None, "true", 1])
def test_sign_in__unverified_email__links_no_account(
    verified: object, client: Client, provider: Provider, ann: Person
) -> None:
    provider.person["email_verified"] = verified
    response = sign_in(client)
    assert response.status_code == 403
    assert "You are not a member of any workspace" in response.content.decode()
    assert not logged_in(client)
    assert not SocialAccount.objects.exists()


@pytest.mark.parametrize(
    "email", ["mallory@acme.example", "al\u0131ce@acme.example", "alice", "", "\0@acme.example"]
)
def test_sign_in__not_a_member__is_refused_and_stores_nothing(
    email: str, client: Client, provider: Provider, ann: Person
) -> None:
    provider.person["email"] = email
    people = User.objects.count()
    assert sign_in(client).status_code == 403
    assert not logged_in(client)
    assert User.objects.count() == people
    assert not SocialAccount.objects.exists()


def test_sign_in__name_equal_after_case_folding__is_another_user(
    client: Client, provider: Provider, db: None
) -> None:
    make_person("al\u0131ce@acme.example", "acme", Role.ADMIN)
    assert sign_in(client).status_code == 403


def test_sign_in__user_without_workspace_or_inactive__is_refused(
    client: Client, provider: Provider, ann: Person
) -> None:
    User.objects.filter(pk=ann.user.pk).update(is_active=False)
    assert sign_in(client).status_code == 403
    User.objects.filter(pk=ann.user.pk).update(is_active=True)
    Membership.objects.filter(user=ann.user).delete()
    assert sign_in(client).status_code == 403
    assert not SocialAccount.objects.exists()


def test_sign_in__two_users_with_the_address__is_refused(
    client: Client, provider: Provider, ann: Person, bob: Person
) -> None:
    User.objects.filter(pk=bob.user.pk).update(email="Alice@acme.example")
    response = sign_in(client)
    assert response.status_code == 403
    assert "More than one member" in response.content.decode()


def test_sign_in__other_account_of_a_linked_member__is_refused(
    client: Client, provider: Provider, ann: Person
) -> None:
    sign_in(client)
    provider.person["sub"] = "u2"
    response = sign_in(Client())
    assert response.status_code == 409
    assert "already linked" in response.content.decode()


# New people ----------------------------------------------------------------------------------


def test_new_user__of_a_configured_domain__becomes_a_member_with_the_role(
    client: Client, provider: Provider, alice: Person, settings: Settings
) -> None:
    settings.OIDC = replace(settings.OIDC, domains=("acme.example",), workspace="acme")
    assert sign_in(client)["Location"] == "/"
    assert logged_in(client)
    member = Membership.objects.get(user__username="alice@acme.example")
    assert (member.workspace.slug, member.role) == ("acme", "viewer")
    assert not member.user.has_usable_password()
    row = AuditRow.objects.get(action="member.add")
    assert (row.actor_kind, row.actor_name) == ("system", "single sign-on")
    client.get("/sessions")
    assert sign_in(Client())["Location"] == "/"  # again: linked
    assert User.objects.filter(username="alice@acme.example").count() == 1


@pytest.mark.parametrize(
    ("domains", "email", "verified"),
    [
        (("acme.example",), "eve@evil.example", True),
        (("acme.example",), "eve@acme.example.evil.example", True),
        (("acme.example",), "eve@sub.acme.example", True),
        (("acme.example",), "eve@acme.example", False),
        ((), "eve@acme.example", True),
        (("acme.example",), "acme.example", True),
    ],
)
def test_new_user__of_another_domain__is_refused(
    domains: tuple[str, ...],
    email: str,
    verified: bool,
    client: Client,
    provider: Provider,
    alice: Person,
    settings: Settings,
) -> None:
    settings.OIDC = replace(settings.OIDC, domains=domains, workspace="acme")
    provider.person |= {"email": email, "email_verified": verified}
    assert sign_in(client).status_code == 403
    assert not User.objects.filter(username=email).exists()


def test_new_user__created_by_another_way__gets_no_role(
    client: Client, provider: Provider, alice: Person, settings: Settings
) -> None:
    settings.OIDC = replace(settings.OIDC, domains=("acme.example",), workspace="acme")
    ensure_user("alice@acme.example")  # the user who created it may know its password
    assert sign_in(client).status_code == 403
    assert not Membership.objects.filter(user__username="alice@acme.example").exists()


# What a provider, or somebody in between, may send -------------------------------------------


def _none(claims: dict[str, Any]) -> str:
    return jwt.encode(claims, None, "none")  # type: ignore[arg-type]


def _hs256(claims: dict[str, Any]) -> str:
    return jwt.encode(claims, SECRET, "HS256", headers={"kid": "k1"})


def _other_key(claims: dict[str, Any]) -> str:
    return rs256(claims, rsa.generate_private_key(public_exponent=65537, key_size=2048))


def _unknown_key(claims: dict[str, Any]) -> str:
    return jwt.encode(claims, _KEY, "RS256", headers={"kid": "k2"})


_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)


def _altered(claims: dict[str, Any]) -> str:
    head, _, signature = rs256(claims).split(".")
    body = base64.urlsafe_b64encode(json.dumps({**claims, "sub": "u9"}).encode()).decode()
    return ".".join([head, body.rstrip("="), signature])


@pytest.mark.parametrize(
    "sign",
    [_none, _hs256, _other_key, _unknown_key, _altered, lambda claims: "junk", lambda claims: ""],
    ids=["none", "hs256", "other key", "unknown key", "altered", "junk", "empty"],
)
def test_id_token__not_signed_by_the_provider__is_refused(
    sign: Callable[[dict[str, Any]], str], client: Client, provider: Provider, ann: Person
) -> None:
    provider.sign = sign
    response = sign_in(client)
    assert response.status_code == 502
    assert "with Acme SSO failed" in response.content.decode()
    assert not logged_in(client)


@pytest.mark.parametrize(
    "wrong",
    [
        {"nonce": "0" * 64},
        {"nonce": None},
        {"aud": "another-client"},
        {"aud": [CLIENT, "another-client"], "azp": "another-client"},
        {"iss": "https://evil.example"},
        {"exp": 1_000_000_000},
        {"iat": 4_000_000_000},
        {"nbf": 4_000_000_000},
        {"sub": None},
        {"sub": ""},
        {"sub": "u\0"},
        {"sub": "u" * 192},
        {"sub": 7},
    ],
    ids=str,
)
def test_id_token__wrong_claim__is_refused(
    wrong: dict[str, Any], client: Client, provider: Provider, ann: Person
) -> None:
    provider.change = lambda claims: {k: v for k, v in (claims | wrong).items() if v is not None}
    assert sign_in(client).status_code == 502
    assert not logged_in(client)


def test_callback__unknown_or_used_state__is_refused(
    client: Client, provider: Provider, ann: Person
) -> None:
    url = to_provider(client)
    answer = requests.get(url, allow_redirects=False, timeout=PATIENCE).headers["Location"]
    path = answer.partition("8000")[2]
    stranger = Client()
    assert stranger.get(path).status_code == 400  # the code of another browser
    assert not logged_in(stranger)
    assert client.get(path).status_code == 302
    assert client.get(path).status_code == 400
    assert Client().get("/login/oidc/callback").status_code == 400
    assert Client().get("/login/oidc/callback?state=x&code=y").status_code == 400


def test_callback__eleven_minutes_later__is_expired(
    client: Client, provider: Provider, ann: Person
) -> None:
    url = to_provider(client)
    answer = requests.get(url, allow_redirects=False, timeout=PATIENCE).headers["Location"]
    with time_machine.travel(time.time() + 660, tick=True):
        assert client.get(answer.partition("8000")[2]).status_code == 400


def test_callback__code_of_another_login__is_refused_by_pkce(
    client: Client, provider: Provider, ann: Person
) -> None:
    stolen = requests.get(to_provider(Client()), allow_redirects=False, timeout=PATIENCE)
    code = parse_qs(urlsplit(stolen.headers["Location"]).query)["code"][0]
    state = parse_qs(urlsplit(to_provider(client)).query)["state"][0]
    response = client.get("/login/oidc/callback", {"code": code, "state": state})
    assert response.status_code == 502
    assert not logged_in(client)


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        ("access_denied", 403, "reported that the sign-in was cancelled"),
        ("server_error<script>", 502, "with Acme SSO failed"),
    ],
)
def test_callback__error_of_the_provider__is_a_page(
    error: str, status: int, said: str, client: Client, provider: Provider, ann: Person
) -> None:
    provider.error = error
    response = sign_in(client)
    assert response.status_code == status
    assert said in response.content.decode()
    assert b"<script>" not in response.content


@pytest.mark.parametrize("path", ["/.well-known/openid-configuration", "/token", "/jwks"])
def test_provider__unavailable__is_a_page_and_password_logins_work(
    path: str, client: Client, provider: Provider, ann: Person
) -> None:
    provider.broken.add(path)
    response = client.get("/login/oidc")
    if path.startswith("/."):
        assert response.status_code == 502
    else:
        assert back(client, response["Location"]).status_code == 502
    set_password(user=ann.user, password=GOOD)
    form = {"username": ann.user.username, "password": GOOD}
    assert client.post("/login", form).status_code == 302


@pytest.mark.parametrize(
    ("discovery", "why"),
    [
        (
            {"issuer": "https://evil.example"},
            "OIDC_ISSUER is {issuer}, but its discovery document names 'https://evil.example'",
        ),
        ({"jwks_uri": None}, "the discovery document of the provider lacks jwks_uri"),
    ],
)
def test_provider__names_another_issuer_or_lacks_an_endpoint__is_refused_and_logged(
    discovery: dict[str, Any], why: str, client: Client, provider: Provider, ann: Person
) -> None:
    provider.discovery = discovery
    with capture_logs() as logs:
        assert client.get("/login/oidc").status_code == 502
    (line,) = (line for line in logs if line["event"] == "login.oidc_failed")
    assert line["why"] == why.format(issuer=provider.url)


@pytest.mark.parametrize("target", ["https://evil.example/", "//evil.example", "/login"])
def test_sign_in__next_on_another_site__redirects_to_the_start_page(
    target: str, client: Client, provider: Provider, ann: Person
) -> None:
    assert sign_in(client, f"/login/oidc?next={target}")["Location"] == "/"


def test_sign_in__session__has_a_new_key_and_the_usual_lifetime(
    client: Client, provider: Provider, ann: Person
) -> None:
    url = to_provider(client)
    before = client.cookies["commonhold_session"].value
    back(client, url)
    cookie = client.cookies["commonhold_session"]
    assert cookie.value != before
    assert int(cookie["max-age"]) == 14 * 24 * 3600


# Linking while signed in ---------------------------------------------------------------------


def test_link__after_the_password__account_can_sign_in(
    client: Client, provider: Provider, alice: Person
) -> None:
    set_password(user=alice.user, password=GOOD)
    client.post("/login", {"username": "alice", "password": GOOD})
    provider.person = {"sub": "entra-1"}
    assert client.post("/sign-in/oidc", {"password": "wrong"}).status_code == 422
    assert client.get("/login/oidc?link")["Location"] == "/sign-in"
    page = client.post("/sign-in/oidc", {"password": GOOD}).content.decode()
    assert "Continue at Acme SSO" in page
    assert sign_in(client, "/login/oidc?link")["Location"] == "/sign-in"
    assert "Linked. You can sign in with" in client.get("/sign-in").content.decode()
    other = Client()
    assert sign_in(other)["Location"] == "/"
    assert client.get("/login/oidc?link")["Location"] == "/sign-in"  # a password permits one link
    assert client.post("/sign-in/oidc/unlink", {"password": "wrong"}).status_code == 422
    client.post("/sign-in/oidc/unlink", {"password": GOOD})
    assert sign_in(Client()).status_code == 403
    actions = AuditRow.objects.filter(action__startswith="identity.").order_by("pk")
    assert [row.action for row in actions] == ["identity.link", "identity.unlink"]


def test_link__account_of_another_user__is_refused(
    client: Client, provider: Provider, ann: Person, bob: Person
) -> None:
    sign_in(Client())
    set_password(user=bob.user, password=GOOD)
    client.post("/login", {"username": "bob", "password": GOOD})
    client.post("/sign-in/oidc", {"password": GOOD})
    response = sign_in(client, "/login/oidc?link")
    assert response.status_code == 409
    assert "linked to another user" in response.content.decode()
    assert SocialAccount.objects.get().user == ann.user


def test_unlink__without_a_password__is_refused(
    client: Client, provider: Provider, ann: Person
) -> None:
    sign_in(client)
    assert client.post("/sign-in/oidc/unlink").status_code == 422
    assert SocialAccount.objects.exists()


# What allauth brings along -------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "/accounts/", "/accounts/login/", "/accounts/signup/", "/accounts/email/",
        "/accounts/password/reset/", "/accounts/password/change/", "/accounts/2fa/",
        "/accounts/2fa/totp/activate/", "/accounts/2fa/webauthn/", "/accounts/3rdparty/",
        "/accounts/3rdparty/signup/", "/accounts/social/signup/", "/accounts/oidc/oidc/login/",
        "/signup/", "/email/", "/password/reset/", "/2fa/", "/oidc/oidc/login/callback/",
        "/_allauth/browser/v1/auth/login",
    ],
)  # fmt: skip
def test_allauth__its_own_pages__are_404(path: str, admin: Client) -> None:
    assert admin.get(path).status_code == 404


def test_allauth__its_own_views__are_not_mounted() -> None:
    def views(resolver: Any) -> Iterator[Any]:
        for entry in resolver.url_patterns:
            yield from views(entry) if hasattr(entry, "url_patterns") else [entry.callback]

    found = {view.__module__.partition(".")[0] for view in views(get_resolver())}
    assert "state_admin" in found
    assert "allauth" not in found
