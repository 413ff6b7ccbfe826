"""Converts Python values and names for Commonhold: values to readable JSON if they are JSON, and
names to parts of keys that cannot be confused."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import zlib
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import quote

from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

# Below the server's limits (64 levels, 10,000 members, 8 MiB), because a document has levels of its
# own.
_DEPTH: Final = 48
_MEMBERS: Final = 8_000
_INTEGER: Final = 2**63
PART_BYTES: Final = 4 * 1024 * 1024
_WORTH_BYTES: Final = 1024
# A value up to this size is stored in the checkpoint itself: a separate entry would be larger.
_SMALL: Final = 256

_RESERVED: Final = re.compile("[%/\x00-\x1f\x7f-\x9f]")
_REFUSED: Final = re.compile("[\x00\ud800-\udfff]")

Packed = dict[str, Any]


def escape(name: str) -> str:
    """A name as one part of a key. Characters that would end the part, or that keys must not
    contain, are percent-encoded."""
    return _RESERVED.sub(lambda found: quote(found[0], safe=""), name)


def part(name: str, most: int) -> str:
    """A name as one part of a key, in at most `most` bytes: a longer one ends with a digest of the
    whole name."""
    spelled = escape(name)
    if len(spelled.encode()) <= most:
        return spelled
    head = spelled.encode()[: most - 33].decode(errors="ignore")
    return f"{head}~{hashlib.sha256(name.encode()).hexdigest()[:32]}"


class Packer:
    """Converts values to JSON documents and back.

    A value that is JSON becomes `{"json": value}`, any other one `{"type", "base64"}` by the
    serializer, with `"zlib": true` if compression made it smaller. Any serializer but LangGraph's
    own (an encrypting one) encodes every value. A document that is too large for one entry becomes
    `{"type", "parts": n}`; its parts are separate entries.
    """

    def __init__(self, serde: SerializerProtocol) -> None:
        self._serde = serde
        self._readable = type(serde) is JsonPlusSerializer

    def pack(self, value: Any) -> tuple[Packed, list[str]]:
        """The document, and its parts that are stored separately."""
        if self._readable and _is_json(value) and _size(value) <= PART_BYTES:
            return {"json": value}, []
        kind, raw = self._serde.dumps_typed(value)
        packed: Packed = {"type": kind}
        if len(raw) > _WORTH_BYTES and len(small := zlib.compress(raw, 1)) < len(raw):
            packed["zlib"] = True
            raw = small
        text = base64.b64encode(raw).decode()
        if len(text) <= PART_BYTES:
            return {**packed, "base64": text}, []
        parts = [text[at : at + PART_BYTES] for at in range(0, len(text), PART_BYTES)]
        return {**packed, "parts": len(parts)}, parts

    def unpack(self, packed: Packed, part: Callable[[int], str]) -> Any:
        """The value; `part` returns the nth of its parts."""
        if "json" in packed:
            return packed["json"]
        text = packed.get("base64")
        if text is None:
            text = "".join(part(n) for n in range(packed["parts"]))
        raw = base64.b64decode(text)
        if "zlib" in packed:
            raw = zlib.decompress(raw)
        return self._serde.loads_typed((packed["type"], raw))

    def small_size(self, value: Any) -> int | None:
        """The approximate size of a value that is stored in the checkpoint itself; None if it is
        stored separately."""
        if not self._readable:
            return None
        size = _weigh(value)
        return size if size <= _SMALL and _is_json(value) else None

    def split(self, members: Mapping[str, Any]) -> tuple[dict[str, Any], Packed]:
        """The members that are JSON, which are readable with every serializer, and the others,
        packed."""
        plain = {name: _listed(value) for name, value in members.items()}
        odd = {name: members[name] for name, value in plain.items() if not _is_json(value)}
        for name in odd:
            del plain[name]
        return plain, self.pack(odd)[0] if odd else {}


def _listed(value: Any) -> Any:
    """With lists instead of tuples, which JSON does not have. LangGraph's serializer does the
    same."""
    if type(value) in (list, tuple):
        return [_listed(each) for each in value]
    if type(value) is dict:
        return {name: _listed(each) for name, each in value.items()}
    return value


def _weigh(value: Any) -> int:
    """The approximate number of bytes of a value as JSON. Counting stops when the value is too
    large to be stored in the checkpoint."""
    size = 0
    stack = [value]
    while stack and size <= _SMALL:
        node = stack.pop()
        kind = type(node)
        if kind is str:
            size += len(node)
        elif kind is dict or kind is list:
            size += 2 * len(node)
            if size <= _SMALL:
                stack += node
                if kind is dict:
                    stack += node.values()
        else:
            size += 4
    return size


def _is_json(value: Any) -> bool:
    """Whether JSON represents the value exactly, within the limits of the server."""
    count = 0
    stack = [(value, 0)]
    while stack:
        node, depth = stack.pop()
        kind = type(node)
        if kind is str:
            if _REFUSED.search(node):
                return False
        elif kind is int:
            if not -_INTEGER <= node < _INTEGER:
                return False
        elif kind is float:
            if not math.isfinite(node):
                return False
        elif kind is dict or kind is list:
            count += len(node)
            if depth == _DEPTH or count > _MEMBERS:
                return False
            if kind is list:
                stack += [(each, depth + 1) for each in node]
                continue
            for name, each in node.items():
                if type(name) is not str or _REFUSED.search(name):
                    return False
                stack.append((each, depth + 1))
        elif node is not None and kind is not bool:
            return False
    return True


def _size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode())
