"""The format of messages, and what the server reads from them. The body is stored as sent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from . import scopes, tokens
from .values import JSON, Fault, FaultError, Raw

ROLES = ("system", "user", "assistant", "tool")
VISIBILITIES = ("all", "internal")
# Fields that the server adds to a message it returns, which a body must therefore not contain.
SERVER_FIELDS = ("seq", "run_id", "created_at", "estimated_tokens", "compaction")


@dataclass(frozen=True)
class ParsedMessage:
    """A valid message. `body` is its exact JSON text."""

    id: str | None
    role: str
    visibility: str
    opens: tuple[str, ...]
    answers: str | None
    tokens: int
    body: str


class MessageRefused(FaultError):
    """A message is not valid; `faults` say where and why."""


def parse_message(raw: Raw, pointer: str = "") -> ParsedMessage:
    """Validate a message in OpenAI's format or in that of this API. Raises MessageRefused with
    pointers below `pointer`."""
    message = raw.value
    if not isinstance(message, dict):
        raise MessageRefused([Fault(pointer, "a message must be an object")])
    faults = [Fault(pointer + at, text) for at, text in _faults(message)]
    if faults:
        raise MessageRefused(faults)
    return ParsedMessage(
        id=message.get("id"),
        role=message["role"],
        visibility=message.get("visibility", "all"),
        opens=tuple(call["id"] for call in message.get("tool_calls") or ()),
        answers=message.get("tool_call_id"),
        tokens=tokens.estimate_message(message),
        body=raw.text,
    )


def _faults(message: dict[str, JSON]) -> Iterator[tuple[str, str]]:
    for name in SERVER_FIELDS:
        if name in message:
            yield f"/{name}", "is set by the server; do not send it"
    identity = message.get("id")
    if identity is not None:
        try:
            scopes.check_id(identity if isinstance(identity, str) else "")
        except scopes.BadName as bad:
            yield "/id", str(bad)
    role = message.get("role")
    if role not in ROLES:
        yield "/role", f"must be one of {', '.join(ROLES)}"
        return
    if message.get("visibility", "all") not in VISIBILITIES:
        yield "/visibility", "must be all or internal"
    yield from _content_faults(role, message.get("content"))
    yield from _tool_faults(role, message)


def _content_faults(role: str, content: JSON) -> Iterator[tuple[str, str]]:
    if content is None:
        if role != "assistant":
            yield (
                "/content",
                "must be a string or a list of blocks; only assistant messages may omit it",
            )
    elif isinstance(content, list):
        for index, block in enumerate(content):
            if not isinstance(block, dict) or not isinstance(block.get("type"), str):
                yield f"/content/{index}", "a block must be an object with a type"
    elif not isinstance(content, str):
        yield "/content", "must be a string or a list of blocks"


def _tool_faults(role: str, message: dict[str, JSON]) -> Iterator[tuple[str, str]]:
    answers = message.get("tool_call_id")
    if role == "tool":
        if not isinstance(answers, str) or not 1 <= len(answers) <= 256:
            yield "/tool_call_id", "a tool message must have the tool_call_id of its call"
    elif answers is not None:
        yield "/tool_call_id", "only a tool message can have tool_call_id"
    calls = message.get("tool_calls")
    if calls is None:
        return
    if role != "assistant":
        yield "/tool_calls", "only an assistant message can have tool_calls"
        return
    if not isinstance(calls, list):
        yield "/tool_calls", "must be a list"
        return
    seen: set[str] = set()
    for index, call in enumerate(calls):
        at = f"/tool_calls/{index}"
        if not isinstance(call, dict):
            yield at, "a tool call must be an object"
            continue
        identity = call.get("id")
        if not isinstance(identity, str) or not 1 <= len(identity) <= 256:
            yield f"{at}/id", "a tool call must have an id"
        elif identity in seen:
            yield f"{at}/id", f"duplicate tool call id {identity}"
        else:
            seen.add(identity)
        function = call.get("function")
        name = function.get("name") if isinstance(function, dict) else call.get("name")
        if not isinstance(name, str) or not name:
            yield at, "a tool call must have a name (name or function.name)"
