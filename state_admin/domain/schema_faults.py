"""Finds the places where a value does not match a schema, in a bounded number of steps.

The validator's own list of errors contains, for each `anyOf` and `oneOf`, the errors of every
branch: under a recursive schema their number is exponential in the depth of the value. Here the
value is traversed from the root, and native code only decides whether one part of it matches one
subschema.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final
from urllib.parse import quote

import jsonschema_rs

from state_admin.domain.schema_costs import (
    REFERENCES,
    UNEVALUATED,
    Cost,
    anchors_of,
    count_nodes,
    find_pointer,
    objects,
    pointer_of_reference,
)
from state_admin.domain.values import JSON, Fault, dump, pointer_of

SHOWN: Final = 80
# In the units of schema_costs: at most 0.6 s and usually a tenth of that, in calls of at most 60
# ms, between which other threads run.
MAX_STEPS: Final = 10_000_000
PATTERNS: Final = jsonschema_rs.RegexOptions(size_limit=4 << 20, dfa_size_limit=1 << 20)

_BASE: Final = "urn:commonhold:schema"
_PER_COMPILED: Final = 20
# The library names two values of an `enum`, and the number of the others.
_OTHERS: Final = re.compile(r" or ([0-9]+) other candidates$")
_LISTED: Final = 20
_GIVEN_UP: Final = "does not satisfy the schema; explaining why takes too many steps"
# Keywords that depend on the value alone, in the order of the validator.
_LOCAL: Final = (
    "type", "const", "enum", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
    "multipleOf", "minLength", "maxLength", "pattern", "minItems", "maxItems", "uniqueItems",
    "minProperties", "maxProperties", "format",
)  # fmt: skip
_PROPERTY_KEYWORDS: Final = ("properties", "patternProperties")
_COUNTS: Final = ("minContains", "maxContains")
_Part = tuple[str, JSON, str]


def compile_validator(schema: JSON, mask: str | None = None) -> jsonschema_rs.Validator:
    """The validator of a schema, offline and with linear-time patterns. Raises the errors of the
    library."""
    return jsonschema_rs.Draft202012Validator(
        schema, offline=True, pattern_options=PATTERNS, mask=mask
    )


def shorten(text: str, most: int = SHOWN) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def message_of(error: jsonschema_rs.ValidationError) -> str:
    """The library's message, with long values truncated and all values of a short `enum`."""
    message = error.message
    others = _OTHERS.search(message)
    if error.kind.name == "enum" and others is not None and int(others[1]) <= _LISTED:
        refused, _, _ = message.rpartition(" is not one of ")
        options = error.kind.as_dict()["options"]
        message = f"{refused} is not one of {', '.join(map(dump, options))}"
    if len(message) > SHOWN:
        instance = dump(error.instance)
        if len(instance) > SHOWN:
            message = message.replace(instance, shorten(instance))
    return shorten(message, 4 * SHOWN)


class FaultSearch:
    """One search for the faults of an invalid value."""

    def __init__(self, schema: JSON, cost: Cost, mask: str | None, steps: int) -> None:
        """`steps` is the maximum cost of the search, in units of `cost`."""
        self._schema = schema
        self._cost = cost
        self._mask = mask
        self._steps = steps
        self._anchors = anchors_of(schema)
        self._base = schema.get("$id", _BASE) if isinstance(schema, dict) else _BASE
        self._validators: dict[str, jsonschema_rs.Validator] = {}
        self._patterns: dict[str, jsonschema_rs.Validator] = {}
        self._prices: dict[int, int] = {}

    def faults(self, value: JSON, limit: int) -> list[Fault]:
        """At most `limit` faults, at least one. If the steps are used up, the last fault names the
        place reached."""
        faults: list[Fault] = []
        seen: set[tuple[str, str]] = set()
        stack: list[_Part] = [("", value, "")]
        place = ""
        try:
            while stack and len(faults) < limit:
                at, part, place = stack.pop()
                node = find_pointer(self._schema, at)
                if not isinstance(node, dict):  # `false`, since nothing is invalid under `true`
                    faults.append(Fault(place, f"False schema does not allow {self._show(part)}"))
                    continue
                if (at, place) in seen:
                    continue
                seen.add((at, place))
                local = list(self._local(at, node, part, place, limit))
                applied = self._applied(at, node, part, place)
                deeper = [each for each in applied if not self._fits(each[0], each[1])]
                if not (local or deeper):
                    local = [self._whole(at, node, part, place)]
                faults += local
                stack += reversed(deeper)
        except _StepLimitExceeded:
            faults.append(Fault(place, _GIVEN_UP))
        return faults[:limit]

    def _fits(self, at: str, part: JSON) -> bool:
        validator = self._validator(at)
        self._spend(self._price(part))
        return validator.is_valid(part)

    def _validator(self, at: str) -> jsonschema_rs.Validator:
        if at not in self._validators:
            self._validators[at] = self._compile(self._reference(at))
        return self._validators[at]

    def _reference(self, at: str) -> JSON:
        """A schema equivalent to the subschema."""
        node = find_pointer(self._schema, at)
        if any(name in each for _, each in objects(node) for name in REFERENCES):
            return {"$ref": f"{self._base}#{quote(at, safe='/~')}"}
        return node

    def _compile(self, schema: JSON) -> jsonschema_rs.Validator:
        """The validator of a schema that may refer to the whole schema."""
        if not any(name in each for _, each in objects(schema) for name in REFERENCES):
            self._spend(_PER_COMPILED * count_nodes(schema))
            return compile_validator(schema, self._mask)
        self._spend(_PER_COMPILED * self._cost.units)
        root = self._schema
        if isinstance(root, dict):
            root = {**root, "$id": self._base}
        return compile_validator({**schema, "$defs": {"root": root}}, self._mask)

    def _spend(self, steps: int) -> None:
        self._steps -= steps
        if self._steps < 0:
            raise _StepLimitExceeded

    def _price(self, part: JSON) -> int:
        """The maximum cost of one validation of a part."""
        if not isinstance(part, (dict, list)):
            return self._cost.price(part)
        if id(part) not in self._prices:
            self._prices[id(part)] = self._cost.price(part)
        return self._prices[id(part)]

    def _local(
        self, at: str, node: dict[str, JSON], part: JSON, place: str, limit: int
    ) -> Iterator[Fault]:
        """The faults of the node itself, keyword by keyword."""
        rule: dict[str, JSON]
        for keyword in _LOCAL:
            if keyword in node:
                rule = {keyword: node[keyword]}
                yield from self._first_error(self._compile(rule), part, place)
        if isinstance(part, dict):
            needed = dict.fromkeys(node.get("required", ()))
            for name, others in node.get("dependentRequired", {}).items():
                needed |= dict.fromkeys(others if name in part else ())
            for name in islice((each for each in needed if each not in part), limit):
                yield Fault(place, shorten(f"{dump(name)} is a required property", 4 * SHOWN))
        if isinstance(part, dict) and node.get("additionalProperties") is False:
            closed = {
                name: dict.fromkeys(node[name], True) for name in _PROPERTY_KEYWORDS if name in node
            }
            if closed:
                # With this rule alone the library has a single error, which lists every member.
                validator = self._compile({**closed, "additionalProperties": False})
                self._spend(self._price(part))
                yield from (Fault(place, message_of(e)) for e in validator.iter_errors(part))
        if isinstance(part, dict) and "propertyNames" in node:
            names = self._compile({"propertyNames": self._reference(f"{at}/propertyNames")})
            parts = [{name: part[name]} for name in part] if node["propertyNames"] else [part]
            for each in parts:
                yield from self._first_error(names, each, place)
        if isinstance(part, list) and "contains" in node:
            rule = {name: node[name] for name in _COUNTS if name in node}
            rule["contains"] = self._reference(f"{at}/contains")
            yield from self._first_error(self._compile(rule), part, place)
        yield from self._combined(at, node, part, place)

    def _combined(self, at: str, node: dict[str, JSON], part: JSON, place: str) -> Iterator[Fault]:
        """The faults of `not`, `anyOf` and `oneOf`, without those of their branches."""
        if "not" in node and self._fits(f"{at}/not", part):
            message = f"{dump(node['not'])} is not allowed for {self._show(part)}"
            yield Fault(place, shorten(message, 4 * SHOWN))
        for keyword in ("anyOf", "oneOf"):
            most = 1 if keyword == "oneOf" else len(node.get(keyword, ()))
            fitting = 0
            for index in range(len(node.get(keyword, ()))):
                fitting += self._fits(f"{at}/{keyword}/{index}", part)
                if (fitting and keyword == "anyOf") or fitting > most:
                    break
            if keyword in node and not 1 <= fitting <= most:
                how = "valid under more than one" if fitting else "not valid under any"
                message = f"{how} of the schemas listed in the '{keyword}' keyword"
                yield Fault(place, f"{self._show(part)} is {message}")

    def _first_error(
        self, validator: jsonschema_rs.Validator, part: JSON, place: str
    ) -> Iterator[Fault]:
        self._spend(self._price(part))
        try:
            validator.validate(part)
        except jsonschema_rs.ValidationError as error:
            yield Fault(place, message_of(error))

    def _applied(self, at: str, node: dict[str, JSON], part: JSON, place: str) -> Iterator[_Part]:
        """The subschemas that the part, or a child of it, must match."""
        for keyword in REFERENCES[:2]:
            if isinstance(reference := node.get(keyword), str):
                target = pointer_of_reference(reference, self._anchors)
                if target != at:
                    yield target, part, place
        for index in range(len(node.get("allOf", ()))):
            yield f"{at}/allOf/{index}", part, place
        if "if" in node:
            branch = "then" if self._fits(f"{at}/if", part) else "else"
            if branch in node:
                yield f"{at}/{branch}", part, place
        if isinstance(part, dict):
            for name in node.get("dependentSchemas", ()):
                if name in part:
                    yield at + pointer_of("dependentSchemas", name), part, place
            yield from self._members(at, node, part, place)
        elif isinstance(part, list):
            yield from self._items(at, node, part, place)

    def _members(
        self, at: str, node: dict[str, JSON], part: dict[str, JSON], place: str
    ) -> Iterator[_Part]:
        named: dict[str, Any] = node.get("properties", {})
        patterns: dict[str, Any] = node.get("patternProperties", {})
        others = node.get("additionalProperties", True)
        if others is False and part and not any(name in node for name in _PROPERTY_KEYWORDS):
            yield f"{at}/additionalProperties", next(iter(part.values())), place
        for name, member in part.items():
            here = place + pointer_of(name)
            matching = [pattern for pattern in patterns if self._matches(pattern, name)]
            if name in named:
                yield at + pointer_of("properties", name), member, here
            for pattern in matching:
                yield at + pointer_of("patternProperties", pattern), member, here
            if not (name in named or matching or isinstance(others, bool)):
                yield f"{at}/additionalProperties", member, here

    def _matches(self, pattern: str, name: str) -> bool:
        if pattern not in self._patterns:
            self._patterns[pattern] = self._compile({"pattern": pattern})
        self._spend(self._cost.price(name))
        return self._patterns[pattern].is_valid(name)

    def _items(
        self, at: str, node: dict[str, JSON], part: list[JSON], place: str
    ) -> Iterator[_Part]:
        first = len(node.get("prefixItems", ()))
        for index, item in enumerate(part):
            if index < first:
                yield f"{at}/prefixItems/{index}", item, f"{place}/{index}"
            elif "items" in node:
                yield f"{at}/items", item, f"{place}/{index}"

    def _whole(self, at: str, node: dict[str, JSON], part: JSON, place: str) -> Fault:
        """Why a part is invalid although it satisfies all rules above: `unevaluatedProperties` and
        `unevaluatedItems` depend on all others."""
        if any(name in node for name in UNEVALUATED):
            validator = self._validator(at)
            self._spend(self._price(part))
            try:
                validator.validate(part)
            except jsonschema_rs.ValidationError as error:
                return Fault(place + pointer_of(*error.instance_path), message_of(error))
        return Fault(place, "does not satisfy the schema")

    def _show(self, part: JSON) -> str:
        return self._mask or shorten(dump(part))


class _StepLimitExceeded(Exception):
    """The search has used all its steps."""
