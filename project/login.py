"""The ways in beside passwords: single sign-on by OpenID Connect and codes of an authenticator app.

Both come from django-allauth, an extra (requirements-login.txt): what is not configured is neither
needed nor imported. docs/guides/login.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from urllib.parse import urlsplit

from project.env import BadSetting, env, secret

_LONGEST_ISSUER = 200  # allauth's column for it


@dataclass(frozen=True)
class SingleSignOn:
    """The provider. `domains` are those whose new people get in, as `role` of `workspace`."""

    issuer: str
    client_id: str
    client_secret: str
    name: str
    domains: tuple[str, ...]
    workspace: str
    role: str


def single_sign_on() -> SingleSignOn | None:
    issuer = env.str("OIDC_ISSUER", "").rstrip("/")
    client_id, client_secret = env.str("OIDC_CLIENT_ID", ""), secret("OIDC_CLIENT_SECRET") or ""
    given = [bool(issuer), bool(client_id), bool(client_secret)]
    if not any(given):
        return None
    if not all(given):
        raise BadSetting("OIDC_ISSUER, OIDC_CLIENT_ID and OIDC_CLIENT_SECRET must be set together")
    address = urlsplit(issuer)
    loopback = address.hostname in ("127.0.0.1", "::1", "localhost")
    plain = address.scheme == "http" and loopback
    if not address.hostname or not (address.scheme == "https" or plain):
        raise BadSetting(
            "OIDC_ISSUER must be an https:// URL: without TLS, anybody on the network can "
            "forge sign-ins"
        )
    if len(issuer) > _LONGEST_ISSUER:
        raise BadSetting(f"OIDC_ISSUER must have at most {_LONGEST_ISSUER} characters")
    listed: list[str] = env.list("OIDC_NEW_DOMAINS", [])
    domains = tuple(domain.strip().lower() for domain in listed if domain.strip())
    role = env.str("OIDC_NEW_ROLE", "viewer")
    if role not in ("viewer", "editor"):
        raise BadSetting("OIDC_NEW_ROLE must be viewer or editor; only admins grant the role admin")
    return SingleSignOn(
        issuer=issuer,
        client_id=client_id,
        client_secret=client_secret,
        name=env.str("OIDC_NAME", "single sign-on"),
        domains=domains,
        workspace=env.str("OIDC_NEW_WORKSPACE", "default"),
        role=role,
    )


def totp() -> str:
    """`off`, `optional` or `required`."""
    given = env.str("LOGIN_TOTP", "off")
    if given not in ("off", "optional", "required"):
        raise BadSetting(f"LOGIN_TOTP must be off, optional or required, not {given!r}")
    return given


def apps(sso: SingleSignOn | None, codes: str) -> list[str]:
    """What INSTALLED_APPS needs for them: nothing where neither is on."""
    extras = ["allauth.socialaccount"] if sso else []
    extras += ["allauth.mfa"] if codes != "off" else []
    if not extras:
        return []
    if find_spec("allauth") is None:
        raise BadSetting(
            "OIDC_ISSUER and LOGIN_TOTP need the login extra, which is not installed: "
            "pip install --require-hashes -r requirements-login.txt"
        )
    return ["allauth.account", *extras]
