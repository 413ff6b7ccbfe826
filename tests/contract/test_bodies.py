"""Every field of every body with wrong values: the refusal is in the terms of JSON, and MCP and the API
say the same."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec
import pytest
from msgspec import inspect

from state_admin.contract import OPERATIONS
from state_admin.contract.json_schemas import schema_of
from state_admin.domain import values
from state_admin.domain.schemas import compile_schema
from state_admin.mcp.tools import TOOLS
from state_admin.rest.bodies import decode
from state_admin.services.errors import Invalid, Problem
from state_admin.web.plugin_install import Document

BODIES = {
    kind.__name__: kind
    for kind in [*(each.body for each in OPERATIONS.values()), Document]
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct)
}
SCALARS: list[Any] = [None, 1, -1, 1.0, 1.5, 10**30, True, "x", "", "#@ \t", "x" * 9000]
WRONG: list[Any] = [*SCALARS, [], [1], [None], [[]], {}, {"zz": 1}, [{"zz": 1}], ["x"] * 2000]
DEEPEST = 5


def options(info: inspect.Type) -> list[inspect.Type]:
    match info:
        case inspect.Metadata():
            return options(info.type)
        case inspect.UnionType():
            return [option for each in info.types for option in options(each)]
    return [info]


def valid(info: inspect.Type) -> Any:
    """A value of the type, with required members only."""
    match options(info)[0]:
        case inspect.StructType() as struct:
            return {each.encode_name: valid(each.type) for each in struct.fields if each.required}
        case inspect.ListType() as items:
            return [valid(items.item_type)] * (items.min_length or 1)
        case inspect.LiteralType() as literal:
            return literal.values[0]
        case inspect.StrType():
            return "x"
        case inspect.IntType() as integer:
            return integer.ge or 1
        case inspect.BoolType():
            return True
        case inspect.AnyType() | inspect.DictType():
            return {}
        case other:
            raise AssertionError(f"a value of {other}")


def variants(info: inspect.Type, depth: int = 0) -> Iterator[Any]:
    """Values of the type in which one part has each of the wrong values."""
    yield from WRONG
    if depth == DEEPEST:
        return
    for option in options(info):
        match option:
            case inspect.StructType():
                whole = valid(option)
                for each in option.fields:
                    for part in variants(each.type, depth + 1):
                        yield {**whole, each.encode_name: part}
            case inspect.ListType():
                for part in variants(option.item_type, depth + 1):
                    yield [part]


def refusal(value: Any, kind: type[msgspec.Struct]) -> Problem | None:
    try:
        decode(values.read(json.dumps(value).encode()), kind)
    except Problem as problem:
        return problem
    return None


@pytest.mark.parametrize("name", BODIES)
def test_refusal__wrong_value__is_located_and_in_the_terms_of_json(name: str) -> None:
    kind = BODIES[name]
    refused = 0
    for value in variants(inspect.type_info(kind)):
        problem = refusal(value, kind)
        if problem is None:
            continue
        refused += 1
        if isinstance(problem, Invalid):
            assert problem.data["errors"], value
        text = json.dumps([problem.detail, problem.data])
        assert not re.search(r"`|Expected|anyOf|\b(str|int|bool|float)\b", text), (value, text)
    assert refused


@pytest.mark.parametrize("name", BODIES)
def test_schema_of__any_value__accepts_what_the_schema_with_references_accepts(name: str) -> None:
    kind = BODIES[name]
    schema = json.dumps(schema_of(kind))
    assert "anyOf" not in schema
    validator = compile_schema(schema)
    reference = compile_schema(json.dumps(msgspec.json.schema(kind)))
    for value in variants(inspect.type_info(kind)):
        assert validator.accepts(value) == reference.accepts(value), value


@pytest.mark.parametrize(
    ("body", "pointer", "message"),
    [
        ({"ttl_seconds": "x"}, "/ttl_seconds", '"x" is not of types "null", "integer"'),
        ({"ttl_seconds": 0}, "/ttl_seconds", "0 is less than the minimum of 1"),
        (
            {"ttl_seconds": 60.0},
            "/ttl_seconds",
            "an integer must not have a decimal point or an exponent",
        ),
        ({"tags": "x"}, "/tags", '"x" is not of type "array"'),
        ({"tags": [None]}, "/tags/0", 'null is not of type "string"'),
        ({"tags": [""]}, "/tags/0", '"" is shorter than 1 character'),
    ],
)
def test_refusal__field_of_an_entry__is_that_of_its_json_schema(
    body: dict[str, Any], pointer: str, message: str
) -> None:
    problem = refusal({"value": 1, **body}, BODIES["Write"])
    assert problem is not None
    assert problem.data["errors"] == [{"pointer": pointer, "message": message}]


def test_refusal__several_wrong_values__names_all() -> None:
    problem = refusal({"limit": 0, "offset": "x", "query": 1}, BODIES["ItemSearch"])
    assert problem is not None
    assert {each["pointer"] for each in problem.data["errors"]} == {"/query", "/limit", "/offset"}


def test_refusal__value_outside_an_enum_with_null__lists_what_is_allowed() -> None:
    problem = refusal({"sort_order": "up"}, BODIES["ThreadSearch"])
    assert problem is not None
    assert [each["message"] for each in problem.data["errors"]] == [
        '"up" is not one of "asc", "desc" or null'
    ]


@pytest.mark.parametrize("name", [name for name, tool in TOOLS.items() if tool.body])
def test_tool__wrong_argument__has_the_message_of_the_api(name: str) -> None:
    tool = TOOLS[name]
    whole = valid(inspect.type_info(tool.operation.body))
    compared = 0
    for member in {*tool.body} - {"id", "metadata"}:  # the service checks these
        for wrong in SCALARS:
            arguments = dict.fromkeys(tool.in_path, "x") | whole | {member: wrong}
            tool_errors = [
                {"pointer": fault.pointer, "message": fault.message}
                for fault in tool.validator.faults(arguments)
                if fault.pointer == f"/{member}"
            ]
            problem = refusal({**whole, member: wrong}, tool.operation.body)
            errors = problem.data["errors"] if problem else []
            if isinstance(wrong, float) and not tool_errors:  # the API refuses 1.0
                continue
            assert tool_errors == errors, (member, wrong)
            compared += bool(errors)
    assert compared


class Numbers(msgspec.Struct):
    number: int | None = None
    moment: datetime | None = None


@pytest.mark.parametrize(
    ("body", "pointer", "message"),
    [
        ('{"number": -0.0}', "/number", "an integer must not have a decimal point or an exponent"),
        ('{"number": 1e2}', "/number", "an integer must not have a decimal point or an exponent"),
        # `format` is an annotation.
        ('{"moment": "now"}', "/moment", "Invalid RFC3339 encoded datetime"),
    ],
)
def test_refusal__value_that_the_schema_accepts__has_the_reason_of_the_decoder(
    body: str, pointer: str, message: str
) -> None:
    with pytest.raises(Invalid) as refused:
        decode(values.read(body.encode()), Numbers)
    assert refused.value.data["errors"] == [{"pointer": pointer, "message": message}]
