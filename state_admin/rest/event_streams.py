"""Responses that continue as server-sent events, on the event loop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import django.db

from project.channel import Answer, Channel, headers_of
from state_admin.services.errors import Problem, Unavailable
from state_admin.services.listeners import Listener, OpenStreams
from state_admin.streams.hub import FeedUnavailable

from .authentication import actor_of_session, session_key
from .bodies import Response
from .endpoint import Endpoint

_OPEN = OpenStreams(2000)


class Stream(Protocol):
    def close(self, why: str) -> None:
        """End the stream soon. `why` is a key of listeners.CLOSED."""

    async def run(self, channel: Channel) -> None:
        """Send the stream until it is closed."""


def begin_stream(headers: Mapping[str, str] | None = None) -> Response:
    """Return a response for server-sent events, without content."""
    response = Response(content_type="text/event-stream; charset=utf-8", headers=headers)
    response["Cache-Control"] = "no-store"
    response["X-Accel-Buffering"] = "no"  # nginx would buffer the events
    return response


def continue_stream(view: Endpoint, response: Response, stream: Stream) -> None:
    """Continue a response as a stream. If that fails before anything was sent, the client gets a
    problem in place of the response."""
    actor = view.actor
    session = session_key(view.request) if actor.kind == "user" else ""

    async def follow(channel: Channel, first: Answer) -> None:
        listener = Listener(actor, stream.close, channel.in_thread, session, actor_of_session)
        try:
            with _OPEN.admit(listener):
                await stream.run(channel)
        except (FeedUnavailable, Problem, django.db.Error) as error:
            if isinstance(error, FeedUnavailable):
                error = Unavailable("the database does not respond")
            await channel.answer(_instead(first, view.handle_exception(error)))

    response.on_loop = follow


def _instead(answer: Answer, response: Any) -> Answer:
    """`answer` with status and body of `response` (a response of Django), and with the headers of
    both."""
    headers = dict([*answer.headers, *headers_of(response.headers)])
    headers[b"content-length"] = str(len(response.content)).encode()
    return Answer(response.status_code, [*headers.items()], response.content)
