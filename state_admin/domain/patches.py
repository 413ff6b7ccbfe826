"""Changing a value by a patch: RFC 7396, RFC 6902, and our own update verbs (semantics §4).

Nothing here mutates its input; results share unchanged parts with it, so treat values as
immutable. Not here: whether a result fits its schema or the limits of a value.
"""

from __future__ import annotations

from typing import Final

from state_admin.domain.places import (
    MISSING,
    Mismatch,
    add,
    alter,
    find,
    kind,
    move,
    parts_of,
    remove,
    replace,
)
from state_admin.domain.values import JSON, Fault, identity, pointer_of, same

MAX_OPERATIONS: Final = 1_000
# Each `copy` may double the document; this bounds what a patch can add that it did not bring.
MAX_COPIED: Final = 8 << 20


class PatchRefused(ValueError):
    """The patch is malformed or does not fit the value. `faults` point into the patch."""

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__("; ".join(map(str, faults)))
        self.faults = faults


class PatchTestFailed(ValueError):
    """An RFC 6902 `test` found another value, or none, at `pointer` of the document."""

    def __init__(self, pointer: str) -> None:
        super().__init__(f"test failed at '{pointer}'")
        self.pointer = pointer


def merge_patch(target: JSON, patch: JSON) -> JSON:
    """RFC 7396: null removes, objects merge, anything else replaces."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for name, change in patch.items():
        if change is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patch(merged.get(name), change)
    return merged


def json_patch(document: JSON, operations: JSON) -> JSON:
    """RFC 6902, all operations or none; `test` compares by `values.same`.

    Raises PatchRefused (malformed, over MAX_OPERATIONS, a place that does not exist, copies
    beyond MAX_COPIED) and PatchTestFailed.
    """
    budget = MAX_COPIED
    for index, operation in enumerate(_listed(operations)):
        try:
            verb = _member(operation, "op")
            path = _path(operation, "path")
            if verb == "test":
                _test(document, path, _value(operation))
            elif verb == "remove":
                document = remove(document, path)
            elif verb == "add":
                document = add(document, path, _value(operation))
            elif verb == "replace":
                document = replace(document, path, _value(operation))
            elif verb == "move":
                origin = _path(operation, "from")
                document = move(document, origin, path)
            elif verb == "copy":
                found = find(document, _path(operation, "from"), "from")
                budget = _spend(budget, found)
                document = add(document, path, found)
            else:
                raise Mismatch(f"unknown op '{verb[:40]}'", "op")
        except Mismatch as error:
            place = pointer_of(index, *filter(None, [error.member]))
            raise PatchRefused([Fault(place, str(error))]) from None
    return document


def update(document: JSON, operations: JSON) -> JSON:
    """Our update verbs: one `{"op", "path", "value"}` or a list of them, all or none.

    `add`, `max`, `min` (numbers), `append` (the value, as one item), `union` (those of a list
    that are not there yet), `merge` (RFC 7396), `set`, `remove` (the member at the path, missing
    is fine; with "value" every equal item of the array there). `path` is a JSON Pointer; missing
    parents are made as objects, `-` is the end of an array. Where a number, list or object is
    expected, null counts as missing, since null is the default of a namespace without one.
    Raises PatchRefused.
    """
    alone = isinstance(operations, dict)
    for index, operation in enumerate([operations] if alone else _listed(operations)):
        try:
            document = _update(document, operation)
        except Mismatch as error:
            parts = [] if alone else [str(index)]
            place = pointer_of(*parts, *filter(None, [error.member]))
            raise PatchRefused([Fault(place, str(error))]) from None
    return document


def _update(document: JSON, operation: JSON) -> JSON:
    verb = _member(operation, "op")
    path = _path(operation, "path")
    for name in operation:
        if name not in ("op", "path", "value"):
            raise Mismatch(f"unknown member '{name[:40]}'", name)
    if verb == "remove" and "value" not in operation:
        try:
            return remove(document, path)
        except Mismatch:
            if not path:
                raise
            return document
    value = _value(operation)
    if verb == "remove":
        return alter(document, path, lambda old: _without(old, value), make=False)
    if verb == "append":
        value = [value]
    elif verb not in ("add", "max", "min", "union", "merge", "set"):
        raise Mismatch(f"unknown op '{verb[:40]}'", "op")
    return alter(document, path, lambda old: combine(verb, old, value), make=True)


def combine(verb: str, old: JSON, value: JSON) -> JSON:
    """One verb on one place: `add max min append union merge set`; `append` takes a list.

    A null or missing `old` starts from 0, [] or {}. Raises Mismatch for types that do not fit.
    """
    if old is MISSING:
        old = None
    if verb == "set":
        return value
    if verb == "merge":
        if old is not None and not isinstance(old, dict):
            raise Mismatch(f"merge needs an object, found {kind(old)}", "path")
        if not isinstance(value, dict):
            raise Mismatch(f"merge takes an object, not {kind(value)}", "value")
        return merge_patch(old, value)
    if verb in ("append", "union"):
        if old is not None and not isinstance(old, list):
            raise Mismatch(f"{verb} needs an array, found {kind(old)}", "path")
        if not isinstance(value, list):
            raise Mismatch(f"{verb} takes an array, not {kind(value)}", "value")
        return [*(old or []), *value] if verb == "append" else _union(old or [], value)
    if old is not None and not _is_number(old):
        raise Mismatch(f"{verb} needs a number, found {kind(old)}", "path")
    if not _is_number(value):
        raise Mismatch(f"{verb} takes a number, not {kind(value)}", "value")
    if verb == "add":
        return _sum(old or 0, value)
    if old is None:
        return value
    return value if (value > old if verb == "max" else value < old) else old


def _sum(old: JSON, value: JSON) -> JSON:
    try:
        total = old + value
    except OverflowError:  # an integer beyond a double meets a float
        total = float("inf")
    if isinstance(total, float) and total - total:
        raise Mismatch("the sum is outside the range of a double", "value")
    return total


def _union(old: list[JSON], value: list[JSON]) -> list[JSON]:
    known = set(map(identity, old))
    made = list(old)
    for item in value:
        if (key := identity(item)) not in known:
            known.add(key)
            made.append(item)
    return made


def _without(old: JSON, value: JSON) -> JSON:
    if old is MISSING or old is None:
        return old
    if not isinstance(old, list):
        raise Mismatch(f"remove with a value needs an array, found {kind(old)}", "path")
    return [item for item in old if not same(item, value)]


def _listed(operations: JSON) -> list[JSON]:
    if not isinstance(operations, list):
        raise PatchRefused([Fault("", f"a patch is an array, not {kind(operations)}")])
    if len(operations) > MAX_OPERATIONS:
        raise PatchRefused([Fault("", f"a patch takes at most {MAX_OPERATIONS:,} operations")])
    return operations


def _member(operation: JSON, name: str) -> str:
    if not isinstance(operation, dict):
        raise Mismatch(f"an operation is an object, not {kind(operation)}")
    found = operation.get(name)
    if not isinstance(found, str):
        raise Mismatch(f"'{name}' must be a string", name)
    return found


def _value(operation: dict[str, JSON]) -> JSON:
    if "value" not in operation:
        raise Mismatch("'value' is missing", "value")
    return operation["value"]


def _path(operation: JSON, member: str) -> list[str]:
    return parts_of(_member(operation, member), member)


def _test(document: JSON, path: list[str], expected: JSON) -> None:
    try:
        found = find(document, path)
    except Mismatch:
        raise PatchTestFailed(pointer_of(*path)) from None
    if not same(found, expected):
        raise PatchTestFailed(pointer_of(*path))


def _spend(budget: int, value: JSON) -> int:
    stack = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            stack.extend(node.values())
            budget -= sum(map(len, node))
        elif isinstance(node, list):
            stack.extend(node)
        budget -= len(node) if isinstance(node, str) else 4
        if budget < 0:
            raise Mismatch("the patch copies more than a value may hold", "from")
    return budget


def _is_number(value: JSON) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
