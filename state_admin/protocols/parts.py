"""The content of a stored message, whatever its format: text, reasoning, files, tool calls.

Not here: how a protocol encodes it. Nothing is fetched, and only http, https and data: URLs count
as files; a block in an unknown format remains a block of JSON.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from state_admin.domain import values
from state_admin.domain.values import JSON
from state_admin.models import Message


@dataclass(frozen=True)
class Text:
    text: str


@dataclass(frozen=True)
class Reasoning:
    text: str


@dataclass(frozen=True)
class File:
    url: str
    media_type: str
    name: str = ""


@dataclass(frozen=True)
class Block:
    """A block in an unknown format."""

    value: JSON


Part = Text | Reasoning | File | Block


@dataclass(frozen=True)
class ToolCall:
    """`arguments` as they were sent: usually JSON text."""

    id: str
    name: str
    arguments: str

    @property
    def input(self) -> JSON:
        """The arguments as JSON, or their text if they are not JSON."""
        try:
            return values.load(self.arguments)
        except ValueError:
            return self.arguments


@dataclass(frozen=True)
class ThreadMessage:
    """A message of the thread. `answers`: the tool call whose result it is; `failed`: an error."""

    id: str
    seq: int
    role: str
    name: str
    run_id: str | None
    at: datetime
    parts: tuple[Part, ...]
    calls: tuple[ToolCall, ...]
    answers: str | None
    failed: bool

    @property
    def text(self) -> str:
        """All parts except reasoning, as text."""
        return "".join(_as_text(part) for part in self.parts if not isinstance(part, Reasoning))

    @property
    def is_plain(self) -> bool:
        """Whether it consists of text only."""
        return all(isinstance(part, Text) for part in self.parts)


def read(row: Message) -> ThreadMessage:
    body = values.load(row.body or "{}")
    name = body.get("name")
    calls = tuple(_calls(body.get("tool_calls") or ()))
    call_ids = {call.id for call in calls}
    blocks = body.get("content")
    inline = [block for block in blocks if _is_call(block)] if isinstance(blocks, list) else []
    return ThreadMessage(
        id=row.public_id,
        seq=row.seq,
        role=row.role,
        name=name if isinstance(name, str) else "",
        run_id=row.run.public_id if row.run else None,
        at=row.created_at,
        parts=tuple(_parts(body)),
        calls=calls + tuple(call for call in _calls(inline) if call.id not in call_ids),
        answers=row.answers,
        failed=body.get("is_error") is True or body.get("status") == "error",
    )


def _as_text(part: Part) -> str:
    if isinstance(part, Text | Reasoning):
        return part.text
    return (
        f"[{part.name or part.media_type}]" if isinstance(part, File) else values.dump(part.value)
    )


def _is_call(block: JSON) -> bool:
    return isinstance(block, dict) and block.get("type") == "tool_use" and "id" in block


def _calls(calls: JSON) -> Iterator[ToolCall]:
    for call in calls:
        function = call.get("function")
        about = function if isinstance(function, dict) else call
        arguments = about.get("arguments", about.get("input", {}))
        text = arguments if isinstance(arguments, str) else values.dump(arguments)
        yield ToolCall(str(call["id"]), str(about.get("name", "")), text)


def _parts(body: dict[str, JSON]) -> Iterator[Part]:
    thought = body.get("reasoning_content")
    if isinstance(thought, str) and thought:
        yield Reasoning(thought)
    content = body.get("content")
    if isinstance(content, str):
        if content:
            yield Text(content)
        return
    for block in content or ():
        if not _is_call(block):
            yield _part(block)


def _part(block: dict[str, JSON]) -> Part:
    kind = block["type"]
    for name in ("thinking", "reasoning"):
        if kind == name and isinstance(text := block.get(name, block.get("text")), str):
            return Reasoning(text)
    # also input_text and output_text
    if kind.endswith("text") and isinstance(block.get("text"), str):
        return Text(block["text"])
    return _file(block) or Block(block)


def _file(block: dict[str, JSON]) -> File | None:
    """OpenAI's image_url, input_image and file; Anthropic's image and document; the AI SDK's
    file."""
    about = block.get("image_url", block.get("file", block.get("source", block)))
    if isinstance(about, str):
        about = {"url": about}
    if not isinstance(about, dict):
        return None
    media_type = about.get("media_type", about.get("mediaType"))
    url = about.get("url", about.get("file_data"))
    if about.get("type") == "base64" and isinstance(media_type, str):
        url = f"data:{media_type};base64,{about.get('data')}"
    if not isinstance(url, str) or not url.startswith(("https://", "http://", "data:")):
        return None
    if not isinstance(media_type, str):
        declared = url[5:].split(",")[0].split(";")[0] if url.startswith("data:") else ""
        image = "image" in block["type"]
        media_type = declared or ("image/*" if image else "application/octet-stream")
    name = about.get("filename")
    return File(url, media_type, name if isinstance(name, str) else "")
