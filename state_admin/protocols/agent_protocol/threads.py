"""Threads of the Agent Protocol: create, read, search, change, copy, delete; state and history."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.http import HttpResponse

from state_admin.contract import agent_protocol as contract
from state_admin.domain import values
from state_admin.domain.values import Fault, Raw
from state_admin.models import Revision, RunStatus, StateValue, Thread
from state_admin.models.large_columns import stored_bytes, without_related
from state_admin.models.runs import IN_PROGRESS
from state_admin.protocols.answers import answer
from state_admin.rest.bodies import no_content
from state_admin.rest.endpoint import Endpoint, handles
from state_admin.services import forks, snapshots, thread_patches, threads
from state_admin.services.batching import split_by_size
from state_admin.services.errors import Conflict, Gone, Invalid

from . import states
from .endpoint import Size, bounds, read, refuse, take, too_large
from .states import Shape

_SORTS = {
    "thread_id": "public_id",
    "created_at": "created_at",
    "updated_at": "updated_at",
    "status": "active_run__status",
}
_FAILED = Q(latest_run__isnull=False, latest_run__termination_reason__type="error")
_STATUS = {
    "busy": Q(active_run__status__in=IN_PROGRESS),
    "interrupted": Q(active_run__status=RunStatus.WAITING),
    "error": Q(active_run=None) & _FAILED,
}


def show(thread: Thread) -> Shape:
    rows = snapshots.read_values(thread)
    return {
        "thread_id": thread.public_id,
        "created_at": thread.created_at.isoformat(),
        "updated_at": thread.updated_at.isoformat(),
        "metadata": values.load(thread.metadata or "{}"),
        "status": states.status(thread),
        "values": states.visible({row.key: row.value for row in rows}),
        "interrupts": states.interrupts_of(thread),
    }


def show_whole(thread: Thread) -> Shape:
    return {**show(thread), "messages": states.read_messages(thread)}


@handles(contract.CREATE_THREAD)
def create_thread(call: Endpoint) -> HttpResponse:
    body = take(call, contract.ThreadCreate)
    refuse(body, "ttl", "supersteps")
    keep = read(body, "if_exists", "raise") == "do_nothing"
    thread_id = read(body, "thread_id")
    if thread_id is not None:
        threads.check_id(thread_id, "/thread_id")
    metadata = body.get("metadata", values.EMPTY_OBJECT)
    values.check(metadata, "/metadata")
    try:
        thread, created = threads.create_thread(
            actor=call.actor, thread_id=thread_id, metadata=metadata
        )
    except Conflict:
        if not keep or thread_id is None:
            raise
        thread, created = threads.read_thread(call.actor, thread_id), True
    if not (created or keep):
        raise Conflict(f"thread already exists: {thread_id}")
    return answer(show(thread))


@handles(contract.SEARCH_THREADS)
def search_threads(call: Endpoint) -> HttpResponse:
    body = take(call, contract.ThreadSearch)
    refuse(body, "extract")
    limit, offset = bounds(body)
    order = _SORTS[read(body, "sort_by", "created_at")]
    ascending = read(body, "sort_order", "desc") == "asc"
    by = F(order).asc(nulls_last=True) if ascending else F(order).desc(nulls_last=True)
    rows = matching(call, body)
    total = rows.count()
    runs = ("active_run", "latest_run")
    unused = [f"{run}__{column}" for run in runs for column in ("metadata", "created_from")]
    rows = rows.defer("created_from", *unused).order_by(by, "-id")
    sized = list(rows.values_list("pk", stored_bytes(rows))[offset : offset + limit])
    documents: list[Shape] = []
    size = Size()
    for ids in split_by_size(sized):
        part = {row.pk: row for row in rows.filter(pk__in=ids)}
        for thread in (part[each] for each in ids if each in part):
            documents.append(states.select(show(thread), read(body, "select", [])))
            if size.exceeds(documents[-1]):
                raise too_large("threads")
    response = answer(documents)
    response["X-Pagination-Total"] = str(total)
    if offset + limit < total:
        response["X-Pagination-Next"] = str(offset + limit)
    return response


@handles(contract.COUNT_THREADS)
def count_threads(call: Endpoint) -> HttpResponse:
    return answer(matching(call, take(call, contract.ThreadConditions)).count())


def matching(call: Endpoint, body: dict[str, Raw]) -> QuerySet[Thread]:
    """The threads that match the conditions of a search, among those the actor may see."""
    rows = Thread.objects.visible_to(call.actor).select_related("active_run", "latest_run")
    for name in ("metadata", "values"):
        if name in body:
            values.check(body[name], f"/{name}")
    if "metadata" in body:
        rows = rows.described_by(body["metadata"].value)
    for key, expected in read(body, "values", {}).items():
        current = StateValue.objects.current().filter(thread=OuterRef("pk"), key=key)
        rows = rows.filter(Exists(current.holding(expected)))
    if "ids" in body:
        rows = rows.filter(public_id__in=read(body, "ids", []))
    if "status" in body:
        failed = Exists(Thread.objects.filter(_FAILED, pk=OuterRef("pk")))
        idle = Q(active_run=None) & ~failed
        rows = rows.filter(_STATUS.get(body["status"].value, idle))
    return rows


@handles(contract.GET_THREAD)
def get_thread(call: Endpoint, thread_id: str) -> HttpResponse:
    return answer(show_whole(threads.read_thread(call.actor, thread_id)))


@handles(contract.PATCH_THREAD)
def patch_thread(call: Endpoint, thread_id: str) -> HttpResponse:
    body = take(call, contract.ThreadPatch)
    refuse(body, "ttl")
    if "metadata" in body:
        values.check(body["metadata"], "/metadata")
    thread = thread_patches.patch_thread(
        actor=call.actor,
        thread_id=thread_id,
        values=writable(body),
        new_messages=values.items(body["messages"]) if "messages" in body else (),
        metadata=body.get("metadata"),
        expected_revision=states.revision_in(body, "checkpoint"),
    )
    return answer(show_whole(thread))


@handles(contract.DELETE_THREAD)
def delete_thread(call: Endpoint, thread_id: str) -> HttpResponse:
    threads.delete_thread(actor=call.actor, thread_id=thread_id)
    return no_content()


@handles(contract.COPY_THREAD)
def copy_thread(call: Endpoint, thread_id: str) -> HttpResponse:
    return answer(show(forks.fork_thread(actor=call.actor, thread_id=thread_id)[0]))


@handles(contract.READ_STATE)
def read_state(call: Endpoint, thread_id: str) -> HttpResponse:
    state = states.read_state(threads.read_thread(call.actor, thread_id))
    return answer(states.select(state, _read_select(call)))


@handles(contract.UPDATE_STATE)
def update_state(call: Endpoint, thread_id: str) -> HttpResponse:
    body = take(call, contract.StateUpdate)
    thread = thread_patches.patch_thread(
        actor=call.actor,
        thread_id=thread_id,
        values=writable(body),
        expected_revision=states.revision_in(body, "checkpoint_id", "checkpoint"),
        reason=f"as node {body['as_node'].value}" if "as_node" in body else "",
    )
    at = states.checkpoint(thread, thread.revision)
    return answer({"checkpoint": at, "configurable": at, "checkpoint_id": at["checkpoint_id"]})


@handles(contract.READ_STATE_AT)
def read_state_at(call: Endpoint, thread_id: str, checkpoint_id: str) -> HttpResponse:
    thread = threads.read_thread(call.actor, thread_id)
    revision = states.read_revision(checkpoint_id)
    state = states.read_state(thread, revision)
    return answer(states.select(state, _read_select(call)))


@handles(contract.READ_STATE_OF)
def read_state_of(call: Endpoint, thread_id: str) -> HttpResponse:
    body = take(call, contract.StateAt)
    thread = threads.read_thread(call.actor, thread_id)
    revision = states.revision_in(body, "checkpoint")
    state = states.read_state(thread, revision)
    return answer(states.select(state, read(body, "select", [])))


def _read_select(call: Endpoint) -> list[str]:
    return [name for text in call.query.select for name in text.split(",")]


@handles(contract.LIST_HISTORY)
def list_history(call: Endpoint, thread_id: str) -> HttpResponse:
    named = call.query.before
    before = states.read_revision(named, "/before") if named else None
    return answer(_states(call, thread_id, call.query.limit, before, []))


@handles(contract.SEARCH_HISTORY)
def search_history(call: Endpoint, thread_id: str) -> HttpResponse:
    body = take(call, contract.HistorySearch)
    refuse(body, "metadata")
    states.revision_in(body, "checkpoint")
    before = states.revision_in(body, "before")
    limit, fields = read(body, "limit", 10), read(body, "select", [])
    return answer(_states(call, thread_id, limit, before, fields))


def _states(
    call: Endpoint, thread_id: str, limit: int, before: int | None, fields: Sequence[str]
) -> list[Shape]:
    """The newest states: at least one, and more only if they are not too large together."""
    thread = threads.read_thread(call.actor, thread_id)
    rows = Revision.objects.filter(thread=thread, dropped=False).select_related("run")
    if before is not None:
        rows = rows.filter(number__lt=before)
    found: list[Shape] = []
    size = Size()
    for row in without_related(rows).order_by("-number")[:limit]:
        try:
            state = states.select(states.read_state(thread, row.number, row), fields)
        except Gone:  # compaction has removed it since then
            continue
        if size.exceeds(state) and found:
            break
        found.append(state)
    return found


def writable(body: dict[str, Raw]) -> dict[str, Raw]:
    """The state keys that `values` sets: an object, or a list of objects, of which later ones
    override earlier ones."""
    if "values" not in body:
        return {}
    raw = body["values"]
    listed = values.items(raw) if isinstance(raw.value, list) else [raw]
    members: dict[str, Raw] = {}
    for index, part in enumerate(listed):
        if not isinstance(part.value, dict):
            place = f"/values/{index}" if isinstance(raw.value, list) else "/values"
            raise Invalid("values must be an object", [Fault(place, "must be an object")])
        members |= values.members(part)
    runtime = sorted(name for name in members if name.startswith("__"))
    if runtime:
        fault = Fault(f"/values{values.pointer_of(runtime[0])}", "is reserved for the runtime")
        raise Invalid(f"{runtime[0]} is reserved for the runtime", [fault])
    return members
