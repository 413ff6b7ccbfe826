"""Limits the number of open streams, and closes those whose token or session is no longer valid, or has other
permissions.

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
    "changed": Unavailable("the permissions of the token were changed", hint=_RECONNECT),
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


@dataclass(frozen=True)
class LiveToken:
    """What a stream with a token depends on. `cell`: where its workspace was moved to."""

    cell: str
    role: str
    namespaces: tuple[str, ...]
    thread_prefixes: tuple[str, ...]

    def has_permissions_of(self, actor: Actor) -> bool:
        permissions = (actor.role.value, actor.namespaces, actor.thread_prefixes)
        return permissions == (self.role, self.namespaces, self.thread_prefixes)


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

    def must_end(
        self, tokens: Mapping[str, LiveToken], sessions: Mapping[str, Actor | None]
    ) -> str:
        """Why the stream must end, a key of CLOSED; "" if it need not."""
        if not self.session:
            return self._of_token(tokens.get(self.actor.id)) if self.actor.kind == "token" else ""
        now = sessions[self.session]
        mine = (self.actor.id, self.actor.workspace_id)
        stays = now is not None and (now.id, now.workspace_id) == mine
        return "" if stays else "unauthenticated"

    def _of_token(self, token: LiveToken | None) -> str:
        if token is None:
            return "unauthenticated"
        if is_elsewhere(token.cell):
            return "moved"
        return "" if token.has_permissions_of(self.actor) else "changed"


def check_live(actor: Actor) -> None:
    """Raise Unauthenticated for a revoked token and WorkspaceMoved for one of a moved workspace, without
    the token cache: a client whose stream was closed reconnects before its cache entry expires."""
    if actor.kind != "token":
        return
    token = _find_live({actor.id}).get(actor.id)
    if token is None:
        raise Unauthenticated("the token is not valid", hint="It has just been revoked.")
    if is_elsewhere(token.cell):
        raise WorkspaceMoved(token.cell)


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
        """While streams are open, close those whose token or session has ended, whose token has other permissions,
        or whose workspace was moved: one that was opened just after the move does not receive its change."""
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


def _find_live(tokens: Collection[str]) -> dict[str, LiveToken]:
    """Those of these tokens that are live, by id."""
    rows = ApiToken.objects.live().filter(pk__in=tokens)
    columns = rows.values_list("pk", "workspace__moved_to", "role", "namespaces", "thread_prefixes")
    return {
        str(pk): LiveToken(cell, role, tuple(namespaces), tuple(prefixes))
        for pk, cell, role, namespaces, prefixes in columns
    }


def _find_ended(listeners: Collection[Listener]) -> dict[Listener, str]:
    """The streams that must end, with the reason: their token has ended or has other permissions, or their
    session does not belong to the user who opened them any more."""
    tokens = _find_live({each.actor.id for each in listeners if each.actor.kind == "token"})
    now = {each.session: each.whose for each in listeners if each.session}
    sessions = {key: whose(key) for key, whose in now.items()}
    found = {each: each.must_end(tokens, sessions) for each in listeners}
    return {each: why for each, why in found.items() if why}
