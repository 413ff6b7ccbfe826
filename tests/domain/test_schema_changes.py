"""The changes of a schema, by the parts of the values."""

from __future__ import annotations

from typing import Any

import pytest

from state_admin.domain.schema_changes import SchemaChange, list_schema_changes

BEFORE = {
    "type": "object",
    "required": ["goal"],
    "properties": {
        "goal": {"type": "string"},
        "price": {"type": "number", "minimum": 0},
        "old": {"type": "boolean"},
        "steps": {"type": "array", "items": {"properties": {"name": {"type": "string"}}}},
    },
}


def changes(after: Any, before: Any = BEFORE) -> list[tuple[str, str, str]]:
    return [tuple(each) for each in list_schema_changes(before, after)]


def with_members(**members: Any) -> dict[str, Any]:
    kept = {name: each for name, each in BEFORE["properties"].items() if name != "old"}
    return {**BEFORE, "properties": {**kept, **members}}


def test_changes__equal_schemas__are_none() -> None:
    assert changes(dict(reversed(BEFORE.items()))) == []


def test_changes__members__are_added_removed_and_changed() -> None:
    after = with_members(price={"type": "integer", "minimum": 1}, vip={"enum": ["a", 2]})
    assert changes(after) == [
        ("price", "number, minimum 0", "integer, minimum 1"),
        ("vip", "", 'any value, enum ["a",2]'),
        ("old", "boolean", ""),
    ]
    kinds = [each.kind for each in list_schema_changes(BEFORE, after)]
    assert kinds == ["changed", "added", "removed"]


def test_changes__required_items_and_the_whole__name_their_part() -> None:
    after = {**BEFORE, "required": ["price", "more"], "additionalProperties": False}
    after["properties"] = BEFORE["properties"] | {
        "steps": {"type": "array", "items": {"properties": {"name": {"type": ["string", "null"]}}}}
    }
    assert changes(after) == [
        ("", "object", 'object, additionalProperties false, required ["more"]'),
        ("goal", "string, required", "string"),
        ("price", "number, minimum 0", "number, minimum 0, required"),
        ("steps[].name", "string", "string or null"),
    ]


def test_changes__definition__is_shown_where_it_is_used() -> None:
    def schema(kind: str) -> dict[str, Any]:
        node = {"type": kind, "properties": {"next": {"$ref": "#/$defs/node"}}}
        return {"properties": {"first": {"$ref": "#/$defs/node"}}, "$defs": {"node": node}}

    assert changes(schema("object"), schema("string")) == [("first", "string", "object")]


@pytest.mark.parametrize("schema", [True, False, {"$ref": "#/nothing"}, {"$ref": "https://x.test"}])
def test_changes__schema_without_parts__is_the_whole_value(schema: Any) -> None:
    (change,) = changes(schema, {"type": "string"})
    assert (change[0], change[1]) == ("", "string")
    assert change[2] != ""


def test_changes__endless_items__end() -> None:
    schema = {"items": {"$ref": "#"}}
    assert list_schema_changes(schema, {"items": {"$ref": "#"}, "type": "array"}) == [
        SchemaChange("", "any value", "array"),
        SchemaChange("[]", "any value", "array"),
    ]
