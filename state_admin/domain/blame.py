"""Blame: attributes each path of a value to the version that last changed it, and follows one path
through the history.

Not here: reading the versions (services) and how they are shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from state_admin.domain.alignment import Effort, align, identity_key
from state_admin.domain.json_pointers import look_up, step
from state_admin.domain.values import JSON, MISSING, pointer_of, same

V = TypeVar("V")

# For all versions together. Beyond it, items of arrays are followed by position, except at the
# equal beginning and end of an array.
MAX_EFFORT: Final = 5_000_000_000
# The same for the versions through which one path is followed, which are a page of the history.
MAX_FOLLOWED: Final = 500_000_000


@dataclass(frozen=True)
class BlamedPointer(Generic[V]):
    """A path and the version that set it. Children are listed only where another version set them:
    a line applies to everything below its path that has no line of its own."""

    pointer: str
    version: V


def attribute(history: Iterable[tuple[V, JSON, bool]]) -> list[BlamedPointer[V]]:
    """Blame the newest value. `history` yields (version, value, exists), newest first.

    Reads `history` only until every path has its version. A path that exists in the oldest version
    read is attributed to that version. Returns [] if the newest version does not exist. Items of
    arrays are followed from version to version, also if they move (see `align`).
    """
    versions = iter(history)
    newest = next(versions, None)
    if newest is None or not newest[2]:
        return []
    version, value, _ = newest
    tree: _Node[V] = _Node(None, "", value)
    effort = Effort(MAX_EFFORT)
    for older, before, existed in versions:
        if not existed:
            break
        tree.attribute_to(version, value, before, effort)
        if tree.is_attributed:
            break
        version, value = older, before
    tree.attribute_all(version)
    return list(tree.lines(None))


@dataclass(frozen=True)
class PathStep(Generic[V]):
    """The value at a path in a version and in the one before it, MISSING where there is none.
    `path` is its place in `version`, `path_before` in `older`. `begins`: the value is an item that
    `version` inserted into an array, so older versions have no value at this path."""

    version: V
    older: V
    path: list[str]
    path_before: list[str]
    after: JSON
    before: JSON
    begins: bool = False

    @property
    def is_change(self) -> bool:
        if self.after is MISSING or self.before is MISSING:
            return self.after is not self.before
        return not same(self.after, self.before)


def follow(history: Iterable[tuple[V, JSON, bool]], path: list[str]) -> Iterator[PathStep[V]]:
    """Follow a path from version to version. `history` is that of `attribute`.

    `path` is a place in the newest version that has a value there. Items of arrays are followed as
    in `attribute`, until the version that inserted them. Removed members and deleted values are
    followed to the versions before the removal.
    """
    versions = iter(history)
    newest = next(versions, None)
    if newest is None:
        return
    version, value, existed = newest
    effort = Effort(MAX_FOLLOWED)
    after = look_up(value, path) if existed else MISSING
    # The last value read that has the path: the place in an older value is found from there.
    newest_value = MISSING if after is MISSING else value
    for older, document, exists in versions:
        before, place, begins = MISSING, path, False
        if exists and newest_value is MISSING:
            before = look_up(document, path)
        elif exists:
            place, begins = _place_before(newest_value, document, path, effort)
            before = MISSING if begins else look_up(document, place)
        yield PathStep(version, older, path, place, after, before, begins)
        if begins:
            return
        if before is not MISSING:
            newest_value = document
        version, path, after = older, place, before


def _place_before(
    after: JSON, before: JSON, path: list[str], effort: Effort
) -> tuple[list[str], bool]:
    """The place in `before` of the value at `path` in `after`, which has one; and whether there is
    none, because the path leads through an item that is new in an array. Without a counterpart for
    another reason, the rest of the path stays as it is."""
    place: list[str] = []
    for depth, part in enumerate(path):
        name = step(after, part)
        origins = _origins(after, before, effort)
        if origins is None or name not in origins:
            return place + path[depth:], isinstance(before, list) and isinstance(after, list)
        place.append(str(origins[name]))
        after, before = after[name], before[origins[name]]
    return place, False


class _Node(Generic[V]):
    """A node of the newest value, and the version attributed to it or to everything below it."""

    def __init__(self, parent: _Node[V] | None, name: str | int, value: JSON) -> None:
        self.parent = parent
        self.name = name
        self.value = value
        self.version: V | None = None
        self.children: list[_Node[V]] | None = None
        # The children that exist in the last version read, by their name or index in it.
        self.places: dict[str | int, _Node[V]] = {}
        self._is_attributed = False

    @property
    def pointer(self) -> str:
        return self.parent.pointer + pointer_of(self.name) if self.parent else ""

    @property
    def is_attributed(self) -> bool:
        if not self._is_attributed:  # once attributed, it stays so
            self._is_attributed = (
                self.version is not None
                if self.children is None
                else all(child.is_attributed for child in self.children)
            )
        return self._is_attributed

    def attribute_to(self, version: V, after: JSON, before: JSON, effort: Effort) -> None:
        """Attribute to `version` what changed in this node between `before` and `after`, its value
        in `version`."""
        if self.is_attributed or same(after, before):
            return
        origins = _origins(after, before, effort)
        if origins is None:
            self.attribute_all(version)
            return
        if self.children is None:
            names = self.value if isinstance(self.value, dict) else range(len(self.value))
            self.places = {name: _Node(self, name, self.value[name]) for name in names}
            self.children = list(self.places.values())
        # The container itself is attributed to the last version that changed its set of members,
        # or the order of its items.
        is_kept = len(after) == len(origins) == len(before)
        if self.version is None and not (is_kept and all(n == o for n, o in origins.items())):
            self.version = version
        places = self.places
        self.places = {}
        for name, child in places.items():
            if name in origins:
                child.attribute_to(version, after[name], before[origins[name]], effort)
                self.places[origins[name]] = child
            else:
                child.attribute_all(version)

    def attribute_all(self, version: V) -> None:
        if self.version is None:
            self.version = version
        for child in self.children or ():
            child.attribute_all(version)

    def lines(self, above: V | None) -> Iterator[BlamedPointer[V]]:
        if self.version is not None and self.version != above:
            yield BlamedPointer(self.pointer, self.version)
        for child in self.children or ():
            yield from child.lines(self.version)


def _origins(after: JSON, before: JSON, effort: Effort) -> dict[str | int, str | int] | None:
    """Return the names or indexes of members of `after` that also exist in `before`, with their
    names or indexes there. None unless both are objects or both are arrays."""
    if isinstance(after, dict) and isinstance(before, dict):
        return {name: name for name in after if name in before}
    if isinstance(after, list) and isinstance(before, list):
        found = align(before, after, identity_key(before, after), effort)
        return {index: origin for index, origin in enumerate(found) if origin is not None}
    return None
