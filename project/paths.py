"""URL patterns of the API match the percent-encoded path: an encoded slash belongs to an id.

Django resolves the decoded path, in which the thread `a/messages` and the messages of the thread
`a` are the same address. Here an id is one segment, its slashes sent as `%2F`. A key is the rest of
the path; its slashes may be sent either way.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, unquote, unquote_to_bytes

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.urls import register_converter
from django.urls.converters import StringConverter
from django.views import View

# The path as the client sent it, in the environ. Without it (Django's test client) the path is
# decoded already, and every slash is a separator.
RAW_PATH = "commonhold.raw_path"


def encode_path(request: HttpRequest) -> None:
    """Make Django resolve an API request by its percent-encoded path. `request.path` remains
    decoded."""
    if not request.path_info.startswith(settings.API_PREFIX):
        return
    raw = request.META.get(RAW_PATH)
    if raw is None:
        request.path_info = quote(request.path_info)
    elif "%" in raw:
        request.path_info = encoded_path(raw)


def encoded_path(raw_path: str) -> str:
    """The path with each segment encoded in one way: `%7E` and `~` are the same (RFC 3986,
    6.2.2.2)."""
    if "%" not in raw_path:
        return raw_path
    segments = raw_path.encode("latin-1").split(b"/")
    return "/".join(quote(unquote_to_bytes(segment), safe="") for segment in segments)


class SegmentConverter(StringConverter):
    """One segment of the path, decoded."""

    def to_python(self, value: str) -> str:
        return unquote(value)


class TailConverter(SegmentConverter):
    """The rest of the path, decoded."""

    regex = ".+"


register_converter(SegmentConverter, "segment")
register_converter(TailConverter, "tail")


def shadowing(
    view: type[View], shadowed: type[View], **kwargs: str
) -> Callable[..., HttpResponseBase]:
    """A view at a path that is also the URL of a resource of `shadowed`, which `kwargs` identify:
    methods that `view` does not have are passed to `shadowed`."""
    own, other = view.as_view(), shadowed.as_view()

    @functools.wraps(own)
    def dispatch(request: HttpRequest, **_: Any) -> HttpResponseBase:
        if hasattr(view, (request.method or "").lower()):
            return own(request)
        response = other(request, **kwargs)
        if response.status_code == 405:
            methods = [name.upper() for name in view.http_method_names if hasattr(view, name)]
            allowed = dict.fromkeys([*methods, *response["Allow"].split(", ")])
            response["Allow"] = ", ".join(allowed)
        return response

    vars(dispatch)["shadowed"] = shadowed
    return dispatch
