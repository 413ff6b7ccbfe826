"""Sessions of Google's ADK: `Runner(…, session_service=CommonholdSessionService())`.

A session is a thread and each event a message of it. State is stored in entries, one per scope of
ADK, in the namespaces `adk.app` (`app:`), `adk.user` (`user:`) and `adk.session`; `temp:` is never
stored. The entry of a session in `adk.activity` has the timestamp of its newest event. An event,
its timestamp and the state it changes are stored in one transaction. Needs `commonhold[adk]`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeAlias, cast
from weakref import WeakValueDictionary

from google.adk.errors import StaleSessionError
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events.event import Event
from google.adk.sessions import BaseSessionService, Session
from google.adk.sessions.base_session_service import GetSessionConfig, ListSessionsResponse
from pydantic_core import to_jsonable_python

from commonhold import arguments
from commonhold.answers import Entry, Message, Thread
from commonhold.calls import join_id, random_id
from commonhold.client import Adapter, AsyncCommonhold
from commonhold.documents import pointer_of
from commonhold.entries import MOST_OPERATIONS, run_batch
from commonhold.keys import StateScope
from commonhold.namespaces import register_namespace, registering
from commonhold.problems import Conflict, Gone, NotFound, NotRegistered, TooLarge, VersionConflict
from commonhold.threads import Threads

Scope: TypeAlias = Literal["app", "user", "session"]
Operation: TypeAlias = dict[str, Any]

_PREFIX: dict[Scope, str] = {"app": "app:", "user": "user:", "session": ""}
_ACTIVITY = "adk.activity"
_UPDATED = "last_update_time"
_READS = len(_PREFIX) + 1  # entries of a session: one per scope and its activity
_MEMBER = "adk"
_PAGE = 200


@dataclass(frozen=True)
class _SessionAddress:
    """Where a session and its state are."""

    app: str
    user: str
    session: str

    def __post_init__(self) -> None:
        arguments.name("app_name", self.app)
        arguments.name("user_id", self.user)

    @property
    def thread(self) -> str:
        return join_id("adk", self.app, self.user, self.session)

    def key(self, scope: Scope) -> str:
        if scope == "app":
            return join_id(self.app)
        if scope == "user":
            return join_id(self.app, self.user)
        return str(StateScope.thread(self.thread))

    def address(self, scope: Scope) -> dict[str, str]:
        return {"namespace": f"adk.{scope}", "key": self.key(scope)}

    def activity(self) -> dict[str, str]:
        """The address of the timestamp of the newest event."""
        return {"namespace": _ACTIVITY, "key": self.key("session")}


@dataclass(frozen=True)
class _SessionPosition:
    """The state from which a session object was read: versions by scope, and the number of
    messages."""

    versions: dict[Scope, int]
    messages: int

    def __str__(self) -> str:
        return json.dumps(asdict(self))


class CommonholdSessionService(Adapter, BaseSessionService):
    """`state`: a client to share; without one, the service creates its own from the environment, and
    `close` (or `async with`) closes it.

    Appending to a session raises StaleSessionError if another writer has appended an event to it,
    or has changed a state key that the event changes (in any scope), since the session object was
    read. Nothing of the event is stored then: read the session and decide again. ADK's own
    DatabaseSessionService raises the same error. A session object that was created from JSON or by
    a program has no such marker; it is stale if its last event is not the newest one.

    With `refuse_stale=False` any number of writers may append to one session at once, and of two
    writers of one state key the last one wins.
    """

    def __init__(self, state: AsyncCommonhold | None = None, *, refuse_stale: bool = True) -> None:
        super().__init__(state)
        self._refuse_stale = refuse_stale
        # Serializes the appends of one event loop to one session object, because each updates its
        # marker.
        self._locks: WeakValueDictionary[Any, asyncio.Lock] = WeakValueDictionary()

    async def create_session(
        self,
        *,
        app_name: str,
        user_id: str,
        state: dict[str, Any] | None = None,
        session_id: str | None = None,
    ) -> Session:
        """Raises AlreadyExistsError."""
        given = "" if session_id is None else arguments.text("session_id", session_id)
        session_id = given.strip() or random_id()
        place = _SessionAddress(app_name, user_id, session_id)
        changes = _changes(place, _by_scope(state or {}))
        operations = [*changes, *_read_operations([place])]
        # Before the thread, so that a refused state does not leave a session without state.
        entries = await self._batch(operations, dry_run=bool(changes))
        # The nonce distinguishes an existing session from the result of our own previous attempt.
        facts = {"app_name": app_name, "user_id": user_id, "session_id": session_id}
        metadata = {_MEMBER: {**facts, "nonce": random_id()}}
        try:
            thread = await self._state.threads.create(
                place.thread, metadata=metadata, resource_id=user_id
            )
        except Conflict:
            raise AlreadyExistsError(f"Session with id {session_id} already exists.") from None
        if changes:
            entries = await self._batch(operations)
        return _session(place, thread, entries[len(changes) :], [])

    async def get_session(
        self,
        *,
        app_name: str,
        user_id: str,
        session_id: str,
        config: GetSessionConfig | None = None,
    ) -> Session | None:
        place = _SessionAddress(app_name, user_id, arguments.text("session_id", session_id).strip())
        events: list[Event] | None = None
        try:
            # State is read between the count and the events, so it is the state after the last
            # event unless an event was appended meanwhile: then all are read again.
            while events is None:
                thread = await self._state.threads.get(place.thread)
                entries = await self._batch(_read_operations([place]))
                events = await self._events(
                    place, config or GetSessionConfig(), thread.message_count
                )
        except NotRegistered:
            raise
        except NotFound:
            return None
        return _session(place, thread, entries, events)

    async def list_sessions(
        self, *, app_name: str, user_id: str | None = None
    ) -> ListSessionsResponse:
        """The sessions with state and without events, the least recently used first."""
        prefix = join_id(
            "adk",
            arguments.name("app_name", app_name),
            *([user_id] if user_id is not None else []),
            "",
        )
        call = Threads.list(prefix=prefix, limit=_PAGE)
        threads = [each async for each in self._state.every(call) if _MEMBER in each.metadata]
        places = [_place_of(thread.metadata[_MEMBER]) for thread in threads]
        entries = await self._batch(_read_operations(places))
        sessions = [
            _session(place, thread, entries[_READS * n : _READS * (n + 1)], [])
            for n, (place, thread) in enumerate(zip(places, threads, strict=True))
        ]
        sessions.sort(key=lambda each: (each.last_update_time, each.user_id, each.id))
        return ListSessionsResponse(sessions=sessions)

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Delete the session with its events and state. Needs the role admin."""
        try:
            await self._state.threads.delete(
                _SessionAddress(app_name, user_id, session_id.strip()).thread
            )
        except NotFound:
            return

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        address = _SessionAddress(app_name, user_id, "").address("user")
        (entry,) = await self._batch([{"op": "get", **address}])
        return dict(entry.value)

    async def append_event(self, session: Session, event: Event) -> Event:
        """Store the event and its state delta in one transaction. Repeating it with the same event
        changes nothing.

        The state of the session object is updated in the scopes that the event changes. Raises
        SessionNotFoundError and StaleSessionError.
        """
        if event.partial:
            return event
        self._apply_temp_state(session, event)
        event = self._trim_temp_delta_state(event)
        place = _SessionAddress(session.app_name, session.user_id, session.id)
        turn = (asyncio.get_running_loop(), place)
        async with self._locks.setdefault(turn, asyncio.Lock()):
            return await self._append(place, session, event)

    async def _append(self, place: _SessionAddress, session: Session, event: Event) -> Event:
        delta = _by_scope(event.actions.state_delta)
        message = _message_of(event)
        stamp = {"op": "put", **place.activity(), "value": {_UPDATED: event.timestamp}}
        marker = await self._marker(place, session) if self._refuse_stale else None
        while True:
            changes = _changes(place, delta, marker.versions if marker else None)
            try:
                appended = await self._state.threads.append(
                    place.thread,
                    message,
                    operations=[*changes, stamp],
                    expected_message_count=marker.messages if marker else None,
                )
            except VersionConflict:
                if marker is None:
                    raise
                newer = await self._refresh_position(place, delta, marker, message)
                if newer is None:
                    return event
                marker = newer
            except Conflict:
                if not await self._is_stored(place, message):
                    raise
                return event
            except NotRegistered:
                raise
            except NotFound:
                raise _not_found(place) from None
            else:
                break
        await super().append_event(session, event)
        entries = [result.entry for result in appended.results or () if result.entry is not None]
        states = [entry for entry in entries if entry.namespace != _ACTIVITY]
        for entry in states:
            session.state.update(_prefixed(entry))
        if marker is not None:
            versions: dict[Scope, int] = {
                **marker.versions,
                **{_scope(entry): entry.version for entry in states},
            }
            _remember(session, _SessionPosition(versions, appended.message_count))
        session.last_update_time = event.timestamp
        return event

    async def _thread(self, place: _SessionAddress) -> Thread:
        try:
            return await self._state.threads.get(place.thread)
        except NotFound:
            raise _not_found(place) from None

    async def _marker(self, place: _SessionAddress, session: Session) -> _SessionPosition:
        if session._storage_update_marker:
            return _SessionPosition(**json.loads(session._storage_update_marker))
        thread = await self._thread(place)
        newest = await anext(self._newest_first(place, 1), None)
        if (newest and newest.id) != (session.events[-1].id if session.events else None):
            raise _stale(place)
        return _position_of(thread, await self._batch(_read_operations([place])))

    async def _batch(self, operations: list[Operation], *, dry_run: bool = False) -> list[Entry]:
        """The entries after all operations, which are stored together unless they are too many."""
        query = {"dry_run": True} if dry_run else {}
        entries = []
        for start in range(0, len(operations), MOST_OPERATIONS):
            chunk = operations[start : start + MOST_OPERATIONS]
            call = replace(run_batch(chunk), query=query)
            try:
                outcomes = await self._state.send(call)
            except NotRegistered as missing:
                with registering(missing):
                    await self._register()
                outcomes = await self._state.send(call)
            except TooLarge:  # the values exceed the limit of one response: read each half
                middle = len(chunk) // 2
                if not middle or any(each["op"] != "get" for each in chunk):
                    raise
                entries += await self._batch(chunk[:middle]) + await self._batch(chunk[middle:])
                continue
            entries += [outcome.entry for outcome in outcomes if outcome.entry is not None]
        return entries

    async def _register(self) -> None:
        """Register the namespaces. Repeating it changes nothing."""
        for name in (*(f"adk.{scope}" for scope in _PREFIX), _ACTIVITY):
            history = {"keep_last": 1} if name == _ACTIVITY else None
            await self._state.send(
                register_namespace(name, schema={"type": "object"}, default={}, history=history)
            )

    async def _events(
        self, place: _SessionAddress, config: GetSessionConfig, message_count: int
    ) -> list[Event] | None:
        """The requested events. None: there is a newer one than the thread's `message_count`."""
        limit, after = config.num_recent_events, config.after_timestamp
        found: list[Event] = []
        if limit == 0:
            return found
        async for message in self._newest_first(place, limit or _PAGE):
            if message.seq > message_count:
                return None
            event = Event.model_validate(message.document[_MEMBER])
            if after is not None and event.timestamp < after:
                break
            found.append(event)
            if len(found) == limit:
                break
        return found[::-1]

    async def _newest_first(self, place: _SessionAddress, limit: int) -> AsyncIterator[Message]:
        """The messages that are events."""
        call = Threads.messages(place.thread, order="desc", limit=min(limit, _PAGE))
        async for message in self._state.every(call):
            if _MEMBER in message.document:
                yield message

    async def _is_stored(self, place: _SessionAddress, message: Mapping[str, Any]) -> bool:
        """Whether this event is stored."""
        async for held in self._newest_first(place, _PAGE):
            if held.id == message.get("id"):
                return _is_event(held, message)
        return False

    async def _refresh_position(
        self,
        place: _SessionAddress,
        delta: Mapping[Scope, Mapping[str, Any]],
        marker: _SessionPosition,
        message: Mapping[str, Any],
    ) -> _SessionPosition | None:
        """The current marker; None if this event is stored already. Raises StaleSessionError if
        another event was appended, or a key of the delta changed, since `marker`."""
        thread = await self._thread(place)
        call = Threads.messages(place.thread, after=marker.messages, limit=_PAGE)
        events = [each async for each in self._state.every(call) if _MEMBER in each.document]
        if any(_is_event(each, message) for each in events):
            return None
        if events:
            raise _stale(place)
        now = await self._batch(_read_operations([place]))
        for entry in now[: len(_PREFIX)]:
            scope = _scope(entry)
            touched = {pointer_of(name) for name in delta[scope]}
            if changed := touched & await self._moved(entry, marker.versions[scope]):
                raise _stale(place, f" ({scope} state: {', '.join(sorted(changed))})")
        return _position_of(thread, now)

    async def _moved(self, entry: Entry, since: int) -> set[str]:
        """Pointers of the members that changed after version `since`."""
        if entry.version == since:
            return set()
        if since == 0:
            return {pointer_of(name) for name in entry.value}
        try:
            diff = await self._state.diff(entry.namespace, entry.key, since, entry.version)
        except (Gone, NotFound) as forgotten:
            raise StaleSessionError(
                "The versions from which it was read were removed. Read it again."
            ) from forgotten
        return {"/" + row["pointer"].split("/")[1] for row in diff.rows}


def _place_of(facts: Mapping[str, str]) -> _SessionAddress:
    return _SessionAddress(facts["app_name"], facts["user_id"], facts["session_id"])


def _read_operations(places: Iterable[_SessionAddress]) -> list[Operation]:
    """Reads of the `_READS` entries of each session, its activity last."""
    return [
        {"op": "get", **address}
        for place in places
        for address in (*map(place.address, _PREFIX), place.activity())
    ]


def _by_scope(state: Mapping[str, Any]) -> dict[Scope, dict[str, Any]]:
    """The delta by scope, with names without prefixes. Values that are not JSON become strings, as
    in ADK's own services."""
    found: dict[Scope, dict[str, Any]] = {scope: {} for scope in _PREFIX}
    for name, value in to_jsonable_python(state, fallback=str).items():
        scope: Scope = next(scope for scope, prefix in _PREFIX.items() if name.startswith(prefix))
        if not name.startswith("temp:"):
            found[scope][name.removeprefix(_PREFIX[scope])] = value
    return found


def _changes(
    place: _SessionAddress,
    delta: Mapping[Scope, Mapping[str, Any]],
    versions: Mapping[Scope, int] | None = None,
) -> list[Operation]:
    """Each member is set by an operation of its own, so that writers of different keys do not
    conflict."""
    return [
        {
            "op": "patch",
            **place.address(scope),
            "patch_type": "update",
            "patch": [
                {"op": "set", "path": pointer_of(name), "value": value}
                for name, value in delta[scope].items()
            ],
            **({} if versions is None else {"if_version": versions[scope]}),
        }
        for scope in _PREFIX
        if delta[scope]
    ]


def _scope(entry: Entry) -> Scope:
    return cast(Scope, entry.namespace.removeprefix("adk."))


def _prefixed(entry: Entry) -> dict[str, Any]:
    prefix = _PREFIX[_scope(entry)]
    return {prefix + name: value for name, value in entry.value.items()}


def _session(
    place: _SessionAddress, thread: Thread, entries: Sequence[Entry], events: list[Event]
) -> Session:
    """A session from its thread, its `_READS` entries and the requested events."""
    *states, activity = entries
    session = Session(
        id=place.session,
        app_name=place.app,
        user_id=place.user,
        state={name: value for entry in states for name, value in _prefixed(entry).items()},
        events=events,
        last_update_time=activity.value.get(_UPDATED, thread.created_at.timestamp()),
    )
    _remember(session, _position_of(thread, entries))
    return session


def _position_of(thread: Thread, entries: Sequence[Entry]) -> _SessionPosition:
    versions: dict[Scope, int] = {_scope(entry): entry.version for entry in entries[: len(_PREFIX)]}
    return _SessionPosition(versions, thread.message_count)


def _remember(session: Session, marker: _SessionPosition) -> None:
    session._storage_update_marker = str(marker)


def _not_found(place: _SessionAddress) -> SessionNotFoundError:
    return SessionNotFoundError(f"Session {place.session} not found.")


def _stale(place: _SessionAddress, what: str = "") -> StaleSessionError:
    # The text of ADK's DatabaseSessionService.
    return StaleSessionError(
        f"The session has been modified in storage since it was loaded{what}. "
        f"Please reload the session {place.session} before appending more events."
    )


def _is_event(stored: Message, message: Mapping[str, Any]) -> bool:
    return stored.id == message.get("id") and bool(stored.document[_MEMBER] == message[_MEMBER])


def _message_of(event: Event) -> dict[str, Any]:
    """A message that contains the complete event and shows its text and tool calls to readers."""
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
