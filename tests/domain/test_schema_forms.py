"""The form of a ticket: which schemas it can ask for, and the JSON that comes out of it."""

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


def test_fields__subset__one_for_each_leaf() -> None:
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
def test_fields__beyond_the_subset__none(schema: Any) -> None:
    assert fields_of(schema) is None


def test_compose__filled_in__as_it_was_written() -> None:
    more = {"/rate": "7", "/days": " 3 ", "/on": "2026-01-31", "/tags": "a\r\n\r\n b \r\n"}
    text, faults = compose(fields(), {**GOOD, **more, "/to/note": ' two\r\n"lines" '})
    assert faults == []
    assert '"amount":1.10' in text
    assert json.loads(text) == {
        "approved": True, "amount": 1.1, "rate": 7, "days": 3, "on": "2026-01-31",
        "tags": ["a", "b"], "to": {"iban/bic": "DE1", "note": ' two\n"lines" '},
    }  # fmt: skip
    assert compile_schema(json.dumps(REFUND)).faults(json.loads(text)) == []


def test_compose__left_empty__optional_go_and_required_are_named() -> None:
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
def test_compose__wrong__is_said_at_the_field(name: str, typed: str, message: str) -> None:
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
def test_compose__no_object__the_answer_itself(schema: Any, typed: str, answer: Any) -> None:
    found = fields_of(schema)
    assert found is not None
    text, faults = compose(found, {"": typed})
    assert (json.loads(text), faults) == (answer, [])


# What a value may hold.
TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1)


@given(st.dictionaries(TEXTS, TEXTS.filter(str.strip), min_size=1, max_size=8))
def test_compose__any_names_and_texts__come_back(answer: dict[str, str]) -> None:
    properties: dict[str, Any] = {name: {"type": "string"} for name in answer}
    found = fields_of({"type": "object", "properties": properties})
    assert found is not None
    text, faults = compose(
        found, {f.name: value for f, value in zip(found, answer.values(), strict=True)}
    )
    assert faults == []
    assert json.loads(text) == answer


def test_faults__by_field__nearest_one_and_the_rest() -> None:
    errors = [
        {"pointer": "/tags/1", "message": "too short"},
        {"pointer": "/tags", "message": "too long"},
        {"pointer": "", "message": "is odd"},
    ]
    at, rest = faults_by_field(fields(), errors)
    assert at == {"/tags": "too short; too long"}
    assert rest == [errors[2]]


# Over a value that is there ----------------------------------------------------------------------

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
    """What becomes of a value when some fields are typed and the others sent as they stand."""
    found = fields_over(RECORD, held)
    sent = {"/" + name.replace("__", "/"): text for name, text in typed.items()}
    text, faults = compose(found, typed_of(found, held) | sent, held)
    return json.loads(text), [(fault.pointer, fault.message) for fault in faults]


def test_fields_over__beyond_a_field__is_json_for_that_member_only() -> None:
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
def test_fields_over__what_stands_there_fits_no_field__is_json(name: str, held: Any) -> None:
    value = {"name": "x", name: held}
    kinds = {f.name: f.kind for f in fields_over(RECORD, value)}
    assert kinds.get(f"/{name}", kinds.get(f"/{name}/city")) == "json"
    assert edit(value)[0] == value


# Unlike those of JSON, strings hold no lone surrogates; names hold what a pointer escapes.
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
def test_compose__nothing_touched__nothing_changes(held: dict[str, Any]) -> None:
    assert edit(held)[0] == held


def test_compose__over_a_value__changes_what_was_typed_and_no_other_member() -> None:
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


def test_compose__object_emptied__goes_unless_it_holds_more() -> None:
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
        ({"free": '{"a": "\\u0000"}'}, "/free/a", "the string holds NUL (U+0000)"),
        ({"size": "9" * 2000}, "/size", "must be a number"),
    ],
)
def test_compose__over_a_value__wrong_is_said_at_the_field(
    typed: dict[str, str], pointer: str, message: str
) -> None:
    assert (pointer, message) in edit({"name": "x", "place": {"city": "y"}}, **typed)[1]
