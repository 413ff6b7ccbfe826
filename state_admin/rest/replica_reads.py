"""Requests that a read replica may answer. services/replicas.py decides whether one does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponseBase, StreamingHttpResponse

from state_admin.services import replicas
from state_admin.services.errors import Problem

R = TypeVar("R", bound=HttpResponseBase)

# The header of a response that a replica has given.
HEADER: Final = "Read-From"


def client_of(request: HttpRequest) -> str:
    """The key of the write position of the client: of its token, or else of its session."""
    return replicas.client_of(
        request.META.get("HTTP_AUTHORIZATION", ""),
        request.META.get("HTTP_X_API_KEY", ""),
        request.COOKIES.get(settings.SESSION_COOKIE_NAME, ""),
    )


def read(request: HttpRequest, work: Callable[[], R]) -> R:
    """The response of `work`, which only reads, from a replica if one may answer this client, else
    from the primary. `Cache-Control: no-cache` demands the newest state."""
    if (
        not replicas.ALIASES
        or request.method not in ("GET", "HEAD")
        or "no-cache" in request.headers.get("Cache-Control", "")
    ):
        return work()
    response, alias = replicas.read(client_of(request), work, (Problem, Http404))
    if alias is not None:
        if isinstance(response, StreamingHttpResponse):
            response.streaming_content = replicas.stream(alias, iter(response))
        response[HEADER] = "replica"
    return response
