"""The change feed as server-sent events: GET /changes/stream (semantics §9).

The request goes through Django like any other, so it is refused like any other. What is sent after
that happens on the event loop, in state_admin/streams. Here: who may listen, and for how long.
"""

from __future__ import annotations

import asyncio
import functools
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import django.db
import structlog
from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from state_admin.domain.access import Actor
from state_admin.models import ApiToken, feed_sql
from state_admin.services.errors import RateLimited, Unauthenticated, Unavailable
from state_admin.streams import cursors, events
from state_admin.streams.channel import Channel
from state_admin.streams.hub import Unready
from state_admin.streams.stream import ChangeStream

from . import problems
from .authentication import (
    PageAuthentication,
    TokenAuthentication,
    actor_of_session,
    session_key,
)
from .changes import open_cursor, read_filter
from .endpoint import Endpoint
from .waiting import hub_of

log = structlog.get_logger(__name__)

# Open streams of one process: with one token (or by one user), and in all.
MOST_OF_ONE = 100
MOST = 2000
# Seconds between two looks at whether those who listen still may. Revocation works within two.
_RECHECK = 2.0
# Changes in an answer of a server that cannot stream.
_FINITE = 200


class ChangeStreamDetail(Endpoint):
    authentication_classes = [PageAuthentication, TokenAuthentication]

    @extend_schema(operation_id="stream_changes")
    def get(self, request: Request) -> HttpResponse:
        """Changes as server-sent events: behind `Last-Event-ID` or `after`, else from now on."""
        wanted = read_filter(request, "after")
        if self.actor.kind == "token" and not _live({self.actor.id}):
            # Who was cut off comes back sooner than the cache of tokens forgets.
            raise Unauthenticated("the token is not valid", detail="It has just been revoked.")
        cursor = request.META.get("HTTP_LAST_EVENT_ID") or request.query_params.get("after", "")
        end = feed_sql.read_end(self.actor.workspace_id)
        after = None
        if cursor:
            after = (open_cursor(cursor, end), cursors.unseal(cursor)[1])
        response = HttpResponse(content_type="text/event-stream; charset=utf-8")
        response["Cache-Control"] = "no-store"
        response["X-Accel-Buffering"] = "no"  # nginx would hold events back
        hub = hub_of(request)
        if hub is None:
            start, at = after or (end.position, end.at)
            rows = feed_sql.read_page(
                self.actor, after=start, until=end.position, wanted=wanted, limit=_FINITE
            )
            parts = [events.hello(start, at), *map(events.change, rows), events.closed("page")]
            response.content = b"".join(parts)
        elif request.method == "GET":
            stream = ChangeStream(hub, self.actor, wanted, after)
            session = session_key(request) if self.actor.kind == "user" else ""
            going_on = _GoingOn(request, stream, self.actor, session)
            response.on_loop = going_on.run  # type: ignore[attr-defined]  # project/channel.py
        return response


@dataclass(eq=False)
class _GoingOn:
    """One open stream, as long as its listener is welcome."""

    request: Request
    stream: ChangeStream
    actor: Actor
    session: str  # its key, when a page listens

    @property
    def listener(self) -> tuple[str, str]:
        return self.actor.kind, self.actor.id

    def is_welcome(self, tokens: set[str], sessions: Mapping[str, Actor | None]) -> bool:
        if not self.session:
            return self.actor.id in tokens
        now = sessions[self.session]
        mine = (self.actor.id, self.actor.workspace_id)
        return now is not None and (now.id, now.workspace_id) == mine

    async def run(self, channel: Channel, answer: Any) -> None:
        self.channel = channel
        try:
            OPEN.admit(self)
            try:
                await self.stream.run(channel)
            finally:
                OPEN.dismiss(self)
        except Unready:
            await self._refuse(Unavailable("the database does not answer now"), answer)
        except (RateLimited, Unavailable, django.db.Error) as error:
            await self._refuse(error, answer)

    async def _refuse(self, error: Exception, answer: Any) -> None:
        response = problems.answer_error(error, self.request)
        headers = {name.lower().encode(): text.encode() for name, text in response.items()}
        headers = {**dict(answer.start["headers"]), **headers}
        headers[b"content-length"] = str(len(response.content)).encode()
        start = {**answer.start, "status": response.status_code, "headers": [*headers.items()]}
        await self.channel.answer(type(answer)(start, response.content))


class _Open:
    """The open streams of this process. All on the event loop."""

    def __init__(self) -> None:
        self.streams: set[_GoingOn] = set()
        self.by_listener: Counter[tuple[str, str]] = Counter()
        self._guard: asyncio.Task[None] | None = None

    def admit(self, stream: _GoingOn) -> None:
        """RateLimited or Unavailable when there are too many already."""
        if self.by_listener[stream.listener] >= MOST_OF_ONE:
            raise RateLimited(
                "too many streams are open with this token",
                detail=f"At most {MOST_OF_ONE} per process. Close one, or share it.",
                retry_after=5,
                limit=MOST_OF_ONE,
            )
        if len(self.streams) >= MOST:
            raise Unavailable("too many streams are open")
        self.streams.add(stream)
        self.by_listener[stream.listener] += 1
        if self._guard is None or self._guard.done():
            self._guard = asyncio.get_running_loop().create_task(self._watch(), name="streams")

    def dismiss(self, stream: _GoingOn) -> None:
        self.streams.discard(stream)
        self.by_listener[stream.listener] -= 1
        if not self.by_listener[stream.listener]:
            del self.by_listener[stream.listener]

    async def _watch(self) -> None:
        """While streams are open: end those whose token or session has ended."""
        while self.streams:
            await asyncio.sleep(_RECHECK)
            seen = list(self.streams)
            if not seen:
                return
            try:
                welcome = await seen[0].channel.in_thread(functools.partial(_still_welcome, seen))
            except django.db.Error as error:  # nobody can say: they stay until it is known
                log.warning("streams.unchecked", error=str(error).strip())
                continue
            for stream in seen:
                if stream not in welcome:
                    stream.stream.close("unauthenticated")


OPEN = _Open()


def _live(tokens: Collection[str]) -> set[str]:
    rows = ApiToken.objects.live().filter(pk__in=tokens)
    return {str(pk) for pk in rows.values_list("pk", flat=True)}


def _still_welcome(streams: Collection[_GoingOn]) -> set[_GoingOn]:
    """Those whose token lives, or whose session still is the user's who opened the stream."""
    tokens = {stream.actor.id for stream in streams if stream.actor.kind == "token"}
    live = _live(tokens)
    now = {key: actor_of_session(key) for key in {s.session for s in streams if s.session}}
    return {stream for stream in streams if stream.is_welcome(live, now)}
