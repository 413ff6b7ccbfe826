"""Blame: attributes each path of a value to the version that last changed it.

Not here: reading the versions (services) and how they are shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from state_admin.domain.values import JSON, pointer_of, same

V = TypeVar("V")


@dataclass(frozen=True)
class BlamedPointer(Generic[V]):
    """A path and the version that set it. Children are listed only where another version set them:
    a line applies to everything below its path that has no line of its own."""

    pointer: str
    version: V


def attribute(history: Iterable[tuple[V, JSON, bool]]) -> list[BlamedPointer[V]]:
    """Blame the newest value. `history` gives (version, value, exists) from the newest backwards.

    Reads no further back than it must: it stops when every path has its version. A path that is
    in the oldest version given is attributed to that one. [] when the newest does not exist.
    Items of arrays are compared by place.
    """
    versions = iter(history)
    newest = next(versions, None)
    if newest is None or not newest[2]:
        return []
    version, value, _ = newest
    tree: _Node[V] = _Node("", value)
    for older, before, existed in versions:
        if not existed:
            break
        tree.attribute_to(version, before)
        if tree.is_attributed:
            break
        version = older
    tree.attribute_all(version)
    return list(tree.lines(None))


class _Node(Generic[V]):
    """A node of the newest value, and the version attributed to it or to everything below it."""

    def __init__(self, pointer: str, value: JSON) -> None:
        self.pointer = pointer
        self.value = value
        self.version: V | None = None
        self.children: dict[str | int, _Node[V]] | None = None

    @property
    def is_attributed(self) -> bool:
        if self.version is not None and self.children is None:
            return True
        return self.children is not None and all(c.is_attributed for c in self.children.values())

    def attribute_to(self, version: V, before: JSON) -> None:
        """Attribute to `version` what it changed compared with the value `before`."""
        if self.is_attributed or same(self.value, before):
            return
        parts = _parts(self.value)
        old = _parts(before)
        if parts is None or old is None or type(self.value) is not type(before):
            self.attribute_all(version)
            return
        if self.children is None:
            self.children = {
                name: _Node(self.pointer + pointer_of(name), part) for name, part in parts.items()
            }
        # The container itself is attributed to the last version that changed its set of members.
        if self.version is None and parts.keys() != old.keys():
            self.version = version
        for name, child in self.children.items():
            if name in old:
                child.attribute_to(version, old[name])
            else:
                child.attribute_all(version)

    def attribute_all(self, version: V) -> None:
        if self.version is None:
            self.version = version
        for child in (self.children or {}).values():
            child.attribute_all(version)

    def lines(self, above: V | None) -> Iterator[BlamedPointer[V]]:
        if self.version is not None and self.version != above:
            yield BlamedPointer(self.pointer, self.version)
        for child in (self.children or {}).values():
            yield from child.lines(self.version)


def _parts(value: JSON) -> dict[str | int, JSON] | None:
    if isinstance(value, dict):
        return dict(value)
    if isinstance(value, list):
        return dict(enumerate(value))
    return None
