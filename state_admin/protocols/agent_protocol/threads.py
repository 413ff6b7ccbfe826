"""Threads of the Agent Protocol: create, read, search, change, copy, delete; state and history."""

from __future__ import annotations

from typing import Any

from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from state_admin.domain import values
from state_admin.domain.access import Role
from state_admin.domain.values import Fault, Raw
from state_admin.models import Revision, RunStatus, StateValue, Thread, snapshots_sql
from state_admin.protocols.endpoint import answer
from state_admin.services import forks, thread_patches, threads
from state_admin.services.errors import Conflict, Invalid

from . import states
from .endpoint import Endpoint, bounds, choice, refuse, strings, take
from .states import Shape

_BODY: Any = {"application/json": {"type": "object"}}
_SORTS = {
    "thread_id": "public_id",
    "created_at": "created_at",
    "updated_at": "updated_at",
    "status": "active_run__status",
}
_GOING = (RunStatus.CREATED, RunStatus.RUNNING)
_FAILED = Q(latest_run__isnull=False, latest_run__termination_reason__type="error")
_STATUS = {
    "busy": Q(active_run__status__in=_GOING),
    "interrupted": Q(active_run__status=RunStatus.WAITING),
    "error": Q(active_run=None) & _FAILED,
}


def find(view: Endpoint, thread_id: str) -> Thread:
    return threads.read_thread(view.actor, thread_id)


def show(thread: Thread) -> Shape:
    held = snapshots_sql.read_state(thread_id=thread.pk)
    return {
        "thread_id": thread.public_id,
        "created_at": thread.created_at.isoformat(),
        "updated_at": thread.updated_at.isoformat(),
        "metadata": values.load(thread.metadata or "{}"),
        "status": states.status(thread),
        "values": states.visible({row.key: row.value for row in held}),
        "interrupts": states.interrupts_of(thread),
    }


def show_whole(thread: Thread) -> Shape:
    return {**show(thread), "messages": states.read_messages(thread)}


class Threads(Endpoint):
    @extend_schema(operation_id="create_agent_thread", request=_BODY)
    def post(self, request: Request) -> HttpResponse:
        """Make a thread. One that is there already is a 409, or the answer with `if_exists`
        do_nothing. Ids are any of ours, not only UUIDs."""
        given = take(
            request.data,
            thread_id=str,
            metadata=dict,
            if_exists=str,
            ttl=object,
            supersteps=list,
        )
        refuse(given, "ttl", "supersteps")
        keep = choice(given, "if_exists", ("raise", "do_nothing"), "raise") == "do_nothing"
        thread_id = given["thread_id"].value if "thread_id" in given else None
        metadata = given.get("metadata", threads.EMPTY_OBJECT)
        values.check(metadata, "/metadata")
        try:
            thread, created = threads.create_thread(
                actor=self.actor, thread_id=thread_id, metadata=metadata
            )
        except Conflict:
            if not keep or thread_id is None:
                raise
            thread, created = find(self, thread_id), True
        if not (created or keep):
            raise Conflict(f"thread already exists: {thread_id}")
        return answer(show(thread))


class ThreadSearch(Endpoint):
    roles = {"POST": Role.VIEWER}

    @extend_schema(operation_id="search_agent_threads", request=_BODY)
    def post(self, request: Request) -> HttpResponse:
        """Threads whose `metadata` and `values` hold what is asked, by `status` and `ids`; newest first.
        The headers X-Pagination-Total and X-Pagination-Next go with it."""
        given = take(
            request.data,
            metadata=dict,
            values=dict,
            ids=list,
            status=str,
            limit=int,
            offset=int,
            sort_by=str,
            sort_order=str,
            select=list,
            extract=dict,
        )
        refuse(given, "extract")
        limit, offset = bounds(given)
        order = _SORTS[choice(given, "sort_by", tuple(_SORTS), "created_at")]
        ascending = choice(given, "sort_order", ("asc", "desc"), "desc") == "asc"
        by = F(order).asc(nulls_last=True) if ascending else F(order).desc(nulls_last=True)
        rows = matching(self, given)
        total = rows.count()
        shown = [
            states.select(show(thread), strings(given, "select"))
            for thread in rows.order_by(by, "-id")[offset : offset + limit]
        ]
        response = answer(shown)
        response["X-Pagination-Total"] = str(total)
        if offset + limit < total:
            response["X-Pagination-Next"] = str(offset + limit)
        return response


class ThreadCount(Endpoint):
    roles = {"POST": Role.VIEWER}

    @extend_schema(operation_id="count_agent_threads", request=_BODY)
    def post(self, request: Request) -> HttpResponse:
        """How many threads fit, as a number."""
        given = take(request.data, metadata=dict, values=dict, status=str)
        return answer(matching(self, given).count())


def matching(view: Endpoint, given: dict[str, Raw]) -> QuerySet[Thread]:
    """The threads that a search asks for, among those the caller sees."""
    rows = Thread.objects.visible_to(view.actor).select_related("active_run", "latest_run")
    for name in ("metadata", "values"):
        if name in given:
            values.check(given[name], f"/{name}")
    if "metadata" in given:
        rows = rows.described_by(given["metadata"].value)
    for key, held in given["values"].value.items() if "values" in given else ():
        current = StateValue.objects.current().filter(thread=OuterRef("pk"), key=key)
        rows = rows.filter(Exists(current.holding(held)))
    if "ids" in given:
        rows = rows.filter(public_id__in=strings(given, "ids"))
    if "status" in given:
        wanted = choice(given, "status", ("idle", *_STATUS), "idle")
        failed = Exists(Thread.objects.filter(_FAILED, pk=OuterRef("pk")))
        idle = Q(active_run=None) & ~failed
        rows = rows.filter(_STATUS.get(wanted, idle))
    return rows


class ThreadDetail(Endpoint):
    roles = {"DELETE": Role.ADMIN}

    @extend_schema(operation_id="get_agent_thread")
    def get(self, request: Request, thread_id: str) -> HttpResponse:
        """A thread with its state and messages."""
        return answer(show_whole(find(self, thread_id)))

    @extend_schema(operation_id="patch_agent_thread", request=_BODY)
    def patch(self, request: Request, thread_id: str) -> HttpResponse:
        """Merge `metadata`, set `values` as a new checkpoint, append `messages`: all or nothing. With a
        `checkpoint` only while that is the newest (409)."""
        given = take(
            request.data,
            metadata=dict,
            values=dict,
            messages=list,
            checkpoint=dict,
            ttl=object,
        )
        refuse(given, "ttl")
        if "metadata" in given:
            values.check(given["metadata"], "/metadata")
        thread = thread_patches.patch_thread(
            actor=self.actor,
            thread_id=thread_id,
            values=writable(given),
            said=values.items(given["messages"]) if "messages" in given else (),
            metadata=given.get("metadata"),
            expected_revision=states.revision_in(given, "checkpoint"),
        )
        return answer(show_whole(thread))

    @extend_schema(operation_id="delete_agent_thread")
    def delete(self, request: Request, thread_id: str) -> HttpResponse:
        """Delete a thread with all that belongs to it; its children stay."""
        threads.delete_thread(actor=self.actor, thread_id=thread_id)
        return HttpResponse(status=204)


class ThreadCopy(Endpoint):
    @extend_schema(operation_id="copy_agent_thread")
    def post(self, request: Request, thread_id: str) -> HttpResponse:
        """A new thread with the same state and messages."""
        return answer(show(forks.fork_thread(actor=self.actor, thread_id=thread_id)[0]))


class ThreadState(Endpoint):
    @extend_schema(operation_id="get_agent_state")
    def get(self, request: Request, thread_id: str) -> HttpResponse:
        """The state now."""
        shown = states.read_state(self.actor, find(self, thread_id))
        return answer(states.select(shown, _read_select(self)))

    @extend_schema(operation_id="update_agent_state", request=_BODY)
    def post(self, request: Request, thread_id: str) -> HttpResponse:
        """Set `values` as a new checkpoint; with `checkpoint_id` or `checkpoint` only while that is the
        newest (409): state does not branch here, copy the thread for that."""
        given = take(
            request.data,
            values=object,
            checkpoint_id=str,
            checkpoint=dict,
            as_node=str,
        )
        thread = thread_patches.patch_thread(
            actor=self.actor,
            thread_id=thread_id,
            values=writable(given),
            expected_revision=states.revision_in(given, "checkpoint_id", "checkpoint"),
            reason=f"as node {given['as_node'].value}" if "as_node" in given else "",
        )
        at = states.checkpoint(thread, thread.revision)
        return answer({"checkpoint": at, "configurable": at, "checkpoint_id": at["checkpoint_id"]})


class ThreadStateAt(Endpoint):
    @extend_schema(operation_id="get_agent_state_at")
    def get(self, request: Request, thread_id: str, checkpoint_id: str) -> HttpResponse:
        """The state at a checkpoint."""
        thread = find(self, thread_id)
        revision = states.read_revision(checkpoint_id)
        shown = states.read_state(self.actor, thread, revision)
        return answer(states.select(shown, _read_select(self)))


class ThreadStateCheckpoint(Endpoint):
    roles = {"POST": Role.VIEWER}

    @extend_schema(operation_id="get_agent_state_of", request=_BODY)
    def post(self, request: Request, thread_id: str) -> HttpResponse:
        """The state at a checkpoint given as a whole."""
        given = take(request.data, checkpoint=dict, subgraphs=bool, select=list)
        thread = find(self, thread_id)
        revision = states.revision_in(given, "checkpoint")
        shown = states.read_state(self.actor, thread, revision)
        return answer(states.select(shown, strings(given, "select")))


def _read_select(view: Endpoint) -> list[str]:
    return [name for text in view.query.get("select", []) for name in text.split(",")]


_MOST_STATES = 100


class ThreadHistory(Endpoint):
    roles = {"POST": Role.VIEWER}

    @extend_schema(operation_id="list_agent_history")
    def get(self, request: Request, thread_id: str) -> HttpResponse:
        """The kept checkpoints, newest first; `limit`, `before` a checkpoint id."""
        named = self.query.get("before")
        before = states.read_revision(named, "/before") if named else None
        return answer(self._states(thread_id, self.query["limit"], before))

    @extend_schema(operation_id="search_agent_history", request=_BODY)
    def post(self, request: Request, thread_id: str) -> HttpResponse:
        """The kept checkpoints, newest first."""
        given = take(
            request.data,
            limit=int,
            before=object,
            metadata=dict,
            checkpoint=dict,
            select=list,
        )
        refuse(given, "metadata")
        limit, _ = bounds(given)
        if limit > _MOST_STATES:
            told = f"limit must be between 1 and {_MOST_STATES}"
            raise Invalid(told, [Fault("/limit", "out of range")])
        states.revision_in(given, "checkpoint")
        before = states.revision_in(given, "before")
        fields = strings(given, "select")
        return answer(
            [states.select(shown, fields) for shown in self._states(thread_id, limit, before)]
        )

    def _states(self, thread_id: str, limit: int, before: int | None) -> list[Shape]:
        thread = find(self, thread_id)
        rows = Revision.objects.filter(thread=thread, dropped=False).select_related("run")
        if before is not None:
            rows = rows.filter(number__lt=before)
        return [
            states.read_state(self.actor, thread, row.number, row)
            for row in rows.order_by("-number")[:limit]
        ]


def writable(given: dict[str, Raw]) -> dict[str, Raw]:
    """The state keys that `values` sets: an object, or a list of them, later ones winning."""
    if "values" not in given:
        return {}
    raw = given["values"]
    listed = values.items(raw) if isinstance(raw.value, list) else [raw]
    found: dict[str, Raw] = {}
    for index, part in enumerate(listed):
        if not isinstance(part.value, dict):
            place = f"/values/{index}" if isinstance(raw.value, list) else "/values"
            raise Invalid("values must be an object", [Fault(place, "must be an object")])
        found |= values.members(part)
    runtime = sorted(name for name in found if name.startswith("__"))
    if runtime:
        fault = Fault(f"/values{values.pointer_of(runtime[0])}", "belongs to the runtime")
        raise Invalid(f"{runtime[0]} belongs to the runtime", [fault])
    return found
