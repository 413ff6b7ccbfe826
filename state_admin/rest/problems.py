"""Returns every error as a problem document (RFC 9457). The types are in services/errors.py; this
module adds the headers and translates the exceptions of Django, DRF and the database."""

from __future__ import annotations

from typing import Any

import psycopg
import structlog
from django.conf import settings
from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.core.exceptions import SuspiciousOperation as DjangoSuspicious
from django.db import DatabaseError, InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from rest_framework import exceptions as drf

from project.failures import describe_error
from project.postgres.replication import UnconfirmedCommit
from state_admin.contract.base import PROBLEM_TYPE
from state_admin.domain import isolation, values
from state_admin.domain.values import MalformedJSON, RefusedJSON
from state_admin.models import freezing_sql
from state_admin.services import errors, move_problems
from state_admin.services.errors import Problem
from state_admin.services.problem_statuses import body_too_large, problem_of_status

log = structlog.get_logger()

# SQLSTATE of a missing privilege and of a write to a standby or a read-only database. Neither
# depends on the request. A full disk and too many connections are OperationalErrors.
_CLOSED = {"42501", "25006"}
_IdleTransaction = psycopg.errors.IdleInTransactionSessionTimeout


def answer_problem(problem: Problem, request: HttpRequest) -> HttpResponse:
    status = problem.status
    # A revision in the body that is not current is 409; one in If-Match is a failed precondition.
    if isinstance(problem, errors.RevisionConflict) and "HTTP_IF_MATCH" in request.META:
        status = 412
    # Not by orjson: a problem may hold stored values (big integers, 1.10) and may quote a name
    # from the request that has no UTF-8 form.
    document = values.dump(problem.document(request.META.get("REQUEST_ID", ""), status=status))
    response = HttpResponse(
        document.encode(errors="replace"), status=status, content_type=PROBLEM_TYPE
    )
    if status == 412:
        response["ETag"] = f'"{problem.data["actual"]}"'
    if isinstance(problem, errors.Unauthenticated):
        response["WWW-Authenticate"] = 'Bearer realm="commonhold"'
    if isinstance(problem, errors.MethodNotAllowed) and "allowed" in problem.data:
        response["Allow"] = ", ".join(problem.data["allowed"])
    if isinstance(problem, errors.UnsupportedMediaType) and "supported" in problem.data:
        accepts = "Accept-Patch" if request.method == "PATCH" else "Accept"
        response[accepts] = ", ".join(problem.data["supported"])
    if isinstance(problem, errors.InFlight | errors.Unavailable):
        response["Retry-After"] = "1"
    if isinstance(problem, errors.RateLimited):
        wait = problem.data["retry_after"]
        response["Retry-After"] = str(wait)
        if "window" in problem.data:
            add_rate_limit(response, problem.data["limit"], 0, wait)
    return response


def add_rate_limit(response: HttpResponse, limit: int, remaining: int, reset: int) -> None:
    for name, text in rate_limit_headers(limit, remaining, reset).items():
        response[name] = text


def rate_limit_headers(limit: int, remaining: int, reset: int) -> dict[str, str]:
    """The header fields of draft-ietf-httpapi-ratelimit-headers-10, for a token's limit per
    minute."""
    return {
        "RateLimit-Policy": f'"token";q={limit};w=60',
        "RateLimit": f'"token";r={remaining};t={reset}',
    }


def handle(error: Exception, context: dict[str, Any]) -> HttpResponse:
    """DRF's exception handler."""
    return answer_error(error, context["request"])


def answer_error(error: Exception, request: Any) -> HttpResponse:
    """Return the response for any exception. Never raises, never contains a traceback."""
    return answer_problem(problem_of(error, request), request)


def problem_of(error: Exception, request: Any) -> Problem:
    """The problem that describes an exception. Logs the exception if the cause is in the server."""
    match error:
        case Problem():
            return error
        case MalformedJSON():
            return errors.BadRequest(f"the body is not JSON: {error}")
        case RefusedJSON():
            return errors.Invalid("the body cannot be stored", error.faults)
        case RequestDataTooBig():
            return body_too_large(settings.MAX_BODY_BYTES)
        case drf.APIException():
            return _problem_of_drf(error, request)
        case Http404():
            return errors.NotFound("path not found")
        case PermissionDenied():
            return errors.Forbidden("this operation is not permitted")
        case DjangoSuspicious():
            return errors.BadRequest("the request is malformed")
        case isolation.Busy():
            return errors.Unavailable(str(error), hint="Nothing was changed. Repeat the request.")
        case OperationalError() if isinstance(error.__cause__, UnconfirmedCommit):
            log.warning("database.commit_unconfirmed")
            return errors.Unavailable(
                "the change is stored, but no standby server has confirmed it in time",
                hint="A failover may lose it. Repeat the request with the same Idempotency-Key.",
            )
        case OperationalError() if freezing_sql.is_refusal(error):
            return move_problems.WorkspaceFrozen()
        case OperationalError() if isinstance(error.__cause__, psycopg.errors.QueryCanceled):
            log.warning("database.unavailable", error=describe_error(error))
            return errors.Unavailable(
                "a database statement took too long and was cancelled",
                hint="Its transaction was rolled back. Repeat the request later, or for fewer rows.",
            )
        case DatabaseError() if isinstance(error.__cause__, _IdleTransaction):
            log.warning("database.unavailable", error=describe_error(error))
            return errors.Unavailable(
                "the transaction paused for too long and was rolled back",
                hint="The server is overloaded, or was paused. Repeat the request.",
            )
        case OperationalError() | InterfaceError():
            log.warning("database.unavailable", error=describe_error(error))
            return errors.Unavailable(
                "the database did not respond in time",
                hint="The outcome is unknown if the connection was lost during commit."
                " Retry with the same Idempotency-Key.",
            )
        case DatabaseError() if getattr(error.__cause__, "sqlstate", "") in _CLOSED:
            log.error("database.operation_refused", error=describe_error(error))
            return errors.Unavailable(
                "the database refused the operation (read-only or missing privileges)",
                hint="Nothing was changed. The server's log has the cause.",
            )
    log.error(
        "database.error" if isinstance(error, DatabaseError) else "request.crashed", exc_info=error
    )
    return errors.InternalError()


def _problem_of_drf(error: drf.APIException, request: Any) -> Problem:
    if isinstance(error, drf.MethodNotAllowed):
        allowed = request.parser_context["view"].allowed_methods
        return errors.MethodNotAllowed(
            f"{request.method} is not allowed on this path",
            hint=f"Allowed methods: {', '.join(allowed)}.",
            allowed=allowed,
        )
    detail = error.detail if isinstance(error.detail, str) else error.default_detail
    return problem_of_status(error.status_code, str(detail))
