"""The differences of two values: as JSON Patch, as rows for a page, as a three-way merge.

Not here: applying a patch (patches). Equality is `values.same` throughout.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final, Literal

from state_admin.domain.json_pointers import MISSING
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


@dataclass(frozen=True)
class Clash:
    """A place that both sides changed differently. `absent` lists the sides ("base", "theirs",
    "yours") without a value there, whose member is None."""

    pointer: str
    base: JSON
    theirs: JSON
    yours: JSON
    absent: tuple[str, ...] = ()


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


def _rows(before: JSON, after: JSON, pointer: str) -> Iterator[Difference]:
    """The differences, in an order in which they can be applied one after the other."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name, member in before.items():
            place = pointer + pointer_of(name)
            if name in after:
                yield from _rows(member, after[name], place)
            else:
                yield Difference(place, "removed", member, None)
        for name, member in after.items():
            if name not in before:
                yield Difference(pointer + pointer_of(name), "added", None, member)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _array_rows(before, after, pointer)
    elif not same(before, after):
        yield Difference(pointer, "changed", before, after)


def _array_rows(before: list[JSON], after: list[JSON], pointer: str) -> Iterator[Difference]:
    """Equal items at both ends are skipped; the rest is compared by position, in linear time."""
    shorter = min(len(before), len(after))
    start = 0
    while start < shorter and same(before[start], after[start]):
        start += 1
    tail = 0
    while tail < shorter - start and same(before[-1 - tail], after[-1 - tail]):
        tail += 1
    both = shorter - tail
    for index in range(start, both):
        yield from _rows(before[index], after[index], f"{pointer}/{index}")
    for index in reversed(range(both, len(before) - tail)):
        yield Difference(f"{pointer}/{index}", "removed", before[index], None)
    for index in range(both, len(after) - tail):
        yield Difference(f"{pointer}/{index}", "added", None, after[index])


def three_way(base: JSON, theirs: JSON, yours: JSON) -> tuple[JSON, list[Clash]]:
    """A value with the changes of both sides to `base`, and the places where they conflict.

    Objects are merged by member, arrays by item if neither side changed the length, and everything
    else as a whole. The same change on both sides is not a conflict. At a conflict, the merged
    value has theirs.
    """
    clashes: list[Clash] = []
    return _merged(base, theirs, yours, "", clashes), clashes


def _merged(base: JSON, theirs: JSON, yours: JSON, pointer: str, clashes: list[Clash]) -> JSON:
    if _is_same(theirs, yours) or _is_same(base, yours):
        return theirs
    if _is_same(base, theirs):
        return yours
    sides = (base, theirs, yours)
    if isinstance(theirs, dict) and isinstance(yours, dict):
        common = base if isinstance(base, dict) else {}
        merged = {}
        for name in dict.fromkeys([*theirs, *yours]):
            parts = [side.get(name, MISSING) for side in (common, theirs, yours)]
            member = _merged(parts[0], parts[1], parts[2], pointer + pointer_of(name), clashes)
            if member is not MISSING:
                merged[name] = member
        return merged
    if all(isinstance(side, list) for side in sides) and len(set(map(len, sides))) == 1:
        return [
            _merged(*triple, f"{pointer}/{index}", clashes)
            for index, triple in enumerate(zip(*sides, strict=True))
        ]
    names = ("base", "theirs", "yours")
    absent = tuple(name for name, side in zip(names, sides, strict=True) if side is MISSING)
    known_sides = [None if side is MISSING else side for side in sides]
    clashes.append(Clash(pointer, known_sides[0], known_sides[1], known_sides[2], absent))
    return theirs


def _is_same(a: JSON, b: JSON) -> bool:
    return a is b or (a is not MISSING and b is not MISSING and same(a, b))
