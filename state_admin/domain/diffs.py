"""The differences of two values: as JSON Patch and as rows for a page.

Not here: applying a patch (patches) and merging (three_way). Equality is `values.same` throughout.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final, Literal

from state_admin.domain.alignment import align, identity_key, in_order
from state_admin.domain.values import JSON, pointer_of, same

Kind = Literal["added", "removed", "changed"]

_OPERATION: Final = {"added": "add", "removed": "remove", "changed": "replace"}


@dataclass(frozen=True)
class Difference:
    """A difference. `before` is None for an addition, `after` for a removal."""

    pointer: str
    kind: Kind
    before: JSON
    after: JSON


def json_patch(before: JSON, after: JSON) -> list[dict[str, JSON]]:
    """RFC 6902 operations (`add`, `remove`, `replace` only) that turn `before` into `after`."""
    return [
        {"op": _OPERATION[row.kind], "path": row.pointer}
        | ({} if row.kind == "removed" else {"value": row.after})
        for row in _rows(before, after, "")
    ]


def rows(before: JSON, after: JSON, limit: int = 500) -> list[Difference]:
    """The differences as rows, at most `limit`."""
    return list(islice(_rows(before, after, ""), limit))


# Levels of nested arrays in which equal items are found and skipped first. Each level reads the value once more.
_SKIPPING_LEVELS: Final = 2


def _rows(
    before: JSON, after: JSON, pointer: str, skipping: int = _SKIPPING_LEVELS
) -> Iterator[Difference]:
    """The differences, in an order in which they can be applied one after the other."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name, member in before.items():
            place = pointer + pointer_of(name)
            if name in after:
                yield from _rows(member, after[name], place, skipping)
            else:
                yield Difference(place, "removed", member, None)
        for name, member in after.items():
            if name not in before:
                yield Difference(pointer + pointer_of(name), "added", None, member)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _array_rows(before, after, pointer, skipping)
    elif not same(before, after):
        yield Difference(pointer, "changed", before, after)


def _array_rows(
    before: list[JSON], after: list[JSON], pointer: str, skipping: int
) -> Iterator[Difference]:
    """Removed items at their index in `before`, from the last one; then new items and changes, at
    their index in `after`. An item that moved is removed and added."""
    origins = in_order(align(before, after, identity_key(before, after)))
    kept = set(origins)
    for index in reversed(range(len(before))):
        if index not in kept:
            yield Difference(f"{pointer}/{index}", "removed", before[index], None)
    for index, origin in enumerate(origins):
        if origin is None:
            yield Difference(f"{pointer}/{index}", "added", None, after[index])
        elif not (skipping and same(before[origin], after[index])):
            deeper = max(skipping - 1, 0)
            yield from _rows(before[origin], after[index], f"{pointer}/{index}", deeper)
