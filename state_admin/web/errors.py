"""Renders problems as pages or fragments: the only place where an error becomes HTML."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from django.core.exceptions import BadRequest as MalformedRequest
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import REASON_BAD_ORIGIN
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.http import urlencode

from state_admin.models import Membership
from state_admin.services.errors import NotRegistered, Problem

# Default hints of error pages, by status.
_ADVICE = {
    400: "Check the address, or go back and try again.",
    403: "Ask an admin of the workspace for the role you need.",
    404: "It may have been deleted, or belong to another workspace.",
    500: "Saved data is not affected. Try again. If the error persists, give the request id below to"
    " the server operator.",
}
_OF_REQUESTS = re.compile(r"/api/v1/|\b(GET|PUT|POST|PATCH|DELETE)\b|Idempotency-Key")
_BAD_ORIGIN = REASON_BAD_ORIGIN.partition("%")[0]


def heading_of(problem: Problem) -> str:
    """The message with a capital letter, and in the words of the admin."""
    message = problem.detail
    if isinstance(problem, NotRegistered):
        message = message.replace("profile key", "namespace", 1)
    return message[:1].upper() + message[1:]


def hint_of(problem: Problem) -> str:
    """The hint, unless it names a request of the API, which is of no use in a browser."""
    return "" if _OF_REQUESTS.search(problem.hint) else problem.hint


def sentences_of(problem: Problem) -> str:
    """The message and the hint, as sentences."""
    return f"{heading_of(problem)}. {hint_of(problem)}".strip()


def answer(request: HttpRequest, problem: Problem) -> HttpResponse:
    """The page or fragment of a problem: its message, its hint, and its errors with their JSON
    pointers."""
    errors = problem.data.get("errors", [])
    return _answer(request, problem.status, heading_of(problem), hint_of(problem), errors)


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    hint = str(exception) if isinstance(exception, MalformedRequest) else ""
    return _answer(request, 400, "Invalid request", hint)


def forbidden(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return _answer(request, 403, "Permission denied")


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    if reason.startswith(_BAD_ORIGIN):
        here = f"{request.scheme}://{request.get_host()}"
        hint = (
            f"The server received the request for {here}. The page was opened at an address that is neither "
            "this nor SITE_URL. An operator must set SITE_URL to the address in the browser, or add that "
            "address to CSRF_TRUSTED_ORIGINS. Behind a proxy, also check TRUST_PROXY_HEADERS."
        )
        return _answer(request, 403, "The origin of this form is not trusted", hint)
    hint = "The page was open for too long, or cookies are blocked. Reload it and try again."
    return _answer(request, 403, "This form has expired", hint)


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return _answer(request, 404, "Page not found")


def method_not_allowed(request: HttpRequest) -> HttpResponse:
    hint = "It only accepts submitted forms. Open the page with the form and submit it there."
    return _answer(request, 405, "This address is not a page", hint)


def server_error(request: HttpRequest) -> HttpResponse:
    return _answer(request, 500, "Internal server error")


def _switch_url(request: HttpRequest) -> str:
    """Where a member of several workspaces chooses the one to which a link without a page may belong,
    "" for others. It does not depend on what exists there."""
    actor = getattr(request, "actor", None)
    if actor is None or request.method != "GET":
        return ""
    mine = Membership.objects.filter(user_id=int(actor.id))
    if not mine.exclude(workspace_id=actor.workspace_id).exists():
        return ""
    return f"{reverse('web:workspaces')}?{urlencode({'next': request.get_full_path()})}"


def _answer(
    request: HttpRequest, status: int, message: str, hint: str = "", errors: Sequence[Any] = ()
) -> HttpResponse:
    """The page of an error, or for htmx its fragment in the page's problem region; htmx swaps any
    status.

    Rendered at once and not lazily, because a failure while the error page renders would have no
    handler.
    """
    context = {"message": message, "hint": hint, "errors": errors, "status": status}
    context["request_id"] = request.META.get("REQUEST_ID", "")
    if getattr(request, "htmx", False):
        fragment = HttpResponse(
            render_to_string("components/_problem.html", context), status=status
        )
        fragment["HX-Retarget"] = "#problem"
        fragment["HX-Reswap"] = "innerHTML"
        return fragment
    context["hint"] = hint or _ADVICE.get(status, "")
    if status == 404:
        context["switch_url"] = _switch_url(request)
    # User and navigation need the database, so the pages of server errors have neither.
    alone = None if status >= 500 else request
    return HttpResponse(
        render_to_string("errors/problem.html", context, request=alone), status=status
    )
