"""The messages of a thread as UI messages of the AI SDK (v6), whole or in chunks. Converts data
only.

A UI message of an assistant is everything between two messages of others: each assistant message is
a step of it, and the results of tools are attached to their calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from state_admin.domain import values
from state_admin.domain.values import JSON
from state_admin.models import Run, RunStatus, Ticket, TicketStatus

from .parts import File, Reasoning, Text, ThreadMessage, ToolCall

Shape = dict[str, JSON]

# Tickets by the id of their tool call.
Tickets = Mapping[str, Ticket]

_DECIDED = {TicketStatus.RESUMED: True, TicketStatus.CANCELLED: False}


def answers(message: ThreadMessage) -> bool:
    """Whether it is part of the assistant's reply."""
    return message.role in ("assistant", "tool")


def reply_id(before: int) -> str:
    """The id of the assistant's UI message after the message with this seq."""
    return f"reply-{before}"


def show(log: Iterable[ThreadMessage], tickets: Tickets) -> list[Shape]:
    """The UI messages of a thread, as `safeValidateUIMessages` accepts them."""
    messages: list[Shape] = []
    reply: Shape | None = None
    calls: dict[str, Shape] = {}
    before = 0
    for message in log:
        if not answers(message):
            reply, before = None, message.seq
            parts = [*_parts(message)] or [{"type": "text", "text": ""}]
            messages.append(
                {
                    "id": message.id,
                    "role": message.role,
                    "metadata": _about(message),
                    "parts": parts,
                }
            )
            continue
        if reply is None:
            calls = {}
            reply = {
                "id": reply_id(before),
                "role": "assistant",
                "metadata": _about(message),
                "parts": [],
            }
            messages.append(reply)
        if message.role == "tool":
            if message.answers in calls:
                calls[message.answers] |= _result(message)
                calls[message.answers].pop("approval", None)
            continue
        reply["parts"] += [{"type": "step-start"}, *_parts(message)]
        for call in message.calls:
            calls[call.id] = _tool(call) | _approval(tickets.get(call.id))
            reply["parts"].append(calls[call.id])
    return messages


def _about(message: ThreadMessage) -> Shape:
    return {"run_id": message.run_id, "created_at": message.at.isoformat()}


def _parts(message: ThreadMessage) -> Iterator[Shape]:
    for index, part in enumerate(message.parts):
        if isinstance(part, Text):
            yield {"type": "text", "text": part.text, "state": "done"}
        elif isinstance(part, Reasoning):
            thought = {"id": _part_id(message, index), "text": part.text, "state": "done"}
            yield {"type": "reasoning", **thought}
        elif isinstance(part, File):
            name = {"filename": part.name} if part.name else {}
            yield {"type": "file", "mediaType": part.media_type, "url": part.url, **name}
        else:
            yield {"type": "data-block", "data": part.value}


def _part_id(message: ThreadMessage, index: int) -> str:
    """The id of a part in the stream; for reasoning, also in the message."""
    return f"{message.seq}-{index}"


def _tool(call: ToolCall) -> Shape:
    about = {"toolCallId": call.id, "state": "input-available", "input": call.input}
    return {"type": f"tool-{call.name}", **about}


def _result(message: ThreadMessage) -> Shape:
    if message.failed:
        return {"state": "output-error", "errorText": message.text}
    return {"state": "output-available", "output": _output(message)}


def _output(message: ThreadMessage) -> JSON:
    """The result of a tool: objects and lists as JSON, everything else as text."""
    if message.text[:1] in ("{", "["):
        try:
            return values.load(message.text)
        except ValueError:
            pass
    return message.text


def _approval(ticket: Ticket | None) -> Shape:
    """The approval state of a tool call without a result, from its ticket."""
    if ticket is None or ticket.status == TicketStatus.VOID:
        return {}
    approval: Shape = {"id": ticket.public_id}
    if ticket.status == TicketStatus.PENDING:
        return {"state": "approval-requested", "approval": approval}
    approved = _DECIDED[TicketStatus(ticket.status)]
    state = "approval-responded" if approved else "output-denied"
    return {"state": state, "approval": approval | {"approved": approved}}


# In chunks -----------------------------------------------------------------------------------


def begin(before: int, run: Run) -> Shape:
    about = {"run_id": run.public_id, "thread_id": run.thread.public_id}
    return {"type": "start", "messageId": reply_id(before), "messageMetadata": about}


def state_part(state: JSON) -> Shape:
    """The thread's state; a later one replaces it."""
    return {"type": "data-state", "id": "state", "data": state}


def step(message: ThreadMessage) -> Iterator[Shape]:
    """The chunks of an assistant message."""
    yield {"type": "start-step"}
    for index, part in enumerate(_parts(message)):
        kind = part["type"]
        if kind in ("text", "reasoning"):
            name = _part_id(message, index)
            yield {"type": f"{kind}-start", "id": name}
            yield {"type": f"{kind}-delta", "id": name, "delta": part["text"]}
            yield {"type": f"{kind}-end", "id": name}
        else:
            yield part
    for call in message.calls:
        yield tool_call(call)
    yield {"type": "finish-step"}


def tool_call(call: ToolCall) -> Shape:
    about = {"toolCallId": call.id, "toolName": call.name, "input": call.input}
    return {"type": "tool-input-available", **about}


def result(message: ThreadMessage) -> Shape:
    part = _result(message)
    kind = "tool-output-error" if part.pop("state") == "output-error" else "tool-output-available"
    return {"type": kind, "toolCallId": message.answers, **part}


def approval_request(ticket: Ticket) -> Shape:
    about = {"approvalId": ticket.public_id, "toolCallId": ticket.tool_call_id}
    return {"type": "tool-approval-request", **about}


def finish(run: Run) -> list[Shape]:
    """The last chunk of a run that is done, waits, or continues with another message."""
    if run.status != RunStatus.DONE:
        waits = run.status == RunStatus.WAITING
        return [{"type": "finish", "finishReason": "tool-calls" if waits else "other"}]
    ended = run.termination_reason or {}
    kind = ended.get("type")
    if kind == "cancelled":
        return [{"type": "abort", "reason": "cancelled"}]
    if kind in ("error", "blocked"):
        text = ended.get("message") or ended.get("reason") or f"the run ended: {kind}"
        reason = "error" if kind == "error" else "content-filter"
        return [
            {"type": "error", "errorText": str(text)},
            {"type": "finish", "finishReason": reason},
        ]
    return [{"type": "finish", "finishReason": "other" if kind == "stopped" else "stop"}]
