"""Middleware: a request id for all requests, and Django's middleware for pages only.

A call of the API has a bearer token, and no session, cookie or form. Skipping the middleware of
pages there saves a fifth of the time of a small read. Each middleware is subclassed and not nested,
so that Django still finds its hooks (CSRF uses `process_view`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import structlog
from csp.middleware import CSPMiddleware
from django.conf import settings
from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.messages.middleware import MessageMiddleware
from django.contrib.sessions.middleware import SessionMiddleware
from django.db import Error
from django.http import HttpRequest, HttpResponseBase, HttpResponseNotAllowed
from django.middleware.clickjacking import XFrameOptionsMiddleware
from django.middleware.common import CommonMiddleware
from django.middleware.csrf import CsrfViewMiddleware
from django.middleware.security import SecurityMiddleware
from django_htmx.middleware import HtmxMiddleware
from whitenoise.middleware import WhiteNoiseMiddleware

from project import log_context, tracing
from project.failures import describe_error
from project.hosts import check_host
from project.paths import encode_path
from state_admin.rest import problems, replica_reads
from state_admin.services import replicas
from state_admin.services.errors import NotFound, Problem
from state_admin.services.traffic import SAFE_METHODS
from state_admin.web.unknown_path import show_form_url

log = structlog.get_logger(__name__)

Handler = Callable[[HttpRequest], HttpResponseBase]

# Load balancers and monitors request these by IP address. They use no cookie and generate no link.
PROBES = frozenset({"/healthz", "/readyz", "/metrics"})
_PARAMETER = re.compile(r"<(?:\w+:)?(\w+)>")
_DOCUMENTATION = ("/docs", "/problems/", settings.API_DOCS_PATH)
# A token of the API. A reverse proxy may send tokens of its own to pages.
_TOKEN = re.compile(r"bearer +ch_", re.IGNORECASE)


class _Middleware:
    """The base of the middleware of this module."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response


class RequestId(_Middleware):
    """Gives each request an id: the client's X-Request-ID if it is valid.

    The id is in the response, in every log line and in every audit row of the request.
    """

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        request_id = request.META["REQUEST_ID"] = log_context.choose_request_id(
            request.META.get("HTTP_X_REQUEST_ID", "")
        )
        encode_path(request)
        log_context.begin(request_id=request_id)
        response = self.get_response(request)
        response["X-Request-ID"] = request_id
        response.setdefault("X-Content-Type-Options", "nosniff")
        return response

    def process_view(
        self, request: HttpRequest, view: object, args: object, kwargs: dict[str, Any]
    ) -> None:
        log_context.bind_path(kwargs)
        if tracing.is_on() and request.resolver_match is not None:
            tracing.describe({}, route=_template(request.resolver_match.route))


def _template(route: str) -> str:
    """A route of Django as a path with the names of its parameters in braces."""
    return "/" + _PARAMETER.sub(r"{\1}", route)


class WritePositions(_Middleware):
    """Records the position of each write before its response is sent, so that no read replica answers
    the client from an earlier state. Installed only if there are replicas."""

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        # A login gives the browser another session key, also by a redirect from a provider, a GET.
        cookie = response.cookies.get(settings.SESSION_COOKIE_NAME)
        if request.method in SAFE_METHODS and cookie is None:
            return response
        # Without a valid credential, nothing was written for the client, and the table would grow.
        user = getattr(request, "user", None)
        if user is None or not getattr(user, "is_authenticated", True):
            return response
        clients = {
            replica_reads.client_of(request),
            replicas.client_of("", session_key=cookie.value if cookie else ""),
        }
        try:
            replicas.record_write([client for client in clients if client])
        except Error as error:
            log.warning("write_position.not_recorded", error=describe_error(error))
            if response.status_code < 500:
                return problems.answer_problem(replicas.unrecorded(), request)
        return response


class AllowedHosts(_Middleware):
    """Refuses a Host header that ALLOWED_HOSTS does not list, on every path except PROBES.

    Django checks the header only where a view or middleware reads it, and logs a traceback.
    """

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.path_info not in PROBES:
            try:
                check_host(request.META.get("HTTP_HOST", request.META["SERVER_NAME"]))
            except Problem as problem:
                return problems.answer_problem(problem, request)
        return self.get_response(request)


def _for_pages(layer: type[Any]) -> type[Any]:
    class PageOnly(layer):
        def __call__(self, request: HttpRequest) -> Any:
            if _is_page(request.path_info):
                return super().__call__(request)
            return self.get_response(request)

    PageOnly.__name__ = PageOnly.__qualname__ = layer.__name__
    return PageOnly


def _is_page(path: str) -> bool:
    if path in PROBES:
        return False
    return path == settings.API_DOCS_PATH or not path.startswith(settings.API_PREFIX)


Security = _for_pages(SecurityMiddleware)
ContentSecurityPolicy = _for_pages(CSPMiddleware)
StaticFiles = _for_pages(WhiteNoiseMiddleware)
Session = _for_pages(SessionMiddleware)
Common = _for_pages(CommonMiddleware)
Csrf = _for_pages(CsrfViewMiddleware)
Authentication = _for_pages(AuthenticationMiddleware)
Messages = _for_pages(MessageMiddleware)
Clickjacking = _for_pages(XFrameOptionsMiddleware)
Htmx = _for_pages(HtmxMiddleware)


class TokenOnPage(_Middleware):
    """Refuses a token outside of the API and the documentation. A program that sends one there lacks
    /api/v1 in its URL, and would be redirected to the login page."""

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        authorization = request.META.get("HTTP_AUTHORIZATION", "")
        path = request.path_info
        if _is_page(path) and not path.startswith(_DOCUMENTATION) and _TOKEN.match(authorization):
            hint = "The paths of the API begin with /api/v1, and GET /api/schema lists them."
            return problems.answer_problem(NotFound("path not found", hint=hint), request)
        return self.get_response(request)


class MethodNotAllowed(_Middleware):
    """Replaces the empty response of Django to a method that is not allowed by a page, for example
    when someone opens the address of a form."""

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        if not isinstance(response, HttpResponseNotAllowed) or response.content:
            return response
        if not _is_page(request.path_info):
            return response
        page = show_form_url(request)
        page["Allow"] = response["Allow"]
        return page
