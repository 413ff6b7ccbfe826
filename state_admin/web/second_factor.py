"""The authenticator app: the code at sign-in, enrolment, turning it off, recovery codes. Imported
only if LOGIN_TOTP is not off."""

from __future__ import annotations

import hmac
import time
from typing import Any

from django.conf import settings
from django.contrib import auth
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path, reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_http_methods

from state_admin.domain.access import Role
from state_admin.models import User
from state_admin.models.sessions import PENDING_USER
from state_admin.services import second_factors
from state_admin.services.errors import Invalid, Problem
from state_admin.services.members import find_member

from . import errors
from .actors import CONFIRMED, FORM, page
from .authentication import begin_session, check_own_password
from .confirm import Confirm, ask, reason_of
from .htmx import Request, list_url_of_page, render, see_other, toast

# Session key: how the user in PENDING_USER has passed the first factor.
_PENDING = "code_pending"
_PENDING_SECONDS = 10 * 60
# Session key: the secret during enrolment.
_ENROLLING = "totp_secret"


def ask_for_code(request: HttpRequest, user: User, method: str, after: str) -> HttpResponse | None:
    """Remember the user in a new session and ask for the code. None if the user has no
    authenticator."""
    if not second_factors.is_enrolled(user):
        return None
    request.session.flush()
    request.session.set_expiry(_PENDING_SECONDS)
    request.session[PENDING_USER] = user.pk
    request.session[_PENDING] = {
        # A change of the password invalidates this, as it invalidates sessions.
        "hash": user.get_session_auth_hash(),
        "method": method,
        "after": after,
        "at": time.time(),
    }
    return redirect("web:login-code")


@never_cache
@sensitive_post_parameters("code")
@require_http_methods(["GET", "POST"])
def login_code(request: HttpRequest) -> HttpResponse:
    pending: dict[str, Any] | None = request.session.get(_PENDING)
    user = _pending_user(request, pending)
    if user is None or pending is None:
        request.session.pop(_PENDING, None)
        return redirect("web:login")
    if request.method == "GET":
        return render(request, "account/code.html", {})
    try:
        right = second_factors.check_code(user=user, code=request.POST.get("code", "")[:32])
    except Problem as problem:
        error = errors.sentences_of(problem)
        return render(request, "account/code.html", {"error": error}, status=problem.status)
    if not right:
        error = "This code is incorrect or already used. Wait for the next code."
        return render(request, "account/code.html", {"error": error}, status=422)
    request.session.flush()
    return begin_session(
        request, user, method=pending["method"], after=pending["after"], with_code=True
    )


def _pending_user(request: HttpRequest, pending: dict[str, Any] | None) -> User | None:
    if not pending or time.time() - pending["at"] > _PENDING_SECONDS:
        return None
    user = User.objects.filter(pk=request.session.get(PENDING_USER, 0), is_active=True).first()
    if user is None or not hmac.compare_digest(pending["hash"], user.get_session_auth_hash()):
        return None
    return user


@sensitive_post_parameters("code", "password")
@sensitive_variables("secret", "codes")
@page(methods=FORM)
def enrol(request: Request) -> HttpResponse:
    """Show the secret and ask for the first code. The response to a correct code is the only page
    that shows the recovery codes."""
    if second_factors.is_enrolled(request.user):
        if request.session.get(CONFIRMED):
            return redirect("web:sign-in")
        auth.logout(request)  # a session older than the enrolment: sign in again with a code
        return redirect("web:login")
    if request.method == "GET":
        request.session[_ENROLLING] = (
            request.session.get(_ENROLLING) or second_factors.make_secret()
        )
        return _enrolling(request, {})
    secret = request.session.get(_ENROLLING)
    if not secret:
        return redirect("web:totp")
    try:
        check_own_password(request)
        codes = second_factors.enrol(
            actor=request.actor, secret=secret, code=request.POST.get("code", "")[:32]
        )
    except Problem as problem:
        context = {"message": errors.heading_of(problem), "hint": problem.hint}
        return _enrolling(request, context, status=problem.status)
    del request.session[_ENROLLING]
    request.session[CONFIRMED] = True
    return _show_codes(request, codes)


def _enrolling(request: Request, context: dict[str, Any], status: int = 200) -> HttpResponse:
    context |= {
        "offer": second_factors.offer(request.user, request.session[_ENROLLING]),
        "has_password": request.user.has_usable_password(),
        "must": settings.LOGIN_TOTP == "required",
    }
    return render(request, "account/totp.html", context, status=status)


@sensitive_post_parameters("password", "code")
@sensitive_variables("codes")
@page(methods=FORM)
def new_codes(request: Request) -> HttpResponse:
    if form := _ask_again(request, "codes"):
        return form
    return _show_codes(request, second_factors.renew_codes(actor=request.actor))


@sensitive_post_parameters("password", "code")
@page(methods=FORM)
def remove(request: Request) -> HttpResponse:
    if form := _ask_again(request, "remove"):
        return form
    second_factors.remove(actor=request.actor)
    toast(request, "Authenticator turned off")
    return redirect("web:sign-in")


def _ask_again(request: Request, what: str) -> HttpResponse | None:
    """Return the form that asks for the user's password (or for a code, if the user has no password), or
    None if the request contains a valid one."""
    has_password = request.user.has_usable_password()
    context: dict[str, Any] = {"what": what, "has_password": has_password}
    if request.method == "GET":
        return render(request, "account/totp_again.html", context)
    try:
        check_own_password(request)
        code = request.POST.get("code", "")[:32]
        if not has_password and not second_factors.check_code(user=request.user, code=code):
            raise Invalid("this code is incorrect or already used")
    except Problem as problem:
        context |= {"message": errors.heading_of(problem), "hint": problem.hint}
        return render(request, "account/totp_again.html", context, status=problem.status)
    return None


def _show_codes(request: Request, codes: list[str]) -> HttpResponse:
    context = {"codes": "\n".join(f"{code[:5]} {code[5:]}" for code in codes)}
    return render(request, "account/recovery_codes.html", context, status=201)


@page(methods=FORM, role=Role.ADMIN)
def reset(request: Request, member_id: int) -> HttpResponse:
    """Remove the authenticator of a member who lost it."""
    back = list_url_of_page(request, reverse("web:member-list"))
    if request.method == "POST":
        member = second_factors.reset_member(
            actor=request.actor, member_id=member_id, reason=reason_of(request)
        )
        toast(request, f"Authenticator of {member.user.get_username()} reset")
        return see_other(request, back, part="members")
    name = find_member(request.actor, member_id).user.get_username()
    confirm = Confirm(
        title=f"Reset the authenticator of {name}?",
        verb="Reset authenticator",
        back=back,
        lines=[
            "The user can then sign in with the password only. Verify the identity of the "
            "person who requests this: an attacker who knows the password would request the same.",
        ],
    )
    return ask(request, confirm, part="members")


urlpatterns = [
    path("login/code", login_code, name="login-code"),
    path("sign-in/totp", enrol, name="totp"),
    path("sign-in/totp/codes", new_codes, name="totp-codes"),
    path("sign-in/totp/remove", remove, name="totp-remove"),
    path("members/<int:member_id>/totp", reset, name="member-totp"),
]
