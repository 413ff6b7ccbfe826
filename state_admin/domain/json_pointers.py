"""JSON Pointers: finding a place in a value, and changing it in a copy.

No function changes its input. Several changes of one value share a WorkingCopy.

Not here: the operations of a patch (patches).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable
from typing import Final
from urllib.parse import unquote

from state_admin.domain.values import JSON, MAX_DEPTH, MISSING, identity, nodes

# A `copy` can double the document; this limits what all of them add.
MAX_COPIED: Final = 8 << 20
# One to two seconds on one core; enough for the largest value and the largest request together.
MAX_HASHED: Final = 20 << 20
_PER_ITEM: Final = 40

_INDEX: Final = re.compile(r"0|[1-9][0-9]{0,8}")
_BAD_ESCAPE: Final = re.compile(r"~(?![01])")
_Path = list[str]


class Mismatch(ValueError):
    """A step of a path, or an operation, does not apply to the value found; `str(e)` gives the
    reason. `member` is the invalid member of the operation, "" for the operation itself."""

    def __init__(self, message: str, member: str = "") -> None:
        # The message may quote a part of a request that was not validated; a response must be
        # UTF-8.
        super().__init__(message.encode("utf-8", "backslashreplace").decode().replace("\0", "\\0"))
        self.member = member


def parts_of(pointer: str, member: str = "path") -> _Path:
    """The parts of a JSON Pointer (RFC 6901). Raises Mismatch, also beyond MAX_DEPTH parts."""
    if not pointer:
        return []
    if pointer[0] != "/" or _BAD_ESCAPE.search(pointer):
        raise Mismatch(f"'{member}' must be a JSON Pointer, such as /a/0 or /a~1b", member)
    if pointer.count("/") > MAX_DEPTH:
        raise Mismatch(f"'{member}' is deeper than {MAX_DEPTH} levels", member)
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer[1:].split("/")]


def step(node: JSON, part: str, member: str = "path") -> JSON:
    """The key or index of an existing child."""
    if isinstance(node, dict) and part in node:
        return part
    if isinstance(node, list) and _INDEX.fullmatch(part) and int(part) < len(node):
        return int(part)
    raise Mismatch(f"'{part[:80]}' does not exist in {kind(node)}", member)


def find(node: JSON, path: _Path, member: str = "path") -> JSON:
    """The value at the path. Raises Mismatch if there is none."""
    for part in path:
        node = node[step(node, part, member)]
    return node


def look_up(node: JSON, path: _Path) -> JSON:
    """The value at the path; MISSING if there is none."""
    try:
        return find(node, path)
    except Mismatch:
        return MISSING


def look_up_reference(schema: JSON, reference: str) -> JSON:
    """The part of the schema that a reference such as `#/$defs/name` names; MISSING if there is none."""
    if not reference.startswith("#"):
        return MISSING
    try:
        return find(schema, parts_of(unquote(reference[1:])))
    except Mismatch:
        return MISSING


class Budget:
    """The limits of one request: bytes that its `copy` operations add, and bytes of array items
    that `union` and `remove` hash, with _PER_ITEM for each item."""

    def __init__(self) -> None:
        self._copied = MAX_COPIED
        self._hashed = MAX_HASHED

    def copy(self, node: JSON) -> None:
        """Charge one node of a copied value. Raises Mismatch at the limit."""
        self._copied -= max(1, len(node)) if isinstance(node, str) else 4
        if isinstance(node, dict):
            self._copied -= sum(map(len, node))
        if self._copied < 0:
            raise Mismatch("the patch copies more than the size limit of a value", "from")

    def hash(self, item: JSON) -> Hashable:
        """The identity of an array item, which is charged. Raises Mismatch at the limit."""
        key = identity(item)
        self._hashed -= _PER_ITEM + (len(key) if isinstance(key, str) else 0)
        if self._hashed < 0:
            raise Mismatch(
                f"the operations compare more than {MAX_HASHED:,} bytes of array items;"
                " send fewer of them, or keep the array in smaller parts"
            )
        return key


class WorkingCopy:
    """A value to which many changes are made. The original value is never changed.

    A container is copied at its first change and then changed in place, so that a list of
    operations costs as much as its changes and not the size of the value each time. For `union` and
    `discard` the items of an array are hashed once.

    The methods raise Mismatch if a path or a type does not match, or if the hashed items exceed
    `budget`.
    """

    def __init__(self, document: JSON, budget: Budget | None = None) -> None:
        self._root: dict[str, JSON] = {"": document}
        self._budget = budget or Budget()
        # The containers that are copies, by id; referenced here, so that no id is used again.
        self._copies: dict[int, JSON] = {}
        self._indexes: dict[int, _Index] = {}

    @property
    def document(self) -> JSON:
        return self._root[""]

    def add(self, path: _Path, value: JSON) -> None:
        """RFC 6902 `add`: sets a member, inserts into an array, or replaces the document."""
        if not path:
            self._root[""] = value
            return
        parent, part = self._parent(path), path[-1]
        if isinstance(parent, dict):
            parent[part] = value
        elif part == "-":
            self._insert(parent, len(parent), value)
        elif _INDEX.fullmatch(part) and int(part) <= len(parent):
            self._insert(parent, int(part), value)
        else:
            raise Mismatch(f"'{part[:80]}' is not within the array", "path")

    def replace(self, path: _Path, value: JSON) -> None:
        """RFC 6902 `replace`: the value must exist."""
        if not path:
            self._root[""] = value
            return
        parent = self._parent(path)
        self._set(parent, step(parent, path[-1]), value)

    def remove(self, path: _Path) -> None:
        """RFC 6902 `remove`: the value must exist; the whole document cannot be removed."""
        if not path:
            raise Mismatch("the whole document cannot be removed", "path")
        parent = self._parent(path)
        place = step(parent, path[-1])
        if isinstance(parent, list) and (index := self._indexes.get(id(parent))):
            index.delete(place)
        del parent[place]

    def move(self, origin: _Path, path: _Path) -> None:
        """RFC 6902 `move`."""
        value = find(self.document, origin, "from")
        if origin == path:
            return
        if path[: len(origin)] == origin:
            raise Mismatch("a value cannot be moved into its own child", "path")
        self.remove(origin)
        self.add(path, value)

    def duplicate(self, origin: _Path, path: _Path) -> None:
        """RFC 6902 `copy`. Both places share the value until one of them is changed."""
        value = find(self.document, origin, "from")
        for node in nodes(value):
            self._budget.copy(node)
            if isinstance(node, (dict, list)):
                self._copies.pop(id(node), None)
                self._indexes.pop(id(node), None)
        self.add(path, value)

    def change(self, path: _Path, function: Callable[[JSON], JSON]) -> None:
        """Replace the value at the path by `function` of it, or of None if there is none."""
        parent, place = self._created(path)
        self._set(parent, place, function(_member_of(parent, place)))

    def put(self, path: _Path, value: JSON) -> None:
        """Set the value at the path; missing parents become objects, `-` is the end of an array."""
        parent, place = self._created(path)
        self._set(parent, place, value)

    def merge(self, path: _Path, patch: dict[str, JSON]) -> None:
        """RFC 7396 on the object at the path; a missing value or null counts as {}."""
        parent, place = self._created(path)
        member = _member_of(parent, place)
        if not (member is None or isinstance(member, dict)):
            raise Mismatch(
                f"merge requires an object, but the current value is {kind(member)}", "path"
            )
        self._merge(parent, place, patch)

    def _merge(self, parent: JSON, place: JSON, patch: dict[str, JSON]) -> None:
        if not isinstance(_member_of(parent, place), dict):
            self._set(parent, place, {})
        target = self._child(parent, place)
        for name, change in patch.items():
            if change is None:
                target.pop(name, None)
            elif isinstance(change, dict):
                self._merge(target, name, change)
            else:
                target[name] = change

    def extend(self, path: _Path, items: list[JSON], *, verb: str = "append") -> None:
        """Append the items to the array at the path; a missing value or null counts as []. The verb
        `union` leaves out items that are equal to an existing one."""
        parent, place = self._created(path)
        member = _member_of(parent, place)
        if not (member is None or isinstance(member, list)):
            raise Mismatch(
                f"{verb} requires an array, but the current value is {kind(member)}", "path"
            )
        if member is None:
            self._set(parent, place, [])
        array = self._child(parent, place)
        if verb == "append":
            if index := self._indexes.get(id(array)):
                index.extend(len(items))
            array.extend(items)
            return
        index = self._index(array)
        for item in items:
            key = self._budget.hash(item)
            if key not in index.counts:
                array.append(item)
                index.append(key)

    def discard(self, path: _Path, item: JSON) -> None:
        """Remove every item equal to `item` from the array at the path; does nothing if the path
        does not exist or its value is null."""
        parent, place = self._created(path, create=False)
        member = None if parent is None else _member_of(parent, place)
        if member is None:
            return
        if not isinstance(member, list):
            raise Mismatch(
                f"remove with a value requires an array, but the current value is {kind(member)}",
                "path",
            )
        array = self._child(parent, place)
        index = self._index(array)
        key = self._budget.hash(item)
        if key in index.counts:
            array[:] = [each for each, its in zip(array, index.keys, strict=True) if its != key]
            index.drop(key)

    def _parent(self, path: _Path) -> JSON:
        """The container of the last step, ready to be changed. Every previous step must exist."""
        node = self._child(self._root, "")
        for depth, part in enumerate(path, 1):
            if not isinstance(node, (dict, list)):
                raise Mismatch(f"'{part[:80]}' does not exist in {kind(node)}", "path")
            if depth < len(path):
                node = self._child(node, step(node, part))
        return node

    def _created(self, path: _Path, *, create: bool = True) -> tuple[JSON, JSON]:
        """The parent of the path, ready to be changed, and the key or index in it. Missing parents
        and null become objects; without `create` the parent is then None."""
        node: JSON = self._root
        place: JSON = ""
        for part in path:
            member = _member_of(node, place)
            if member is None:
                if not create:
                    return None, None
                self._set(node, place, {})
            elif not isinstance(member, (dict, list)):
                raise Mismatch(f"'{part[:80]}' does not exist in {kind(member)}", "path")
            node = self._child(node, place)
            if isinstance(node, dict):
                place = part
            elif part == "-" or part == str(len(node)):
                place = len(node)
            else:
                place = step(node, part)
        return node, place

    def _child(self, parent: JSON, place: JSON) -> JSON:
        """The value of an existing child, ready to be changed if it is a container."""
        child = parent[place]
        if not isinstance(child, (dict, list)):
            return child
        if id(child) not in self._copies:
            child = child.copy()
            self._copies[id(child)] = child
        self._set(parent, place, child)
        return child

    def _set(self, parent: JSON, place: JSON, value: JSON) -> None:
        if isinstance(parent, dict):
            parent[place] = value
        elif place == len(parent):
            self._insert(parent, place, value)
        else:
            if index := self._indexes.get(id(parent)):
                index.forget(place)
            parent[place] = value

    def _insert(self, array: JSON, place: int, value: JSON) -> None:
        if index := self._indexes.get(id(array)):
            index.insert(place)
        array.insert(place, value)

    def _index(self, array: JSON) -> _Index:
        index = self._indexes.get(id(array))
        if index is None:
            index = self._indexes[id(array)] = _Index()
            index.extend(len(array))
        at = -1
        while index.unhashed:
            at = index.keys.index(None, at + 1)
            index.set(at, self._budget.hash(array[at]))
        return index


class _Index:
    """The identity of each item of an array, None if it is not computed yet, and the number of
    occurrences of each."""

    def __init__(self) -> None:
        self.keys: list[Hashable] = []
        self.counts: dict[Hashable, int] = {}
        self.unhashed = 0

    def append(self, key: Hashable) -> None:
        self.keys.append(key)
        self.counts[key] = self.counts.get(key, 0) + 1

    def extend(self, count: int) -> None:
        self.keys.extend([None] * count)
        self.unhashed += count

    def insert(self, place: int) -> None:
        self.keys.insert(place, None)
        self.unhashed += 1

    def set(self, place: int, key: Hashable) -> None:
        """Store the identity of an item that has none yet."""
        self.keys[place] = key
        self.counts[key] = self.counts.get(key, 0) + 1
        self.unhashed -= 1

    def forget(self, place: int) -> None:
        """Remove the identity of an item that is being changed."""
        key = self.keys[place]
        if key is not None:
            self.counts[key] -= 1
            if not self.counts[key]:
                del self.counts[key]
            self.keys[place] = None
            self.unhashed += 1

    def delete(self, place: int) -> None:
        self.forget(place)
        del self.keys[place]
        self.unhashed -= 1

    def drop(self, key: Hashable) -> None:
        """Remove all items with this identity."""
        self.keys = [each for each in self.keys if each != key]
        del self.counts[key]


def _member_of(parent: JSON, place: JSON) -> JSON:
    """The value at the key or index, None if it is absent. All changes treat an absent value like null."""
    if isinstance(parent, dict):
        return parent.get(place)
    return parent[place] if place < len(parent) else None


def kind(value: JSON) -> str:
    """The JSON type as text, for messages."""
    if value is None:
        return "null"
    for types, name in (
        (bool, "a boolean"),
        (str, "a string"),
        (dict, "an object"),
        (list, "an array"),
    ):
        if isinstance(value, types):
            return name
    return "a number"
