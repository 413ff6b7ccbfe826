"""Schema evolution: whether two definitions of a namespace can be used side by side.

Two schemas are compatible when every value that a program writes by one of them is valid under the
other. They are, if they are the same except for optional fields: `properties` may have names that
the other schema lacks, where the other schema does not restrict additional properties and neither
schema requires the name. Annotations (`title`, `description`, `default`, …) and the names of
`$defs` do not count. Within `not`, `oneOf`, `if` and similar keywords, where an added field could
refuse what was valid, schemas must be the same.

Two defaults are compatible when they differ only by fields that one side alone declares. A schema
without any keyword declares the members of its default.

Not here: validation (schemas), and what is stored (services/namespaces.py).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, Final

from state_admin.domain import json_pointers
from state_admin.domain.schema_faults import shorten
from state_admin.domain.values import JSON, MISSING, Fault, dump, identity, nodes, pointer_of, same

MAX_FAULTS: Final = 20
# Pairs of subschemas that are compared; a small schema may have far more through references.
MAX_WORK: Final = 20_000

_ANY: Final[dict[str, JSON]] = {}
_ANNOTATIONS: Final = frozenset(
    [
        "$comment",
        "$defs",
        "$schema",
        "definitions",
        "default",
        "deprecated",
        "description",
        "examples",
        "readOnly",
        "title",
        "writeOnly",
    ]
)
# Keywords whose schemas may gain optional fields, because each of them only adds conditions.
_OPEN_SCHEMA: Final = frozenset(["additionalProperties", "items"])
_OPEN_LIST: Final = frozenset(["allOf", "anyOf", "prefixItems"])
_STRICT_SCHEMA: Final = frozenset(
    [
        "contains",
        "else",
        "if",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    ]
)
_STRICT_LIST: Final = frozenset(["oneOf"])
_STRICT_MAP: Final = frozenset(["dependentSchemas", "patternProperties"])
_SETS: Final = frozenset(["enum", "required", "type"])
_REFERENCE_KEYWORDS: Final = frozenset(
    ["$anchor", "$dynamicAnchor", "$dynamicRef", "$id", "$recursiveRef"]
)


def schema_differences(stored: JSON, offered: JSON) -> list[Fault]:
    """Why two valid schemas are not compatible, [] if they are. Pointers follow the keywords from
    the root, through references."""
    if same(stored, offered):
        return []
    if _uses_names(stored) or _uses_names(offered):
        return [Fault("", "schemas with $id, anchors or dynamic references must be equal")]
    return _Comparison(stored, offered).faults()


def default_differences(
    stored: JSON, offered: JSON, stored_schema: JSON, offered_schema: JSON
) -> list[Fault]:
    """Why two defaults are not compatible under compatible schemas, [] if they are."""
    comparison = _Comparison(stored_schema, offered_schema)
    return list(comparison.defaults(stored, offered, [(stored_schema, offered_schema)], ""))


class _Comparison:
    def __init__(self, stored: JSON, offered: JSON) -> None:
        self._roots = (stored, offered)
        self._no_extension = _restricts_unevaluated(stored) or _restricts_unevaluated(offered)
        self._queue: deque[tuple[JSON, JSON, str, bool]] = deque([(stored, offered, "", False)])
        self._seen: set[tuple[int, int, bool]] = set()
        self._faults: list[Fault] = []

    def faults(self) -> list[Fault]:
        while self._queue and len(self._faults) < MAX_FAULTS:
            left, right, pointer, strict = self._queue.popleft()
            left, right = self._inlined(left, 0), self._inlined(right, 1)
            pair = (id(left), id(right), strict)
            if pair in self._seen:
                continue
            self._seen.add(pair)
            if len(self._seen) > MAX_WORK:
                self._faults.append(Fault("", "the schemas are too large to be compared"))
                break
            if isinstance(left, dict) and isinstance(right, dict):
                self._objects(left, right, pointer, strict)
            elif left is not right:
                self._differ(pointer, left, right)
        return self._faults

    def _objects(
        self, left: dict[str, JSON], right: dict[str, JSON], pointer: str, strict: bool
    ) -> None:
        for keyword in dict.fromkeys([*left, *right]):
            if keyword in _ANNOTATIONS:
                continue
            at = f"{pointer}{pointer_of(keyword)}"
            old, new = left.get(keyword, MISSING), right.get(keyword, MISSING)
            if keyword == "properties":
                self._properties(left, right, at, strict)
            elif keyword == "required":
                self._required(left, right, at)
            elif old is MISSING or new is MISSING:
                if not _is_void(keyword, old) or not _is_void(keyword, new):
                    self._differ(at, old, new)
            elif keyword == "$ref":
                self._queue.append((self._target(old, 0), self._target(new, 1), at, strict))
            elif keyword in _OPEN_SCHEMA | _STRICT_SCHEMA:
                self._queue.append((old, new, at, strict or keyword in _STRICT_SCHEMA))
            elif keyword in _OPEN_LIST | _STRICT_LIST and _are_lists_of_one_length(old, new):
                for index, pair in enumerate(zip(old, new, strict=True)):
                    here = strict or keyword in _STRICT_LIST
                    self._queue.append((*pair, f"{at}/{index}", here))
            elif keyword in _STRICT_MAP and _are_maps_of_the_same_names(old, new):
                for name in old:
                    self._queue.append((old[name], new[name], at + pointer_of(name), True))
            elif not (_are_same_set(old, new) if keyword in _SETS else same(old, new)):
                self._differ(at, old, new)

    def _properties(
        self, left: dict[str, JSON], right: dict[str, JSON], at: str, strict: bool
    ) -> None:
        old, new = _properties_of(left), _properties_of(right)
        required = {*_required_of(left), *_required_of(right)}
        closed = strict or self._no_extension or not (_is_open(left) and _is_open(right))
        for name in dict.fromkeys([*old, *new]):
            here = at + pointer_of(name)
            if name in old and name in new:
                self._queue.append((old[name], new[name], here, strict))
                continue
            side = "registered" if name in old else "offered"
            if name in required:
                self._faults.append(Fault(here, f"only the {side} schema has this required field"))
            elif closed:
                message = f"only the {side} schema has this field, and other fields are not allowed"
                self._faults.append(Fault(here, message))

    def _required(self, left: dict[str, JSON], right: dict[str, JSON], at: str) -> None:
        # A required field that only one side declares is reported at the field.
        one_sided = _properties_of(left).keys() ^ _properties_of(right).keys()
        old, new = _required_of(left) - one_sided, _required_of(right) - one_sided
        if old != new:
            self._differ(at, sorted(old), sorted(new))

    def defaults(
        self, old: JSON, new: JSON, pairs: list[tuple[JSON, JSON]], pointer: str
    ) -> Iterator[Fault]:
        """The differences of two defaults. `pairs` are the subschemas that apply to this place."""
        if same(old, new):
            return
        pairs = self._flat(pairs)
        if isinstance(old, dict) and isinstance(new, dict):
            for name in dict.fromkeys([*old, *new]):
                here = pointer + pointer_of(name)
                if name in old and name in new:
                    inner = [(_member(a, name), _member(b, name)) for a, b in pairs]
                    yield from self.defaults(old[name], new[name], inner, here)
                elif not any(_declares_alone(a, b, name, in_old=name in old) for a, b in pairs):
                    yield _difference(here, old.get(name, MISSING), new.get(name, MISSING))
        elif _are_lists_of_one_length(old, new):
            inner = [(_items(a), _items(b)) for a, b in pairs]
            for index, (first, second) in enumerate(zip(old, new, strict=True)):
                yield from self.defaults(first, second, inner, f"{pointer}/{index}")
        else:
            yield _difference(pointer, old, new)

    def _flat(self, pairs: list[tuple[JSON, JSON]]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """The pairs, and those that they include by references, `allOf` and `anyOf`."""
        found: list[tuple[dict[str, Any], dict[str, Any]]] = []
        queue = deque(pairs)
        seen: set[tuple[int, int]] = set()
        while queue and len(seen) < MAX_WORK:
            left, right = queue.popleft()
            left, right = self._inlined(left, 0), self._inlined(right, 1)
            if not isinstance(left, dict) or not isinstance(right, dict):
                continue
            if (id(left), id(right)) in seen:
                continue
            seen.add((id(left), id(right)))
            found.append((left, right))
            if "$ref" in left and "$ref" in right:
                queue.append((self._target(left["$ref"], 0), self._target(right["$ref"], 1)))
            for keyword in ("allOf", "anyOf"):
                old, new = left.get(keyword), right.get(keyword)
                if isinstance(old, list) and isinstance(new, list):
                    queue.extend(zip(old, new, strict=False))
        return found

    def _inlined(self, schema: JSON, side: int) -> JSON:
        """The target of a schema that consists of a reference only; {} for true."""
        passed: set[int] = set()
        while isinstance(schema, dict) and id(schema) not in passed:
            if schema.keys() - _ANNOTATIONS != {"$ref"}:
                return schema
            passed.add(id(schema))
            schema = self._target(schema["$ref"], side)
        return _ANY if schema is True else schema

    def _target(self, reference: JSON, side: int) -> JSON:
        return json_pointers.look_up_reference(self._roots[side], str(reference))

    def _differ(self, pointer: str, old: Any, new: Any) -> None:
        self._faults.append(_difference(pointer, old, new))


def _difference(pointer: str, old: Any, new: Any) -> Fault:
    return Fault(pointer, f"registered: {_quote(old)}; offered: {_quote(new)}")


def _quote(value: Any) -> str:
    return "nothing" if value is MISSING else shorten(dump(value))


def _is_void(keyword: str, value: Any) -> bool:
    """Whether a keyword is absent or has no effect."""
    if value is MISSING:
        return True
    if keyword in ("additionalProperties", "items", "unevaluatedProperties", "unevaluatedItems"):
        return value is True or value == {}
    return False


def _is_open(schema: dict[str, JSON]) -> bool:
    """Whether an object may have members of any type that `properties` does not list."""
    return _is_void("additionalProperties", schema.get("additionalProperties", MISSING))


def _objects(schema: JSON) -> Iterator[dict[str, JSON]]:
    return (node for node in nodes(schema) if isinstance(node, dict))


def _restricts_unevaluated(schema: JSON) -> bool:
    """Whether `unevaluatedProperties` occurs anywhere: its effect depends on all `properties`."""
    keyword = "unevaluatedProperties"
    return any(not _is_void(keyword, node.get(keyword, MISSING)) for node in _objects(schema))


def _uses_names(schema: JSON) -> bool:
    """Whether the schema has references that are not JSON Pointers."""
    return any(
        node.keys() & _REFERENCE_KEYWORDS or str(node.get("$ref", "#"))[:2] not in ("#", "#/")
        for node in _objects(schema)
    )


def _properties_of(schema: dict[str, JSON]) -> dict[str, JSON]:
    found = schema.get("properties")
    return found if isinstance(found, dict) else {}


def _required_of(schema: dict[str, JSON]) -> set[str]:
    found = schema.get("required")
    return {str(name) for name in found} if isinstance(found, list) else set()


def _member(schema: dict[str, Any], name: str) -> JSON:
    properties = _properties_of(schema)
    return properties[name] if name in properties else schema.get("additionalProperties", _ANY)


def _items(schema: dict[str, Any]) -> JSON:
    return schema.get("items", _ANY)


def _declares_alone(
    left: dict[str, Any], right: dict[str, Any], name: str, *, in_old: bool
) -> bool:
    """Whether `name` is a field of the side whose default has it, and not of the other side."""
    mine, other = (left, right) if in_old else (right, left)
    declared = name in _properties_of(mine) or not mine.keys() - _ANNOTATIONS
    return declared and name not in _properties_of(other)


def _are_lists_of_one_length(old: Any, new: Any) -> bool:
    return isinstance(old, list) and isinstance(new, list) and len(old) == len(new)


def _are_maps_of_the_same_names(old: Any, new: Any) -> bool:
    return isinstance(old, dict) and isinstance(new, dict) and old.keys() == new.keys()


def _are_same_set(old: Any, new: Any) -> bool:
    left, right = (each if isinstance(each, list) else [each] for each in (old, new))
    return set(map(identity, left)) == set(map(identity, right))
