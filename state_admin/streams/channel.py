"""What the web server lends to an answer that goes on on the event loop (project/channel.py)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Answer(Protocol):
    @property
    def on_loop(self) -> Any:
        """None, or: the view would rather wait."""


class Channel(Protocol):
    started: bool  # whether the client has received anything

    async def ask(self, extra: Mapping[str, Any]) -> Answer:
        """Ask Django the same request again, with `extra` in its environ."""

    async def answer(self, answer: Any) -> None:
        """Send a whole answer and end."""

    async def send(self, part: bytes) -> None:
        """Send a part of the body; returns when there is room for the next."""

    async def finish(self) -> None:
        """End the body."""

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Run what may touch the database in one of the server's threads."""

    def on_end(self, close: Callable[[str], None]) -> None:
        """Have `close` called when the client is "gone", or the server is "draining"."""


def instead(answer: Any, response: Any) -> Any:
    """`response` (Django's) in place of `answer`, with the headers the middleware gave that one."""
    headers = {name.lower().encode(): text.encode() for name, text in response.items()}
    headers = {**dict(answer.start["headers"]), **headers}
    headers[b"content-length"] = str(len(response.content)).encode()
    start = {**answer.start, "status": response.status_code, "headers": [*headers.items()]}
    return replace(answer, start=start, body=response.content, on_loop=None)
