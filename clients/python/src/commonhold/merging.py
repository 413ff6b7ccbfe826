"""Joining two changes of one value that started from the same base."""

from __future__ import annotations

from typing import Any, Final

_MISSING: Final = object()


def three_way(base: Any, theirs: Any, yours: Any) -> tuple[Any, list[dict[str, Any]]]:
    """What both changed, together, and the clashes: each `{pointer, base, theirs, yours}`, None where
    a side has nothing. As on the server: objects join member by member, lists item by item where
    none changed its length; everything else is one piece."""
    clashes: list[dict[str, Any]] = []
    return _join(base, theirs, yours, "", clashes), clashes


def same(left: Any, right: Any) -> bool:
    """Equal as JSON: True is not 1, but 1 is 1.0."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[k], right[k]) for k in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


def _join(base: Any, theirs: Any, yours: Any, at: str, clashes: list[dict[str, Any]]) -> Any:
    if same(base, yours) or same(theirs, yours):
        return theirs
    if same(base, theirs):
        return yours
    if isinstance(theirs, dict) and isinstance(yours, dict):
        common = base if isinstance(base, dict) else {}
        joined = {}
        for name in dict.fromkeys([*theirs, *yours]):
            three = [each.get(name, _MISSING) for each in (common, theirs, yours)]
            step = name.replace("~", "~0").replace("/", "~1")
            value = _join(three[0], three[1], three[2], f"{at}/{step}", clashes)
            if value is not _MISSING:
                joined[name] = value
        return joined
    if _of_one_length(base, theirs, yours):
        items = enumerate(zip(base, theirs, yours, strict=True))
        return [_join(*three, f"{at}/{n}", clashes) for n, three in items]
    sides = {"base": base, "theirs": theirs, "yours": yours}
    clash = {name: None if side is _MISSING else side for name, side in sides.items()}
    clashes.append({"pointer": at, **clash})
    return theirs


def _of_one_length(*sides: Any) -> bool:
    return all(isinstance(side, list) for side in sides) and len(set(map(len, sides))) == 1
