"""The interface of the web server for this endpoint, and the client of a request."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from state_admin.domain.access import Actor

T = TypeVar("T")

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class Answer(Protocol):
    """A complete response of the API."""

    @property
    def status(self) -> int: ...
    @property
    def body(self) -> bytes: ...


class Host(Protocol):
    """The part of project/bridge.py that this package uses."""

    draining: asyncio.Event  # set when the process has to end

    async def ask(self, scope: Message, body: bytes = b"") -> Answer:
        """Run a request in Django, in one of its threads. Refusals are responses, not
        exceptions."""

    async def in_thread(self, work: Callable[[], T]) -> T:
        """The result of `work`, which may use the database."""


@dataclass(frozen=True)
class Caller:
    """The client that sent the request, and the request's ASGI scope."""

    actor: Actor
    scope: Message

    KEY = "commonhold.caller"  # its key in the ASGI scope

    @property
    def token(self) -> str:
        """The token as it was sent."""
        sent: bytes = next(text for name, text in self.scope["headers"] if name == b"authorization")
        return sent.decode("latin-1").partition(" ")[2].strip()

    def scope_of(
        self, method: str, path: str, query: str, headers: Mapping[str, str], length: int
    ) -> Message:
        """The ASGI scope of a call of the API on the client's behalf, with its token and the id of
        its request. `path` and `query` are percent-encoded."""
        kept = (b"authorization", b"host", b"run-id", b"x-forwarded-for", b"x-forwarded-proto")
        sent = [(name, text) for name, text in self.scope["headers"] if name in kept]
        sent += [(name.encode(), text.encode()) for name, text in headers.items()]
        sent += [
            (b"x-request-id", self.actor.request_id.encode()),
            (b"content-length", str(length).encode()),
        ]
        return {
            **self.scope,
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": sent,
        }
