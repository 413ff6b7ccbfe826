"""Compatible definitions: a program with one can use a namespace registered with the other."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from state_admin.domain import evolution, values
from state_admin.domain.evolution import default_differences, schema_differences
from state_admin.domain.schemas import compile_schema

Schema = dict[str, Any]

TEAM: Schema = {
    "type": "object",
    "properties": {"goal": {"type": "string"}, "tags": {"type": "array", "items": {}}},
}


def team(**properties: Any) -> Schema:
    return {**TEAM, "properties": {**TEAM["properties"], **properties}}


COMPATIBLE: list[tuple[Any, Any]] = [
    (TEAM, team(budget={"type": "number"})),
    (team(a={}), team(b={})),
    ({}, True),
    ({"type": "object", "additionalProperties": True}, {"type": "object", "properties": {"a": {}}}),
    (
        {"required": ["b", "a"], "properties": {"a": {}, "b": {}}},
        {"required": ["a", "b"], "properties": {"b": {}, "a": {}, "c": {}}},
    ),
    ({"enum": [1, "x"]}, {"enum": ["x", 1.0]}),
    ({"type": ["string"]}, {"type": "string"}),
    (
        {"title": "A", "description": "old", "properties": {"a": {"default": 1}}},
        {"title": "B", "properties": {"a": {"default": 2, "description": "new"}}},
    ),
    # References, by another name and written out.
    (
        {"$ref": "#/$defs/Team", "$defs": {"Team": TEAM}},
        {"properties": team(x={})["properties"], "type": "object"},
    ),
    (
        {"properties": {"t": {"$ref": "#/$defs/A"}}, "$defs": {"A": TEAM}},
        {"properties": {"t": {"$ref": "#/$defs/B"}}, "$defs": {"B": team(x={})}},
    ),
    # Recursive.
    (
        {"properties": {"next": {"$ref": "#"}, "n": {"type": "integer"}}},
        {"properties": {"next": {"$ref": "#"}, "n": {"type": "integer"}, "m": {}}},
    ),
    # At every place where a condition is added, and nowhere else.
    ({"items": TEAM}, {"items": team(x={})}),
    ({"prefixItems": [TEAM]}, {"prefixItems": [team(x={})]}),
    ({"additionalProperties": TEAM}, {"additionalProperties": team(x={})}),
    ({"anyOf": [TEAM, {"type": "null"}]}, {"anyOf": [team(x={}), {"type": "null"}]}),
    ({"allOf": [TEAM]}, {"allOf": [team(x={})]}),
]

INCOMPATIBLE: list[tuple[Any, Any, str]] = [
    (TEAM, team(goal={"type": "integer"}), "/properties/goal/type"),
    (TEAM, {**team(x={}), "required": ["x"]}, "/properties/x"),
    (TEAM, {**TEAM, "required": ["goal"]}, "/required"),
    (TEAM, {**TEAM, "additionalProperties": False}, "/additionalProperties"),
    (
        {**TEAM, "additionalProperties": False},
        {**team(x={}), "additionalProperties": False},
        "/properties/x",
    ),
    (
        {**TEAM, "additionalProperties": {"type": "string"}},
        {**team(x={"type": "integer"}), "additionalProperties": {"type": "string"}},
        "/properties/x",
    ),
    (
        {"allOf": [TEAM], "unevaluatedProperties": False},
        {"allOf": [team(x={})], "unevaluatedProperties": False},
        "/allOf/0/properties/x",
    ),
    ({}, {"type": "object"}, "/type"),
    ({}, False, ""),
    ({"enum": [1]}, {"enum": [True]}, "/enum"),
    ({"const": {"a": 1}}, {"const": {"a": 2}}, "/const"),
    ({"maxLength": 5}, {"maxLength": 6}, "/maxLength"),
    ({"not": TEAM}, {"not": team(x={"type": "string"})}, "/not/properties/x"),
    ({"oneOf": [TEAM]}, {"oneOf": [team(x={})]}, "/oneOf/0/properties/x"),
    ({"oneOf": [{"not": TEAM}]}, {"oneOf": [{"not": team(x={})}]}, "/oneOf/0/not/properties/x"),
    ({"if": TEAM, "then": {}}, {"if": team(x={}), "then": {}}, "/if/properties/x"),
    ({"anyOf": [TEAM]}, {"anyOf": [TEAM, TEAM]}, "/anyOf"),
    (
        {"patternProperties": {"^a": TEAM}},
        {"patternProperties": {"^b": TEAM}},
        "/patternProperties",
    ),
    (
        {"properties": {"t": {"$ref": "#/$defs/A"}}, "$defs": {"A": TEAM}},
        {"properties": {"t": {"$ref": "#/$defs/A"}}, "$defs": {"A": team(goal={"type": "null"})}},
        "/properties/t/properties/goal/type",
    ),
    ({"$anchor": "a"}, {"$anchor": "b"}, ""),
]


@pytest.mark.parametrize(("one", "other"), COMPATIBLE)
def test_schemas__differing_in_optional_fields__are_compatible_both_ways(
    one: Any, other: Any
) -> None:
    assert schema_differences(one, other) == schema_differences(other, one) == []


@pytest.mark.parametrize(("one", "other", "pointer"), INCOMPATIBLE)
def test_schemas__other_differences__are_reported_both_ways(
    one: Any, other: Any, pointer: str
) -> None:
    assert [fault.pointer for fault in schema_differences(one, other)] == [pointer]
    assert [fault.pointer for fault in schema_differences(other, one)] == [pointer]


def test_message__of_a_difference__contains_both_sides() -> None:
    (fault,) = schema_differences(TEAM, team(goal={"type": "integer"}))
    assert fault.message == 'registered: "string"; offered: "integer"'
    (fault,) = schema_differences(TEAM, {**TEAM, "minProperties": 1})
    assert fault.message == "registered: nothing; offered: 1"


def test_schemas__with_many_pairs_of_references__are_refused_instead_of_compared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(evolution, "MAX_WORK", 100)

    def ring(length: int) -> Schema:
        steps = {
            f"s{n}": {"properties": {"next": {"$ref": f"#/$defs/s{(n + 1) % length}"}}}
            for n in range(length)
        }
        return {"$ref": "#/$defs/s0", "$defs": steps}

    assert schema_differences(ring(3), ring(5)) == []
    (fault,) = schema_differences(ring(13), ring(17))
    assert (fault.pointer, fault.message) == ("", "the schemas are too large to be compared")


# Any schemas --------------------------------------------------------------------------------------

scalars = st.sampled_from([{}, {"type": "string"}, {"type": "integer"}, {"enum": [1, "x"]}])
anything = st.sampled_from([1, 2, "x", "y", None, [], {}])


def objects(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    closed = st.sampled_from([{}, {}, {"additionalProperties": False}])
    return st.builds(
        lambda schema, required, closed: {
            "type": "object",
            "properties": {"a": schema},
            "required": required,
            **closed,
        },
        inner,
        st.sampled_from([[], ["a"]]),
        closed,
    )


schemas = st.recursive(
    objects(scalars),
    lambda inner: (
        objects(inner)
        | st.builds(lambda each: {"type": "array", "items": each}, inner)
        | st.builds(
            lambda keyword, each, other: {keyword: [each, other]},
            st.sampled_from(["anyOf", "allOf", "oneOf"]),
            inner,
            inner | st.just({"type": "null"}),
        )
        | st.builds(lambda each: {"not": each}, inner)
    ),
    max_leaves=3,
)


def parts(schema: Any) -> list[Schema]:
    """The subschemas directly in a schema."""
    found = [*schema.get("properties", {}).values(), schema.get("items"), schema.get("not")]
    for keyword in ("anyOf", "allOf", "oneOf"):
        found += schema.get(keyword, [])
    return [each for each in found if isinstance(each, dict)]


def nodes(schema: Schema) -> list[Schema]:
    return [schema, *(node for each in parts(schema) for node in nodes(each))]


@st.composite
def edited(draw: st.DrawFn, schema: Schema, name: str) -> Schema:
    """The schema with new fields of that name, and sometimes with another change."""
    made: Schema = copy.deepcopy(schema)
    for node in nodes(made):
        if "properties" in node and draw(st.booleans()):
            node["properties"][name] = draw(scalars)
        if draw(st.integers(0, 11)) == 0:
            node.update(draw(scalars))
        if "properties" in node and draw(st.integers(0, 5)) == 0:
            node["required"] = draw(st.sampled_from([[], ["a"], [name]]))
    return made


@st.composite
def written(draw: st.DrawFn, schema: Schema) -> Any:
    """A value that a program with this schema may write; not always a valid one."""
    if draw(st.integers(0, 5)) == 0:
        return draw(anything)
    if "properties" in schema:
        return {
            name: draw(written(each) if draw(st.booleans()) else anything)
            for name, each in schema["properties"].items()
            if name in schema.get("required", []) or draw(st.booleans())
        }
    if "items" in schema:
        return [draw(written(schema["items"])) for _ in range(draw(st.integers(0, 2)))]
    if inner := parts(schema):
        return draw(written(draw(st.sampled_from(inner))))
    return draw(anything)


def without(value: Any, name: str) -> Any:
    if isinstance(value, list):
        return [without(each, name) for each in value]
    if isinstance(value, dict):
        return {key: without(each, name) for key, each in value.items() if key != name}
    return value


@settings(max_examples=500)
@given(st.data(), schemas)
def test_schemas__compatible__accept_values_written_for_the_other(
    data: st.DataObject, base: Schema
) -> None:
    """A program writes no member that only the other schema declares."""
    one, other = data.draw(edited(base, "mine")), data.draw(edited(base, "theirs"))
    if schema_differences(one, other):
        assert schema_differences(other, one)
        return
    assert schema_differences(other, one) == []
    ours, theirs = (compile_schema(values.dump(each)) for each in (one, other))
    for _ in range(8):
        mine = without(data.draw(written(one)), "theirs")
        assert theirs.accepts(mine) or not ours.accepts(mine), mine
        hers = without(data.draw(written(other)), "mine")
        assert ours.accepts(hers) or not theirs.accepts(hers), hers


@given(schemas)
def test_schemas__equal__are_compatible(schema: Schema) -> None:
    titled = {"title": "T", **copy.deepcopy(schema), "description": "changed"}
    assert schema_differences(schema, titled) == []


# Defaults -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other", "schema_of_one", "schema_of_other"),
    [
        ({"goal": ""}, {"goal": ""}, TEAM, TEAM),
        ({"goal": ""}, {"goal": "", "budget": 0}, TEAM, team(budget={"type": "number"})),
        ({"goal": "", "a": 1}, {"goal": "", "b": 2}, team(a={}), team(b={})),
        # Without a schema the members of the default are the fields.
        ({"goal": ""}, {"goal": "", "budget": 0}, {}, {}),
        ({"goal": ""}, {"goal": "", "mine": 0}, TEAM, {}),
        (
            {"t": {"x": 1}},
            {"t": {}},
            {"properties": {"t": team(x={})}},
            {"properties": {"t": TEAM}},
        ),
        ([{"x": 1}], [{}], {"items": team(x={})}, {"items": TEAM}),
        ({"x": 1}, {}, {"anyOf": [team(x={})]}, {"anyOf": [TEAM]}),
        ({"x": 1}, {}, {"$ref": "#/$defs/A", "$defs": {"A": team(x={})}}, TEAM),
    ],
)
def test_defaults__differing_in_fields_of_one_side__are_compatible_both_ways(
    one: Any, other: Any, schema_of_one: Any, schema_of_other: Any
) -> None:
    assert default_differences(one, other, schema_of_one, schema_of_other) == []
    assert default_differences(other, one, schema_of_other, schema_of_one) == []


@pytest.mark.parametrize(
    ("one", "other", "schema", "pointer"),
    [
        ({"goal": ""}, {"goal": "x"}, TEAM, "/goal"),
        ({"goal": ""}, {}, TEAM, "/goal"),
        # Members of a map are not fields.
        ({"a": 1}, {}, {"type": "object", "additionalProperties": {}}, "/a"),
        ([1], [1, 2], {}, ""),
        ({"n": 1}, {"n": True}, {}, "/n"),
        ("de", "en", {"type": "string"}, ""),
    ],
)
def test_defaults__other_differences__are_reported_both_ways(
    one: Any, other: Any, schema: Any, pointer: str
) -> None:
    for pair in ((one, other), (other, one)):
        (fault,) = default_differences(*pair, schema, schema)
        assert fault.pointer == pointer


@pytest.mark.parametrize(
    ("one", "other", "fault"),
    [
        ({"$id": "urn:a"}, {}, "schemas with $id, anchors or dynamic references must be equal"),
        ({}, {"$dynamicRef": "#a"}, "schemas with $id, anchors or dynamic references must be equal"),
        ({"$ref": "#a"}, {}, "schemas with $id, anchors or dynamic references must be equal"),
        (
            {"required": ["a"], "properties": {"a": {}}},
            {},
            "/properties/a: only the registered schema has this required field",
        ),
        (
            {},
            {"required": ["a"], "properties": {"a": {}}},
            "/properties/a: only the offered schema has this required field",
        ),
        (
            {"additionalProperties": False},
            {"additionalProperties": False, "properties": {"a": {}}},
            "/properties/a: only the offered schema has this field, and other fields are not allowed",
        ),
        (
            {"properties": {"a": {}}, "not": {"unevaluatedProperties": False}},
            {"not": {"unevaluatedProperties": False}},
            "/properties/a: only the registered schema has this field, and other fields are not allowed",
        ),
        ({"required": ["b", "a"]}, {"required": ["c"]}, '/required: registered: ["a","b"]; offered: ["c"]'),
        ({"not": True}, {"not": False}, "/not: registered: {}; offered: false"),
        ({"items": {"title": "x"}, "title": "y", "type": "array"}, {"items": False, "type": "array"}, '/items: registered: {"title":"x"}; offered: false'),
        ({"title": "x", "minimum": 1}, {"title": "y", "minimum": 2}, "/minimum: registered: 1; offered: 2"),
        (
            {"$ref": "#/$defs/a", "$defs": {"a": {"const": 1}}, "minimum": 0},
            {"$ref": "#/$defs/a", "$defs": {"a": {"const": 2}}, "minimum": 0},
            "/$ref/const: registered: 1; offered: 2",
        ),
        ({"const": "x" * 100}, {"const": "y"}, f'/const: registered: "{"x" * 78}…; offered: "y"'),
        ({"const": "x" * 78}, {"const": "y"}, f'/const: registered: "{"x" * 78}"; offered: "y"'),
        ({"type": "array", "items": {}}, {"type": "array", "items": {"type": "null"}}, '/items/type: registered: nothing; offered: "null"'),
    ],
)  # fmt: skip
def test_schemas__difference__is_described_with_both_sides(
    one: Any, other: Any, fault: str
) -> None:
    assert [str(found) for found in schema_differences(one, other)] == [fault]


@pytest.mark.parametrize("keyword", ["items", "additionalProperties", "unevaluatedItems"])
@pytest.mark.parametrize("void", [True, {}])
def test_schemas__keyword_that_allows_anything__counts_as_absent(keyword: str, void: Any) -> None:
    assert schema_differences({keyword: void, "minimum": 1}, {"minimum": 1}) == []


def test_schemas__many_differences__are_truncated_at_twenty() -> None:
    one: Schema = {"properties": {f"p{n}": {"const": 1} for n in range(30)}}
    other: Schema = {"properties": {f"p{n}": {"const": 2} for n in range(30)}}
    assert len(schema_differences(one, other)) == 20


def test_schemas__reference_only_schema_in_a_loop__is_compared_once() -> None:
    loop = {"properties": {"a": {"$ref": "#/properties/a", "title": "x"}}, "minimum": 1}
    assert schema_differences(loop, {**loop, "minimum": 2})[0].pointer == "/minimum"


@pytest.mark.parametrize(
    ("one", "other", "schema_of_one", "schema_of_other", "faults"),
    [
        ({"a": 1}, {"b": 2}, TEAM, TEAM, ["/a: registered: 1; offered: nothing", "/b: registered: nothing; offered: 2"]),
        ({"goal": 1, "tags": [1]}, {"goal": 1, "tags": [2]}, TEAM, TEAM, ["/tags/0: registered: 1; offered: 2"]),
        ({"a": 1}, {}, {"title": "x"}, {}, []),
        ({"a": 1}, {}, {"type": "object"}, {}, ["/a: registered: 1; offered: nothing"]),
        ({"x": 1}, {}, {"allOf": [{}, team(x={})]}, {"allOf": [{}, TEAM]}, []),
        ({"x": 1}, {}, {"minimum": 1, "allOf": [TEAM]}, {"minimum": 1, "allOf": [TEAM]}, ["/x: registered: 1; offered: nothing"]),
        (
            {"t": {"x": 1}},
            {"t": {}},
            {"additionalProperties": team(x={})},
            {"additionalProperties": TEAM},
            [],
        ),
        (
            {"t": {"x": 1}},
            {"t": {}},
            {"properties": {"t": TEAM}, "additionalProperties": team(x={})},
            {"properties": {"t": TEAM}, "additionalProperties": TEAM},
            ["/t/x: registered: 1; offered: nothing"],
        ),
        (
            {"x": 1},
            {},
            {"$ref": "#/$defs/A", "minProperties": 0, "$defs": {"A": team(x={})}},
            {"$ref": "#/$defs/A", "minProperties": 0, "$defs": {"A": TEAM}},
            [],
        ),
    ],
)  # fmt: skip
def test_defaults__difference__is_searched_in_every_subschema_that_applies(
    one: Any, other: Any, schema_of_one: Any, schema_of_other: Any, faults: list[str]
) -> None:
    found = default_differences(one, other, schema_of_one, schema_of_other)
    assert [str(fault) for fault in found] == faults


def test_defaults__of_two_types__differ_completely() -> None:
    for one, other in (({"a": 1}, 7), ({"a": 1}, ["a"]), ([1], {"0": 1})):
        (fault,) = default_differences(one, other, {}, {})
        assert fault.pointer == ""


def test_defaults__within_an_object_without_a_schema__may_have_fields_of_one_side() -> None:
    assert default_differences({"t": {"x": 1}}, {"t": {}}, {}, {}) == []
    assert default_differences([{"x": 1}], [{}], {}, {}) == []


def test_defaults__under_a_schema_that_refers_to_itself__are_compared_once() -> None:
    loop = {"allOf": [{"$ref": "#", "minimum": 0}], "minimum": 1}
    (fault,) = default_differences({"a": 1}, {"a": 2}, loop, loop)
    assert str(fault) == "/a: registered: 1; offered: 2"


@pytest.mark.parametrize("void", [True, {}])
def test_schemas__unevaluated_parts_that_may_be_anything__keep_the_schema_open(void: Any) -> None:
    one = {"unevaluatedProperties": void}
    assert schema_differences(one, {**one, "properties": {"a": {}}}) == []


def test_schemas__restricting_unevaluated_fields__may_not_differ_by_a_field() -> None:
    one = {"properties": {"a": {}}, "unevaluatedProperties": False}
    found = [fault.pointer for fault in schema_differences(one, {"properties": {}})]
    assert sorted(found) == ["/properties/a", "/unevaluatedProperties"]
