"""How Python values and names lie in Commonhold: values as readable JSON where they are JSON, keys of
parts that cannot run into each other."""

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

# Below the server's own limits (64 levels, 10,000 members, 8 MiB), for what is wrapped around.
_DEPTH: Final = 48
_MEMBERS: Final = 8_000
_INTEGER: Final = 2**63
PART_BYTES: Final = 4 * 1024 * 1024
_WORTH_BYTES: Final = 1024
# A value this small is stored in the checkpoint itself: an entry of its own would be larger.
_SMALL: Final = 256

_RESERVED: Final = re.compile("[%/\x00-\x1f\x7f-\x9f]")
_REFUSED: Final = re.compile("[\x00\ud800-\udfff]")

Packed = dict[str, Any]


def escape(name: str) -> str:
    """A name as one part of a key: what would end the part, or is illegal in keys, as of URLs."""
    return _RESERVED.sub(lambda found: quote(found[0], safe=""), name)


def part(name: str, most: int) -> str:
    """The same in at most `most` bytes: longer ones end in a digest of the whole."""
    spelled = escape(name)
    if len(spelled.encode()) <= most:
        return spelled
    head = spelled.encode()[: most - 33].decode(errors="ignore")
    return f"{head}~{hashlib.sha256(name.encode()).hexdigest()[:32]}"


class Packer:
    """Values as JSON documents and back.

    `{"json": value}` for what is JSON already, else `{"type", "base64"}` as the serializer says, with
    `"zlib": true` where that made it smaller.
    Any serializer but LangGraph's own (an encrypting one) encodes every value. A document that
    would be too big for one entry becomes `{"type", "parts": n}`; its parts are entries beside it.
    """

    def __init__(self, serde: SerializerProtocol) -> None:
        self._serde = serde
        self._readable = type(serde) is JsonPlusSerializer

    def pack(self, value: Any) -> tuple[Packed, list[str]]:
        """The document, and the parts it does not hold itself."""
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
        """The value; `part` gives the nth of its parts."""
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
        """The approximate size of a value that is stored in the checkpoint itself; None: it is not."""
        if not self._readable:
            return None
        size = _weigh(value)
        return size if size <= _SMALL and _is_json(value) else None

    def split(self, members: Mapping[str, Any]) -> tuple[dict[str, Any], Packed]:
        """Members that are JSON, readable whatever the serializer, and the others, packed."""
        plain = {name: _listed(value) for name, value in members.items()}
        odd = {name: members[name] for name, value in plain.items() if not _is_json(value)}
        for name in odd:
            del plain[name]
        return plain, self.pack(odd)[0] if odd else {}


def _listed(value: Any) -> Any:
    """With lists for tuples, which JSON does not know; LangGraph's serializer makes the same of it."""
    if type(value) in (list, tuple):
        return [_listed(each) for each in value]
    if type(value) is dict:
        return {name: _listed(each) for name, each in value.items()}
    return value


def _weigh(value: Any) -> int:
    """About the bytes of a value as JSON. It stops counting when they are too many for a small one."""
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
    """Whether it comes back from JSON exactly as it is, within what the server takes."""
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
