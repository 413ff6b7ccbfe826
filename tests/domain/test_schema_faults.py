"""The bounded search for faults: it finds what the library finds under ordinary schemas, and always
terminates."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_admin.domain.schema_costs import measure
from state_admin.domain.schema_faults import (
    MAX_STEPS,
    SHOWN,
    FaultSearch,
    compile_validator,
    message_of,
    shorten,
)
from state_admin.domain.values import Fault, pointer_of

_names = st.sampled_from(["a", "b", "cc"])
_scalars = st.sampled_from([None, True, False, 0, 1, 7, "a", "xyz", ""])
_values = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_names, inner, max_size=3),
    max_leaves=8,
)
_types = st.sampled_from(["object", "array", "string", "integer", "null", "boolean"])


def _with(keyword: str, part: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return part.map(lambda value: {keyword: value})


def _deeper(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    some, named = (
        st.lists(inner, min_size=1, max_size=3),
        st.dictionaries(_names, inner, max_size=3),
    )
    keywords = [
        *(_with(keyword, some) for keyword in ("allOf", "anyOf", "oneOf", "prefixItems")),
        *(
            _with(keyword, inner)
            for keyword in ("items", "not", "contains", "additionalProperties")
        ),
        _with("properties", named),
        _with("patternProperties", st.dictionaries(st.sampled_from(["^a", "b", "c{2}"]), inner)),
        _with("dependentSchemas", named),
        _with("propertyNames", st.sampled_from([{"maxLength": 1}, {"pattern": "^a"}, False])),
        st.fixed_dictionaries({"if": inner}, optional={"then": inner, "else": inner}),
    ]
    return st.lists(st.one_of(keywords), min_size=1, max_size=3).map(_joined)


def _joined(parts: list[dict[str, Any]]) -> dict[str, Any]:
    return {keyword: part for each in parts for keyword, part in each.items()}


_leaves = (
    st.booleans()
    | _with("type", _types | st.lists(_types, min_size=1, max_size=2, unique=True))
    | _with("enum", st.lists(_scalars, min_size=1, max_size=3))
    | _with("const", _values)
    | _with("minimum", st.just(3))
    | _with("multipleOf", st.just(2))
    | _with("maxLength", st.just(1))
    | _with("pattern", st.just("^x"))
    | _with("minItems", st.just(2))
    | _with("uniqueItems", st.just(True))
    | _with("maxProperties", st.just(1))
    | _with("required", st.lists(_names, max_size=2, unique=True))
    | _with("dependentRequired", st.just({"a": ["b"]}))
    | st.just({"properties": {"a": True}, "additionalProperties": False})
    | st.just({"$ref": "#/$defs/shared"})
)
_schemas = st.builds(
    lambda schema, shared: {"allOf": [schema], "$defs": {"shared": shared}},
    st.recursive(_leaves, _deeper, max_leaves=6),
    _with("type", _types),
)


def walk(schema: Any, value: Any, limit: int = 1_000, steps: int = MAX_STEPS) -> list[Fault]:
    return FaultSearch(schema, measure(schema), None, steps).faults(value, limit)


@given(_schemas, _values)
def test_walk__ordinary_schema__finds_the_faults_of_the_library(schema: Any, value: Any) -> None:
    schema, value = json.loads(
        json.dumps([schema, value], sort_keys=True)
    )  # as the library formats them
    if expected := _expected(schema, value):
        assert _found(schema, value) == expected


def _expected(schema: Any, value: Any) -> set[tuple[str, str]]:
    return {
        (pointer_of(*error.instance_path), _canonical(message_of(error)))
        for error in compile_validator(schema).iter_errors(value)
    }


def _found(schema: Any, value: Any) -> set[tuple[str, str]]:
    return {(fault.pointer, _canonical(fault.message)) for fault in walk(schema, value)}


_NO_TEXT = {"not": {"type": "string"}}


@pytest.mark.parametrize(
    ("schema", "value", "pointers"),
    [
        ({"properties": {"a": False, "b": False}}, {"a": 1, "b": 2}, ["/a", "/b"]),
        ({"dependentRequired": {"a": ["b"], "x": ["y"]}}, {"a": 1}, [""]),
        ({"dependentSchemas": {"a/b": _NO_TEXT, "b": False, "c": False}}, {"a/b": 1, "b": 1}, [""]),
        ({"contains": {"type": "null"}, "minContains": 2}, [None, 1], [""]),
        ({"contains": {"type": "null"}, "maxContains": 1}, [None, None], [""]),
        ({"items": {"contains": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"const": 1}}}, [[2], [1]], ["/0"]),
        ({"if": {"type": "string"}, "then": {"minLength": 2}, "else": False}, "x", [""]),
        ({"if": {"type": "string"}, "then": False, "else": {"minimum": 2}}, 1, [""]),
        ({"patternProperties": {"^a": _NO_TEXT, "b$": {"type": "string"}}}, {"ab": "x", "a": "y", "cb": 1}, ["/ab", "/a", "/cb"]),
        ({"patternProperties": {"^a": True}, "additionalProperties": False}, {"ab": 1, "b": 2}, [""]),
        ({"additionalProperties": False}, {"a": 1, "b": 2}, [""]),
        ({"properties": {"a": True}, "additionalProperties": {"type": "null"}}, {"a": 1, "b": 2}, ["/b"]),
        ({"propertyNames": {"maxLength": 1}}, {"aa": 1, "b": 2, "cc": 3}, [""]),
        ({"propertyNames": False}, {"a": 1, "b": 2}, [""]),
        ({"oneOf": [{"minimum": 1}, {"minimum": 2}, {"minimum": 9}]}, 3, [""]),
        ({"oneOf": [{"minimum": 4}, {"minimum": 5}]}, 3, [""]),
        ({"allOf": [{"oneOf": [{"minimum": 1}, {"minimum": 5}]}, {"maximum": 2}]}, 3, [""]),
        ({"allOf": [{"anyOf": [{"minimum": 1}, {"minimum": 2}]}, {"maximum": 2}]}, 3, [""]),
        ({"anyOf": [{"minimum": 4}, {"minimum": 5}]}, 3, [""]),
        ({"prefixItems": [{"const": 1}, {"const": 2}], "items": {"const": 3}}, [1, 1, 1], ["/1", "/2"]),
        ({"prefixItems": [{"const": 1}]}, [2, 2], ["/0"]),
        ({"allOf": [{"$ref": "#/$defs/n"}, {"maximum": 1}], "$defs": {"n": {"maximum": 2}}}, 3, [""]),
    ],
)  # fmt: skip
def test_walk__each_keyword__finds_the_faults_of_the_library(
    schema: Any, value: Any, pointers: list[str]
) -> None:
    expected = _expected(schema, value)
    assert {pointer for pointer, _ in expected} == {*pointers}
    assert _found(schema, value) == expected


@pytest.mark.parametrize(
    "schema",
    [{"required": ["a" * 500]}, {"not": {"$comment": "a" * 500}}, {"const": ["a"] * 500}],
)
def test_walk__long_name_in_a_message__is_truncated(schema: Any) -> None:
    (fault,) = walk(schema, {})
    assert (len(fault.message), fault.message[-1]) == (4 * SHOWN, "…")


def _canonical(message: str) -> str:
    """The library lists unexpected names in any order."""
    start, bracket, names = message.partition("not allowed (")
    return start + bracket + "".join(sorted(names)) if bracket else message


def test_walk__recursive_schema__finds_deeply_nested_faults() -> None:
    schema = {
        "$defs": {
            "node": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "next": {"oneOf": [{"type": "null"}, {"$ref": "#/$defs/node"}]},
                    "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
                },
                "required": ["name"],
                "additionalProperties": False,
            }
        },
        "$ref": "#/$defs/node",
    }
    value = {"name": "a", "children": [{"name": "b", "children": [{"name": 1, "x": 2}]}, {}]}
    assert walk(schema, value) == [
        Fault(
            "/children/0/children/0", "Additional properties are not allowed ('x' was unexpected)"
        ),
        Fault("/children/0/children/0/name", '1 is not of type "string"'),
        Fault("/children/1", '"name" is a required property'),
    ]
    assert [fault.pointer for fault in walk(schema, {"name": "a", "next": {}})] == ["/next"]


@pytest.mark.parametrize("keyword", ["unevaluatedProperties", "unevaluatedItems"])
def test_walk__unevaluated_parts__are_explained_by_the_library(keyword: str) -> None:
    value: Any = {"a": 1, "b": 2} if keyword == "unevaluatedProperties" else [1, 2]
    part = {"properties": {"a": True}, "prefixItems": [True], keyword: False}
    (fault,) = walk({"properties": {"x": part}}, {"x": value})
    assert fault.pointer == "/x"
    assert fault.message.startswith("Unevaluated ")


def test_walk__masked__shows_no_value() -> None:
    schema = {
        "anyOf": [{"properties": {"a": False}}],
        "not": {"type": "object"},
        "properties": {"a": {"oneOf": [{"type": "integer"}, False]}, "b": False},
        "minProperties": 9,
    }
    value = {"a": "canary", "b": "canary"}
    found = FaultSearch(schema, measure(schema), "the value", MAX_STEPS).faults(value, 20)
    assert len(found) == 5
    assert "canary" not in str(found)


def test_walk__out_of_steps__reports_the_place_reached() -> None:
    schema = {"properties": {"a": {"properties": {"b": {"$ref": "#/$defs/large"}}}},
              "$defs": {"large": {"allOf": [{"items": {"enum": list(range(500))}}]}}}  # fmt: skip
    value = {"a": {"b": ["x"] * 1_000}}
    (fault,) = walk(schema, value, steps=40_000_000)[:1]
    assert (fault.pointer, fault.message[:18]) == ("/a/b/0", '"x" is not one of ')
    (fault,) = walk(schema, value, steps=6_000_000)
    assert fault.message == "does not satisfy the schema; explaining why takes too many steps"
    assert fault.pointer in ("", "/a", "/a/b")


_SHOW = """
import json, resource, sys
resource.setrlimit(resource.RLIMIT_AS, (1 << 29, 1 << 29))
from state_admin.domain.schemas import compile_schema
schema, value = json.load(sys.stdin)
print(json.dumps([fault.pointer for fault in compile_schema(json.dumps(schema)).faults(value)]))
"""


@pytest.mark.parametrize("depth", [11, 28, 60])
def test_faults__recursive_one_of_with_a_deep_bad_value__takes_little_memory(depth: int) -> None:
    schema, value = expression(depth)
    done = subprocess.run(
        [sys.executable, "-c", _SHOW],
        input=json.dumps([schema, value]),
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == [""]


@pytest.mark.parametrize("depth", [11, 28, 60])
def test_walk__recursive_one_of_with_a_deep_bad_value__takes_few_steps(depth: int) -> None:
    schema, value = expression(depth)
    assert [fault.pointer for fault in walk(schema, value, steps=100_000)] == [""]


def expression(depth: int) -> tuple[Any, Any]:
    """An ordinary recursive schema, and a value that is invalid at its deepest place."""
    part = {"type": "array", "items": {"$ref": "#/$defs/e"}}
    branches = [
        {
            "type": "object",
            "properties": {"op": {"const": op}, "args": part},
            "required": ["op", "args"],
        }
        for op in ("and", "or")
    ]
    leaf = {"type": "object", "properties": {"field": {"type": "string"}}, "required": ["field"]}
    schema = {
        "$defs": {"e": {"oneOf": [*branches, leaf]}},
        "anyOf": [{"type": "null"}, {"$ref": "#/$defs/e"}],
    }
    value: Any = {"field": 1}
    for _ in range(depth):
        value = {"op": "and", "args": [value]}
    return schema, value


def test_shorten__text_at_the_limit__is_unchanged() -> None:
    assert shorten("x" * SHOWN) == "x" * SHOWN
    assert shorten("x" * (SHOWN + 1)) == "x" * (SHOWN - 1) + "…"


def test_walk__value_outside_an_enum__lists_a_short_one() -> None:
    def message(count: int) -> str:
        (fault,) = walk({"enum": [f"o{n}" for n in range(count)]}, "x")
        return fault.message

    assert message(5) == '"x" is not one of "o0", "o1", "o2", "o3", "o4"'
    assert message(1_000) == '"x" is not one of "o0", "o1" or 998 other candidates'
