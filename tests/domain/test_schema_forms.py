"""Forms of tickets: which schemas are supported, and the resulting JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_admin.domain.schema_forms import (
    compose,
    faults_by_field,
    fields_of,
    fields_over,
    find_fields,
    typed_of,
)
from state_admin.domain.schemas import compile_schema

REFUND = {
    "type": "object",
    "title": "Refund",
    "additionalProperties": False,
    "required": ["approved", "amount", "to"],
    "properties": {
        "approved": {"type": "boolean"},
        "amount": {"type": "number", "minimum": 0, "maximum": 500, "description": "In euro"},
        "rate": {"enum": ["now", 7, None], "default": "now"},
        "days": {"type": "integer"},
        "on": {"type": "string", "format": "date"},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
        "to": {
            "type": "object",
            "required": ["iban/bic"],
            "properties": {"iban/bic": {"type": "string"}, "note": {"type": "string"}},
        },
    },
}
GOOD = {"/approved": "true", "/amount": "1.10", "/to/iban~1bic": "DE1"}


def fields() -> Any:
    found = fields_of(REFUND)
    assert found is not None
    return found


def test_fields__supported_schema__has_one_per_leaf() -> None:
    assert [(f.name, f.kind, f.required) for f in fields()] == [
        ("/approved", "choice", True),
        ("/amount", "number", True),
        ("/rate", "choice", False),
        ("/days", "integer", False),
        ("/on", "date", False),
        ("/tags", "lines", False),
        ("/to/iban~1bic", "text", True),
        ("/to/note", "text", False),
    ]
    by_name = {f.name: f for f in fields()}
    assert by_name["/approved"].choices == (("true", "yes"), ("false", "no"))
    assert by_name["/rate"].choices == (('"now"', "now"), ("7", "7"), ("null", "nothing"))
    assert by_name["/rate"].typed == '"now"'
    assert by_name["/amount"].rules == {"minimum": 0, "maximum": 500}
    assert by_name["/amount"].help == "In euro"
    assert by_name["/to/note"].label == "To / Note"


@pytest.mark.parametrize(
    "schema",
    [
        None,
        True,
        {},
        {"type": ["string", "null"]},
        {"oneOf": [{"type": "string"}]},
        {"type": "object"},
        {"type": "object", "properties": {"a": True}},
        {"type": "object", "properties": {"a": {"$ref": "#/x"}}},
        {"type": "object", "properties": {}, "required": ["a"]},
        {"type": "object", "properties": {"a": {"type": "string"}}, "minProperties": 1},
        {"type": "object", "required": ["a"], "properties": {"a": {"type": "object"}}},
        {"type": "array", "items": {"type": "integer"}},
        {"type": "array"},
        {"enum": [{"a": 1}]},
        {"type": "null"},
    ],
)
def test_fields__unsupported_schema__has_none(schema: Any) -> None:
    assert fields_of(schema) is None


def test_compose__filled_in__keeps_the_typed_spelling() -> None:
    more = {"/rate": "7", "/days": " 3 ", "/on": "2026-01-31", "/tags": "a\r\n\r\n b \r\n"}
    text, faults = compose(fields(), {**GOOD, **more, "/to/note": ' two\r\n"lines" '})
    assert faults == []
    assert '"amount":1.10' in text
    assert json.loads(text) == {
        "approved": True, "amount": 1.1, "rate": 7, "days": 3, "on": "2026-01-31",
        "tags": ["a", "b"], "to": {"iban/bic": "DE1", "note": ' two\n"lines" '},
    }  # fmt: skip
    assert compile_schema(json.dumps(REFUND)).faults(json.loads(text)) == []


def test_compose__left_empty__omits_optional_and_reports_required_fields() -> None:
    text, faults = compose(fields(), GOOD)
    assert json.loads(text).keys() == {"approved", "amount", "to"}
    assert faults == []
    _, faults = compose(fields(), {})
    assert [(f.pointer, f.message) for f in faults] == [
        (name, "a value is required") for name in ("/approved", "/amount", "/to/iban~1bic")
    ]


@pytest.mark.parametrize(
    ("name", "typed", "message"),
    [
        ("/amount", "ten", "must be a number"),
        ("/amount", "true", "must be a number"),
        ("/amount", "1 2", "must be a number"),
        ("/amount", '1, "approved": false', "must be a number"),
        ("/rate", '"later"', "must be one of the choices"),
        ("/approved", "1", "must be one of the choices"),
        ("/on", "31.1.2026", "must be a date such as 2026-01-31"),
        ("/on", "20260131", "must be a date such as 2026-01-31"),
    ],
)
def test_compose__invalid_text__is_reported_at_the_field(
    name: str, typed: str, message: str
) -> None:
    _, faults = compose(fields(), {**GOOD, name: typed})
    assert [(f.pointer, f.message) for f in faults] == [(name, message)]


@pytest.mark.parametrize(
    ("schema", "typed", "answer"),
    [
        ({"type": "string"}, "x", "x"),
        ({"enum": ["a", "b"]}, '"b"', "b"),
        ({"type": "array", "items": {"type": "string"}}, "", []),
    ],
)
def test_compose__schema_without_object__is_the_answer_itself(
    schema: Any, typed: str, answer: Any
) -> None:
    found = fields_of(schema)
    assert found is not None
    text, faults = compose(found, {"": typed})
    assert (json.loads(text), faults) == (answer, [])


# What a value may contain.
TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1)


@given(st.dictionaries(TEXTS, TEXTS.filter(str.strip), min_size=1, max_size=8))
def test_compose__any_names_and_texts__round_trip(answer: dict[str, str]) -> None:
    properties: dict[str, Any] = {name: {"type": "string"} for name in answer}
    found = fields_of({"type": "object", "properties": properties})
    assert found is not None
    text, faults = compose(
        found, {f.name: value for f, value in zip(found, answer.values(), strict=True)}
    )
    assert faults == []
    assert json.loads(text) == answer


def test_faults__by_field__are_at_the_nearest_field_or_in_the_rest() -> None:
    errors = [
        {"pointer": "/tags/1", "message": "too short"},
        {"pointer": "/tags", "message": "too long"},
        {"pointer": "", "message": "is odd"},
    ]
    at, rest = faults_by_field(fields(), errors)
    assert at == {"/tags": "too short; too long"}
    assert rest == [errors[2]]


# Over an existing value -------------------------------------------------------------------

RECORD: dict[str, Any] = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": {"type": "string", "maxLength": 9},
        "size": {"type": ["integer", "null"]},
        "kinds": {"type": "array", "items": {"enum": ["a", "b"]}},
        "tools": {"type": ["array", "null"], "items": {"type": "string"}},
        "free": {"type": "object"},
        "effort": {"type": ["string", "integer", "null"]},
        "place": {
            "type": "object",
            "title": "Where",
            "required": ["city"],
            "properties": {"city": {"type": "string"}, "zip": {"const": 7}},
        },
    },
}


def edit(held: Any, **typed: str) -> tuple[Any, list[tuple[str, str]]]:
    """The value after some fields were typed and the others sent unchanged."""
    found = fields_over(RECORD, held)
    sent = {"/" + name.replace("__", "/"): text for name, text in typed.items()}
    text, faults = compose(found, typed_of(found, held) | sent, held)
    return json.loads(text), [(fault.pointer, fault.message) for fault in faults]


def test_fields_over__unsupported_member__is_edited_as_json_alone() -> None:
    by_name = {f.name: f for f in fields_over(RECORD, {})}
    assert {name: f.kind for name, f in by_name.items()} == {
        "/name": "text", "/size": "integer", "/kinds": "several", "/tools": "lines",
        "/free": "json", "/effort": "json", "/place/city": "text", "/place/zip": "choice",
    }  # fmt: skip
    city = by_name["/place/city"]
    assert (city.group, city.label, city.short_label) == ("Where", "Where / City", "City")
    assert (city.required, city.needed) == (False, True)


@pytest.mark.parametrize(
    ("name", "held"),
    [
        ("name", 7),
        ("name", "two\nlines"),
        ("size", "7"),
        ("size", True),
        ("kinds", ["a", "c"]),
        ("kinds", ["a", "a"]),
        ("tools", ["a\nb"]),
        ("tools", [" a"]),
        ("tools", [""]),
        ("tools", ["[]"]),
        ("tools", ["null"]),
        ("tools", "a"),
        ("place", {"city": 7}),
        ("place", "[removed]"),
    ],
)
def test_fields_over__value_that_no_field_can_show__is_edited_as_json(name: str, held: Any) -> None:
    value = {"name": "x", name: held}
    kinds = {f.name: f.kind for f in fields_over(RECORD, value)}
    assert kinds.get(f"/{name}", kinds.get(f"/{name}/city")) == "json"
    assert edit(value)[0] == value


# Unlike in JSON, strings contain no lone surrogates; names contain what a pointer escapes.
ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.sampled_from(["", " ", "a", "x\r\ny", "[]", "null"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["city", "zip", "a/b~"]), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from([*RECORD["properties"], "un/known"]), ANYTHING))
def test_compose__unchanged_fields__change_nothing(held: dict[str, Any]) -> None:
    assert edit(held)[0] == held


def test_compose__over_a_value__changes_only_edited_members() -> None:
    held = {"un/known": [1], "size": None, "name": "x", "place": {"city": "y", "more": 1}}
    assert edit(held, name="z") == (held | {"name": "z"}, [])
    assert edit(held, size="3") == (held | {"size": 3}, [])
    assert edit(held | {"size": 3}, size="")[0].keys() == held.keys() - {"size"}
    assert edit(held, place__zip="7")[0]["place"] == {"city": "y", "more": 1, "zip": 7}
    assert edit(held, tools="[]")[0]["tools"] == []
    assert "tools" not in edit(held | {"tools": []}, tools="")[0]
    assert edit(held, tools="null")[0]["tools"] is None
    assert typed_of(fields_over(RECORD, {"tools": None}), {"tools": None})["/tools"] == "null"
    assert edit(held, kinds='"b"\n"a"')[0]["kinds"] == ["b", "a"]
    assert edit(held, free='{"a": 1}')[0]["free"] == {"a": 1}


def test_compose__emptied_object__is_omitted_unless_it_has_other_members() -> None:
    assert edit({"name": "x", "place": {"city": "y"}}, place__city="") == ({"name": "x"}, [])
    _, faults = edit({"name": "x", "place": {"city": "y", "more": 1}}, place__city="")
    assert faults == [("/place/city", "a value is required")]
    assert edit({"name": "x"}, place__zip="7")[1] == [("/place/city", "a value is required")]


@pytest.mark.parametrize(
    ("typed", "pointer", "message"),
    [
        ({"name": ""}, "/name", "a value is required"),
        ({"name": "  "}, "/name", "a value is required"),
        ({"kinds": '"a"\n"c"'}, "/kinds", "must be one of the choices"),
        ({"place__zip": "7\n7"}, "/place/zip", "must be one of the choices"),
        ({"free": '{"a": 1, "a": 2}'}, "/free/a", "the object has this key twice"),
        ({"free": '{"a": "\\u0000"}'}, "/free/a", "the string contains NUL (U+0000)"),
        ({"size": "9" * 2000}, "/size", "must be a number"),
    ],
)
def test_compose__over_a_value__invalid_text_is_reported_at_the_field(
    typed: dict[str, str], pointer: str, message: str
) -> None:
    assert (pointer, message) in edit({"name": "x", "place": {"city": "y"}}, **typed)[1]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string", "default": "x"}, ("", "Answer", "text", "x", {})),
        ({"type": "string", "format": "date", "title": "Day"}, ("", "Day", "date", "", {"format": "date"})),
        ({"type": "number", "default": 1.5, "minimum": 1}, ("", "Answer", "number", "1.5", {"minimum": 1})),
        ({"type": "boolean", "default": False}, ("", "Answer", "choice", "false", {})),
        ({"const": None, "default": None}, ("", "Answer", "choice", "null", {})),
        (
            {"type": "array", "items": {"type": "string"}, "default": ["a", 1], "maxItems": 3},
            ("", "Answer", "lines", "a\n1", {"items": {"type": "string"}, "maxItems": 3}),
        ),
        ({"type": "array", "items": {"type": "string"}, "default": "a"}, ("", "Answer", "lines", "", {"items": {"type": "string"}})),
        ({"type": "array", "items": {"enum": ["a"]}}, ("", "Answer", "several", "", {})),
        (
            {"type": "object", "properties": {"_": {"type": "string"}}},
            ("/_", "Unnamed", "text", "", {}),
        ),
        (
            {"type": "object", "properties": {"two_words": {"type": "integer", "default": 7}}},
            ("/two_words", "Two words", "integer", "7", {}),
        ),
        ({"type": "object", "enum": [1]}, ("", "Answer", "choice", "", {})),
        ({"type": "string", "enum": ["a"], "title": "T", "$comment": "c"}, ("", "T", "choice", "", {})),
    ],
)  # fmt: skip
def test_fields__of_one_place__have_label_type_and_rules_of_its_schema(
    schema: Any, expected: tuple[Any, ...]
) -> None:
    (found,) = fields_of(schema) or []
    assert (found.name, found.label, found.kind, found.typed, found.rules) == expected
    assert (found.help, found.group) == ("", "")


@pytest.mark.parametrize(
    "schema",
    [
        {"enum": ["a"], "minLength": 1},
        {"enum": [[1]]},
        {"const": {"a": 1}},
        {"type": "boolean", "enum": [True], "x": 1},
        {"type": "boolean", "minimum": 1},
        {"type": "string", "minimum": 1},
        {"type": "array", "items": {"type": "string"}, "contains": {}},
        {"type": "array", "items": {"enum": ["a"]}, "contains": {}},
        {"type": "array", "items": {"enum": ["a"], "minLength": 1}},
        {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["b"]},
        {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(41)}},
    ],
)
def test_fields__schema_with_unsupported_rules__has_none(schema: Any) -> None:
    assert fields_of(schema) is None


def test_fields__forty_places__are_supported() -> None:
    schema = {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(40)}}
    assert len(fields_of(schema) or []) == 40


def test_fields__nested_objects__are_groups() -> None:
    inner = {"type": "object", "required": ["c"], "properties": {"c": {"type": "string"}}}
    middle = {"type": "object", "title": "Mid", "properties": {"b": inner}}
    (found,) = fields_of({"type": "object", "properties": {"a": middle}}) or []
    assert (found.name, found.label, found.group) == ("/a/b/c", "Mid / B / C", "Mid / B")
    assert (found.short_label, found.required, found.needed) == ("C", False, True)


@pytest.mark.parametrize(
    ("name", "held", "text"),
    [
        ("name", "x", "x"),
        ("size", 7, "7"),
        ("size", 7.0, "7.0"),
        ("size", None, ""),
        ("kinds", ["b", "a"], '"a"\n"b"'),
        ("kinds", [], ""),
        ("tools", ["a", "b"], "a\nb"),
        ("tools", [], "[]"),
        ("tools", None, "null"),
        ("free", {"a": [1]}, '{"a":[1]}'),
        ("effort", None, "null"),
        ("effort", "x", '"x"'),
    ],
)
def test_typed__of_a_value__is_the_text_of_each_field(name: str, held: Any, text: str) -> None:
    value = {name: held}
    assert typed_of(fields_over(RECORD, value), value)[f"/{name}"] == text


def test_fields_over__member_without_a_useful_schema__is_json_that_may_be_null() -> None:
    schema = {
        "type": "object",
        "properties": {"any": True, "maybe": {"type": ["null", "object"], "description": "Why"}},
    }
    anything, maybe = fields_over(schema, {})
    assert (anything.kind, anything.nullable, anything.help) == ("json", False, "")
    assert (maybe.kind, maybe.nullable, maybe.help) == ("json", True, "Why")


@pytest.mark.parametrize(
    ("schema", "typed", "text", "fault"),
    [
        ({"type": "string"}, " x ", '" x "', None),
        ({"type": "number"}, " 1.0 ", "1.0", None),
        ({"enum": ["a"]}, ' "a" ', '"a"', None),
        ({"type": "string", "format": "date"}, " 2026-01-31 ", '"2026-01-31"', None),
        ({"type": "number"}, "x", "{}", ": must be a number"),
        ({"type": "array", "items": {"enum": ["a", "b"]}}, '"a"\r"b"', '["a","b"]', None),
        ({"type": "array", "items": {"type": "string"}}, " a \n\n b", '["a","b"]', None),
        ({"type": "array", "items": {"type": "string"}}, "null", '["null"]', None),
        ({"type": "string"}, " ", "{}", ": a value is required"),
    ],
)
def test_compose__typed_text__is_parsed_by_the_kind_of_its_field(
    schema: Any, typed: str, text: str, fault: str | None
) -> None:
    composed, faults = compose(fields_of(schema) or [], {"": typed})
    assert composed == text
    assert [f"{found.pointer}: {found.message}" for found in faults] == ([fault] if fault else [])


@pytest.mark.parametrize(
    ("schema", "held", "kind", "typed"),
    [
        ({"type": "integer"}, 7, "integer", "7"),
        ({"type": "number"}, 1.5, "number", "1.5"),
        ({"type": "number"}, "x", "json", '"x"'),
        ({"type": "string", "format": "date"}, "2026-01-31", "date", "2026-01-31"),
        ({"type": "string", "format": "date"}, "soon", "json", '"soon"'),
        ({"const": 7}, 7, "choice", "7"),
        ({"const": 7}, 8, "json", "8"),
        ({"type": "string"}, "two\nlines", "text", "two\nlines"),
        ({"type": "string", "minLength": 1}, "two\nlines", "json", '"two\\nlines"'),
        ({"type": "array", "items": {"type": "string"}}, ["a", "[]"], "lines", "a\n[]"),
        ({"type": "array", "items": {"type": "string"}}, ["null"], "lines", "null"),
        ({"type": "array", "items": {"type": "string"}}, [], "lines", ""),
    ],
)
def test_fields_over__existing_value__is_in_a_field_that_can_show_it(
    schema: Any, held: Any, kind: str, typed: str
) -> None:
    value = {"a": held}
    (found,) = fields_over({"type": "object", "properties": {"a": schema}}, value)
    assert found.kind == kind
    assert typed_of([found], value) == {"/a": typed}


def test_compose__emptied_nested_objects__are_omitted() -> None:
    schema: Any = {"type": "string"}
    for name in "cba":
        schema = {"type": "object", "properties": {name: schema}}
    found = fields_over(schema, {"a": {"b": {"c": "x"}}, "z": 1})
    text, faults = compose(found, {"/a/b/c": ""}, {"a": {"b": {"c": "x"}}, "z": 1})
    assert (text, faults) == ('{"z":1}', [])
    held = {"a": {"b": {"c": "x"}, "d": 1}}
    assert compose(fields_over(schema, held), {"/a/b/c": ""}, held)[0] == '{"a":{"d":1}}'


def test_compose__missing_field__counts_as_empty() -> None:
    _, faults = compose(fields_of({"type": "string"}) or [], {})
    assert [fault.message for fault in faults] == ["a value is required"]


def test_compose__lines__may_contain_spaces() -> None:
    found = fields_of({"type": "array", "items": {"type": "string"}}) or []
    assert compose(found, {"": "two words\nx"})[0] == '["two words","x"]'


def test_compose__invalid_json__is_located() -> None:
    _, faults = edit({"name": "x"}, free="{")
    ((pointer, message),) = faults
    assert pointer == "/free"
    assert "line 1 column 2" in message


def test_find_fields__references__are_followed_unless_they_recurse() -> None:
    schema = {
        "$ref": "#/$defs/node",
        "$defs": {
            "node": {
                "type": "object",
                "allOf": [{"minProperties": 1}],
                "required": ["name", "undeclared"],
                "properties": {
                    "name": {"$ref": "#/$defs/name", "title": "Who"},
                    "next": {"$ref": "#/$defs/node"},
                    "other": {"$ref": "https://example.com/schema"},
                    "lost": {"$ref": "#/$defs/nothing"},
                },
            },
            "name": {"type": "string", "maxLength": 9},
        },
    }
    found = {f.name: f for f in find_fields(schema, {"name": "x"}) or []}
    assert {name: each.kind for name, each in found.items()} == {
        "/name": "text", "/next": "json", "/other": "json", "/lost": "json",
    }  # fmt: skip
    assert (found["/name"].label, found["/name"].rules) == ("Who", {"maxLength": 9})
    assert find_fields({"$ref": "#"}, {}) is None


def test_find_fields__references_that_double_on_each_level__are_not_expanded() -> None:
    levels: dict[str, Any] = {
        f"d{level}": {
            "type": "object",
            "required": ["a"],
            "properties": {name: {"$ref": f"#/$defs/d{level + 1}"} for name in "ab"},
        }
        for level in range(40)
    }
    schema = {**levels["d0"], "$defs": {**levels, "d40": {"type": "string"}}}
    assert find_fields(schema, {}) is None
    assert fields_of(schema) is None


def test_find_fields__empty_texts__are_values() -> None:
    schema = {
        "type": "object",
        "required": ["a", "b"],
        "properties": {"a": {"type": "string"}, "b": {"type": ["integer", "null"]}},
    }
    held = {"a": "x", "b": 3}
    fields = find_fields(schema, held) or []
    assert compose(fields, {"/a": "", "/b": ""}, held) == ('{"a":"","b":null}', [])
    _, faults = compose(fields, {"/a": "", "/b": ""}, {})
    assert [each.pointer for each in faults] == ["/a", "/b"]
    assert compose(fields, {"/a": "", "/b": ""}, {}, complete=False) == ("{}", [])
