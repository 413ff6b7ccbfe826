"""The bound on what validating with a schema costs: exact numbers of small schemas."""

from __future__ import annotations

from typing import Any

import pytest

from state_admin.domain.schema_costs import (
    Cost,
    anchors_of,
    count_nodes,
    find_pointer,
    find_target,
    measure,
    measure_value,
    objects,
    pattern_size,
    patterns_of,
    pointer_of_reference,
)

PATTERN = pattern_size("[a-z]{3}") or 0


@pytest.mark.parametrize(
    ("schema", "work", "units", "pattern_bytes"),
    [
        (True, 0, 1, 0),
        ({}, 1, 1, 0),
        ({"type": "string"}, 1, 2, 0),
        ({"type": ["string", "null"]}, 1, 3, 0),
        ({"const": 1}, 1, 6, 0),
        ({"enum": [1, [2]]}, 1, 21, 0),
        ({"multipleOf": 2}, 1, 22, 0),
        ({"default": {"type": "x"}, "examples": [1], "$defs": {"a": {}}}, 1, 1, 0),
        ({"items": {"type": "string"}}, 2, 3, 0),
        ({"properties": {"const": {}, "enum": {"type": "null"}}}, 3, 4, 0),
        ({"allOf": [{}, {}, True]}, 3, 4, 0),
        ({"pattern": "[a-z]{3}"}, 1, 2, PATTERN),
        ({"patternProperties": {"[a-z]{3}": {}}}, 2, 2, PATTERN),
        ({"items": {"pattern": "[a-z]{3}"}, "pattern": "[a-z]{3}"}, 2, 4, 2 * PATTERN),
        ({"unevaluatedProperties": False, "pattern": "[a-z]{3}"}, 1, 9, 3 * PATTERN),
        ({"$defs": {"a": {"type": "null"}}, "items": {"$ref": "#/$defs/a"}}, 3, 4, 0),
        ({"$defs": {"a": {}}, "allOf": [{"$ref": "#/$defs/a"}] * 2}, 5, 5, 0),
        ({"$anchor": "me", "items": {"$ref": "#me"}}, 3, 4, 0),
    ],
)
def test_measure__small_schema__counts_subschemas_keywords_and_patterns(
    schema: Any, work: int, units: int, pattern_bytes: int
) -> None:
    found = measure(schema)
    assert (found.work, found.units, found.pattern_bytes) == (work, units, pattern_bytes)
    assert PATTERN > 0


@pytest.mark.parametrize(
    ("schema", "recursive", "bounded"),
    [
        ({"items": {}}, False, True),
        ({"items": {"$ref": "#"}}, True, True),
        ({"allOf": [{"$ref": "#"}]}, True, False),
        ({"not": {"not": {"$ref": "#"}}}, True, False),
        ({"dependentSchemas": {"a": {"$ref": "#"}}}, True, False),
        ({"dependentSchemas": {"a": {"items": {"$ref": "#"}}}}, True, True),
        ({"items": {"$ref": "#"}, "unevaluatedItems": False}, True, False),
        ({"items": {}, "unevaluatedItems": False}, False, True),
        ({"$id": "urn:a", "items": {}}, False, True),
        ({"items": {"$id": "urn:a"}}, False, False),
        ({"properties": {"$id": {}}}, False, True),
        (
            {"$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}]}}, "items": {"$ref": "#/$defs/a"}},
            True,
            False,
        ),
        (
            {"$defs": {"a": {}}, "allOf": [{"$ref": "#/$defs/a"}] * 2, "items": {"$ref": "#"}},
            True,
            True,
        ),
    ],
)
def test_measure__references_and_ids__determine_whether_the_cost_is_bounded(
    schema: Any, recursive: bool, bounded: bool
) -> None:
    found = measure(schema)
    assert (found.recursive, found.bounded) == (recursive, bounded)


def test_pattern_size__pattern_that_needs_an_automaton__is_above_zero() -> None:
    pattern_size.cache_clear()
    assert pattern_size("[ab]{100}") == 8_192
    assert pattern_size("^abc") == 0


def test_price__of_a_value__counts_its_nodes_and_its_text() -> None:
    cost = Cost(work=1, units=3, pattern_bytes=1_000, recursive=False, bounded=True)
    assert cost.price([1, "x" * 100]) == 3 * 3 + 1_000 * 100 // 250


@pytest.mark.parametrize(
    ("value", "nodes", "size"),
    [
        (None, 1, 0),
        ("abc", 1, 3),
        ("é", 1, 2),
        ("\ud800", 1, 1),
        ({"ab": [1, "x"], "éé": {}}, 5, 11),
        ([[], [[]]], 4, 0),
    ],
)
def test_measure_value__nested__counts_every_value_and_the_bytes_of_texts(
    value: Any, nodes: int, size: int
) -> None:
    assert measure_value(value) == (nodes, size)
    assert count_nodes(value) == nodes


def test_objects__of_a_schema__are_its_subschemas_without_data() -> None:
    schema = {
        "properties": {"const": {"title": "a"}, "x/y": True},
        "const": {"no": 1},
        "default": {"no": 2},
        "allOf": [{"title": "b"}, False],
        "$defs": {"properties": {"title": "c"}},
    }
    assert {pointer: node.get("title") for pointer, node in objects(schema)} == {
        "": None,
        "/properties/const": "a",
        "/allOf/0": "b",
        "/$defs/properties": "c",
    }


def test_patterns__of_a_schema__are_found_in_data_too() -> None:
    schema = {
        "pattern": "a",
        "items": [{"patternProperties": {"b/": {"pattern": "c"}}}],
        "const": {"pattern": "d"},
        "properties": {"pattern": {"pattern": "e"}},
    }
    assert sorted(patterns_of(schema)) == [
        ("/const/pattern", "d"),
        ("/items/0/patternProperties/b~1", "b/"),
        ("/items/0/patternProperties/b~1/pattern", "c"),
        ("/pattern", "a"),
        ("/properties/pattern/pattern", "e"),
    ]


def test_target__of_a_reference__is_found_by_pointer_or_anchor() -> None:
    schema = {
        "$defs": {"a b/c~": {"$anchor": "x"}, "l": [{}, {"$dynamicAnchor": "y", "$anchor": 7}]}
    }
    anchors = anchors_of(schema)
    assert anchors == {"#x": "/$defs/a b~1c~0", "#y": "/$defs/l/1"}
    assert pointer_of_reference("#x", anchors) == "/$defs/a b~1c~0"
    assert pointer_of_reference("#/$defs/a%20b~1c~0", anchors) == "/$defs/a b~1c~0"
    assert pointer_of_reference("#", anchors) == pointer_of_reference("urn:x#/a", anchors) == ""
    assert find_target(schema, "#x", anchors) == {"$anchor": "x"}
    assert find_target(schema, "#/$defs/l/1", anchors)["$dynamicAnchor"] == "y"
    assert find_target(schema, "#", anchors) is schema


@pytest.mark.parametrize("pointer", ["/a/0", "/l/2", "/l/01", "/s/0", "/x/y"])
def test_find_pointer__missing_target__is_none(pointer: str) -> None:
    assert find_pointer({"a": {}, "l": [1, 2], "s": "text"}, pointer) is None
