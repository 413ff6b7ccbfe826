"""Problems as a page or as a fragment: the one place where an error becomes HTML."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import BadRequest as MalformedRequest
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string

from state_admin.services.errors import (
    BadRequest,
    Conflict,
    Forbidden,
    Gone,
    InFlight,
    Invalid,
    NotFound,
    Problem,
    QuotaExceeded,
    TooLarge,
    Unauthenticated,
    Unavailable,
    VersionConflict,
)

_STATUS: tuple[tuple[type[Problem], int], ...] = (
    (BadRequest, 400),
    (Unauthenticated, 401),
    (Forbidden, 403),
    (NotFound, 404),
    (Conflict, 409),
    (InFlight, 409),
    (Gone, 410),
    (VersionConflict, 412),
    (TooLarge, 413),
    (Invalid, 422),
    (QuotaExceeded, 429),
    (Unavailable, 503),
)
_PAGES = {400, 403, 404, 500}


def status_of(problem: Problem) -> int:
    return next((status for kind, status in _STATUS if isinstance(problem, kind)), 400)


def title_of(problem: Problem) -> str:
    """As a heading."""
    return problem.title[:1].upper() + problem.title[1:]


def answer(request: HttpRequest, problem: Problem) -> HttpResponse:
    """A service's problem with its title, detail, and errors by pointer."""
    shown = {
        "title": title_of(problem),
        "detail": problem.detail,
        "errors": problem.data.get("errors", []),
    }
    return _answer(request, status_of(problem), shown)


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    detail = str(exception) if isinstance(exception, MalformedRequest) else ""
    return _answer(request, 400, {"title": "This request cannot be understood", "detail": detail})


def forbidden(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return _answer(request, 403, {"title": "You may not do this", "detail": ""})


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    detail = "The page was open for too long or cookies are off. Load it again and repeat."
    return _answer(request, 403, {"title": "This form has expired", "detail": detail})


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return _answer(request, 404, {"title": "There is nothing here", "detail": ""})


def server_error(request: HttpRequest) -> HttpResponse:
    return _answer(request, 500, {"title": "Something went wrong on our side", "detail": ""})


def _answer(request: HttpRequest, status: int, shown: dict[str, Any]) -> HttpResponse:
    """htmx swaps any status into its target, so a fragment goes to the page's problem region.

    Rendered here, not lazily: a handler that fails while rendering would answer nothing at all.
    """
    shown |= {"status": status, "request_id": getattr(request, "request_id", "")}
    if getattr(request, "htmx", False):
        fragment = HttpResponse(render_to_string("components/_problem.html", shown), status=status)
        fragment["HX-Retarget"] = "#problem"
        fragment["HX-Reswap"] = "innerHTML"
        return fragment
    template = f"errors/{status}.html" if status in _PAGES else "errors/problem.html"
    # Without the database there is no user and no navigation: those pages stand alone.
    alone = None if status >= 500 else request
    return HttpResponse(render_to_string(template, shown, request=alone), status=status)
