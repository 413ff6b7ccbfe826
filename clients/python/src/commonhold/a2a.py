"""A store for A2A tasks: `DefaultRequestHandler(task_store=CommonholdTaskStore(), …)`.

A task is a thread with one run; its context is the parent thread. Each save is one atomic commit:
the task is the state `a2a.task` of the thread, new messages are appended to the thread, and the run
follows the status of the task. So every revision of a task remains readable. Needs
`commonhold[a2a]`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from a2a.server.cluster.task_store import (
    ConcurrentTaskModificationError,
    StoredTask,
    VersionedTaskStore,
)
from a2a.server.cluster.version import TaskVersion
from a2a.server.context import ServerCallContext
from a2a.server.events.event_queue import Event
from a2a.server.owner_resolver import OwnerResolver, resolve_user_scope
from a2a.server.tasks.task_store import TaskStore
from a2a.types.a2a_pb2 import ListTasksRequest, ListTasksResponse, Task, TaskState
from a2a.utils.constants import DEFAULT_LIST_TASKS_PAGE_SIZE
from a2a.utils.errors import InvalidParamsError
from a2a.utils.task import ListTasksCursor, decode_list_tasks_cursor, encode_list_tasks_cursor
from google.protobuf.json_format import MessageToDict, ParseDict

from commonhold.calls import join_id
from commonhold.client import Adapter, AsyncCommonhold
from commonhold.problems import Conflict, Forbidden, Invalid, NotFound, RevisionConflict
from commonhold.runs import Runs

_KEY = "a2a.task"
_MEMBER = "a2a"
_LEASE = 3600
_RUN_IS_DONE = ("run is done", "invalid run transition: done")
_RUN_IS_ACTIVE = "thread already has an active run"
_ENDED = frozenset({"COMPLETED", "FAILED", "CANCELED", "REJECTED"})


@dataclass(frozen=True)
class _StoredTask:
    """The stored task at a revision of its thread; None if there is none."""

    document: dict[str, Any] | None
    revision: int

    @property
    def ended(self) -> bool:
        return self.document is not None and _state_in(self.document) in _ENDED


class _TaskStore(Adapter):
    """The methods that both task stores share."""

    def __init__(
        self,
        state: AsyncCommonhold | None = None,
        *,
        agent_id: str = "a2a",
        owner_resolver: OwnerResolver = resolve_user_scope,
    ) -> None:
        super().__init__(state)
        self._agent_id = agent_id
        self._owner_of = owner_resolver

    async def list(self, params: ListTasksRequest, context: ServerCallContext) -> ListTasksResponse:
        """The owner's tasks, the last updated first; reads one small row per task of the agent."""
        prefix = _thread_of(self._owner_of(context), "")
        # Newest run first: that is the current one of a task that continued after its end.
        tasks: dict[str, dict[str, Any]] = {}
        async for run in self._state.every(Runs.list(agent_id=self._agent_id, limit=200)):
            if run.thread_id.startswith(prefix) and _MEMBER in run.metadata:
                tasks.setdefault(run.thread_id, run.metadata[_MEMBER])
        matching = [
            (ListTasksCursor(facts["timestamp_ns"], facts["task_id"]), thread)
            for thread, facts in tasks.items()
            if _matches(facts, params)
        ]
        matching.sort(key=lambda each: (each[0].sort_key(), each[1]), reverse=True)
        size = params.page_size or DEFAULT_LIST_TASKS_PAGE_SIZE
        after = _after(params.page_token)
        behind = [each for each in matching if after is None or each[0].sort_key() < after]
        held = await asyncio.gather(*(self._read(thread) for _, thread in behind[:size]))
        more = len(behind) > size
        found = [_task_of(each.document) for each in held if each.document is not None]
        return ListTasksResponse(
            # Tasks may have changed since their runs were read.
            tasks=[task for task in found if _matches(_facts_of(task), params)],
            next_page_token=encode_list_tasks_cursor(behind[size - 1][0]) if more else "",
            total_size=len(matching),
            page_size=size,
        )

    async def delete(self, task_id: str, context: ServerCallContext) -> None:
        """Delete the task's thread with all its messages. Needs the role admin."""
        try:
            await self._state.threads.delete(_thread_of(self._owner_of(context), task_id))
        except NotFound:
            return

    async def _held(self, task_id: str, context: ServerCallContext) -> _StoredTask:
        return await self._read(_thread_of(self._owner_of(context), task_id))

    async def _read(self, thread_id: str) -> _StoredTask:
        try:
            found = await self._state.threads.state(thread_id)
        except NotFound:
            return _StoredTask(None, 0)
        return _StoredTask(found.extensions.get(_KEY), found.revision)

    async def _write(
        self, task: Task, context: ServerCallContext, held: _StoredTask, base_revision: int
    ) -> int:
        """The current revision of the task. Raises RevisionConflict if it has changed since
        `base`."""
        owner = self._owner_of(context)
        run_id = thread_id = _thread_of(owner, task.id)
        document = MessageToDict(task)
        while True:
            try:
                committed = await self._state.runs.commit(
                    run_id,
                    [{"key": _KEY, "update": document}],
                    messages=list(_new_messages(document, held.document or {})) or None,
                    base_revision=base_revision,
                    rebase=True,
                    run=_run_of(task, document),
                )
            except NotFound:
                await self._open(owner, task)
            except Invalid as refused:
                if not refused.detail.startswith("unknown key"):
                    raise
                await self._register(refused)
            except RevisionConflict:
                raise
            except Conflict as refused:
                if not refused.detail.startswith(_RUN_IS_DONE):
                    raise
                run_id = await self._run_after(thread_id)
            else:
                return committed.revision

    async def _register(self, missing: Invalid) -> None:
        """Register the state key. Raises Invalid if the token may not: Forbidden would name a role
        that saving a task does not need."""
        try:
            await self._state.state_keys.register(_KEY, scope="thread", schema={"type": "object"})
        except Forbidden as refused:
            hint = (
                "This token may not register the state key."
                " Save one task with a token of the role admin: that registers it."
            )
            raise Invalid({**missing.document, "hint": hint}) from refused

    async def _run_after(self, thread_id: str) -> str:
        """The run of a task that continues after its end: the active one, or a new one."""
        while True:
            thread = await self._state.threads.get(thread_id)
            if thread.active_run_id is not None:
                return thread.active_run_id
            try:
                run = await self._state.runs.start(
                    thread_id, agent_id=self._agent_id, lease_seconds=_LEASE
                )
            except Conflict as refused:  # another process has just started one
                if not refused.detail.startswith(_RUN_IS_ACTIVE):
                    raise
            else:
                return run.id

    async def _open(self, owner: str, task: Task) -> None:
        """Create the threads of the context and of the task, and the task's run. Repeating it
        changes nothing."""
        thread_id = _thread_of(owner, task.id)
        context_id = join_id(_MEMBER, owner, "context", task.context_id)
        await self._state.threads.create(context_id, resource_id=owner or None)
        await self._state.threads.create(
            thread_id, parent_thread_id=context_id, resource_id=owner or None
        )
        try:
            await self._state.runs.start(
                thread_id, thread_id, agent_id=self._agent_id, lease_seconds=_LEASE
            )
        except Conflict as refused:  # another process opened the task and ended its run
            if not refused.detail.startswith(_RUN_IS_DONE):
                raise


class CommonholdTaskStore(_TaskStore, TaskStore):
    """`state`: a client to share; without one, the store creates its own from the environment, and
    `close` (or `async with`) closes it. `agent_id`: the agent to which the runs of the tasks
    belong. Owners (users of the agent) see their own tasks only."""

    async def save(self, task: Task, context: ServerCallContext) -> None:
        """The last write wins; the overwritten value remains readable as a revision."""
        while True:
            held = await self._held(task.id, context)
            try:
                await self._write(task, context, held, held.revision)
            except RevisionConflict:
                continue
            return

    async def get(self, task_id: str, context: ServerCallContext) -> Task | None:
        held = await self._held(task_id, context)
        return None if held.document is None else _task_of(held.document)


class VersionedCommonholdTaskStore(_TaskStore, VersionedTaskStore):
    """A store for several replicas of one agent: if two of them save the same version of a task,
    the second one gets ConcurrentTaskModificationError."""

    async def save(
        self,
        task: Task,
        *,
        event: Event | None = None,
        prev: Task | None = None,
        prev_version: TaskVersion,
        context: ServerCallContext,
    ) -> TaskVersion:
        while True:
            held = await self._held(task.id, context)
            canceled = task.status.state == TaskState.TASK_STATE_CANCELED
            if canceled and (held.document is None or held.ended):
                raise ConcurrentTaskModificationError(task.id)
            if not canceled and held.document is not None and prev_version.is_missing:
                raise ConcurrentTaskModificationError(task.id)
            expected = (
                held.revision if canceled or prev_version.is_missing else int(prev_version._value)
            )
            try:
                revision = await self._write(task, context, held, expected)
            except RevisionConflict:
                if canceled:
                    continue
                raise ConcurrentTaskModificationError(task.id) from None
            return TaskVersion(revision)

    async def get(self, task_id: str, context: ServerCallContext) -> StoredTask | None:
        held = await self._held(task_id, context)
        if held.document is None:
            return None
        return StoredTask(_task_of(held.document), TaskVersion(held.revision))


def _thread_of(owner: str, task_id: str) -> str:
    return join_id(_MEMBER, owner, "task", task_id)


def _task_of(document: dict[str, Any]) -> Task:
    return ParseDict(document, Task(), ignore_unknown_fields=True)


def _state_in(document: Mapping[str, Any]) -> str:
    state: str = document.get("status", {}).get("state", "")
    return state.removeprefix("TASK_STATE_")


def _facts_of(task: Task) -> dict[str, Any]:
    """The facts about a task that lists need without reading the task."""
    stamped = task.status.HasField("timestamp")
    return {
        "task_id": task.id,
        "context_id": task.context_id,
        "state": task.status.state,
        "timestamp_ns": task.status.timestamp.ToNanoseconds() if stamped else None,
    }


def _run_of(task: Task, document: Mapping[str, Any]) -> dict[str, Any]:
    """The change of the run: its status, and the facts for lists."""
    said = " ".join(part.text for part in task.status.message.parts if part.text)
    done: dict[str, dict[str, str]] = {
        "COMPLETED": {"type": "natural_end"},
        "CANCELED": {"type": "cancelled"},
        "FAILED": {"type": "error", "value": said},
        "REJECTED": {"type": "blocked", "value": said},
    }
    waiting = {"INPUT_REQUIRED": "user_input", "AUTH_REQUIRED": "external_event"}
    change: dict[str, Any] = {"metadata": {_MEMBER: _facts_of(task)}}
    state = _state_in(document)
    if state in done:
        return {**change, "status": "done", "termination_reason": done[state]}
    if state in waiting:
        return {**change, "status": "waiting", "waiting": {"reason": waiting[state]}}
    return {**change, "status": "running"}


def _new_messages(document: Mapping[str, Any], held: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The messages that the stored task does not contain yet."""
    stored_ids = {message.get("messageId") for message in _said(held)}
    for message in _said(document):
        if message.get("messageId") not in stored_ids:
            stored_ids.add(message.get("messageId"))
            yield {
                "role": "user" if message.get("role") == "ROLE_USER" else "assistant",
                "content": [_block(part) for part in message.get("parts", [])],
                _MEMBER: message,
            }


def _said(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    now = document.get("status", {}).get("message")
    return [*document.get("history", []), *([now] if now else [])]


def _block(part: Mapping[str, Any]) -> dict[str, Any]:
    if "text" in part:
        return {"type": "text", "text": part["text"]}
    return {"type": next((kind for kind in ("data", "url", "raw") if kind in part), "part")}


def _matches(facts: Mapping[str, Any], params: ListTasksRequest) -> bool:
    since = params.status_timestamp_after
    return (
        params.context_id in ("", facts["context_id"])
        and params.status in (0, facts["state"])
        and (
            not params.HasField("status_timestamp_after")
            or (
                facts["timestamp_ns"] is not None and facts["timestamp_ns"] >= since.ToNanoseconds()
            )
        )
    )


def _after(token: str) -> tuple[bool, int, str] | None:
    if not token:
        return None
    cursor = decode_list_tasks_cursor(token)
    if cursor is None:
        raise InvalidParamsError(f"Invalid page token: {token}")
    place: tuple[bool, int, str] = cursor.sort_key()
    return place
