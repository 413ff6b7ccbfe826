"""Sign-in with an OpenID Connect provider. Imported only if one is configured.

allauth implements the protocol: discovery, state, PKCE, the exchange of the code. This module adds
what allauth omits (nonce, signature and algorithm of the id_token in every flow) and decides who
may sign in. None of allauth's own pages is mounted.
"""

from __future__ import annotations

import hmac
import re
import time
from typing import Any, cast

import jwt
import requests
import structlog
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialLogin
from allauth.socialaccount.providers.base.constants import AuthError, AuthProcess
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path, reverse
from django.utils.crypto import salted_hmac
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_safe

from project.login import SingleSignOn
from state_admin.services.errors import Problem
from state_admin.services.single_sign_on import Identity, admit, link, unlink

from .account import next_url
from .actors import POST, member, page
from .authentication import begin_session, check_own_password
from .htmx import AnyRequest, Request, render, toast

log = structlog.get_logger(__name__)

_PROVIDER = "openid_connect"
# Asymmetric signatures only: neither `none` nor HMAC with the client secret.
_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"]
_LEEWAY = 30
_LONGEST_SUBJECT = 191  # the length of allauth's column
# Session key: when the password was confirmed. Linking must follow within this time.
_MAY_LINK = "may_link"
_MAY_LINK_SECONDS = 300
# Lifetime of a session whose user does not return from the provider.
_UNFINISHED_SECONDS = 15 * 60


class Provider(OpenIDConnectProvider):
    def get_pkce_params(self) -> dict[str, str]:
        """PKCE parameters, with a nonce derived from the code verifier, which only this browser's
        session has (OpenID Connect Core 15.5.2)."""
        params: dict[str, str] = super().get_pkce_params()
        return {**params, "nonce": _nonce(params["code_verifier"])}

    def get_oauth2_adapter(self, request: HttpRequest) -> Adapter:
        return Adapter(request, self.app.provider_id)


class Adapter(OpenIDConnectOAuth2Adapter):
    @property
    def openid_config(self) -> dict[str, Any]:
        """The provider's discovery document. OAuth2Error unless it names the configured issuer
        and the endpoints."""
        document: dict[str, Any] = super().openid_config
        issuer = str(document.get("issuer", "")).rstrip("/")
        if issuer != _sso().issuer:
            raise OAuth2Error(
                f"OIDC_ISSUER is {_sso().issuer}, but its discovery document names {issuer!r}"
            )
        for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
            if not isinstance(document.get(name), str):
                raise OAuth2Error(f"the discovery document of the provider lacks {name}")
        return document

    def get_callback_url(self, request: HttpRequest, app: SocialApp) -> str:
        return str(settings.SITE_URL + reverse("web:oidc-callback"))

    def get_access_token_data(
        self, request: HttpRequest, app: SocialApp, client: Any, pkce_code_verifier: str = ""
    ) -> dict[str, Any]:
        self.nonce = _nonce(pkce_code_verifier)
        data: dict[str, Any] = super().get_access_token_data(
            request, app, client, pkce_code_verifier=pkce_code_verifier
        )
        return data

    def complete_login(
        self, request: HttpRequest, app: SocialApp, token: Any, **kwargs: Any
    ) -> SocialLogin:
        claims = self._claims(kwargs["response"].get("id_token"))
        userinfo = claims
        if "email" not in claims and "userinfo_endpoint" in self.openid_config:
            userinfo = self._fetch_user_info(token.token)
            if userinfo.get("sub") != claims["sub"]:
                raise OAuth2Error("userinfo is about another subject")
        account = SocialAccount(provider=_sso().issuer, uid=claims["sub"])
        login = SocialLogin(account=account, provider=self.get_provider())
        login.identity = Identity(_sso().issuer, claims["sub"], _verified_email(userinfo))
        return login

    def _claims(self, id_token: object) -> dict[str, Any]:
        """The claims of the id_token. OAuth2Error if it is invalid or belongs to another
        sign-in."""
        if not isinstance(id_token, str):
            raise OAuth2Error("no id_token")
        try:
            claims: dict[str, Any] = jwt.decode(
                id_token,
                key=self._key(jwt.get_unverified_header(id_token).get("kid")),
                algorithms=_ALGORITHMS,
                audience=_sso().client_id,
                issuer=self.openid_config["issuer"],
                leeway=_LEEWAY,
                options={"require": ["exp", "iat", "iss", "aud", "sub", "nonce"]},
            )
        except jwt.PyJWTError as refused:
            raise OAuth2Error(f"id_token: {refused}") from refused
        if not hmac.compare_digest(str(claims["nonce"]).encode(), self.nonce.encode()):
            raise OAuth2Error("id_token: another nonce")
        if claims.get("azp", _sso().client_id) != _sso().client_id:
            raise OAuth2Error("id_token: issued for another client")
        if not 0 < len(claims["sub"]) <= _LONGEST_SUBJECT or not claims["sub"].isprintable():
            raise OAuth2Error("id_token: no usable sub")
        return claims

    def _key(self, key_id: object) -> jwt.PyJWK:
        with SocialAdapter().get_requests_session() as session:
            answer = session.get(self.openid_config["jwks_uri"])
            answer.raise_for_status()
            keys = jwt.PyJWKSet.from_dict(answer.json()).keys
        matching = [
            key for key in keys if key.key_id == key_id or (key_id is None and len(keys) == 1)
        ]
        if not matching:
            raise OAuth2Error("id_token: signed with a key that the provider does not publish")
        return matching[0]


class SocialAdapter(DefaultSocialAccountAdapter):
    """The adapter that allauth calls (SOCIALACCOUNT_ADAPTER)."""

    def get_provider(
        self, request: HttpRequest, provider: str, client_id: str | None = None
    ) -> Provider:
        sso = _sso()
        app = SocialApp(
            provider=_PROVIDER,
            provider_id="oidc",
            name=sso.name,
            client_id=sso.client_id,
            secret=sso.client_secret,
            settings={"server_url": sso.issuer, "oauth_pkce_enabled": True},
        )
        return Provider(request, app=app)

    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        """Called by allauth after it has identified the user; the rest of the sign-in happens
        here."""
        state = sociallogin.state
        try:
            if state["process"] == AuthProcess.CONNECT:
                answer = _link(cast(AnyRequest, request), sociallogin.identity)
            else:
                user = admit(sociallogin.identity, request_id=request.META["REQUEST_ID"])
                request.session.flush()
                after = state.get("next") or "/"
                answer = begin_session(
                    request, user, method=_sso().name, after=after, confirmed=True
                )
        except Problem as problem:
            answer = _refuse(request, problem.detail, problem.hint, problem.status)
        raise ImmediateHttpResponse(answer)

    def on_authentication_error(
        self,
        request: HttpRequest,
        provider: Provider,
        error: str | None = None,
        exception: Exception | None = None,
        extra_context: dict[str, Any] | None = None,
    ) -> None:
        if error == AuthError.CANCELLED:
            answer = _refuse(
                request,
                "sign-in cancelled",
                "The identity provider reported that the sign-in was cancelled.",
                403,
            )
        elif exception is None and "state" not in (extra_context or {}):
            hint = "It took longer than ten minutes, or started in another browser. Try again."
            answer = _refuse(request, "this sign-in has expired", hint, 400)
        else:
            answer = _failed(
                request, exception or f"the provider returned {request.GET.get('error')!r:.80}"
            )
        raise ImmediateHttpResponse(answer)


@never_cache
@require_safe
def begin(request: HttpRequest) -> HttpResponse:
    """Redirect to the provider. By GET: the `form-action` of the CSP would block a redirect of a
    form to another origin, and only the session that began the sign-in accepts its result."""
    linking = "link" in request.GET
    if linking and not _may_link(request):
        return redirect("web:sign-in")
    if not request.user.is_authenticated:
        request.session.set_expiry(_UNFINISHED_SECONDS)
    process = AuthProcess.CONNECT if linking else AuthProcess.LOGIN
    provider = SocialAdapter().get_provider(request, _PROVIDER)
    try:
        answer: HttpResponse = provider.redirect(request, process, next_url(request))
    except (OAuth2Error, requests.RequestException) as problem:
        return _failed(request, problem)
    return answer


@never_cache
@require_safe
def callback(request: HttpRequest) -> HttpResponse:
    """The redirect back from the provider, with a code or an error."""
    view = OAuth2CallbackView.adapter_view(Adapter(request, "oidc"))
    answer: HttpResponse = view(request)
    return answer


@sensitive_post_parameters("password")
@page(methods=POST)
def start_link(request: Request) -> HttpResponse:
    """Check the password, then show a link to the provider; begin() explains why it is not a
    redirect."""
    check_own_password(request)
    request.session[_MAY_LINK] = time.time()
    return render(request, "account/oidc_link.html", {"sso": _sso()})


@sensitive_post_parameters("password")
@page(methods=POST)
def end_link(request: Request) -> HttpResponse:
    check_own_password(request)
    unlink(actor=request.actor, issuer=_sso().issuer)
    toast(request, f"{_sso().name} unlinked")
    return redirect("web:sign-in")


def _link(request: AnyRequest, identity: Identity) -> HttpResponse:
    if not _may_link(request):
        return redirect("web:sign-in")
    del request.session[_MAY_LINK]
    link(actor=member(request), identity=identity)
    toast(request, f"{_sso().name} linked")
    return redirect("web:sign-in")


def _may_link(request: HttpRequest) -> bool:
    confirmed_at = request.session.get(_MAY_LINK, 0)
    return request.user.is_authenticated and time.time() - confirmed_at < _MAY_LINK_SECONDS


def _nonce(code_verifier: str) -> str:
    return salted_hmac("commonhold.oidc.nonce", code_verifier, algorithm="sha256").hexdigest()


def _verified_email(userinfo: dict[str, Any]) -> str:
    """The verified email address, "" without one. ASCII only: other addresses can look alike, or be
    equal after case folding, and belong to someone else."""
    email = userinfo.get("email")
    if userinfo.get("email_verified") is not True or not isinstance(email, str):
        return ""
    return email.strip().lower() if email.isascii() and email.isprintable() else ""


def _failed(request: HttpRequest, why: object) -> HttpResponse:
    # allauth quotes the whole response of the token endpoint; only its error code may be logged.
    text = str(why)
    code = re.search(r'"error"\s*:\s*"(\w+)"', text)
    if text.startswith("Error retrieving access token"):
        text = f"no access token: {code[1] if code else 'not in the answer'}"
    log.warning("login.oidc_failed", why=text[:300])
    hint = "The server log has the cause. Try again, or sign in another way."
    return _refuse(request, f"sign-in with {_sso().name} failed", hint, 502)


def _refuse(request: HttpRequest, message: str, hint: str, status: int) -> HttpResponse:
    context = {"message": message[:1].upper() + message[1:], "hint": hint, "sso": _sso()}
    return render(request, "account/oidc_failed.html", context, status=status)


def _sso() -> SingleSignOn:
    return cast(SingleSignOn, settings.OIDC)


urlpatterns = [
    path("login/oidc", begin, name="oidc-login"),
    path("login/oidc/callback", callback, name="oidc-callback"),
    path("sign-in/oidc", start_link, name="oidc-link"),
    path("sign-in/oidc/unlink", end_link, name="oidc-unlink"),
]
