"""Long polls (`wait=`): the one place that knows how a request waits for news.

Under our server it waits on the event loop (streams/long_polls.py), holding neither a thread nor a
connection. Elsewhere, as under Django's test client, the thread looks again and again.
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

MAX_WAIT = 30
_POLL = 0.05
# In the environ: what the first look remembered.
_MEMORY = "commonhold.memory"


def hub_of(request: Request) -> Hub | None:
    """The hub, when the server can let an answer go on on its loop."""
    hub: Hub | None = request.META.get(ENVIRON)
    return hub


def memory_of(request: Request) -> Any:
    """What the first look of this request remembered; None in the first look."""
    return request.META.get(_MEMORY)


def is_repeated(request: Request) -> bool:
    """Whether this is a parked poll that looks again: the same call, not another one."""
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
    """Show what `look` finds; with `wait=` in the query not before it is news, or the time is up.

    `filters`: the changes after which looking again may be worthwhile.
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
