"""Shared by all ways to sign in: the start of a session, the password check, the client's IP
address."""

from __future__ import annotations

import ipaddress

from django.conf import settings
from django.contrib import auth
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone

from state_admin.models import User
from state_admin.services.errors import Invalid
from state_admin.services.logins import check_password, start_session

from . import sessions
from .actors import CONFIRMED
from .htmx import Request

# The sign-in methods that are recorded in the session; single sign-on records its provider.
PASSWORD, LINK = "password", "login link"
# Session key: the user signed in with a link and has not set a password, so that setting one
# requires no old password.
CAME_BY_LINK = "came_by_link"

_BACKEND = "django.contrib.auth.backends.ModelBackend"


def begin_session(
    request: HttpRequest,
    user: User,
    *,
    method: str,
    after: str,
    with_code: bool = False,
    confirmed: bool = False,
) -> HttpResponse:
    """Sign `user` in and redirect to `after`. `with_code`: the user entered a code. `confirmed`: a
    provider vouches for the user, who therefore needs no code."""
    recorded = f"{method} and code" if with_code else method

    def begin() -> None:
        auth.login(request, user, backend=_BACKEND)
        request.session.set_expiry(None)
        request.session[sessions.SINCE] = timezone.now().isoformat()
        request.session[sessions.AGENT] = request.headers.get("User-Agent", "")[:200]
        request.session[sessions.ADDRESS] = find_address(request)
        request.session[sessions.METHOD] = recorded
        request.session[CONFIRMED] = confirmed or with_code
        if method == LINK:
            request.session[CAME_BY_LINK] = True
        request.session.save()

    request_id = request.META["REQUEST_ID"]
    start_session(user=user, method=recorded, begin=begin, request_id=request_id)
    return redirect(after)


def check_own_password(request: Request, field: str = "password") -> None:
    """Raise Invalid unless the form contains the user's password. A user without a password
    passes."""
    if not request.user.has_usable_password():
        return
    user = check_password(
        username=request.user.get_username(),
        password=request.POST.get(field, ""),
        address=find_address(request),
    )
    if user is None:
        raise Invalid("current password is incorrect")
    request.user.password = user.password  # the one that was checked, perhaps with a new hash


def find_address(request: HttpRequest) -> str:
    """The client's IP address; behind a trusted proxy, the one that the proxy reports."""
    candidates = [str(request.META.get("REMOTE_ADDR", ""))]
    if getattr(settings, "SECURE_PROXY_SSL_HEADER", None):
        candidates.insert(0, request.headers.get("X-Forwarded-For", "").rpartition(",")[2].strip())
    for text in candidates:
        try:
            return str(ipaddress.ip_address(text))
        except ValueError:
            continue
    return str(ipaddress.IPv4Address(0))  # a local socket has no address
