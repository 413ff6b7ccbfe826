"""Responses that continue as server-sent events, on the event loop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import django.db

from state_admin.services.errors import Problem, Unavailable
from state_admin.services.listeners import Listener
from state_admin.streams.channel import Channel, instead
from state_admin.streams.hub import FeedUnavailable

from .bodies import Response
from .endpoint import Endpoint


def begin_stream(headers: Mapping[str, str] | None = None) -> Response:
    """Return a response for server-sent events, without content."""
    response = Response(content_type="text/event-stream; charset=utf-8", headers=headers)
    response["Cache-Control"] = "no-store"
    response["X-Accel-Buffering"] = "no"  # nginx would buffer the events
    return response


def continue_stream(view: Endpoint, response: Response, listener: Listener) -> None:
    """Continue a response as the stream of a listener. If that fails before anything was sent, the
    client gets a problem in place of the response."""

    async def follow(channel: Channel, first: Any) -> None:
        try:
            await listener.follow(channel)
        except (FeedUnavailable, Problem, django.db.Error) as error:
            if isinstance(error, FeedUnavailable):
                error = Unavailable("the database does not respond")
            await channel.answer(instead(first, view.handle_exception(error)))

    response.on_loop = follow
