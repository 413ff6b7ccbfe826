"""The update operations and RFC 6902 in their simplest form: every operation copies what it
changes, and every item is compared with every other. A reference for patches.py."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

from state_admin.domain.json_pointers import parts_of
from state_admin.domain.patches import merge_patch
from state_admin.domain.values import MISSING, same


class Refused(Exception):
    """The operation cannot be applied to the document."""


def update(document: Any, operations: list[dict[str, Any]]) -> Any:
    return reduce(_update, operations, document)


def json_patch(document: Any, operations: list[dict[str, Any]]) -> Any:
    return reduce(_patch, operations, document)


def _update(document: Any, operation: dict[str, Any]) -> Any:
    verb, path = operation["op"], parts_of(operation["path"])
    if verb == "remove" and "value" not in operation:
        try:
            return _remove(document, path)
        except Refused:
            if not path:
                raise
            return document
    value = operation["value"]
    if verb == "remove":
        return _alter(document, path, lambda old: _without(old, value), create=False)
    return _alter(document, path, lambda old: combine(verb, old, value), create=True)


def combine(verb: str, old: Any, value: Any) -> Any:
    old = None if old is MISSING else old
    if verb == "set":
        return value
    if verb == "merge":
        _need(old is None or isinstance(old, dict))
        _need(isinstance(value, dict))
        return merge_patch(old, value)
    if verb in ("append", "union"):
        _need(old is None or isinstance(old, list))
        if verb == "append":
            return [*(old or []), value]
        _need(isinstance(value, list))
        joined = list(old or [])
        for item in value:
            if not any(same(item, other) for other in joined):
                joined.append(item)
        return joined
    _need(old is None or _is_number(old))
    _need(_is_number(value))
    if verb == "add":
        return (old or 0) + value
    if old is None:
        return value
    return max(old, value) if verb == "max" else min(old, value)


def _without(old: Any, value: Any) -> Any:
    if old is MISSING or old is None:
        return old
    _need(isinstance(old, list))
    return [item for item in old if not same(item, value)]


def _alter(node: Any, path: list[str], change: Callable[[Any], Any], *, create: bool) -> Any:
    if not path:
        return change(node)
    part, rest = path[0], path[1:]
    if node is MISSING or node is None:
        return {part: _alter(MISSING, rest, change, create=create)} if create else node
    if isinstance(node, dict):
        changed = _alter(node.get(part, MISSING), rest, change, create=create)
        return node if changed is MISSING else {**node, part: changed}
    _need(isinstance(node, list))
    if part == "-" or part == str(len(node)):
        return [*node, _alter(MISSING, rest, change, create=create)] if create else node
    at = _step(node, part)
    return [*node[:at], _alter(node[at], rest, change, create=create), *node[at + 1 :]]


def _patch(document: Any, operation: dict[str, Any]) -> Any:
    verb, path = operation["op"], parts_of(operation["path"])
    if verb == "remove":
        return _remove(document, path)
    if verb == "add":
        return _add(document, path, operation["value"])
    if verb == "replace":
        _find(document, path)
        return _replace(document, path, operation["value"])
    if verb == "test":
        _need(same(_find(document, path), operation["value"]))
        return document
    origin = parts_of(operation["from"])
    found = _find(document, origin)
    if verb == "move":
        if origin == path:
            return document
        _need(path[: len(origin)] != origin)
        document = _remove(document, origin)
    return _add(document, path, found)


def _find(node: Any, path: list[str]) -> Any:
    for part in path:
        node = node[_step(node, part)]
    return node


def _replace(node: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    at = _step(node, path[0])
    copy = node.copy()
    copy[at] = _replace(node[at], path[1:], value)
    return copy


def _add(document: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    parent = _find(document, path[:-1])
    _need(isinstance(parent, (dict, list)))
    copy, part = parent.copy(), path[-1]
    if isinstance(copy, dict):
        copy[part] = value
    elif part == "-":
        copy.append(value)
    else:
        _need(part == str(len(copy)) or _step(copy, part) is not None)
        copy.insert(int(part), value)
    return _replace(document, path[:-1], copy)


def _remove(document: Any, path: list[str]) -> Any:
    _need(bool(path))
    parent = _find(document, path[:-1])
    copy = parent.copy() if isinstance(parent, (dict, list)) else parent
    del copy[_step(copy, path[-1])]
    return _replace(document, path[:-1], copy)


def _step(node: Any, part: str) -> Any:
    if isinstance(node, dict):
        _need(part in node)
        return part
    _need(isinstance(node, list) and part in map(str, range(len(node))))
    return int(part)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _need(holds: bool) -> None:
    if not holds:
        raise Refused
