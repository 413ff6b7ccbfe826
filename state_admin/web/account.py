"""Signing in and out with a password or a one-time link, choosing the workspace, and the
preferences of the browser."""

from __future__ import annotations

from functools import partial
from typing import Any, cast
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib import auth
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, resolve_url
from django.urls import path, reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from project.command_lines import command_line
from project.env import LOOPBACK_HOSTS
from state_admin.models import Membership, User
from state_admin.services.bootstrap import LOGIN_LINK_COMMAND
from state_admin.services.errors import Conflict, Invalid, NotFound, RateLimited, Unavailable
from state_admin.services.logins import check_password, set_password
from state_admin.services.users import use_login_link

from .actors import FORM, WORKSPACE, page
from .authentication import (
    CAME_BY_LINK,
    LINK,
    PASSWORD,
    begin_session,
    check_own_password,
    find_address,
)
from .errors import heading_of, sentences_of
from .htmx import AnyRequest, Request, render, toast
from .shell import PREFERENCES

_YEAR = 365 * 24 * 3600


@never_cache
@sensitive_post_parameters("password")
@require_http_methods(["GET", "POST"])
def login(request: HttpRequest) -> HttpResponse:
    after = next_url(request)
    if request.method == "GET":
        if request.user.is_authenticated:
            return redirect(after)
        return render(request, "account/login.html", _login_context(after))
    username = request.POST.get("username", "").replace("\0", "")
    error, status, retry_after = "", 422, None
    try:
        user = check_password(
            username=username,
            password=request.POST.get("password", ""),
            address=find_address(request),
        )
    except (RateLimited, Unavailable) as problem:
        error, status = sentences_of(problem), problem.status
        retry_after = problem.data.get("retry_after")
    else:
        if user is not None:
            return _enter(request, user, method=PASSWORD, after=after)
        error = "Incorrect name or password."
    context = {**_login_context(after), "username": username, "error": error}
    response = render(request, "account/login.html", context, status=status)
    if retry_after is not None:
        response["Retry-After"] = str(retry_after)
    return response


def _login_context(after: str) -> dict[str, Any]:
    """What the login page shows to anybody. It must not depend on which users exist."""
    # A client with a loopback address can run commands on the server.
    local = settings.DEBUG or urlsplit(settings.SITE_URL).hostname in LOOPBACK_HOSTS
    return {
        "next": after,
        "sso": settings.OIDC,
        "command": command_line(LOGIN_LINK_COMMAND) if local else "",
    }


@never_cache
@require_http_methods(["GET", "POST"])
def login_once(request: HttpRequest, secret: str) -> HttpResponse:
    """Sign in with a one-time link. GET shows a button and only its POST uses the link up, because
    mail programs fetch links in advance."""
    if request.method == "GET":
        return render(request, "account/login_once.html", {})
    user = use_login_link(secret)
    if user is None:
        return render(request, "account/login_once.html", {"used": True}, status=410)
    return _enter(request, user, method=LINK, after=reverse("web:password"))


def _enter(request: HttpRequest, user: User, *, method: str, after: str) -> HttpResponse:
    """Sign `user` in and redirect to `after`. A user with an authenticator app enters a code
    first."""
    if settings.LOGIN_TOTP != "off":
        # Needs the packages of requirements-login.txt.
        from . import second_factor

        if question := second_factor.ask_for_code(request, user, method, after):
            return question
    return begin_session(request, user, method=method, after=after)


@require_POST
def logout(request: HttpRequest) -> HttpResponse:
    auth.logout(request)
    return redirect("web:login")


@sensitive_post_parameters("old_password", "password", "again")
@page(methods=FORM)
def password(request: Request) -> HttpResponse:
    by_link = bool(request.session.get(CAME_BY_LINK))
    needs_old = request.user.has_usable_password() and not by_link
    context: dict[str, object] = {"by_link": by_link, "needs_old": needs_old}
    if request.method == "GET":
        return render(request, "account/password.html", context)
    new_password = request.POST.get("password", "")
    try:
        if new_password != request.POST.get("again", ""):
            raise Invalid("the new passwords do not match")
        if needs_old:
            check_own_password(request, "old_password")
        set_password(
            user=request.user,
            password=new_password,
            renew=partial(_renew_session, request),
            request_id=request.META["REQUEST_ID"],
        )
    except (Conflict, Invalid, RateLimited, Unavailable) as problem:
        context |= {
            "message": heading_of(problem),
            "hint": problem.hint,
            "errors": problem.data.get("errors"),
        }
        return render(request, "account/password.html", context, status=problem.status)
    request.session.pop(CAME_BY_LINK, None)
    toast(request, "Password set")
    return redirect("web:overview")


def _renew_session(request: Request) -> None:
    """Give the session a new key. Raises Conflict if it was ended after the request began."""
    if not request.session.exists(request.session.session_key or ""):
        raise Conflict("this session was ended in the meantime", hint="Sign in again.")
    auth.update_session_auth_hash(request, request.user)


@page(methods=FORM, any_workspace=True)
def workspaces(request: Request) -> HttpResponse:
    """Choose the workspace that the pages show. `next` is the page that is then opened."""
    mine = Membership.objects.filter(user=request.user).select_related("workspace").order_by("id")
    if request.method == "POST":
        membership = mine.filter(workspace__slug=request.POST.get("workspace", "")).first()
        if membership is None:
            raise NotFound("workspace not found")
        request.session[WORKSPACE] = membership.workspace.slug
        return redirect(next_url(request))
    return render(
        request,
        "account/workspaces.html",
        {"memberships": mine, "now": request.actor.workspace_id, "next": next_url(request)},
    )


@require_POST
def preferences(request: HttpRequest) -> HttpResponse:
    """Store preferences in cookies: they belong to the browser, not to the user."""
    is_htmx = bool(cast(AnyRequest, request).htmx)
    response = HttpResponse(status=204) if is_htmx else redirect(next_url(request))
    for name, kind in PREFERENCES.items():
        choice = request.POST.get(name, "")
        if choice in kind.choices:
            response.set_cookie(
                kind.cookie,
                choice,
                max_age=_YEAR,
                samesite="Lax",
                secure=settings.SESSION_COOKIE_SECURE,
                httponly=True,
            )
    return response


def next_url(request: HttpRequest) -> str:
    """The `next` parameter if it is a page of this server, else the default page."""
    url = request.POST.get("next") or request.GET.get("next") or ""
    ours = url_has_allowed_host_and_scheme(
        url, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    if url.startswith("/") and ours and not url.startswith(reverse("web:login")):
        return url
    return resolve_url(settings.LOGIN_REDIRECT_URL)


urlpatterns = [
    path("login", login, name="login"),
    path("login/once/<str:secret>", login_once, name="login-once"),
    path("logout", logout, name="logout"),
    path("password", password, name="password"),
    path("workspaces", workspaces, name="workspaces"),
    path("preferences", preferences, name="preferences"),
]
