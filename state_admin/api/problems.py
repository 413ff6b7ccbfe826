"""Turns every error into an RFC 9457 answer (semantics §10). The only place that knows status codes
of errors; views never build one by hand."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import structlog
from django.core.exceptions import RequestDataTooBig
from django.core.exceptions import SuspiciousOperation as DjangoSuspicious
from django.db import DatabaseError, InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from rest_framework import exceptions as drf

from state_admin.domain import values
from state_admin.domain.values import MalformedJSON, RefusedJSON
from state_admin.services import errors
from state_admin.services.errors import Problem

from .bodies import timestamp

log = structlog.get_logger()

STATUS: dict[type[Problem], int] = {
    errors.BadRequest: 400,
    errors.Unauthenticated: 401,
    errors.Forbidden: 403,
    errors.QuotaExceeded: 403,
    errors.NotFound: 404,
    errors.NotRegistered: 404,
    errors.Conflict: 409,
    errors.RevisionConflict: 409,
    errors.Superseded: 409,
    errors.InFlight: 409,
    errors.Unreadable: 409,
    errors.Gone: 410,
    errors.VersionConflict: 412,
    errors.TooLarge: 413,
    errors.RateLimited: 429,
    errors.Invalid: 422,
    errors.Unavailable: 503,
}

# What the database says when a right is missing, or when it takes no writes: it is a standby, or was
# told so. It says nothing about the request. A full disk, too many connections and the like are
# OperationalErrors.
_CLOSED = {"42501", "25006"}

_DRF_SLUGS = {
    401: "unauthenticated",
    403: "forbidden",
    404: "not-found",
    405: "method-not-allowed",
    406: "not-acceptable",
    415: "unsupported-media-type",
    429: "rate-limited",
}


def status_of(problem: Problem) -> int:
    return STATUS[type(problem)]


def body_of(problem: Problem, request_id: str = "") -> dict[str, Any]:
    """The members of the problem document; `data` cannot overwrite the standard ones."""
    body: dict[str, Any] = {
        **{name: _plain(member) for name, member in problem.data.items()},
        "type": f"/problems/{problem.slug}",
        "title": problem.title,
        "status": status_of(problem),
    }
    if problem.detail:
        body["detail"] = problem.detail
    if request_id:
        body["instance"] = request_id
    return body


def answer_problem(problem: Problem, request: HttpRequest | None = None) -> HttpResponse:
    """The answer for a typed error."""
    body = body_of(problem, _request_id(request))
    # 409 for a revision that the body names; a header that fails is a failed precondition.
    failed = isinstance(problem, errors.RevisionConflict) and _is_conditional(request)
    if failed:
        body["status"] = 412
    response = _answer(body, body["status"])
    if failed or isinstance(problem, errors.VersionConflict):
        response["ETag"] = f'"{problem.data["actual"]}"'
    if isinstance(problem, errors.Unauthenticated):
        response["WWW-Authenticate"] = 'Bearer realm="commonhold"'
    if isinstance(problem, errors.InFlight | errors.Unavailable):
        response["Retry-After"] = "1"
    if isinstance(problem, errors.RateLimited):
        response["Retry-After"] = str(problem.data["retry_after"])
    return response


def handle(error: Exception, context: dict[str, Any]) -> HttpResponse:
    """DRF's exception handler: typed errors, DRF's own, the database's, and what nobody expected."""
    return answer_error(error, context.get("request"))


def answer_error(error: Exception, request: Any = None) -> HttpResponse:
    """The answer for any exception. Never raises, never shows a traceback."""
    if isinstance(error, Problem):
        return answer_problem(error, request)
    if isinstance(error, MalformedJSON):
        return answer_problem(errors.BadRequest("the body is not JSON", detail=str(error)), request)
    if isinstance(error, RefusedJSON):
        refused = errors.Invalid("the body cannot be stored", error.faults)
        return answer_problem(refused, request)
    if isinstance(error, RequestDataTooBig):
        return answer_problem(errors.TooLarge("the body is too large"), request)
    if isinstance(error, drf.APIException):
        return _answer_drf(error, request)
    if isinstance(error, Http404):
        return answer_problem(errors.NotFound("no such path"), request)
    if isinstance(error, DjangoSuspicious):
        return answer_problem(errors.BadRequest("the request is malformed"), request)
    if isinstance(error, OperationalError | InterfaceError):
        log.warning("database.unavailable", error=str(error).strip())
        busy = errors.Unavailable(
            "the database did not answer in time",
            detail="Nothing was changed unless this was a lost acknowledgement: repeat the request"
            " with the same Idempotency-Key.",
        )
        return answer_problem(busy, request)
    if isinstance(error, DatabaseError) and getattr(error.__cause__, "sqlstate", "") in _CLOSED:
        log.error("database.closed", error=str(error).strip())
        closed = errors.Unavailable(
            "the database does not let the server work",
            detail="Nothing was changed. Whoever runs the server finds the reason in its log.",
        )
        return answer_problem(closed, request)
    kind = "database.error" if isinstance(error, DatabaseError) else "request.crashed"
    log.error(kind, exc_info=error)
    body = {
        "type": "/problems/internal",
        "title": "something went wrong on our side",
        "status": 500,
        "detail": "The log has it under the request id.",
        "instance": _request_id(request),
    }
    return _answer(body, 500)


def _answer_drf(error: drf.APIException, request: Any) -> HttpResponse:
    status = error.status_code
    body = {
        "type": f"/problems/{_DRF_SLUGS.get(status, 'bad-request')}",
        "title": str(error.detail) if isinstance(error.detail, str) else error.default_detail,
        "status": status,
        "instance": _request_id(request),
    }
    response = _answer(body, status)
    if isinstance(error, drf.MethodNotAllowed) and request is not None:
        allowed = getattr(request.parser_context.get("view"), "allowed_methods", None)
        if allowed:
            response["Allow"] = ", ".join(allowed)
    wait = getattr(error, "wait", None)
    if wait is not None:
        response["Retry-After"] = str(int(wait) + 1)
    return response


def _answer(body: dict[str, Any], status: int) -> HttpResponse:
    # Spelled by us and not by orjson: a problem may hold stored values (big integers, 1.10) and
    # may quote a name from the request that no UTF-8 can hold.
    content = values.dump(body).encode(errors="replace")
    return HttpResponse(content, status=status, content_type="application/problem+json")


def _plain(member: Any) -> Any:
    return timestamp(member) if isinstance(member, datetime) else member


def _is_conditional(request: Any) -> bool:
    return request is not None and "HTTP_IF_MATCH" in request.META


def _request_id(request: Any) -> str:
    return getattr(request, "request_id", "") or getattr(
        getattr(request, "_request", None), "request_id", ""
    )
