"""The guarantees of the feed to every subscriber, as functions that return violations (in the terms
of etcd).

A history is what one subscriber received over all its connections, in order. `reference` is the
whole feed, read once at the end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from state_admin.streams import cursors

Item = dict[str, Any]


def broke_ordered(history: Sequence[Item], reference: Sequence[Item]) -> list[str]:
    """All subscribers receive the changes in the order of the feed."""
    place = {item["cursor"]: number for number, item in enumerate(reference)}
    places = [place.get(item["cursor"], -1) for item in history]
    return [
        item["cursor"]
        for item, here, before in zip(history, places, [-1, *places], strict=False)
        if here <= before and here >= 0
    ]


def broke_unique(history: Sequence[Item]) -> list[str]:
    """No change is received twice, over any number of resumed connections."""
    times = Counter(item["cursor"] for item in history)
    return sorted(cursor for cursor, count in times.items() if count > 1)


def broke_reliable(
    history: Sequence[Item], reference: Iterable[Item], wanted: Callable[[Item], bool]
) -> list[str]:
    """Every matching change is received, and no other."""
    seen = {item["cursor"] for item in history}
    right = {item["cursor"] for item in reference if wanted(item)}
    return sorted(seen ^ right)


def broke_resumable(
    reference: Sequence[Item], places: Iterable[int], read: Callable[[str], Sequence[Item]]
) -> list[str]:
    """From the cursor of any change, reading continues exactly after it."""
    broken = []
    for place in places:
        cursor = reference[place]["cursor"]
        found = read(cursor)
        if list(found) != list(reference[place + 1 : place + 1 + len(found)]) or (
            not found and place + 1 < len(reference)
        ):
            broken.append(cursor)
    return broken


def broke_atomic(
    history: Sequence[Item], transactions: Iterable[Sequence[tuple[str, int]]]
) -> list[str]:
    """All changes of a transaction are received, at one time of the feed's clock: a reader that
    sees one sees all. Between them are at most changes of the same time."""
    place = {(item["key"], item["version"]): number for number, item in enumerate(history)}
    broken = []
    for changes in transactions:
        places = sorted(place.get(change, -1) for change in changes)
        between = history[places[0] : places[-1] + 1]
        if places[0] < 0 or len({moment(item) for item in between}) > 1:
            broken.append(str(changes))
    return broken


def moment(item: Item) -> int:
    return cursors.unseal(item["cursor"])[0].xid


def broke_versions(reference: Iterable[Item]) -> list[str]:
    """The changes of one entry are in the order of its versions, without gaps."""
    last: dict[str, int] = {}
    broken = []
    for item in reference:
        if item["kind"].startswith("entry."):
            if item["version"] != last.get(item["key"], 0) + 1:
                broken.append(f"{item['key']} v{item['version']}")
            last[item["key"]] = item["version"]
    return broken
