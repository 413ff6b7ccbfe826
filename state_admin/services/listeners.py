"""Who listens to an open stream: how many may at once, and for how long they are welcome.

Everything here runs on the event loop of one process. Not here: what is sent (streams/), and how a
refusal is spelled (the interfaces).
"""

from __future__ import annotations

import asyncio
import functools
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

import django.db
import structlog

from project.failures import describe_error
from state_admin.domain.access import Actor
from state_admin.models import ApiToken
from state_admin.streams.channel import Channel

from .errors import Gone, NotFound, Problem, RateLimited, TooSlow, Unauthenticated, Unavailable

log = structlog.get_logger(__name__)

# Open streams of one process: with one token (or by one user), and in all.
MOST_OF_ONE = 100
MOST = 2000
# Seconds between two looks at whether those who listen still may. Revocation works within two.
_RECHECK = 2.0

_RECONNECT = "Reconnect with the id of the last event."
# Why the server ends a stream: the reason given to `close`, and the problem sent to the client.
CLOSED: dict[str, Problem] = {
    "slow": TooSlow("the reader does not keep up with the stream", hint=_RECONNECT),
    "draining": Unavailable("the server is shutting down or restarting", hint=_RECONNECT),
    "unavailable": Unavailable("the database does not respond", hint=_RECONNECT),
    "unauthenticated": Unauthenticated("the token or session is no longer valid"),
    "lost": Gone(
        "changes that were sent have been lost",
        hint="The database was restored, or lost its newest changes in a failover. Read the state "
        "again, then follow the feed from the current position.",
    ),
    "deleted": NotFound("the thread was deleted"),
    "page": Unavailable("this server does not support open streams", hint=_RECONNECT),
}


class Stream(Protocol):
    def close(self, why: str) -> None:
        """End it soon, and tell the client why."""

    async def run(self, channel: Channel) -> None:
        """Until it is closed."""


@dataclass(eq=False)
class Listener:
    """One open stream, as long as its listener is welcome. `whose` says whom the key `session`
    stands for now, when a page listens."""

    actor: Actor
    stream: Stream
    session: str = ""
    whose: Callable[[str], Actor | None] = lambda key: None

    @property
    def name(self) -> tuple[str, str]:
        return self.actor.kind, self.actor.id

    async def follow(self, channel: Channel) -> None:
        """Run the stream. RateLimited or Unavailable when there are too many already."""
        self.channel = channel
        _OPEN.admit(self)
        try:
            await self.stream.run(channel)
        finally:
            _OPEN.dismiss(self)

    def is_authorized(self, tokens: set[str], sessions: Mapping[str, Actor | None]) -> bool:
        if not self.session:
            return self.actor.id in tokens
        now = sessions[self.session]
        mine = (self.actor.id, self.actor.workspace_id)
        return now is not None and (now.id, now.workspace_id) == mine


def check_live(actor: Actor) -> None:
    """Refuse a token that was cut off: it comes back sooner than the cache of tokens forgets."""
    if actor.kind == "token" and not _live({actor.id}):
        raise Unauthenticated("the token is not valid", hint="It has just been revoked.")


class _OpenStreams:
    """The open streams of this process."""

    def __init__(self) -> None:
        self.listeners: set[Listener] = set()
        self.by_name: Counter[tuple[str, str]] = Counter()
        self._guard: asyncio.Task[None] | None = None

    def admit(self, listener: Listener) -> None:
        if self.by_name[listener.name] >= MOST_OF_ONE:
            raise RateLimited(
                "too many streams are open with this token",
                hint=f"At most {MOST_OF_ONE} per process. Close one, or share it.",
                retry_after=5,
                limit=MOST_OF_ONE,
            )
        if len(self.listeners) >= MOST:
            raise Unavailable("too many streams are open")
        self.listeners.add(listener)
        self.by_name[listener.name] += 1
        if self._guard is None or self._guard.done():
            self._guard = asyncio.get_running_loop().create_task(self._watch(), name="streams")

    def dismiss(self, listener: Listener) -> None:
        self.listeners.discard(listener)
        self.by_name[listener.name] -= 1
        if not self.by_name[listener.name]:
            del self.by_name[listener.name]

    async def _watch(self) -> None:
        """While streams are open: end those whose token or session has ended."""
        while self.listeners:
            await asyncio.sleep(_RECHECK)
            seen = list(self.listeners)
            if not seen:
                return
            try:
                welcome = await seen[0].channel.in_thread(functools.partial(_still_welcome, seen))
            except django.db.Error as error:  # nobody can say: they stay until it is known
                log.warning("streams.check_failed", error=describe_error(error))
                continue
            for listener in seen:
                if listener not in welcome:
                    listener.stream.close("unauthenticated")


_OPEN = _OpenStreams()


def _live(tokens: Collection[str]) -> set[str]:
    rows = ApiToken.objects.live().filter(pk__in=tokens)
    return {str(pk) for pk in rows.values_list("pk", flat=True)}


def _still_welcome(listeners: Collection[Listener]) -> set[Listener]:
    """Those whose token lives, or whose session still is the user's who opened the stream."""
    live = _live({each.actor.id for each in listeners if each.actor.kind == "token"})
    now = {each.session: each.whose for each in listeners if each.session}
    sessions = {key: whose(key) for key, whose in now.items()}
    return {each for each in listeners if each.is_authorized(live, sessions)}
