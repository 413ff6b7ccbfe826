"""The response to an unknown URL: for members, an error page with the navigation of the admin."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from state_admin.services.errors import NotFound

from . import errors
from .actors import page
from .htmx import Request


@page
def _show_member(request: Request) -> HttpResponse:
    raise NotFound("page not found")


def show_unknown_path(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    user = getattr(request, "user", None)
    if user is not None and user.is_authenticated:
        return _show_member(request)
    return errors.not_found(request, exception)
