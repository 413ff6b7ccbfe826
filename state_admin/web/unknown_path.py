"""The responses to an unknown URL, and to the URL of a form: for members, error pages with the navigation
of the admin."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from state_admin.services.errors import NotFound

from . import errors
from .actors import ANY, page
from .htmx import Request


@page(methods=ANY)
def _show_member(request: Request) -> HttpResponse:
    raise NotFound("page not found")


def show_unknown_path(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    return _show_member(request) if _is_signed_in(request) else errors.not_found(request, exception)


@page()
def _show_form_url(request: Request) -> HttpResponse:
    return errors.method_not_allowed(request)


def show_form_url(request: HttpRequest) -> HttpResponseBase:
    """The response if someone opens a URL that accepts only submitted forms."""
    is_opened = request.method in ("GET", "HEAD") and _is_signed_in(request)
    return _show_form_url(request) if is_opened else errors.method_not_allowed(request)


def _is_signed_in(request: HttpRequest) -> bool:
    user = getattr(request, "user", None)  # missing if a middleware has answered
    return user is not None and user.is_authenticated
