"""The interface of the web server for responses that continue on the event loop
(project/channel.py)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Answer(Protocol):
    @property
    def on_loop(self) -> Any:
        """The function that continues the response on the event loop; None if the response is
        complete."""


class Channel(Protocol):
    started: bool  # whether the client has received anything

    async def ask(self, extra: Mapping[str, Any]) -> Answer:
        """Call Django again with the same request, and with `extra` added to its environ."""

    async def answer(self, answer: Any) -> None:
        """Send a complete response, which ends this one."""

    async def send(self, part: bytes) -> None:
        """Send a part of the body; returns when there is room for the next part."""

    async def finish(self) -> None:
        """End the body."""

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Run `work`, which may use the database, in one of the server's threads."""

    def on_end(self, close: Callable[[str], None]) -> None:
        """Call `close` when the client is "gone", or the server is "draining"."""


def instead(answer: Any, response: Any) -> Any:
    """`answer` with status and body of `response` (a response of Django), and with the headers of
    both."""
    headers = {name.lower().encode(): text.encode() for name, text in response.items()}
    headers = {**dict(answer.start["headers"]), **headers}
    headers[b"content-length"] = str(len(response.content)).encode()
    start = {**answer.start, "status": response.status_code, "headers": [*headers.items()]}
    return replace(answer, start=start, body=response.content, on_loop=None)
