"""Sessions of Google's ADK: `Runner(…, session_service=CommonholdSessionService())`.

A session is a thread and each event a message of it. State lives in entries, one per scope of ADK, in
the namespaces `adk.app` (`app:`), `adk.user` (`user:`) and `adk.session`; `temp:` is never stored. An
event and the state it changes land in one transaction. Needs `commonhold[adk]`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self, TypeAlias
from urllib.parse import quote

from google.adk.errors import StaleSessionError
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events.event import Event
from google.adk.sessions import BaseSessionService, Session
from google.adk.sessions.base_session_service import GetSessionConfig, ListSessionsResponse
from pydantic_core import to_jsonable_python

from commonhold.answers import Entry, Message
from commonhold.calls import random_id
from commonhold.client import AsyncCommonhold
from commonhold.entries import register_namespace
from commonhold.keys import StateScope
from commonhold.problems import Conflict, Gone, NotFound, NotRegistered, VersionConflict
from commonhold.threads import Threads

Scope: TypeAlias = Literal["app", "user", "session"]
Operation: TypeAlias = dict[str, Any]

_PREFIX: dict[Scope, str] = {"app": "app:", "user": "user:", "session": ""}
_MEMBER = "adk"
_PAGE = 200
_BATCH = 1000


@dataclass(frozen=True)
class _Place:
    """Where a session and its state are."""

    app: str
    user: str
    session: str

    @property
    def thread(self) -> str:
        return _joined("adk", self.app, self.user, self.session)

    def key(self, scope: Scope) -> str:
        if scope == "app":
            return _joined(self.app)
        if scope == "user":
            return _joined(self.app, self.user)
        return str(StateScope.thread(self.thread))

    def address(self, scope: Scope) -> dict[str, str]:
        return {"namespace": f"adk.{scope}", "key": self.key(scope)}


class CommonholdSessionService(BaseSessionService):  # type: ignore[misc]  # Any without ADK
    """`state`: a client to share; without one, the service makes its own from the environment, and
    `close` (or `async with`) closes it.

    Any number of processes may append to one session. Of two writers of one state key the last wins;
    with `refuse_stale`, an event that changes a key which somebody else has changed since this
    session was read raises StaleSessionError, and nothing of it lands: read again and decide anew.
    """

    def __init__(self, state: AsyncCommonhold | None = None, *, refuse_stale: bool = False) -> None:
        self._state = state or AsyncCommonhold.from_env()
        self._owned = state is None
        self._refuse_stale = refuse_stale

    async def create_session(
        self,
        *,
        app_name: str,
        user_id: str,
        state: dict[str, Any] | None = None,
        session_id: str | None = None,
    ) -> Session:
        """Raises AlreadyExistsError."""
        session_id = (session_id or "").strip() or random_id()
        place = _Place(app_name, user_id, session_id)
        # The nonce tells a session that is there already from our own attempt a moment ago.
        facts = {"app_name": app_name, "user_id": user_id, "session_id": session_id}
        metadata = {_MEMBER: {**facts, "nonce": random_id()}}
        try:
            made = await self._state.threads.create(
                place.thread, metadata=metadata, resource_id=user_id
            )
        except Conflict:
            raise AlreadyExistsError(f"Session with id {session_id} already exists.") from None
        changes = _changes(place, _by_scope(state or {}))
        entries = await self._batch([*changes, *_gets([place])])
        return _session(place, entries[-3:], [], made.updated_at.timestamp())

    async def get_session(
        self,
        *,
        app_name: str,
        user_id: str,
        session_id: str,
        config: GetSessionConfig | None = None,
    ) -> Session | None:
        place = _Place(app_name, user_id, session_id.strip())
        try:
            thread = await self._state.threads.get(place.thread)
        except NotFound:
            return None
        entries, events = await asyncio.gather(
            self._batch(_gets([place])), self._events(place, config or GetSessionConfig())
        )
        return _session(place, entries, events, thread.updated_at.timestamp())

    async def list_sessions(
        self, *, app_name: str, user_id: str | None = None
    ) -> ListSessionsResponse:
        """With state and without events, the least recently used first."""
        prefix = _joined("adk", app_name, *([user_id] if user_id is not None else []), "")
        call = Threads.list(prefix=prefix, limit=_PAGE)
        threads = [each async for each in self._state.every(call) if _MEMBER in each.metadata]
        threads.sort(key=lambda thread: thread.updated_at)
        places = [_place_of(thread.metadata[_MEMBER]) for thread in threads]
        entries = await self._batch(_gets(places))
        return ListSessionsResponse(
            sessions=[
                _session(place, entries[3 * n : 3 * n + 3], [], threads[n].updated_at.timestamp())
                for n, place in enumerate(places)
            ]
        )

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Needs the role admin: events and session state go with the thread."""
        try:
            await self._state.threads.delete(_Place(app_name, user_id, session_id.strip()).thread)
        except NotFound:
            return

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        address = _Place(app_name, user_id, "").address("user")
        (entry,) = await self._batch([{"op": "get", **address}])
        return dict(entry.value)

    async def append_event(self, session: Session, event: Event) -> Event:
        """The event and its state delta, both or none; the same event again changes nothing.

        The session's state is brought up to date in the scopes that the event changes. Raises
        SessionNotFoundError, and StaleSessionError if asked for.
        """
        if event.partial:
            return event
        self._apply_temp_state(session, event)
        event = self._trim_temp_delta_state(event)
        place = _Place(session.app_name, session.user_id, session.id)
        delta = _by_scope(event.actions.state_delta)
        message, versions = _message_of(event), _versions(session)
        while True:
            operations = _changes(place, delta, versions if self._refuse_stale else None)
            try:
                made = await self._state.threads.append(
                    place.thread, message, operations=operations or None
                )
            except VersionConflict:
                versions = await self._caught_up(place, delta, versions)
            except Conflict:
                if not await self._holds(place, message):
                    raise
                return event
            except NotRegistered:
                raise
            except NotFound:
                raise SessionNotFoundError(f"Session {session.id} not found.") from None
            else:
                break
        await super().append_event(session, event)
        entries = [result.entry for result in made.results if result.entry is not None]
        for entry in entries:
            session.state.update(_prefixed(entry))
        _remember(session, {**versions, **{_scope(entry): entry.version for entry in entries}})
        session.last_update_time = event.timestamp
        return event

    async def close(self) -> None:
        if self._owned:
            await self._state.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _batch(self, operations: list[Operation]) -> list[Entry]:
        """What the entries are after all operations, which land together unless they are too many."""
        outcomes = []
        for start in range(0, len(operations), _BATCH):
            part = operations[start : start + _BATCH]
            try:
                outcomes += await self._state.batch(part)
            except NotRegistered:
                for scope in _PREFIX:
                    schema = {"type": "object"}
                    await self._state.send(
                        register_namespace(f"adk.{scope}", schema=schema, default={})
                    )
                outcomes += await self._state.batch(part)
        return [outcome.entry for outcome in outcomes if outcome.entry is not None]

    async def _events(self, place: _Place, config: GetSessionConfig) -> list[Event]:
        wanted, after = config.num_recent_events, config.after_timestamp
        found: list[Event] = []
        if wanted == 0:
            return found
        async for message in self._newest_first(place, wanted or _PAGE):
            event = Event.model_validate(message.document[_MEMBER])
            if after is not None and event.timestamp < after:
                break
            found.append(event)
            if len(found) == wanted:
                break
        return found[::-1]

    async def _newest_first(self, place: _Place, wanted: int) -> AsyncIterator[Message]:
        """The messages that are events."""
        call = Threads.messages(place.thread, order="desc", limit=min(wanted, _PAGE))
        async for message in self._state.every(call):
            if _MEMBER in message.document:
                yield message

    async def _holds(self, place: _Place, message: Mapping[str, Any]) -> bool:
        """Whether the very event is in the log."""
        async for held in self._newest_first(place, _PAGE):
            if held.id == message.get("id"):
                return bool(held.document[_MEMBER] == message[_MEMBER])
        return False

    async def _caught_up(
        self,
        place: _Place,
        delta: Mapping[Scope, Mapping[str, Any]],
        known: Mapping[Scope, int],
    ) -> dict[Scope, int]:
        """The versions now. Raises StaleSessionError when a key of the delta has changed since."""
        now = await self._batch(_gets([place]))
        for entry in now:
            scope = _scope(entry)
            touched = {_pointer(name) for name in delta[scope]}
            if touched & await self._moved(entry, known[scope]):
                raise StaleSessionError(
                    f"The {scope} state of session {place.session} has changed since it was read. "
                    "Read the session again."
                )
        return {_scope(entry): entry.version for entry in now}

    async def _moved(self, entry: Entry, since: int) -> set[str]:
        """Pointers of the members that changed after version `since`."""
        if entry.version == since:
            return set()
        if since == 0:
            return {_pointer(name) for name in entry.value}
        try:
            diff = await self._state.diff(entry.namespace, entry.key, since, entry.version)
        except (Gone, NotFound) as forgotten:
            raise StaleSessionError("What the session read is no longer kept.") from forgotten
        return {"/" + row["pointer"].split("/")[1] for row in diff.rows}


def _joined(*parts: str) -> str:
    return ":".join(quote(part, safe="") for part in parts)


def _pointer(name: str) -> str:
    return "/" + name.replace("~", "~0").replace("/", "~1")


def _place_of(facts: Mapping[str, str]) -> _Place:
    return _Place(facts["app_name"], facts["user_id"], facts["session_id"])


def _gets(places: Iterable[_Place]) -> list[Operation]:
    return [{"op": "get", **place.address(scope)} for place in places for scope in _PREFIX]


def _by_scope(state: Mapping[str, Any]) -> dict[Scope, dict[str, Any]]:
    """Names without their prefixes; what is no JSON as its text, as ADK's own services have it."""
    found: dict[Scope, dict[str, Any]] = {scope: {} for scope in _PREFIX}
    for name, value in to_jsonable_python(state, fallback=str).items():
        scope = next(scope for scope, prefix in _PREFIX.items() if name.startswith(prefix))
        if not name.startswith("temp:"):
            found[scope][name.removeprefix(_PREFIX[scope])] = value
    return found


def _changes(
    place: _Place,
    delta: Mapping[Scope, Mapping[str, Any]],
    versions: Mapping[Scope, int] | None = None,
) -> list[Operation]:
    """Each member is set on its own, so that writers of different keys do not meet."""
    return [
        {
            "op": "patch",
            **place.address(scope),
            "patch_type": "update",
            "patch": [
                {"op": "set", "path": _pointer(name), "value": value}
                for name, value in delta[scope].items()
            ],
            **({} if versions is None else {"if_version": versions[scope]}),
        }
        for scope in _PREFIX
        if delta[scope]
    ]


def _scope(entry: Entry) -> Scope:
    scope: Scope = entry.namespace.removeprefix("adk.")  # type: ignore[assignment]
    return scope


def _prefixed(entry: Entry) -> dict[str, Any]:
    prefix = _PREFIX[_scope(entry)]
    return {prefix + name: value for name, value in entry.value.items()}


def _session(
    place: _Place, entries: Iterable[Entry], events: list[Event], updated: float
) -> Session:
    entries = list(entries)
    session = Session(
        id=place.session,
        app_name=place.app,
        user_id=place.user,
        state={name: value for entry in entries for name, value in _prefixed(entry).items()},
        events=events,
        last_update_time=updated,
    )
    _remember(session, {_scope(entry): entry.version for entry in entries})
    return session


def _remember(session: Session, versions: Mapping[Scope, int]) -> None:
    session._storage_update_marker = json.dumps(versions)


def _versions(session: Session) -> dict[Scope, int]:
    """Of the entries as the session knows them."""
    marker = session._storage_update_marker
    known: dict[Scope, int] = json.loads(marker) if marker else dict.fromkeys(_PREFIX, 0)
    return known


def _message_of(event: Event) -> dict[str, Any]:
    """The event, whole, in a message that shows people what was said and called."""
    parts = (event.content.parts if event.content else None) or []
    return {
        **({"id": event.id} if event.id else {}),
        "role": "user" if event.author == "user" else "assistant",
        "content": [_block(part.model_dump(mode="json", exclude_none=True)) for part in parts],
        _MEMBER: event.model_dump(mode="json", exclude_none=True),
    }


def _block(part: dict[str, Any]) -> dict[str, Any]:
    if "text" in part and part.get("thought"):
        return {"type": "thinking", "thinking": part["text"]}
    if "text" in part:
        return {"type": "text", "text": part["text"]}
    if "function_call" in part:
        return {"type": "tool_use", **part["function_call"]}
    if "function_response" in part:
        return {"type": "tool_result", **part["function_response"]}
    return {"type": next(iter(part), "empty")}
