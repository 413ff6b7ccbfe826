"""Authenticates a request by its bearer token, or by the session of a live page, and returns the
Actor."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth import get_user
from django.http import HttpRequest
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from project.log_context import bind_actor
from state_admin.domain import scopes
from state_admin.domain.access import Actor
from state_admin.models import User, sessions
from state_admin.services import actors
from state_admin.services.errors import BadRequest, Forbidden, Unauthenticated
from state_admin.services.finding import checked
from state_admin.services.throttles import Allowance

from .long_polling import is_repeated


def read_bearer(authorization: str) -> str:
    """The token of an Authorization header, "" if it has none."""
    scheme, _, token = authorization.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def read_run_id(environ: Mapping[str, Any]) -> str:
    """The Run-Id header: the run on whose behalf the caller acts."""
    run_id: str = environ.get("HTTP_RUN_ID", "")
    # WSGI decodes headers as latin-1; clients send UTF-8, but the TypeScript client 0.1.0 sends latin-1.
    with suppress(UnicodeError):
        run_id = run_id.encode("latin-1").decode()
    return checked("Run-Id", scopes.check_id, run_id, BadRequest) if run_id else ""


class TokenAuthentication(BaseAuthentication):
    """`Authorization: Bearer ch_…`. Every invalid token gets the same error.
    `request.auth` is the remaining rate limit of the token."""

    def authenticate(self, request: Request) -> tuple[Actor, Allowance | None]:
        secret = read_bearer(request.META.get("HTTP_AUTHORIZATION", ""))
        if not secret:
            raise actors.token_required()
        request_id = request.META.get("REQUEST_ID", "")
        run_id = read_run_id(request.META)
        admitted: tuple[Actor, Allowance | None] | None
        if is_repeated(request):
            actor = actors.actor_of_token(secret, request_id=request_id, run_id=run_id)
            admitted = (actor, None) if actor else None
        else:
            admitted = actors.admit_token(secret, request_id=request_id, run_id=run_id)
        if admitted is None:
            raise actors.invalid_token()
        bind_actor(admitted[0])
        return admitted


class PageAuthentication(BaseAuthentication):
    """The admin's session cookie, for live pages: only where a view requests it, only for reads,
    only from a page of this site."""

    def authenticate(self, request: Request) -> tuple[Actor, None] | None:
        key = session_key(request)
        if not key or "HTTP_AUTHORIZATION" in request.META:
            return None
        if not _comes_from_own_page(request):
            raise Forbidden(
                "a session cookie is accepted only from pages of this site",
                hint="Send Authorization: Bearer ch_… instead of a cookie.",
            )
        actor = actor_of_session(key, request_id=request.META.get("REQUEST_ID", ""))
        if actor is None:
            raise Unauthenticated("the session has ended", hint="Log in again.")
        bind_actor(actor)
        return actor, None


def session_key(request: Request) -> str:
    key: str = request.COOKIES.get(settings.SESSION_COOKIE_NAME, "")
    return key


def actor_of_session(key: str, *, request_id: str = "") -> Actor | None:
    """Return the actor of a session in its chosen workspace (stored by web/actors.py), else in the
    user's default one. None without a user, or if the required second factor is missing."""
    http = HttpRequest()
    http.session = SessionStore(key)
    user = get_user(http)
    if not isinstance(user, User):
        return None
    if settings.LOGIN_TOTP == "required" and not http.session.get("confirmed"):
        return None
    slug = http.session.get("workspace")
    actor = actors.actor_of_user(user, slug, request_id=request_id)
    return actor or (actors.actor_of_user(user, request_id=request_id) if slug else None)


class SessionStore(sessions.SessionStore):
    """The class must have this name: Django derives the session's signature from it."""

    def cycle_key(self) -> None:
        """Do nothing: the browser would not receive the new key of its session."""


def _comes_from_own_page(request: Request) -> bool:
    """Whether the browser reports that the request comes from this site. Every browser sends at
    least one of these headers."""
    site = request.META.get("HTTP_SEC_FETCH_SITE")
    if site is not None:
        return bool(site == "same-origin")
    origin: str = request.META.get("HTTP_ORIGIN") or request.META.get("HTTP_REFERER", "")
    return urlsplit(origin).netloc == request.get_host()
