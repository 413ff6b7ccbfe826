"""Converts the updates of a session to messages of its thread and back. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from commonhold import documents

MEMBER = "acp"

# When a session is loaded, its agent sends these again.
_PASSING = frozenset({"available_commands_update", "config_option_update", "usage_update"})
_CHUNKS = frozenset({"agent_message_chunk", "agent_thought_chunk", "user_message_chunk"})
_ENDED = frozenset({"completed", "failed"})


def is_kept(update: Mapping[str, Any]) -> bool:
    return update.get("sessionUpdate") not in _PASSING


def joined(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any] | None:
    """Two text chunks of one message as one chunk; None if they cannot be joined."""
    if first.get("sessionUpdate") not in _CHUNKS:
        return None
    one, other = first.get("content"), second.get("content")
    if not (isinstance(one, dict) and isinstance(other, dict)) or one.get("type") != "text":
        return None
    if {**first, "content": None} != {**second, "content": None}:
        return None
    if {**one, "text": None} != {**other, "text": None}:
        return None
    return {**first, "content": {**one, "text": str(one.get("text")) + str(other.get("text"))}}


def message_of_prompt(prompt: list[Any]) -> dict[str, Any]:
    return {
        "role": "user",
        "content": [_block(each) for each in prompt],
        MEMBER: {"prompt": prompt},
    }


def message_of(update: Mapping[str, Any]) -> dict[str, Any]:
    """A message that contains the complete update and shows it to readers."""
    return {**_readable_message(update), MEMBER: {"update": dict(update)}}


def updates_of(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The updates that show a message in an editor. Text that other programs appended to the thread is
    among them; their internal members are not."""
    ours = message.get(MEMBER)
    if ours is not None and "update" in ours:
        return [ours["update"]]
    if ours is not None:
        return [{"sessionUpdate": "user_message_chunk", "content": each} for each in ours["prompt"]]
    kind = {"user": "user_message_chunk", "assistant": "agent_message_chunk"}.get(message["role"])
    text = message.get("content")
    if kind is None or not isinstance(text, str) or message.get("visibility") == "internal":
        return []
    return [{"sessionUpdate": kind, "content": {"type": "text", "text": text}}]


def format_history(messages: Iterable[Mapping[str, Any]]) -> str:
    """Messages as text for an agent that does not have them; "" if there are none."""
    return "\n\n".join(line for message in messages for line in _lines(message))


def _readable_message(update: Mapping[str, Any]) -> dict[str, Any]:
    kind, content = str(update.get("sessionUpdate")), update.get("content")
    if kind == "user_message_chunk":
        return {"role": "user", "content": [_block(content)]}
    if kind == "agent_message_chunk":
        return {"role": "assistant", "content": [_block(content)]}
    if kind == "agent_thought_chunk":
        thought = {"type": "thinking", "thinking": _block(content).get("text", "")}
        return {"role": "assistant", "visibility": "internal", "content": [thought]}
    call_id, ended = update.get("toolCallId"), update.get("status") in _ENDED
    if isinstance(call_id, str) and 1 <= len(call_id) <= 256:
        if kind == "tool_call" and not ended:
            name = str(update.get("title") or update.get("kind") or "tool")
            arguments = documents.dump(update.get("rawInput"))
            function = {"name": name, "arguments": arguments}
            call = {"id": call_id, "type": "function", "function": function}
            return {"role": "assistant", "content": None, "tool_calls": [call]}
        if kind == "tool_call_update" and ended:
            parts = content if isinstance(content, list) else []
            text = [_block(part.get("content") or part) for part in parts if isinstance(part, dict)]
            return {"role": "tool", "tool_call_id": call_id, "content": text}
    return {"role": "assistant", "visibility": "internal", "content": [_block(content, kind)]}


def _block(content: Any, kind: str = "block") -> dict[str, Any]:
    if isinstance(content, dict) and isinstance(content.get("text"), str):
        return {"type": "text", "text": content["text"]}
    if isinstance(content, dict) and isinstance(content.get("type"), str):
        return {"type": content["type"]}
    return {"type": kind}


def _lines(message: Mapping[str, Any]) -> Iterator[str]:
    if message.get("visibility") == "internal" and message["role"] != "system":
        return
    content = message.get("content")
    blocks = [{"text": content}] if isinstance(content, str) else content or []
    for text in (block.get("text") for block in blocks):
        if text:
            yield f"{message['role']}: {text}"
    for call in message.get("tool_calls") or ():
        yield f"{message['role']} called: {call['function']['name']}"
