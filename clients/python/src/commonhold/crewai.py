"""Persistence of CrewAI flows: `@persist(CommonholdFlowPersistence())`.

The state of a flow is one entry, whose key is the id of the flow. Each save is a version of it, with
the name of the method as its reason. Feedback that a flow waits for is an entry of a second
namespace, stored in one transaction with the state. Needs `commonhold[crewai]`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any, Final, Self, TypeVar
from weakref import WeakKeyDictionary

from crewai.flow.async_feedback.types import PendingFeedbackContext
from crewai.flow.persistence import FlowPersistence
from pydantic_core import to_jsonable_python

from commonhold import arguments
from commonhold.answers import Entry
from commonhold.calls import Call
from commonhold.client import Commonhold, from_environment
from commonhold.entries import delete_entry, get_entry, run_batch
from commonhold.namespaces import register_namespace, registering
from commonhold.problems import InvalidArgument, NotRegistered, VersionConflict

R = TypeVar("R")
State = Any
"""The state of a flow: a dict or a pydantic model."""

# Flows whose versions a client remembers. An older one is saved without a precondition.
_REMEMBERED: Final = 10_000
_STALE = (
    "Another process has saved or removed this flow since it was read here, so nothing was stored. "
    'Run it again with inputs={"id": …}: that reads the newest state.'
)
_ANSWERED = "Another process has already resumed this flow, or it waits for newer feedback."


class CommonholdFlowPersistence(FlowPersistence):
    """`state`: a client to share; without one, all objects of a process share one that is created from
    the environment. `namespace`: the first part of the names of both namespaces. `state_type`: a
    pydantic model whose JSON Schema is registered with the namespace, so that the server refuses
    states that do not fit it, from all clients.

    Saving a flow raises VersionConflict if another process has saved it since this one has loaded or
    saved it, and so does resuming a flow that another process has resumed. The objects that share a
    client count as one process. With `refuse_stale=False` the last save wins.
    """

    # Fields, so that definitions and checkpoints of CrewAI contain them. The token is not a field.
    persistence_type: str = "CommonholdFlowPersistence"
    namespace: str = "crewai"
    refuse_stale: bool = True

    _backend: _Backend

    def __init__(
        self,
        state: Commonhold | None = None,
        /,
        *,
        namespace: str = "crewai",
        state_type: type[Any] | None = None,
        refuse_stale: bool = True,
        **fields: Any,
    ) -> None:
        client: object = _shared_client(*from_environment()) if state is None else state
        if not isinstance(client, Commonhold):
            raise InvalidArgument(f"state must be a Commonhold, not {type(client).__name__}")
        arguments.name("namespace", namespace)
        super().__init__(namespace=namespace, refuse_stale=refuse_stale, **fields)
        self._backend = _Backend(client, namespace, _schema_of(state_type))

    def init_db(self) -> None:
        """Register the namespaces now, not with the first flow. Needs the role admin. Repeating it
        changes nothing."""
        self._backend.register()

    def save_state(self, flow_uuid: str, method_name: str, state_data: State) -> None:
        """Store the state as a new version, with the name of the method as its reason."""
        self._save(flow_uuid, method_name, state_data)

    def load_state(self, flow_uuid: str) -> dict[str, Any] | None:
        """The newest state."""
        backend = self._backend
        with backend.flow(flow_uuid) as versions:
            entry = backend.send(get_entry(backend.flows, flow_uuid))
            versions.state = _version(entry)
        return entry.value if entry.exists else None

    def save_pending_feedback(
        self, flow_uuid: str, context: PendingFeedbackContext, state_data: State
    ) -> None:
        """Store the state and what the flow waits for, both or none."""
        self._save(flow_uuid, context.method_name, state_data, context)

    def load_pending_feedback(
        self, flow_uuid: str
    ) -> tuple[dict[str, Any], PendingFeedbackContext] | None:
        """The newest state, with the changes that were made while the flow waited, and what it waits
        for."""
        backend = self._backend
        with backend.flow(flow_uuid) as versions:
            names = (backend.flows, backend.feedback)
            reads = [{"op": "get", "namespace": name, "key": flow_uuid} for name in names]
            results = backend.send(run_batch(reads))
            state, feedback = (each.entry for each in results if each.entry is not None)
            versions.state, versions.feedback = _version(state), _version(feedback)
        if not (state.exists and feedback.exists):
            return None
        return state.value, PendingFeedbackContext.from_dict(feedback.value)

    def clear_pending_feedback(self, flow_uuid: str) -> None:
        """The flow no longer waits. Raises VersionConflict if another process has resumed it."""
        backend = self._backend
        with backend.flow(flow_uuid) as versions, _hint(_ANSWERED):
            # What was loaded remains remembered: who resumes the same feedback again is refused.
            expected = versions.feedback if self.refuse_stale else None
            call = delete_entry(
                backend.feedback, flow_uuid, if_version=expected or None, reason="resumed"
            )
            backend.send(call)

    def _save(
        self,
        flow_uuid: str,
        method_name: str,
        state_data: State,
        context: PendingFeedbackContext | None = None,
    ) -> None:
        backend = self._backend
        with backend.flow(flow_uuid) as versions, _hint(_STALE):
            # Read under the lock: of methods that end at once, the last version has the last state.
            put: dict[str, Any] = {
                "op": "put",
                "namespace": backend.flows,
                "key": flow_uuid,
                "value": _document("state_data", state_data),
            }
            if self.refuse_stale and versions.state is not None:
                put["if_version"] = versions.state
            operations = [put]
            if context is not None:
                value = _document("context", context.to_dict())
                operations.append({**put, "namespace": backend.feedback, "value": value})
                operations[1].pop("if_version", None)
            results = backend.send(run_batch(operations, minimal=True, reason=method_name))
            versions.state = results[0].version
            if context is not None:
                versions.feedback = results[1].version


class _Versions:
    """The versions that a client has last read or written. None: it has done neither."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.state: int | None = None
        self.feedback: int | None = None


class _Memory:
    """What the objects that share a client know about flows: a flow may be saved by several, one per
    decorated method."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._flows: OrderedDict[tuple[str, str], _Versions] = OrderedDict()

    def flow(self, namespace: str, flow_uuid: str) -> _Versions:
        with self._lock:
            found = self._flows.setdefault((namespace, flow_uuid), _Versions())
            self._flows.move_to_end((namespace, flow_uuid))
            if len(self._flows) > _REMEMBERED:
                self._flows.popitem(last=False)
            return found


_MEMORIES: WeakKeyDictionary[Commonhold, _Memory] = WeakKeyDictionary()


class _Backend:
    """A client and the two namespaces. Copies of a flow or of its definition share it."""

    def __init__(self, client: Commonhold, namespace: str, schema: dict[str, Any]) -> None:
        self._client = client
        self._memory = _MEMORIES.setdefault(client, _Memory())
        self.flows = f"{namespace}.flows"
        self.feedback = f"{namespace}.feedback"
        self._schema = schema

    def __deepcopy__(self, _: Any) -> Self:
        return self

    @contextmanager
    def flow(self, flow_uuid: str) -> Iterator[_Versions]:
        """One call of a flow at a time."""
        versions = self._memory.flow(self.flows, arguments.name("flow_uuid", flow_uuid))
        with versions.lock:
            yield versions

    def send(self, call: Call[R]) -> R:
        try:
            return self._client.send(call)
        except NotRegistered as missing:
            with registering(missing):
                self.register()
            return self._client.send(call)

    def register(self) -> None:
        for call in self._registrations():
            self._client.send(call)

    def _registrations(self) -> Sequence[Call[Any]]:
        return (
            register_namespace(
                self.flows, schema=self._schema, default={}, description="CrewAI: states of flows"
            ),
            register_namespace(
                self.feedback,
                schema={"type": "object"},
                default={},
                description="CrewAI: feedback that flows wait for",
            ),
        )


@cache
def _shared_client(url: str, token: str) -> Commonhold:
    return Commonhold(url, token)


@contextmanager
def _hint(text: str) -> Iterator[None]:
    try:
        yield
    except VersionConflict as conflict:
        raise VersionConflict({**conflict.document, "hint": text}) from conflict


def _version(entry: Entry) -> int:
    return entry.version if entry.exists else 0


def _document(argument: str, value: Any) -> dict[str, Any]:
    """The state as JSON, with the names of the fields as members, as CrewAI reads it. Values that are not JSON are
    stored as text, as by CrewAI's own persistence, so a SecretStr is stored masked."""
    found = to_jsonable_python(value, by_alias=False, fallback=str)
    if not isinstance(found, dict):
        raise InvalidArgument(
            f"{argument} must be a dict or a pydantic model, not {type(value).__name__}"
        )
    return found


def _schema_of(state_type: Any) -> dict[str, Any]:
    if state_type is None:
        return {"type": "object"}
    if not (isinstance(state_type, type) and hasattr(state_type, "model_json_schema")):
        raise InvalidArgument(f"state_type must be a pydantic model, not {state_type!r}")
    schema: dict[str, Any] = state_type.model_json_schema(by_alias=False)
    return schema
