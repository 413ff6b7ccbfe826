"""Changing a value by a patch: RFC 7396, RFC 6902, and the update operations of this API.

Nothing here changes its input. Results share unchanged parts with it, so treat values as immutable.
Not here: whether a result is valid under its schema or the limits of a value.
"""

from __future__ import annotations

from typing import Final, Literal

from state_admin.domain.json_pointers import Mismatch, WorkingCopy, kind, look_up, parts_of
from state_admin.domain.values import (
    JSON,
    Fault,
    FaultError,
    RefusedJSON,
    check_depth,
    pointer_of,
    same,
)

MAX_OPERATIONS: Final = 1_000
JSON_PATCH_OPS: Final = "add, remove, replace, move, copy, test"
_ON_NUMBERS: Final = ("add", "max", "min")
_ON_LISTS: Final = ("append", "union")
PatchKind = Literal["merge", "json", "update"]
UPDATE_OPS: Final = ", ".join((*_ON_NUMBERS, *_ON_LISTS, "remove", "merge", "set"))


class PatchRefused(FaultError):
    """The patch is malformed or does not apply to the value. `faults` point into the patch."""


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
    beyond json_pointers.MAX_COPIED, a result too deep to be written) and PatchTestFailed.
    """
    copy = WorkingCopy(document)
    apply_json_patch(copy, operations)
    try:
        check_depth(copy.document)
    except RefusedJSON as deep:
        raise PatchRefused(deep.faults) from None
    return copy.document


def apply_json_patch(copy: WorkingCopy, operations: JSON) -> None:
    """`json_patch` on a working copy, which must not be used after an error."""
    for index, operation in enumerate(_listed(operations)):
        try:
            _apply(copy, operation)
        except Mismatch as error:
            place = pointer_of(index, *filter(None, [error.member]))
            raise PatchRefused([Fault(place, str(error))]) from None


def _apply(copy: WorkingCopy, operation: JSON) -> None:
    verb = _member(operation, "op")
    path = _path(operation, "path")
    if verb == "test":
        _test(copy.document, path, _value(operation))
    elif verb == "remove":
        copy.remove(path)
    elif verb == "add":
        copy.add(path, _value(operation))
    elif verb == "replace":
        copy.replace(path, _value(operation))
    elif verb == "move":
        copy.move(_path(operation, "from"), path)
    elif verb == "copy":
        copy.duplicate(_path(operation, "from"), path)
    else:
        raise Mismatch(f"unknown op '{verb[:40]}'; the ops are {JSON_PATCH_OPS}", "op")


def update(document: JSON, operations: JSON) -> JSON:
    """The update operations of this API: one `{"op", "path", "value"}` or a list, all or none.

    `add`, `max`, `min` (numbers), `append` (the value, as one item), `union` (the items of a list
    that are not in the array yet), `merge` (RFC 7396), `set`, `remove` (the member at the path,
    which may be missing; with "value", every equal item of the array there). `path` is a JSON
    Pointer; missing parents are created as objects, `-` is the end of an array. Where a number,
    list or object is expected, null counts as missing, since null is the default of a namespace
    without one. Raises PatchRefused, also if the items to compare exceed json_pointers.MAX_HASHED.
    """
    copy = WorkingCopy(document)
    alone = isinstance(operations, dict)
    for index, operation in enumerate([operations] if alone else _listed(operations)):
        try:
            _update(copy, operation)
        except Mismatch as error:
            parts = [] if alone else [str(index)]
            place = pointer_of(*parts, *filter(None, [error.member]))
            raise PatchRefused([Fault(place, str(error))]) from None
    return copy.document


def _update(copy: WorkingCopy, operation: JSON) -> None:
    verb = _member(operation, "op")
    path = _path(operation, "path")
    for name in operation:
        if name not in ("op", "path", "value"):
            raise Mismatch(f"unknown member '{name[:40]}'", name)
    if verb == "remove" and "value" not in operation:
        _remove_if_present(copy, path)
        return
    value = _value(operation)
    if verb == "remove":
        copy.discard(path, value)
    else:
        combine(copy, path, verb, [value] if verb == "append" else value)


def _remove_if_present(copy: WorkingCopy, path: list[str]) -> None:
    try:
        copy.remove(path)
    except Mismatch:
        if not path:
            raise


def combine(copy: WorkingCopy, path: list[str], verb: str, value: JSON) -> None:
    """Apply one operation to one place: `add max min append union merge set`; `append` takes a
    list.

    A missing value or null counts as 0, [] or {}. Raises Mismatch if the types do not match.
    """
    if verb == "set":
        copy.put(path, value)
    elif verb == "merge":
        if not isinstance(value, dict):
            raise Mismatch(f"merge requires an object, not {kind(value)}", "value")
        copy.merge(path, value)
    elif verb in _ON_LISTS:
        if not isinstance(value, list):
            raise Mismatch(f"{verb} requires an array, not {kind(value)}", "value")
        copy.extend(path, value, verb=verb)
    elif verb in _ON_NUMBERS:
        copy.change(path, lambda old: _number(verb, old, value))
    else:
        raise Mismatch(f"unknown op '{verb[:40]}'; the ops are {UPDATE_OPS}", "op")


def _number(verb: str, old: JSON, value: JSON) -> JSON:
    if old is not None and not _is_number(old):
        raise Mismatch(f"{verb} requires a number, but the current value is {kind(old)}", "path")
    if not _is_number(value):
        raise Mismatch(f"{verb} requires a number, not {kind(value)}", "value")
    if verb == "add":
        return _sum(old or 0, value)
    if old is None:
        return value
    return value if (value > old if verb == "max" else value < old) else old


def _sum(old: JSON, value: JSON) -> JSON:
    try:
        total = old + value
    except OverflowError:  # an integer outside the range of a double was combined with a float
        total = float("inf")
    if isinstance(total, float) and total - total:
        raise Mismatch("the sum is outside the range of a double", "value")
    return total


def _listed(operations: JSON) -> list[JSON]:
    if not isinstance(operations, list):
        raise PatchRefused([Fault("", f"a patch must be an array, not {kind(operations)}")])
    if len(operations) > MAX_OPERATIONS:
        raise PatchRefused([Fault("", f"a patch takes at most {MAX_OPERATIONS:,} operations")])
    return operations


def _member(operation: JSON, name: str) -> str:
    if not isinstance(operation, dict):
        raise Mismatch(f"an operation must be an object, not {kind(operation)}")
    if name not in operation:
        raise Mismatch(f"'{name}' is missing", name)
    value = operation[name]
    if not isinstance(value, str):
        raise Mismatch(f"'{name}' must be a string", name)
    return value


def _value(operation: dict[str, JSON]) -> JSON:
    if "value" not in operation:
        raise Mismatch("'value' is missing", "value")
    return operation["value"]


def _path(operation: JSON, member: str) -> list[str]:
    return parts_of(_member(operation, member), member)


def _test(document: JSON, path: list[str], expected: JSON) -> None:
    if not same(look_up(document, path), expected):
        raise PatchTestFailed(pointer_of(*path))


def _is_number(value: JSON) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
