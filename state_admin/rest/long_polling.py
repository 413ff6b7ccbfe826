"""Long polling (`wait=`): the only place that decides how a request waits for a change.

Under project/bridge.py it waits on the event loop (streams/long_polls.py), without a thread or a
connection. Elsewhere, as under Django's test client, the thread polls.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from django.http import HttpResponse
from rest_framework.request import Request

from state_admin.models.feed_sql import FeedFilter
from state_admin.streams.hub import ENVIRON, Hub
from state_admin.streams.long_polls import LongPoll

from .bodies import Response

if TYPE_CHECKING:
    from .endpoint import Endpoint

T = TypeVar("T")

_POLL = 0.05
# The key in the environ for the state that the first call stored.
_MEMORY = "commonhold.memory"


def hub_of(request: Request) -> Hub | None:
    """Return the hub if the server can continue a response on its event loop, else None."""
    hub: Hub | None = request.META.get(ENVIRON)
    return hub


def memory_of(request: Request) -> Any:
    """Return the state that the first call of this request stored; None in the first call."""
    return request.META.get(_MEMORY)


def is_repeated(request: Request) -> bool:
    """Whether this is a further call of a waiting long poll, and not a new request."""
    return _MEMORY in request.META


def answer_news(
    view: Endpoint,
    filters: FeedFilter,
    *,
    look: Callable[[], T],
    is_news: Callable[[T], bool],
    show: Callable[[T], Response],
    memory: Any = None,
) -> HttpResponse:
    """Return the result of `look`. With `wait=` in the query, wait until it is new or the time is
    up.

    `filters`: the changes after which `look` is called again. `memory`: state for the further
    calls.
    """
    seconds = view.query.wait
    result = look()
    hub = hub_of(view.request)
    if seconds and hub is None:
        deadline = time.monotonic() + seconds
        while not is_news(result) and time.monotonic() < deadline:
            time.sleep(_POLL)
            result = look()
    response = show(result)
    if seconds and hub is not None and not is_news(result):
        response.on_loop = LongPoll(hub, view.actor, filters, seconds, {_MEMORY: memory})
    return response
