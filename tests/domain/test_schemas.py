"""JSON Schema: what may be registered, and which values are valid."""

from __future__ import annotations

import json

import pytest

from state_admin.domain import schema_faults, schemas
from state_admin.domain.schema_costs import pattern_size
from state_admin.domain.schemas import (
    MAX_SCHEMA_BYTES,
    InvalidSchema,
    Validator,
    check_patterns,
    compile_schema,
)
from state_admin.domain.values import Fault, load

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


def test_validator__valid_value__has_no_faults() -> None:
    validator = compiled(TEAM)
    assert validator.faults({"goal": "x", "constraints": []}) == []
    assert validator.accepts({"count": 3})


def test_validator__invalid_value__is_located() -> None:
    found = compiled(TEAM).faults({"goal": 1, "constraints": ["a", 2], "extra": 1})
    assert {fault.pointer for fault in found} == {"/goal", "/constraints/1", ""}
    assert all(fault.message for fault in found)
    assert not compiled(TEAM).accepts({"goal": 1})


def test_validator__pointer_to_special_keys__is_escaped() -> None:
    found = compiled({"additionalProperties": {"type": "integer"}}).faults({"a/b~c": "x"})
    assert [fault.pointer for fault in found] == ["/a~1b~0c"]


def test_validator__long_value__is_truncated_in_the_message() -> None:
    (fault,) = compiled({"type": "integer"}).faults("x" * 5_000)
    assert len(fault.message) < 150
    assert 'not of type "integer"' in fault.message


def test_validator__many_faults__are_limited() -> None:
    validator = compiled({"items": {"type": "integer"}})
    assert len(validator.faults(["x"] * 100)) == 20
    assert len(validator.faults(["x"] * 100, limit=3)) == 3


@pytest.mark.parametrize(
    ("schema", "value", "pointers"),
    [
        ({"items": {"allOf": [{"type": "integer"}] * 50}}, ["x"] * 5_000, ["/0", "/0"]),
        ({"required": [f"r{n}" for n in range(5_000)]}, {"a": "x" * 100_000}, ["", ""]),
        ({"allOf": [{"maxLength": 1}] * 100}, "x" * 100_000, ["", ""]),
    ],
)
def test_validator__many_faults_of_a_large_value__are_not_all_collected(
    schema: object, value: object, pointers: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    walks = count_walks(monkeypatch)
    assert [fault.pointer for fault in compiled(schema).faults(value, 2)] == pointers
    assert len(walks) == 1


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
def test_validator__numbers_of_any_spelling__are_compared_exactly(
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
def test_schema__external_reference__is_refused_at_its_place(schema: object, where: str) -> None:
    assert faults(schema) == [where]


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"default": {"$ref": "http://127.0.0.1:9/x"}}},
        {"$ref": "#/const", "const": {"$ref": "http://127.0.0.1:9/x"}},
    ],
)
def test_schema__reference_within_data__is_never_fetched(schema: object) -> None:
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
def test_schema__internal_references__are_valid(schema: object) -> None:
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
def test_schema__not_a_schema__is_refused(text: str) -> None:
    with pytest.raises(InvalidSchema):
        compile_schema(text)


def test_pattern__crafted_to_backtrack__is_matched_quickly() -> None:
    assert not compiled({"pattern": "^(a+)+$"}).accepts("a" * 10_000 + "b")


def test_schema__too_many_patterns__is_refused() -> None:
    assert faults({"allOf": [{"pattern": f"a{n}"} for n in range(40)]}) == [""]


def test_schema__exponential_references__are_refused() -> None:
    levels = {f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n - 1}"}] * 2} for n in range(1, 30)}
    schema = {"$defs": {"a0": {"type": "integer"}, **levels}, "$ref": "#/$defs/a29"}
    assert faults(schema) == [""]


def test_schema__exponential_references_through_a_list__are_refused() -> None:
    steps = [{"allOf": [{"$ref": f"#/anyOf/{n + 1}"}] * 2} for n in range(30)]
    assert faults({"anyOf": [*steps, {"type": "integer"}]}) == [""]


def test_schema__very_long_chain_of_references__is_refused() -> None:
    chain = {f"a{n}": {"$ref": f"#/$defs/a{n + 1}"} for n in range(2_000)}
    schema = {"$defs": {**chain, "a2000": True}, "$ref": "#/$defs/a0"}
    assert faults(schema) == [""]


def count_walks(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """One item for each search that did not use the library's list of all errors."""
    walks: list[object] = []

    class Counted(schema_faults.FaultSearch):
        def faults(self, value: object, limit: int) -> list[Fault]:
            walks.append(value)
            return super().faults(value, limit)

    monkeypatch.setattr(schemas, "FaultSearch", Counted)
    return walks


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"const": {"$ref": "#/$defs/a29"}}},
        {"patternProperties": {"x": {"properties": {"enum": {"$ref": "#/$defs/a29"}}}}},
    ],
)
def test_schema__exponential_references_in_a_property_named_as_a_keyword__are_refused(
    schema: dict[str, object],
) -> None:
    levels = {f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n - 1}"}] * 2} for n in range(1, 30)}
    assert faults({"$defs": {"a0": {"type": "integer"}, **levels}, **schema}) == [""]


def test_schema__patterns_in_a_property_named_as_a_keyword__are_counted() -> None:
    assert faults(
        {"properties": {"const": {"allOf": [{"pattern": f"a{n}"} for n in range(40)]}}}
    ) == [""]


def test_validator__recursive_schema_with_deep_invalid_value__returns_faults() -> None:
    twice = {"type": ["object", "integer"], "properties": {"a": {"allOf": [{"$ref": "#"}] * 2}}}
    value: object = "bad"
    for _ in range(60):
        value = {"a": value}
    assert [fault.pointer for fault in compiled(twice).faults(value)] == ["/a" * 60]


@pytest.mark.parametrize(
    ("schema", "max_value_bytes", "where"),
    [
        ({"pattern": "^[a-z0-9-]{1,64}$"}, 8 << 20, []),
        ({"pattern": "^.{1,500}$"}, 1 << 20, []),
        ({"pattern": "^.{1,500}$"}, 8 << 20, ["/pattern"]),
        ({"pattern": r"^\p{L}{1,64}$"}, 1 << 20, ["/pattern"]),
        ({"pattern": r"^\p{L}{1,64}$"}, 100_000, []),
        ({"pattern": r"(\w{1,50}y?){200}$"}, 1 << 20, ["/pattern"]),
        (
            {"properties": {"const": {"pattern": r"(\w{1,50}y?){200}"}}},
            1 << 20,
            ["/properties/const/pattern"],
        ),
        (
            {"patternProperties": {"a/(.{50}){9}": {}}},
            8 << 20,
            ["/patternProperties/a~1(.{50}){9}"],
        ),
        (
            {"allOf": [{"pattern": "a"}, {"pattern": "^.{1,500}$"}, {"pattern": "^.{1,400}$"}]},
            1 << 20,
            [],
        ),
        (
            {
                "allOf": [
                    {"pattern": "^.{1,250}b"},
                    {"pattern": "^.{1,500}$"},
                    {"pattern": "^.{1,400}$"},
                ]
            },
            1 << 20,
            ["/allOf/2/pattern"],
        ),
        # Beyond the limit of any pattern, whatever the values.
        (
            {"allOf": [{"pattern": rf"^\p{{L}}{{1,{n}}}$"} for n in (60, 61)]},
            1,
            ["/allOf/1/pattern"],
        ),
    ],
)
def test_patterns__too_large_for_the_values__are_refused_at_their_place(
    schema: object, max_value_bytes: int, where: list[str]
) -> None:
    text = json.dumps(schema)
    if not where:
        check_patterns(text, max_value_bytes)
    else:
        with pytest.raises(InvalidSchema) as error:
            check_patterns(text, max_value_bytes)
        assert [fault.pointer for fault in error.value.faults] == where
        message = error.value.faults[0].message
        assert f"for values of up to {max_value_bytes:,} bytes all patterns" in message
        assert message.startswith("the pattern compiles to up to ")
        assert message.endswith(
            ". Repeat less ({n,m}, \\p{…}), use maxLength, or lower max_value_bytes"
        )
    compile_schema(text)  # a schema that is registered already remains in use


@pytest.mark.parametrize("text", ["{", '{"$ref": "http://x"}'])
def test_check_patterns__not_a_schema__is_refused_as_by_compiling_it(text: str) -> None:
    with pytest.raises(InvalidSchema) as checking:
        check_patterns(text, 1 << 20)
    with pytest.raises(InvalidSchema) as compiling:
        compile_schema(text)
    assert checking.value.faults == compiling.value.faults


@pytest.mark.parametrize("text", ['{"pattern": "(a"}', "true", "5"])
def test_check_patterns__uncompilable_pattern_or_schema__is_not_reported(
    text: str,
) -> None:
    check_patterns(text, 1 << 20)


@pytest.mark.parametrize(
    ("pattern", "largest"),
    [
        ("^abc", 0),
        ("[ab]", 400),
        ("[ab]{100}", 8_192),
        (r"\p{L}", 65_536),
        ("(a", None),
        ("(.{99}){99}", None),
    ],
)
def test_pattern_size__any_pattern__is_that_of_the_compiled_program(
    pattern: str, largest: int | None
) -> None:
    size = pattern_size(pattern)
    assert (size is None) == (largest is None)
    assert size is None or largest is None or size <= largest


def test_schema__many_external_references__are_reported_up_to_twenty() -> None:
    schema = {"allOf": [{"$ref": f"http://x/{n}"} for n in range(30)]}
    assert len(faults(schema)) == 20


def test_schema__several_faults__are_all_reported() -> None:
    with pytest.raises(InvalidSchema) as refused:
        compiled({"$ref": "http://x", "$schema": "urn:y"})
    assert str(refused.value) == "; ".join(map(str, refused.value.faults))
    assert len(refused.value.faults) == 2
