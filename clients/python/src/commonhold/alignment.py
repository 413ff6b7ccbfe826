# A copy of state_admin/domain/alignment.py, written by `make docs`.
"""Aligns two versions of an array: which item of the newer version corresponds to which older item.

Differences, blame and three-way merges follow items by this alignment, so they agree with each
other. The command `write_docs` copies this file into the Python client.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterator
from numbers import Number
from typing import Final, TypeAlias

from commonhold.documents import JSON, identity, same

Pair: TypeAlias = tuple[int, int]
_Search: TypeAlias = Callable[[list[JSON], list[JSON], range, range], Iterator[Pair]]

# Members that identify an object, in the order in which they are tried.
IDENTITY_KEYS: Final = ("id", "key", "name")
# Limits of the product of the numbers of items on both sides. Equal items are found with bit vectors
# (0.1 s and 12 MB at the limit, which is two arrays of the most items that a value may have);
# similar items are compared one by one.
MAX_EQUAL: Final = 100_000_000
MAX_SIMILAR: Final = 256
_EQUAL_COST: Final = 1  # nanoseconds for each of the product
_SIMILAR_COST: Final = 3_000
_LONGEST: Final = 1_000  # characters of a string whose words are compared


class Effort:
    """A shared budget for the searches of many alignments, in estimated nanoseconds."""

    def __init__(self, nanoseconds: int) -> None:
        self._left = nanoseconds

    def take(self, nanoseconds: int) -> bool:
        """Reserve the time of a search. False if the budget does not suffice."""
        self._left -= nanoseconds
        return self._left >= 0


def identity_key(*arrays: list[JSON]) -> str | None:
    """The member that identifies the items of all arrays: the first of IDENTITY_KEYS that is a
    string or a number in every item and differs between the items of each array. None without
    one."""
    return next((key for key in IDENTITY_KEYS if all(_is_unique(key, a) for a in arrays)), None)


def _is_unique(key: str, array: list[JSON]) -> bool:
    seen: set[Hashable] = set()
    for item in array:
        value = item.get(key) if isinstance(item, dict) else None
        if isinstance(value, bool) or not isinstance(value, (str, Number)):
            return False
        seen.add(identity(value))
    return len(seen) == len(array)


def align(
    before: list[JSON], after: list[JSON], key: str | None, effort: Effort | None = None
) -> list[int | None]:
    """Return, for each item of `after`, the index of the corresponding item of `before`, or None
    for a new item.

    With an `identity_key`, items with the same key correspond, in any order. Without one, the order
    is kept: the items of a longest common subsequence correspond. Between two of them, items
    correspond if they are similar (at least half of the text is the same). Remaining items
    correspond by position, if both sides have the same number of items or neither item is an array
    or an object.

    Takes linear time if `after` differs at one place. Beyond MAX_EQUAL, MAX_SIMILAR and `effort`,
    equal or similar items are not searched between items that correspond already.
    """
    if key is not None:
        places = {identity(item[key]): place for place, item in enumerate(before)}
        return [places.get(identity(item[key])) for item in after]
    pairs = _equal_ends(before, after)
    searches: tuple[tuple[_Search, int, int], ...] = (
        (_equal, MAX_EQUAL, _EQUAL_COST),
        (_similar, MAX_SIMILAR, _SIMILAR_COST),
    )
    for search, most, cost in searches:
        for old, new in list(_gaps(pairs, len(before), len(after))):
            size = len(old) * len(new)
            if 1 < size <= most and (effort is None or effort.take(size * cost)):
                pairs.extend(search(before, after, old, new))
        pairs.sort()
    for old, new in list(_gaps(pairs, len(before), len(after))):
        pairs.extend(_by_position(before, after, old, new))
    origins: list[int | None] = [None] * len(after)
    for place, index in pairs:
        origins[index] = place
    return origins


def in_order(origins: list[int | None]) -> list[int | None]:
    """Return the alignment with moved items marked as new, as few as possible."""
    ends: list[int] = []  # the lowest origin that ends an increasing sequence of each length
    indexes: list[int] = []  # the index of that origin
    previous: dict[int, int] = {}
    for index, origin in enumerate(origins):
        if origin is not None:
            length = bisect_left(ends, origin)
            ends[length : length + 1] = [origin]
            indexes[length : length + 1] = [index]
            previous[index] = indexes[length - 1] if length else -1
    kept: list[int | None] = [None] * len(origins)
    at = indexes[-1] if indexes else -1
    while at >= 0:
        kept[at] = origins[at]
        at = previous[at]
    return kept


def _equal_ends(before: list[JSON], after: list[JSON]) -> list[Pair]:
    shorter = min(len(before), len(after))
    start = 0
    while start < shorter and same(before[start], after[start]):
        start += 1
    end = 0
    while end < shorter - start and same(before[-1 - end], after[-1 - end]):
        end += 1
    tail = range(end, 0, -1)
    return [(n, n) for n in range(start)] + [(len(before) - n, len(after) - n) for n in tail]


def _gaps(pairs: list[Pair], before: int, after: int) -> Iterator[tuple[range, range]]:
    """The items between neighbouring pairs, where both arrays have some."""
    start = (0, 0)
    for place, index in [*pairs, (before, after)]:
        if start[0] < place and start[1] < index:
            yield range(start[0], place), range(start[1], index)
        start = (place + 1, index + 1)


def _equal(before: list[JSON], after: list[JSON], old: range, new: range) -> Iterator[Pair]:
    """A longest common subsequence, by the bit-vector algorithm of Hyyrö (2004).

    A row has a bit for each old item. It is 0 where the common subsequence with the new items so
    far becomes longer by this old item.
    """
    places: dict[Hashable, int] = {}
    for bit, place in enumerate(old):
        item = identity(before[place])
        places[item] = places.get(item, 0) | 1 << bit
    every = (1 << len(old)) - 1
    row = every
    rows = []
    for index in new:
        found = row & places.get(identity(after[index]), 0)
        row = ((row + found) | (row - found)) & every
        rows.append(row)
    x, y = len(old) - 1, len(new) - 1
    while x >= 0 and y >= 0:
        if rows[y] >> x & 1:
            x -= 1
        elif y and not rows[y - 1] >> x & 1:
            y -= 1
        else:
            yield old[x], new[y]
            x, y = x - 1, y - 1


def _similar(before: list[JSON], after: list[JSON], old: range, new: range) -> Iterator[Pair]:
    """The pairs in order with the highest sum of similarities."""
    ours = [_parts(before[place]) for place in old]
    others = [_parts(after[index]) for index in new]
    scores = [[_similarity(a, b) for b in others] for a in ours]
    best = [[0.0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for x in reversed(range(len(old))):
        for y in reversed(range(len(new))):
            score = scores[x][y]
            paired = best[x + 1][y + 1] + score if score else 0.0
            best[x][y] = max(paired, best[x + 1][y], best[x][y + 1])
    x = y = 0
    while x < len(old) and y < len(new):
        if scores[x][y] and best[x][y] == best[x + 1][y + 1] + scores[x][y]:
            yield old[x], new[y]
            x, y = x + 1, y + 1
        elif best[x][y] == best[x + 1][y]:
            x += 1
        else:
            y += 1


def _by_position(before: list[JSON], after: list[JSON], old: range, new: range) -> Iterator[Pair]:
    for place, index in zip(old, new, strict=False):
        items = (before[place], after[index])
        if len(old) == len(new) or not any(isinstance(item, (list, dict)) for item in items):
            yield place, index


def _parts(value: JSON) -> dict[Hashable, int]:
    """The words of a string, the members of an object or the items of an array, with their
    sizes."""
    if isinstance(value, str):
        return {word: len(word) for word in value[:_LONGEST].split()}
    if isinstance(value, dict):
        return {(k, identity(member)): len(k) + _size(member) for k, member in value.items()}
    if isinstance(value, list):
        return {(None, identity(item)): _size(item) for item in value}
    return {}


def _size(value: JSON) -> int:
    if isinstance(value, str):
        return 1 + len(value)
    if isinstance(value, dict):
        return 1 + sum(len(name) + _size(member) for name, member in value.items())
    if isinstance(value, list):
        return 1 + sum(map(_size, value))
    return 4


def _similarity(a: dict[Hashable, int], b: dict[Hashable, int]) -> float:
    """The share of the parts that both have, by size; 0 below a half."""
    common = sum(a[part] for part in a.keys() & b.keys())
    every = sum(a.values()) + sum(b.values())
    return 2 * common / every if every and 4 * common >= every else 0.0
