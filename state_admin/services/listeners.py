"""Limits the number of open streams, and closes those whose token or session is no longer valid.

Everything here runs on the event loop of one process. streams/ sends the changes; the interfaces
format errors.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

import django.db
import structlog

from project.failures import describe_error
from state_admin.domain.access import Actor
from state_admin.models import ApiToken

from .cells import is_elsewhere
from .errors import (
    Gone,
    NotFound,
    Problem,
    RateLimited,
    TooLarge,
    TooSlow,
    Unauthenticated,
    Unavailable,
)
from .feed_cursors import RESTART_FEED
from .move_problems import WorkspaceMoved

T = TypeVar("T")

log = structlog.get_logger(__name__)

# The maximum number of open streams per token or user, counted by each OpenStreams.
MOST_OF_ONE = 100
# Seconds between two checks of the tokens and sessions of open streams.
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
        hint=f"The database was restored, or lost its newest changes in a failover. {RESTART_FEED}",
    ),
    "moved": Unavailable("the workspace was moved to another cell", hint=_RECONNECT),
    "deleted": NotFound("the thread was deleted"),
    "too large": TooLarge("the state of the thread has become too large to send"),
    "page": Unavailable("this server does not support open streams", hint=_RECONNECT),
}


class InThread(Protocol):
    async def __call__(self, work: Callable[[], T]) -> T:
        """Run `work`, which may use the database, in a thread."""


@dataclass(eq=False)
class Listener:
    """One open stream. `close` ends it soon, for a reason of CLOSED. For a page, `session` is the key of
    its session, and `whose` returns the current actor of a session."""

    actor: Actor
    close: Callable[[str], None]
    in_thread: InThread
    session: str = ""
    whose: Callable[[str], Actor | None] = lambda key: None

    @property
    def name(self) -> tuple[str, str]:
        return self.actor.kind, self.actor.id

    def must_end(self, tokens: Mapping[str, str], sessions: Mapping[str, Actor | None]) -> str:
        """Why the stream must end, a key of CLOSED; "" if it need not. `tokens`: the result of
        _find_ended_tokens."""
        if not self.session:
            return tokens.get(self.actor.id, "")
        now = sessions[self.session]
        mine = (self.actor.id, self.actor.workspace_id)
        stays = now is not None and (now.id, now.workspace_id) == mine
        return "" if stays else "unauthenticated"


def check_live(actor: Actor) -> None:
    """Raise Unauthenticated for a revoked token and WorkspaceMoved for one of a moved workspace, without
    the token cache: a client whose stream was closed reconnects before its cache entry expires."""
    if actor.kind != "token":
        return
    cell = _cells_of({actor.id}).get(actor.id)
    if cell is None:
        raise Unauthenticated("the token is not valid", hint="It has just been revoked.")
    if is_elsewhere(cell):
        raise WorkspaceMoved(cell)


class OpenStreams:
    """The open streams of one kind in this process, at most `most`."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.listeners: set[Listener] = set()
        self.by_name: Counter[tuple[str, str]] = Counter()
        self._guard: asyncio.Task[None] | None = None

    @contextlib.contextmanager
    def admit(self, listener: Listener) -> Iterator[None]:
        """Count a stream as open. Raises RateLimited or Unavailable if too many are."""
        if self.by_name[listener.name] >= MOST_OF_ONE:
            raise RateLimited(
                "too many streams are open with this token",
                hint=f"At most {MOST_OF_ONE} per process. Close one, or share it.",
                retry_after=5,
                limit=MOST_OF_ONE,
            )
        if len(self.listeners) >= self.most:
            raise Unavailable("too many streams are open")
        self.listeners.add(listener)
        self.by_name[listener.name] += 1
        if self._guard is None or self._guard.done():
            self._guard = asyncio.get_running_loop().create_task(
                self._watch(), name="streams", context=contextvars.Context()
            )
        try:
            yield
        finally:
            self.listeners.discard(listener)
            self.by_name[listener.name] -= 1
            if not self.by_name[listener.name]:
                del self.by_name[listener.name]

    async def _watch(self) -> None:
        """While streams are open, close those whose token or session has ended, or whose workspace was
        moved: one that was opened just after the move does not receive its change."""
        while self.listeners:
            await asyncio.sleep(_RECHECK)
            seen = list(self.listeners)
            if not seen:
                return
            try:
                ended = await seen[0].in_thread(functools.partial(_find_ended, seen))
            except django.db.Error as error:  # the streams remain open until the next check
                log.warning("streams.check_failed", error=describe_error(error))
                continue
            for listener, why in ended.items():
                listener.close(why)


def _find_ended_tokens(tokens: Collection[str]) -> dict[str, str]:
    """Why streams of these tokens must end, by the ids of those that must: a key of CLOSED."""
    cells = _cells_of(tokens)
    ended = {token: "unauthenticated" for token in tokens if token not in cells}
    moved = {token: "moved" for token, cell in cells.items() if is_elsewhere(cell)}
    return ended | moved


def _cells_of(tokens: Collection[str]) -> dict[str, str]:
    """For each of these tokens that is live: the cell that its workspace was moved to."""
    rows = ApiToken.objects.live().filter(pk__in=tokens)
    return {str(pk): cell for pk, cell in rows.values_list("pk", "workspace__moved_to")}


def _find_ended(listeners: Collection[Listener]) -> dict[Listener, str]:
    """The streams that must end, with the reason: their token has ended, or their session does not
    belong to the user who opened them any more."""
    tokens = _find_ended_tokens({each.actor.id for each in listeners if each.actor.kind == "token"})
    now = {each.session: each.whose for each in listeners if each.session}
    sessions = {key: whose(key) for key, whose in now.items()}
    found = {each: each.must_end(tokens, sessions) for each in listeners}
    return {each: why for each, why in found.items() if why}
