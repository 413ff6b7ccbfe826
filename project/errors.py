"""Django's error handlers: a problem document below /api/, a page elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable

from django.conf import settings
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponseBase

from state_admin.rest import problems
from state_admin.services.errors import BadRequest, Forbidden, InternalError, NotFound, Problem
from state_admin.web import errors as pages
from state_admin.web.unknown_path import show_unknown_path


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    return _answer(request, BadRequest("the request is malformed"), pages.bad_request, exception)


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    return _answer(
        request, Forbidden("this operation is not permitted"), pages.forbidden, exception
    )


def not_found(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    return _answer(request, NotFound("path not found"), show_unknown_path, exception)


def server_error(request: HttpRequest) -> HttpResponseBase:
    """503 while the database is not available, else 500. Pages of members and the API have their own
    handlers; this one is for all other views and for middleware."""
    error = sys.exception()
    if isinstance(error, OperationalError | InterfaceError):
        problem = problems.problem_of(error, request)
        response = _answer(request, problem, lambda request: pages.answer(request, problem))
        response["Retry-After"] = "1"
        return response
    return _answer(request, InternalError(), pages.server_error)


def _answer(
    request: HttpRequest, problem: Problem, page: Callable[..., HttpResponseBase], *error: Exception
) -> HttpResponseBase:
    if request.path_info.startswith(settings.API_PREFIX):
        return problems.answer_problem(problem, request)
    return page(request, *error)
