"""Sign-in methods beside passwords: single sign-on by OpenID Connect, and codes of an authenticator
app.

Both use django-allauth, an optional dependency (requirements-login.txt), which is neither needed
nor imported unless one of them is configured. docs/guides/login.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from urllib.parse import urlsplit

from project.env import LOOPBACK_HOSTS, BadSetting, read_environment

_LONGEST_ISSUER = 200  # the length of allauth's column
_DISCOVERY = "/.well-known/openid-configuration"
# Entra ID has a discovery document for them, but names the tenant of the user as the issuer of a token.
_SHARED_TENANTS = {"common", "organizations", "consumers"}


@dataclass(frozen=True)
class SingleSignOn:
    """The provider. New users of `domains` become members of `workspace` with the role `role`."""

    issuer: str
    client_id: str
    client_secret: str
    name: str
    domains: tuple[str, ...]
    workspace: str
    role: str


def single_sign_on() -> SingleSignOn | None:
    env = read_environment()
    issuer = env.oidc_issuer.rstrip("/")
    client_id, client_secret = env.oidc_client_id, env.oidc_client_secret
    are_set = [bool(issuer), bool(client_id), bool(client_secret)]
    if not any(are_set):
        return None
    if not all(are_set):
        raise BadSetting("OIDC_ISSUER, OIDC_CLIENT_ID and OIDC_CLIENT_SECRET must be set together")
    address = urlsplit(issuer)
    loopback = address.hostname in LOOPBACK_HOSTS
    plain = address.scheme == "http" and loopback
    if not address.hostname or not (address.scheme == "https" or plain):
        raise BadSetting(
            "OIDC_ISSUER must be an https:// URL: without TLS, anybody on the network can "
            "forge sign-ins"
        )
    if issuer.endswith(_DISCOVERY):
        raise BadSetting(f"OIDC_ISSUER must not end with {_DISCOVERY}")
    tenant = address.path.partition("/")[2].partition("/")[0].casefold()
    if ".microsoftonline." in address.hostname and tenant in _SHARED_TENANTS:
        raise BadSetting(
            f"OIDC_ISSUER must name your tenant of Entra ID, not {tenant}: tokens have the tenant of the "
            "user in their issuer, so nobody could sign in"
        )
    if len(issuer) > _LONGEST_ISSUER:
        raise BadSetting(f"OIDC_ISSUER must have at most {_LONGEST_ISSUER} characters")
    if any("@" in domain for domain in env.oidc_new_domains):
        raise BadSetting("OIDC_NEW_DOMAINS must be domains, such as acme.example, without @")
    return SingleSignOn(
        issuer=issuer,
        client_id=client_id,
        client_secret=client_secret,
        name=env.oidc_name,
        domains=tuple(domain.lower() for domain in env.oidc_new_domains),
        workspace=env.oidc_new_workspace,
        role=env.oidc_new_role,
    )


def apps(sso: SingleSignOn | None, codes: str) -> list[str]:
    """The entries of INSTALLED_APPS for them; none if both are off."""
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
