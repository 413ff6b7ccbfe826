"""Query parameters, parsed and checked against the JSON Schema of the contract; and the media type
of bodies. Handlers read the result, `call.query`, and never the query string."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from typing import Any

from django.http import QueryDict
from rest_framework.request import Request

from state_admin.contract.base import JSON_TYPE
from state_admin.domain import moments
from state_admin.domain.numbers import MAX_WHOLE, read_whole
from state_admin.services.errors import BadRequest, UnsupportedMediaType
from state_admin.services.traffic import SAFE_METHODS

Shape = Mapping[str, Any]


def read_query(declared: Mapping[str, Shape], required: Set[str], parameters: QueryDict) -> Any:
    """The declared parameters of a query string by name, converted to their types; absent ones
    only if their schema has a default.

    BadRequest names the parameter that is undeclared, missing, repeated or malformed.
    """
    undeclared = sorted(parameters.keys() - declared.keys())
    if undeclared:
        allowed = ", ".join(declared)
        raise BadRequest(
            f"unknown query parameter: {', '.join(undeclared)}",
            hint=f"Allowed query parameters: {allowed}."
            if allowed
            else "This operation takes no query parameters.",
            parameter=undeclared[0],
            allowed=list(declared),
        )
    query: dict[str, Any] = {}
    for name, schema in declared.items():
        if name in parameters:
            query[name] = _read(name, schema, parameters.getlist(name))
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
    """Convert `text` to a value; None if the schema does not allow it."""
    match schema:
        case {"enum": choices}:
            return text if text in choices else None
        case {"type": "boolean"}:
            return {"true": True, "false": False}.get(text)
        case {"type": "integer"}:
            return read_whole(text, least=schema["minimum"], most=schema["maximum"])
        case {"format": "date-time"}:
            # An unencoded + in a query string means a space.
            return moments.read(text.replace(" ", "+"))
    least, most = schema.get("minLength", 0), schema.get("maxLength", len(text))
    fits = least <= len(text) <= most and re.fullmatch(schema.get("pattern", "(?s:.*)"), text)
    return text if fits else None


def _expectation(schema: Shape) -> str:
    match schema:
        case {"enum": choices}:
            return f"one of: {', '.join(choices)}"
        case {"type": "boolean"}:
            return "true or false"
        case {"minimum": least, "maximum": most} if most < MAX_WHOLE:
            return f"an integer between {least} and {most}"
        case {"minimum": least}:
            return f"an integer of at least {least}"
        case {"pattern": pattern}:
            return f"a string that matches {pattern}"
        case {"minLength": least, "maxLength": most}:
            return f"a string of {least} to {most} characters"
        case {"minLength": _}:
            return "a string that is not empty"
    return "an RFC 3339 time such as 2026-01-31T12:00:00Z"


def check_body(request: Request, media_types: tuple[str, ...]) -> None:
    """Raise for a compressed body, a body of another media type, or a body of an operation that takes
    none."""
    supported = media_types or (JSON_TYPE,)
    if (coding := request.headers.get("Content-Encoding", "identity").lower()) != "identity":
        raise UnsupportedMediaType(
            f"unsupported Content-Encoding: {coding}",
            hint="Send the body without compression.",
            supported=list(supported),
        )
    media_type = (request.content_type or "").partition(";")[0].strip().lower()
    if media_type not in supported:
        raise UnsupportedMediaType(
            f"unsupported Content-Type: {media_type}" if media_type else "Content-Type is missing",
            hint=f"Send one of: {', '.join(supported)}.",
            supported=list(supported),
        )
    if media_types or request.method in SAFE_METHODS:
        return
    body: Any = request.data
    if body.value != {}:
        raise BadRequest("this operation takes no request body")
