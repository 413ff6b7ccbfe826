"""Three-way merge: one value with the changes of two sides to a common base.

The command `write_docs` copies this file into the Python client, so that both merge alike.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from state_admin.domain.alignment import align, identity_key
from state_admin.domain.values import JSON, MISSING, identity, pointer_of, same


@dataclass(frozen=True)
class Clash:
    """A place of the merged value that both sides changed differently. `absent` lists the sides
    ("base", "theirs", "yours") without a value there, whose member is None."""

    pointer: str
    base: JSON
    theirs: JSON
    yours: JSON
    absent: tuple[str, ...] = ()


def merge(base: JSON, theirs: JSON, yours: JSON) -> tuple[JSON, list[Clash]]:
    """A value with the changes of both sides to `base`, and the places where they conflict.

    Objects are merged by member, arrays by item (see `align`), and everything else as a whole. The
    same change on both sides is not a conflict. At a conflict, the merged value has theirs.

    An array conflicts as a whole if one side changed an item that the other removed, if both put
    the same items into different orders, or if both inserted different items at the same place.
    Items with an identity key may be inserted at the same place; theirs are first.
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
    if all(isinstance(side, list) for side in sides):
        items = _items(base, theirs, yours)
        if items is not None:
            return [
                _merged(*item, f"{pointer}/{index}", clashes) for index, item in enumerate(items)
            ]
    names = ("base", "theirs", "yours")
    absent = tuple(name for name, side in zip(names, sides, strict=True) if side is MISSING)
    known_sides = [None if side is MISSING else side for side in sides]
    clashes.append(Clash(pointer, known_sides[0], known_sides[1], known_sides[2], absent))
    return theirs


def _is_same(a: JSON, b: JSON) -> bool:
    return a is b or (a is not MISSING and b is not MISSING and same(a, b))


def _items(
    base: list[JSON], theirs: list[JSON], yours: list[JSON]
) -> list[tuple[JSON, JSON, JSON]] | None:
    """The items of the merged array in order, each as the three sides have it. None: a conflict."""
    key = identity_key(base, theirs, yours)
    left, right = _named(base, theirs, key, "theirs"), _named(base, yours, key, "yours")
    common = left.keys() & right.keys()
    for side in (left, right):
        for name in side.keys() - common:
            if isinstance(name, int) and not same(base[name], side[name]):
                return None
    first = left
    order = [name for name in left if name in common and isinstance(name, int)]
    other = [name for name in right if name in common and isinstance(name, int)]
    if order != other:
        if order == sorted(order):
            first = right
        elif other != sorted(other):
            return None
    theirs_after, yours_after = _inserted(left, common), _inserted(right, common)
    merged: list[Hashable] = []
    for place in (None, *(name for name in first if name in common)):
        merged += [] if place is None else [place]
        added, also_added = theirs_after.get(place, []), yours_after.get(place, [])
        if added and also_added and key is None:
            if not same([left[name] for name in added], [right[name] for name in also_added]):
                return None
            also_added = []
        merged += added + also_added
    return [
        (
            base[name] if isinstance(name, int) else MISSING,
            left.get(name, MISSING),
            right.get(name, MISSING),
        )
        for name in merged
    ]


def _named(base: list[JSON], items: list[JSON], key: str | None, side: str) -> dict[Hashable, JSON]:
    """The items in order. The name of an item is its index in `base`; of a new one, its identity,
    or its side and index."""
    named: dict[Hashable, JSON] = {}
    for index, origin in enumerate(align(base, items, key)):
        item = items[index]
        new = (side, index) if key is None else (key, identity(item[key]))
        named[new if origin is None else origin] = item
    return named


def _inserted(items: dict[Hashable, JSON], common: set[Hashable]) -> dict[Hashable, list[Hashable]]:
    """The new items that only one side has, by the common item before them; None: by none."""
    place: Hashable = None
    inserted: dict[Hashable, list[Hashable]] = {}
    for name in items:
        if name in common:
            place = name
        elif not isinstance(name, int):
            inserted.setdefault(place, []).append(name)
    return inserted
