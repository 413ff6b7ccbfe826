"""JSON Schema: what may be registered, what fits (semantics §3)."""

from __future__ import annotations

import json

import pytest

from state_admin.domain.schemas import MAX_SCHEMA_BYTES, InvalidSchema, Validator, compile_schema
from state_admin.domain.values import load

TEAM = {
    "type": "object",
    "properties": {
        "goal": {"type": "string"},
        "constraints": {"type": "array", "items": {"type": "string"}},
        "count": {"type": "integer"},
    },
    "additionalProperties": False,
}


def compiled(schema: object) -> Validator:
    return compile_schema(json.dumps(schema))


def faults(schema: object) -> list[str]:
    with pytest.raises(InvalidSchema) as error:
        compiled(schema)
    assert error.value.faults
    return [fault.pointer for fault in error.value.faults]


def test_validator__value_that_fits__has_no_faults() -> None:
    validator = compiled(TEAM)
    assert validator.faults({"goal": "x", "constraints": []}) == []
    assert validator.accepts({"count": 3})


def test_validator__value_that_does_not_fit__is_told_where() -> None:
    found = compiled(TEAM).faults({"goal": 1, "constraints": ["a", 2], "extra": 1})
    assert {fault.pointer for fault in found} == {"/goal", "/constraints/1", ""}
    assert all(fault.message for fault in found)
    assert not compiled(TEAM).accepts({"goal": 1})


def test_validator__pointer_to_odd_keys__is_escaped() -> None:
    found = compiled({"additionalProperties": {"type": "integer"}}).faults({"a/b~c": "x"})
    assert [fault.pointer for fault in found] == ["/a~1b~0c"]


def test_validator__long_value__is_cut_from_the_message() -> None:
    (fault,) = compiled({"type": "integer"}).faults("x" * 5_000)
    assert len(fault.message) < 150
    assert 'not of type "integer"' in fault.message


def test_validator__many_faults__are_limited() -> None:
    validator = compiled({"items": {"type": "integer"}})
    assert len(validator.faults(["x"] * 100)) == 20
    assert len(validator.faults(["x"] * 100, limit=3)) == 3


def test_validator__huge_value__tells_the_first_fault_only() -> None:
    wide = {"items": {"allOf": [{"type": "integer"}] * 50}}
    assert len(compiled(wide).faults(["x"] * 5_000)) == 1


@pytest.mark.parametrize("schema", [{}, True])
def test_validator__empty_schema__accepts_anything(schema: object) -> None:
    anything: list[object] = [None, 1, "x", [], {}, {"a": [None]}]
    for value in anything:
        assert compiled(schema).accepts(value)


@pytest.mark.parametrize(
    ("schema", "literal", "fits"),
    [
        ({"type": "integer"}, "1e2", True),
        ({"type": "integer"}, "1.10", False),
        ({"type": "integer"}, "1.0", True),
        ({"type": "integer"}, "-0", True),
        ({"type": "number", "maximum": 1.05}, "1.10", False),
        ({"type": "integer"}, "123456789012345678901234567890", True),
        ({"maximum": 10}, "123456789012345678901234567890", False),
        ({"minimum": 10**40}, str(10**39), False),
        ({"const": 12345678901234567890123}, "12345678901234567890123", True),
        ({"const": 12345678901234567890123}, "12345678901234567890124", False),
        ({"multipleOf": 3}, "3" + "0" * 30, True),
        ({"multipleOf": 3}, "3" + "0" * 29 + "1", False),
        ({"items": {"type": "string"}}, "[1.10]", False),
        ({"type": "integer"}, "9" * 1000, True),
    ],
)
def test_validator__numbers_of_any_spelling__are_judged_exactly(
    schema: object, literal: str, fits: bool
) -> None:
    value = load(literal)
    assert compiled(schema).accepts(value) is fits
    assert (compiled(schema).faults(value) == []) is fits


@pytest.mark.parametrize(
    ("schema", "where"),
    [
        ({"$ref": "http://127.0.0.1:9/x.json"}, "/$ref"),
        ({"$ref": "file:///etc/passwd"}, "/$ref"),
        ({"$ref": "other.json#/a"}, "/$ref"),
        ({"$ref": ""}, "/$ref"),
        ({"$ref": "https://json-schema.org/draft/2020-12/schema"}, "/$ref"),
        (
            {"properties": {"a": {"items": {"$dynamicRef": "b#x"}}}},
            "/properties/a/items/$dynamicRef",
        ),
        ({"allOf": [{"$ref": "urn:x"}]}, "/allOf/0/$ref"),
        ({"$id": "http://evil/", "$ref": "b"}, "/$ref"),
        ({"anything": {"$ref": "http://x"}}, "/anything/$ref"),
        ({"$schema": "http://json-schema.org/draft-07/schema#"}, "/$schema"),
        ({"$schema": "http://127.0.0.1:9/meta"}, "/$schema"),
        ({"properties": {"a": {"$schema": "http://x/y"}}}, "/properties/a/$schema"),
    ],
)
def test_schema__that_leaves_the_document__is_refused_where_it_does(
    schema: object, where: str
) -> None:
    assert faults(schema) == [where]


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"default": {"$ref": "http://127.0.0.1:9/x"}}},
        {"$ref": "#/const", "const": {"$ref": "http://127.0.0.1:9/x"}},
    ],
)
def test_schema__reference_hidden_as_data__is_never_fetched(schema: object) -> None:
    assert faults(schema)


@pytest.mark.parametrize(
    "schema",
    [
        {"$defs": {"a": {"type": "integer"}}, "$ref": "#/$defs/a"},
        {"$anchor": "q", "items": {"$ref": "#q"}},
        {"$schema": "https://json-schema.org/draft/2020-12/schema"},
        {"const": {"$ref": "http://only/data"}},
        {"properties": {"$ref": {"type": "string"}, "$schema": {"type": "string"}}},
        {"properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}}},
        {"$ref": "#"},
        {"$defs": {"a/b~": {"type": "string"}}, "$ref": "#/$defs/a~1b~0"},
        {"allOf": [True, {"type": "integer"}], "properties": {"a": {"$ref": "#/allOf/1"}}},
        {"pattern": "^(a+)+$"},
        {"pattern": r"^\p{L}{1,64}$"},
    ],
)
def test_schema__that_stays_in_the_document__is_legal(schema: object) -> None:
    compiled(schema)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        '{"type": 1}',
        '{"type": "wizard"}',
        "5",
        "null",
        '{"a": 1, "a": 2}',
        '{"$ref": "#/nope"}',
        '{"$ref": "#nope"}',
        '{"pattern": "(a"}',
        '{"pattern": "(?=a)b"}',
        '{"minimum": "1"}',
        '{"pattern": "(a{1,99}){1,99}{1,99}"}',
        '{"title": "\\u0000"}',
        '{"not":' * 70 + "{}" + "}" * 70,
        '{"title": "' + "x" * MAX_SCHEMA_BYTES + '"}',
        '{"title": "' + "é" * (MAX_SCHEMA_BYTES // 2) + '"}',
    ],
)
def test_schema__that_is_none__is_refused(text: str) -> None:
    with pytest.raises(InvalidSchema):
        compile_schema(text)


def test_pattern__made_to_backtrack__is_judged_at_once() -> None:
    assert not compiled({"pattern": "^(a+)+$"}).accepts("a" * 10_000 + "b")


def test_schema__too_many_patterns__is_refused() -> None:
    assert faults({"allOf": [{"pattern": f"a{n}"} for n in range(40)]}) == [""]


def test_schema__references_that_multiply__are_refused() -> None:
    levels = {f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n - 1}"}] * 2} for n in range(1, 30)}
    schema = {"$defs": {"a0": {"type": "integer"}, **levels}, "$ref": "#/$defs/a29"}
    assert faults(schema) == [""]


def test_schema__references_that_multiply_through_a_list__are_refused() -> None:
    steps = [{"allOf": [{"$ref": f"#/anyOf/{n + 1}"}] * 2} for n in range(30)]
    assert faults({"anyOf": [*steps, {"type": "integer"}]}) == [""]


def test_schema__very_long_chain_of_references__is_refused() -> None:
    chain = {f"a{n}": {"$ref": f"#/$defs/a{n + 1}"} for n in range(2_000)}
    schema = {"$defs": {**chain, "a2000": True}, "$ref": "#/$defs/a0"}
    assert faults(schema) == [""]


def test_validator__recursive_schema_with_deep_bad_value__answers() -> None:
    twice = {"type": ["object", "integer"], "properties": {"a": {"allOf": [{"$ref": "#"}] * 2}}}
    value: object = "bad"
    for _ in range(60):
        value = {"a": value}
    assert [fault.pointer for fault in compiled(twice).faults(value)] == ["/a" * 60]
