"""Three-way merge: one value with the changes of two sides to a common base.

The command `write_docs` copies this file into the Python client, so that both merge alike.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from state_admin.domain.alignment import align, identity_key
from state_admin.domain.values import JSON, MISSING, identity, pointer_of, same


@dataclass(frozen=True)
class Clash:
    """A place of the merged value that both sides changed differently. `absent` lists the sides
    ("base", "theirs", "yours") without a value there, whose member is None. `pointers` has the
    place in the sides where it differs, because an item of an array has another index."""

    pointer: str
    base: JSON
    theirs: JSON
    yours: JSON
    absent: tuple[str, ...] = ()
    pointers: dict[str, str] = field(default_factory=dict)


class _Side(NamedTuple):
    """A value of one side and its place there."""

    value: JSON
    pointer: str


_ABSENT: Final = _Side(MISSING, "")


def merge(base: JSON, theirs: JSON, yours: JSON) -> tuple[JSON, list[Clash]]:
    """A value with the changes of both sides to `base`, and the places where they conflict.

    Objects are merged by member, arrays by item (see `align`), and everything else as a whole. The
    same change on both sides is not a conflict. At a conflict, the merged value has theirs; but an
    item of an array that one side changed and the other removed remains, whichever side removed it.

    An array conflicts as a whole if both sides put the same items into different orders, or inserted
    different items at the same place. Items with an identity key may be inserted at the same
    place; theirs are first.
    """
    clashes: list[Clash] = []
    merged = _merged(_Side(base, ""), _Side(theirs, ""), _Side(yours, ""), "", clashes)
    return merged, clashes


def keep_both(clash: Clash) -> list[JSON] | None:
    """The array with what both sides inserted at the same place, theirs first, and all other changes of
    both. None if the sides conflict in something else, too."""
    sides = [_Side(value, "") for value in (clash.base, clash.theirs, clash.yours)]
    if not all(isinstance(side.value, list) for side in sides):
        return None
    items, clashes = _items(*sides, keeps_both=True), list[Clash]()
    merged = [_merged_item(*item, "", clashes) for item in items or []]
    return None if clashes or items is None else merged


def _merged(base: _Side, theirs: _Side, yours: _Side, pointer: str, clashes: list[Clash]) -> JSON:
    if _is_same(theirs.value, yours.value) or _is_same(base.value, yours.value):
        return theirs.value
    if _is_same(base.value, theirs.value):
        return yours.value
    if isinstance(theirs.value, dict) and isinstance(yours.value, dict):
        merged = {}
        for name in dict.fromkeys([*theirs.value, *yours.value]):
            at = pointer + pointer_of(name)
            of_base, of_theirs = _member(base, name), _member(theirs, name)
            member = _merged(of_base, of_theirs, _member(yours, name), at, clashes)
            if member is not MISSING:
                merged[name] = member
        return merged
    if all(isinstance(side.value, list) for side in (base, theirs, yours)):
        items = _items(base, theirs, yours)
        if items is not None:
            return [
                _merged_item(*item, f"{pointer}/{index}", clashes)
                for index, item in enumerate(items)
            ]
    clashes.append(_clash(pointer, base=base, theirs=theirs, yours=yours))
    return theirs.value


def _merged_item(
    base: _Side, theirs: _Side, yours: _Side, pointer: str, clashes: list[Clash]
) -> JSON:
    merged = _merged(base, theirs, yours, pointer, clashes)
    return yours.value if merged is MISSING else merged


def _is_same(a: JSON, b: JSON) -> bool:
    return a is b or (a is not MISSING and b is not MISSING and same(a, b))


def _member(side: _Side, name: str) -> _Side:
    value = side.value.get(name, MISSING) if isinstance(side.value, dict) else MISSING
    return _Side(value, side.pointer + pointer_of(name))


def _clash(pointer: str, **sides: _Side) -> Clash:
    there = {name: side for name, side in sides.items() if side.value is not MISSING}
    values = {name: there[name].value if name in there else None for name in sides}
    return Clash(
        pointer,
        **values,
        absent=tuple(name for name in sides if name not in there),
        pointers={name: at.pointer for name, at in there.items() if at.pointer != pointer},
    )


def _items(
    base: _Side, theirs: _Side, yours: _Side, *, keeps_both: bool = False
) -> list[tuple[_Side, _Side, _Side]] | None:
    """The items of the merged array in order, each as the three sides have it. None: a conflict, which
    different insertions at the same place are unless `keeps_both`."""
    key = identity_key(base.value, theirs.value, yours.value)
    left, right = _named(base, theirs, key, "theirs"), _named(base, yours, key, "yours")
    common = left.keys() & right.keys()
    changed_alone = _changed_alone(base, left, common), _changed_alone(base, right, common)
    first = left
    order = [name for name in left if name in common and isinstance(name, int)]
    other = [name for name in right if name in common and isinstance(name, int)]
    if order != other:
        if order == sorted(order):
            first = right
        elif other != sorted(other):
            return None
    # In the order of the base, so that the sides can be swapped.
    changed_alone_by_anchor = {
        place: sorted([*changed_alone[0].get(place, []), *changed_alone[1].get(place, [])])
        for place in (None, *common)
    }
    anchors = common.union(*changed_alone_by_anchor.values())
    theirs_after, yours_after = _inserted(left, anchors), _inserted(right, anchors)
    merged: list[Hashable] = []
    for anchor in (None, *(name for name in first if name in common)):
        for place in (anchor, *changed_alone_by_anchor[anchor]):
            merged += [] if place is None else [place]
            added, also_added = theirs_after.get(place, []), yours_after.get(place, [])
            if added and also_added and key is None:
                if same(_values(left, added), _values(right, also_added)):
                    also_added = []
                elif not keeps_both:
                    return None
            merged += added + also_added
    return [
        (
            _item(base, name) if isinstance(name, int) else _ABSENT,
            left.get(name, _ABSENT),
            right.get(name, _ABSENT),
        )
        for name in merged
    ]


def _item(side: _Side, index: int) -> _Side:
    return _Side(side.value[index], f"{side.pointer}/{index}")


def _values(items: dict[Hashable, _Side], names: list[Hashable]) -> list[JSON]:
    return [items[name].value for name in names]


def _named(base: _Side, side: _Side, key: str | None, label: str) -> dict[Hashable, _Side]:
    """The items in order. The name of an item is its index in `base`; of a new one, its identity,
    or its side and index."""
    named: dict[Hashable, _Side] = {}
    for index, origin in enumerate(align(base.value, side.value, key)):
        item = side.value[index]
        new = (label, index) if key is None else (key, identity(item[key]))
        named[new if origin is None else origin] = _item(side, index)
    return named


def _changed_alone(
    base: _Side, items: dict[Hashable, _Side], common: set[Hashable]
) -> dict[Hashable, list[int]]:
    """The items that this side changed and the other removed, by the common item before them; None: by
    none."""
    place: Hashable = None
    changed: dict[Hashable, list[int]] = {}
    for name, item in items.items():
        if name in common:
            place = name
        elif isinstance(name, int) and not same(base.value[name], item.value):
            changed.setdefault(place, []).append(name)
    return changed


def _inserted(
    items: dict[Hashable, _Side], anchors: set[Hashable]
) -> dict[Hashable, list[Hashable]]:
    """The new items that only one side has, by the anchor before them; None: by none."""
    place: Hashable = None
    inserted: dict[Hashable, list[Hashable]] = {}
    for name in items:
        if name in anchors:
            place = name
        elif not isinstance(name, int):
            inserted.setdefault(place, []).append(name)
    return inserted
