"""Places in a value, by the parts of a JSON Pointer: finding and changing them along a copied
path. Nothing here mutates its input. Not here: which operations exist (patches).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from state_admin.domain.values import JSON, MAX_DEPTH

MISSING: Final = object()

_INDEX: Final = re.compile(r"0|[1-9][0-9]{0,8}")
_BAD_ESCAPE: Final = re.compile(r"~(?![01])")
_Path = list[str]


class Mismatch(ValueError):
    """A step does not fit what it meets; `str(e)` says how. `member` names the operation's
    member at fault, "" the operation itself."""

    def __init__(self, message: str, member: str = "") -> None:
        # It may quote a part of a request that was never checked; an answer must be UTF-8.
        super().__init__(message.encode("utf-8", "backslashreplace").decode().replace("\0", "\\0"))
        self.member = member


def parts_of(pointer: str, member: str = "path") -> _Path:
    """The parts of a JSON Pointer (RFC 6901). Raises Mismatch, also beyond MAX_DEPTH parts."""
    if not pointer:
        return []
    if pointer[0] != "/" or _BAD_ESCAPE.search(pointer):
        raise Mismatch(f"'{member}' is not a JSON Pointer", member)
    if pointer.count("/") > MAX_DEPTH:
        raise Mismatch(f"'{member}' leads deeper than {MAX_DEPTH} levels", member)
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer[1:].split("/")]


def step(node: JSON, part: str, member: str = "path") -> JSON:
    """The key or index of an existing child."""
    if isinstance(node, dict) and part in node:
        return part
    if isinstance(node, list) and _INDEX.fullmatch(part) and int(part) < len(node):
        return int(part)
    raise Mismatch(f"there is no '{part[:80]}' in {kind(node)}", member)


def find(node: JSON, path: _Path, member: str = "path") -> JSON:
    """What stands at the path."""
    for part in path:
        node = node[step(node, part, member)]
    return node


def _at_parent(node: JSON, path: _Path, act: Callable[[JSON, str], None]) -> JSON:
    """`node`, with copies along the path, and `act(parent, last part)` done on the copy."""
    if not isinstance(node, (dict, list)):
        raise Mismatch(f"there is no '{path[0][:80]}' in {kind(node)}", "path")
    made = node.copy()
    if len(path) == 1:
        act(made, path[0])
    else:
        child = step(made, path[0])
        made[child] = _at_parent(made[child], path[1:], act)
    return made


def add(document: JSON, path: _Path, value: JSON) -> JSON:
    """RFC 6902 `add`: sets a member, inserts into an array, replaces the whole."""

    def act(parent: JSON, part: str) -> None:
        if isinstance(parent, dict):
            parent[part] = value
        elif part == "-":
            parent.append(value)
        elif _INDEX.fullmatch(part) and int(part) <= len(parent):
            parent.insert(int(part), value)
        else:
            raise Mismatch(f"'{part[:80]}' is not within the array", "path")

    return _at_parent(document, path, act) if path else value


def remove(document: JSON, path: _Path, member: str = "path") -> JSON:
    """RFC 6902 `remove`; the whole document cannot go."""
    if not path:
        raise Mismatch("the whole document cannot be removed", member)

    def act(parent: JSON, part: str) -> None:
        del parent[step(parent, part, member)]

    return _at_parent(document, path, act)


def replace(document: JSON, path: _Path, value: JSON) -> JSON:
    """RFC 6902 `replace`: the place must exist."""

    def act(parent: JSON, part: str) -> None:
        parent[step(parent, part)] = value

    return _at_parent(document, path, act) if path else value


def move(document: JSON, origin: _Path, path: _Path) -> JSON:
    """RFC 6902 `move`."""
    found = find(document, origin, "from")
    if origin == path:
        return document
    if path[: len(origin)] == origin:
        raise Mismatch("a value cannot be moved into its own child", "path")
    return add(remove(document, origin, "from"), path, found)


def alter(node: JSON, path: _Path, change: Callable[[JSON], JSON], *, make: bool) -> JSON:
    """`node` with `change(old)` at the path. Missing parents become objects if `make`, else
    nothing changes."""
    if not path:
        return change(node)
    part, rest = path[0], path[1:]
    if node is MISSING or node is None:
        return {part: alter(MISSING, rest, change, make=make)} if make else node
    if isinstance(node, dict):
        child = node.get(part, MISSING)
        made = alter(child, rest, change, make=make)
        return node if made is MISSING else {**node, part: made}
    if not isinstance(node, list):
        raise Mismatch(f"there is no '{part[:80]}' in {kind(node)}", "path")
    if part == "-" or part == str(len(node)):
        return [*node, alter(MISSING, rest, change, make=make)] if make else node
    index = step(node, part)
    return [*node[:index], alter(node[index], rest, change, make=make), *node[index + 1 :]]


def kind(value: JSON) -> str:
    """The JSON type in words, for messages."""
    if value is None or value is MISSING:
        return "null"
    for types, name in (
        (bool, "a boolean"),
        (str, "a string"),
        (dict, "an object"),
        (list, "an array"),
    ):
        if isinstance(value, types):
            return name
    return "a number"
