"""What the web server lends to this endpoint, and who is calling."""

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
    """What the API said, whole."""

    @property
    def start(self) -> Message: ...
    @property
    def body(self) -> bytes: ...


class Host(Protocol):
    """project/bridge.py."""

    draining: asyncio.Event  # set when the process is told to end

    async def ask(self, scope: Message, body: bytes = b"") -> Answer:
        """Ask Django a request, in one of its threads. Never raises for what the API refuses."""

    async def in_thread(self, work: Callable[[], T]) -> T:
        """The result of `work`, which may touch the database."""


@dataclass(frozen=True)
class Caller:
    """Who sent the request that is being answered, and what it came with."""

    actor: Actor
    scope: Message

    KEY = "commonhold.caller"  # where it stands in the ASGI scope

    @property
    def token(self) -> str:
        """The secret, as it was presented."""
        sent: bytes = next(text for name, text in self.scope["headers"] if name == b"authorization")
        return sent.decode("latin-1").partition(" ")[2].strip()

    def scope_of(
        self, method: str, path: str, query: str, headers: Mapping[str, str], length: int
    ) -> Message:
        """The scope of a call of the API on the caller's behalf: with their token, under the id of
        their request. `path` and `query` are percent-encoded."""
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
