"""The differences of two schemas, by the parts of the values that they describe, for a page.

Not here: whether stored values match a schema (schemas.py), and whether two schemas are compatible
(evolution.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final, NamedTuple

from state_admin.domain.diffs import Kind
from state_admin.domain.json_pointers import look_up_reference
from state_admin.domain.schema_faults import shorten
from state_admin.domain.values import JSON, dump

# Parts of a value that are compared; schemas describe few.
MOST: Final = 1000
_LONGEST: Final = 200
# Shown as parts of their own, or definitions that are shown where they are used.
_INNER: Final = {
    "properties",
    "items",
    "required",
    "$defs",
    "definitions",
    "$schema",
    "$id",
    "$ref",
}


class SchemaChange(NamedTuple):
    """What the schemas say about a part of the value: `price`, `steps[].name`, or "" for all of it.
    `before` is empty if only the new schema describes it, `after` if only the old one does."""

    part: str
    before: str
    after: str

    @property
    def kind(self) -> Kind:
        if not self.before:
            return "added"
        return "changed" if self.after else "removed"


def list_schema_changes(before: JSON, after: JSON) -> list[SchemaChange]:
    """The parts that the schemas describe differently, in the order of the new schema."""
    old, new = _describe(before), _describe(after)
    return [
        SchemaChange(part, old.get(part, ""), new.get(part, ""))
        for part in dict.fromkeys([*new, *old])
        if old.get(part) != new.get(part)
    ]


def _describe(schema: JSON) -> Mapping[str, str]:
    return dict(islice(_parts(schema, schema, "", frozenset(), required=False), MOST))


def _parts(
    schema: JSON, root: JSON, part: str, seen: frozenset[str], *, required: bool
) -> Iterator[tuple[str, str]]:
    """Each part of the value with what the schema says about it. A reference is followed once."""
    if isinstance(schema, dict) and "$ref" in schema:
        reference = str(schema["$ref"])
        target = None if reference in seen else look_up_reference(root, reference)
        if isinstance(target, dict):
            schema, seen = {**target, **schema}, seen | {reference}
        else:
            schema = {**schema, "reference": reference}
    yield part, _summary(schema, required=required)
    if not isinstance(schema, dict):
        return
    members, needed = schema.get("properties"), schema.get("required")
    for name, member in members.items() if isinstance(members, dict) else ():
        inner = f"{part}.{name}" if part else name
        is_required = isinstance(needed, list) and name in needed
        yield from _parts(member, root, inner, seen, required=is_required)
    if "items" in schema:
        yield from _parts(schema["items"], root, f"{part}[]", seen, required=False)


def _summary(schema: JSON, *, required: bool) -> str:
    """For example `integer, minimum 0, required`."""
    if not isinstance(schema, dict):
        words = ["no value" if schema is False else "any value"]
    else:
        kinds = schema.get("type", "any value")
        words = [" or ".join(map(str, kinds)) if isinstance(kinds, list) else str(kinds)]
        words += [
            f"{keyword} {_quote(rule)}"
            for keyword, rule in schema.items()
            if keyword not in _INNER and keyword != "type"
        ]
        needed, members = schema.get("required"), schema.get("properties")
        undeclared = [name for name in needed if name not in (members or {})] if needed else []
        words += [f"required {_quote(undeclared)}"] if undeclared else []
    return ", ".join([*words, "required"] if required else words)


def _quote(rule: JSON) -> str:
    return shorten(rule if isinstance(rule, str) else dump(rule), _LONGEST)
