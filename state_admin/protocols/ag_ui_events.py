"""A thread as AG-UI 1.0 events: its state, messages and runs. Converts data only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from state_admin.domain import diffs, patches, values
from state_admin.domain.values import JSON
from state_admin.models import Run, RunStatus, Ticket
from state_admin.services.errors import Problem

from .parts import File, Reasoning, Text, ThreadMessage

Event = dict[str, JSON]

VERSION = "1.0"
# Names that the clients' patch library refuses in a path; such a change is sent as a snapshot.
_REFUSED = frozenset({"__proto__", "constructor", "prototype"})


def state_change(before: JSON, after: JSON) -> list[Event]:
    """STATE_DELTA from one state to the next, if applying it here gives exactly the new state and
    it is shorter; otherwise STATE_SNAPSHOT. [] if both states are equal."""
    operations = diffs.json_patch(before, after)
    if not operations:
        return []
    snapshot = [state_snapshot(after)]
    if any(_REFUSED.intersection(each["path"].split("/")) for each in operations):
        return snapshot
    try:
        patched = patches.json_patch(before, operations)
    except (patches.PatchRefused, patches.PatchTestFailed):
        return snapshot
    if not values.same(patched, after) or len(values.dump(operations)) > len(values.dump(after)):
        return snapshot
    return [{"type": "STATE_DELTA", "delta": operations}]


def state_snapshot(state: JSON) -> Event:
    return {"type": "STATE_SNAPSHOT", "snapshot": state}


def messages_snapshot(log: Sequence[ThreadMessage]) -> Event:
    return {
        "type": "MESSAGES_SNAPSHOT",
        "messages": [each for message in log for each in show(message)],
    }


def show(message: ThreadMessage) -> Iterator[dict[str, JSON]]:
    """A message in AG-UI's format; reasoning is a separate message before it."""
    thoughts = [part.text for part in message.parts if isinstance(part, Reasoning)]
    if thoughts:
        yield {"id": f"{message.id}:reasoning", "role": "reasoning", "content": "\n".join(thoughts)}
    document: dict[str, JSON] = {"id": message.id, "role": message.role}
    if message.name and message.role != "tool":
        document["name"] = message.name
    if message.role == "assistant":
        if message.text or not message.calls:
            document["content"] = message.text
        if message.calls:
            document["toolCalls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for call in message.calls
            ]
    else:
        plain = message.role == "system" or message.is_plain
        document["content"] = message.text if plain else [*_parts(message)]
    if message.role == "tool":
        document["toolCallId"] = message.answers
        if message.failed:
            document["error"] = message.text
    yield document


def _parts(message: ThreadMessage) -> Iterator[dict[str, JSON]]:
    for part in message.parts:
        if isinstance(part, File):
            family = part.media_type.split("/")[0]
            kind = family if family in ("image", "audio", "video") else "document"
            head, _, data = part.url.partition(";base64,")
            if data and head.startswith("data:"):
                source = {"type": "data", "value": data, "mimeType": part.media_type}
            else:
                source = {"type": "url", "value": part.url, "mimeType": part.media_type}
            yield {"type": kind, "source": source}
        elif isinstance(part, Text | Reasoning):
            yield {"type": "text", "text": part.text}
        else:
            yield {"type": "text", "text": values.dump(part.value)}


def message_events(log: Sequence[ThreadMessage]) -> list[Event] | None:
    """New messages as events. None if they contain something that only a snapshot can represent."""
    events: list[Event] = []
    for message in log:
        if not message.is_plain or message.failed:
            return None
        if message.role == "tool":
            events.append(
                {
                    "type": "TOOL_CALL_RESULT",
                    "messageId": message.id,
                    "toolCallId": message.answers,
                    "content": message.text,
                    "role": "tool",
                }
            )
            continue
        if message.text:
            opened = {"type": "TEXT_MESSAGE_START", "messageId": message.id, "role": message.role}
            events += [
                opened | ({"name": message.name} if message.name else {}),
                {"type": "TEXT_MESSAGE_CONTENT", "messageId": message.id, "delta": message.text},
                {"type": "TEXT_MESSAGE_END", "messageId": message.id},
            ]
        for call in message.calls:
            events.append(
                {
                    "type": "TOOL_CALL_START",
                    "toolCallId": call.id,
                    "toolCallName": call.name,
                    "parentMessageId": message.id,
                }
            )
            if call.arguments:
                events.append(
                    {"type": "TOOL_CALL_ARGS", "toolCallId": call.id, "delta": call.arguments}
                )
            events.append({"type": "TOOL_CALL_END", "toolCallId": call.id})
    return events


def run_started(thread_id: str, run_id: str, above: str = "") -> Event:
    """The event RUN_STARTED. `above`: the parent run."""
    parent = {"parentRunId": above} if above else {}
    about = {"threadId": thread_id, "runId": run_id, "protocolVersion": VERSION}
    return {"type": "RUN_STARTED", **about, **parent}


def run_finished(
    thread_id: str, run_id: str, run: Run | None = None, tickets: Sequence[Ticket] = ()
) -> Event:
    """The event for a run that is done or waits; without a run: for a thread without an active
    run."""
    about = {"threadId": thread_id, "runId": run_id}
    if run is not None and run.status == RunStatus.WAITING:
        interrupts = [_interrupt(ticket) for ticket in tickets]
        interrupts = interrupts or [
            {"id": run_id, "reason": (run.waiting or {}).get("reason", "waiting")}
        ]
        outcome: JSON = {"type": "interrupt", "interrupts": interrupts}
        return {"type": "RUN_FINISHED", **about, "outcome": outcome}
    ended = (run.termination_reason or {}) if run is not None else {}
    if ended.get("type") in ("error", "blocked"):
        message = ended.get("message") or ended.get("reason") or f"the run ended: {ended['type']}"
        return {"type": "RUN_ERROR", "message": str(message), "code": ended["type"]}
    outcome = {"type": "cancelled" if ended.get("type") == "cancelled" else "success"}
    result = {"result": {"termination_reason": ended}} if ended else {}
    return {"type": "RUN_FINISHED", **about, "outcome": outcome, **result}


def _interrupt(ticket: Ticket) -> dict[str, JSON]:
    document: dict[str, JSON] = {
        "id": ticket.public_id,
        "reason": ticket.reason or "tool_approval",
        "metadata": {"tool_name": ticket.tool_name, "resume_mode": ticket.resume_mode},
    }
    if ticket.tool_call_id:
        document["toolCallId"] = ticket.tool_call_id
    schema = values.load(ticket.response_schema) if ticket.response_schema else None
    if isinstance(schema, dict):
        document["responseSchema"] = schema
    if ticket.expires_at:
        document["expiresAt"] = ticket.expires_at.isoformat()
    return document


def closed(problem: Problem) -> Event:
    return {"type": "CUSTOM", "name": "commonhold.closed", "value": problem.document()}
