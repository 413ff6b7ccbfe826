"""The JSON Schema of one struct, self-contained: for the tools of MCP, and for the errors of a body.

The OpenAPI document has the same schemas with references, for generators of code.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from .problems import Problem

Schema = dict[str, Any]

_NOTES: Final = ("type", "title", "description", "examples", "default")


def schema_of(kind: Any) -> Schema:
    """The JSON Schema of a struct, without `$ref`, which not every MCP client resolves, and without
    `anyOf` where that is possible: its errors do not name the limit that was violated."""
    (schema, _), components = msgspec.json.schema_components([kind, Problem])

    def inline(part: Any) -> Any:
        if isinstance(part, list):
            return [inline(each) for each in part]
        if not isinstance(part, dict):
            return part
        if "$ref" in part:
            named = components[part["$ref"].rpartition("/")[2]]
            part = named | {name: each for name, each in part.items() if name != "$ref"}
        return _without_any_of({name: inline(each) for name, each in part.items()})

    inlined: Schema = inline(schema)
    return inlined


def _without_any_of(part: Schema) -> Schema:
    """An equivalent schema with a list of types or an `enum` with null, if there is one."""
    match part:
        case {"anyOf": [{"enum": list(options)} as enum, {"type": "null"}], **others}:
            return {**enum, **others, "enum": [*options, None]}
        case {"anyOf": [*alternatives], **others} if _are_separable(alternatives):
            merged = {name: each[name] for each in alternatives for name in each}
            return {**merged, **others, "type": [each["type"] for each in alternatives]}
    return part


def _are_separable(alternatives: list[Schema]) -> bool:
    """Whether each keyword applies to the values of one alternative only: a keyword for arrays, for
    example, ignores all other values."""
    kinds = [each.get("type") for each in alternatives]
    if not all(isinstance(kind, str) for kind in kinds) or len({*kinds}) < len(kinds):
        return False
    keywords = [name for each in alternatives for name in each if name not in _NOTES]
    if {"integer", "number"} <= {*kinds}:
        return not keywords
    return len(keywords) == len({*keywords})
