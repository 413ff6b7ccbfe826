"""Query parameters: parsed and checked against the JSON Schema that declares them.

The declarations are in openapi.py (OPERATIONS). Views read the result, `self.query`, and never the
query string.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

from django.http import QueryDict

from state_admin.domain import moments
from state_admin.domain.numbers import MAX_WHOLE, read_whole
from state_admin.services.errors import BadRequest

from .shapes import Shape


def read_query(declared: Mapping[str, Shape], required: Set[str], given: QueryDict) -> Any:
    """The declared parameters of a query string by name, converted to their types; absent ones
    only if their schema has a default.

    BadRequest names the parameter that is undeclared, missing, repeated or malformed.
    """
    undeclared = sorted(given.keys() - declared.keys())
    if undeclared:
        allowed = ", ".join(declared)
        raise BadRequest(
            f"unknown query parameter: {', '.join(undeclared)}",
            hint=f"Allowed query parameters: {allowed}."
            if allowed
            else "This operation takes no query parameters.",
            allowed=list(declared),
        )
    query: dict[str, Any] = {}
    for name, schema in declared.items():
        if name in given:
            query[name] = _read(name, schema, given.getlist(name))
        elif "default" in schema:
            query[name] = schema["default"]
        elif name in required:
            raise BadRequest(f"query parameter {name} is required", parameter=name)
    return query


def _read(name: str, schema: Shape, texts: Sequence[str]) -> Any:
    if schema["type"] == "array":
        return list(texts)
    if len(texts) > 1:
        raise BadRequest(f"query parameter {name} is given more than once", parameter=name)
    value = _convert(schema, texts[0])
    if value is None:
        raise BadRequest(f"{name} must be {_expectation(schema)}", parameter=name)
    return value


def _convert(schema: Shape, text: str) -> Any:
    """The value that `text` spells, or None when the schema does not allow it."""
    match schema:
        case {"enum": choices}:
            return text if text in choices else None
        case {"type": "boolean"}:
            return {"true": True, "false": False}.get(text)
        case {"type": "integer"}:
            return read_whole(text, least=schema["minimum"], most=schema.get("maximum", MAX_WHOLE))
        case {"format": "date-time"}:
            # An unencoded + in a query string means a space.
            return moments.read(text.replace(" ", "+"))
    return text


def _expectation(schema: Shape) -> str:
    match schema:
        case {"enum": choices}:
            return f"one of: {', '.join(choices)}"
        case {"type": "boolean"}:
            return "true or false"
        case {"minimum": least, "maximum": most}:
            return f"an integer between {least} and {most}"
        case {"minimum": least}:
            return f"an integer of at least {least}"
    return "an RFC 3339 time such as 2026-01-31T12:00:00Z"
