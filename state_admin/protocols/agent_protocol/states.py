"""The state of a thread in the Agent Protocol, in which a revision is a checkpoint."""

from __future__ import annotations

from collections.abc import Sequence

from state_admin.domain import values
from state_admin.domain.numbers import read_whole
from state_admin.domain.values import JSON, Fault, Raw
from state_admin.models import Message, Revision, Run, RunStatus, Thread, Ticket
from state_admin.protocols.reading import newest_messages
from state_admin.services import snapshots
from state_admin.services.errors import Invalid
from state_admin.services.threads import thread_not_found

Shape = dict[str, JSON]


def read_state(thread: Thread, revision: int | None = None, row: Revision | None = None) -> Shape:
    """The ThreadState at a revision; None: the current one. `values` does not contain keys of the
    runtime. Raises what snapshots.read_kept raises."""
    # The thread's own revision, run and messages, because a commit may have followed since it was
    # read.
    number = thread.revision if revision is None else revision
    is_current = number == thread.revision
    read_values = snapshots.read_values if is_current else snapshots.read_kept
    held = {item.key: item.value for item in read_values(thread, number)}
    if row is None and number:
        rows = Revision.objects.filter(thread=thread, number=number)
        row = rows.select_related("run").first()
    count = thread.message_count if revision is None else row.message_count if row else None
    messages = read_messages(thread, count)
    seems_deleted = (row is None and number) or (count and not messages)
    if seems_deleted and not Thread.objects.filter(pk=thread.pk).exists():
        raise thread_not_found(thread.public_id)
    busy = thread.active_run if is_current else None
    return {
        "values": visible(held),
        "messages": messages,
        "next": [busy.agent_id or busy.public_id] if busy else [],
        "tasks": [],
        "interrupts": _interrupts(busy),
        "checkpoint": checkpoint(thread, number),
        "parent_checkpoint": checkpoint(thread, number - 1) if number else None,
        "metadata": {
            "step": number,
            "source": row.kind if row else "input",
            "run_id": row.run.public_id if row and row.run else None,
            "label": row.label if row else "",
        },
        "created_at": (row.at if row else thread.created_at).isoformat(),
    }


def visible(held: dict[str, str]) -> Shape:
    """Stored values by key, without those of the runtime."""
    return {key: values.load(text) for key, text in held.items() if not key.startswith("__")}


def read_messages(thread: Thread, count: int | None = None) -> list[JSON]:
    """The newest messages of the thread, or of its first `count`; internal ones are left out."""
    rows = Message.objects.filter(thread=thread)
    if count is not None:
        rows = rows.filter(seq__lte=count)
    newest, _ = newest_messages(rows)
    return [{"id": row.public_id, **values.load(row.body or "{}")} for row in newest]


def checkpoint(thread: Thread, revision: int) -> Shape:
    return {
        "thread_id": thread.public_id,
        "checkpoint_ns": "",
        "checkpoint_id": str(revision),
        "checkpoint_map": None,
    }


def status(thread: Thread) -> str:
    """idle, busy, interrupted (its run waits) or error (its last run failed)."""
    if thread.active_run is not None:
        return "interrupted" if thread.active_run.status == RunStatus.WAITING else "busy"
    ended = (thread.latest_run.termination_reason or {}) if thread.latest_run else {}
    return "error" if ended.get("type") == "error" else "idle"


def interrupts_of(thread: Thread) -> Shape:
    """The pending tickets of the active run, by its id."""
    interrupts = _interrupts(thread.active_run)
    return {thread.active_run.public_id: interrupts} if interrupts and thread.active_run else {}


def _interrupts(run: Run | None) -> list[JSON]:
    if run is None or run.status != RunStatus.WAITING:
        return []
    return [
        {
            "id": ticket.public_id,
            "value": {
                "tool_call_id": ticket.tool_call_id,
                "tool_name": ticket.tool_name,
                "arguments": values.load(ticket.arguments or "null"),
                "reason": ticket.reason,
            },
        }
        for ticket in Ticket.objects.filter(run=run).pending().order_by("pk")
    ]


def revision_in(body: dict[str, Raw], *names: str) -> int | None:
    """The revision of the checkpoint in a body, given by its id or as an object. None (the newest)
    without a checkpoint or its id."""
    for name in names:
        if name not in body:
            continue
        checkpoint: JSON = body[name].value
        if isinstance(checkpoint, dict):
            if checkpoint.get("checkpoint_ns"):
                fault = Fault(f"/{name}/checkpoint_ns", "is not supported by this server")
                raise Invalid("checkpoint_ns is not supported by this server", [fault])
            checkpoint = checkpoint.get("checkpoint_id")
        if checkpoint is not None:
            return read_revision(checkpoint, f"/{name}")
    return None


def read_revision(checkpoint: JSON, pointer: str = "/checkpoint_id") -> int:
    """The revision that is the id of a checkpoint. Raises Invalid for anything else."""
    revision = read_whole(checkpoint)
    if revision is not None:
        return revision
    fault = Fault(pointer, "must be a checkpoint id of this thread: its revision")
    raise Invalid("not a checkpoint id of this server", [fault])


def select(state: Shape, fields: Sequence[str]) -> Shape:
    """The requested fields only; `values.key` for one state key. Raises Invalid for an unknown
    field."""
    if not fields:
        return state
    picked: Shape = {}
    for field in fields:
        name, _, key = field.partition(".")
        if name not in state or (key and name != "values"):
            fault = Fault("/select", f"unknown field {field[:64]}")
            raise Invalid(f"unknown field in select: {field[:64]}", [fault])
        if key:
            values = state["values"]
            picked["values"] = picked.get("values", {}) | (
                {key: values[key]} if key in values else {}
            )
        else:
            picked[name] = state[name]
    return picked
