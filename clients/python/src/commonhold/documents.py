"""JSON as the server means it: integers of any size, and decimals digit by digit if asked for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, TypeAlias

JSON: TypeAlias = Any
"""A JSON value: None, bool, int, float (or Decimal), str, list, dict with str keys."""

_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def dump(value: JSON, *, indent: int = 0) -> str:
    """JSON, compact or for people; a Decimal keeps its digits. TypeError, ValueError: it is none."""
    return _dump(value, "\n" if indent else "", " " * indent)


def _dump(value: JSON, line: str, step: str) -> str:
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise ValueError("Out of range float values are not JSON compliant")
        return str(value)
    inner = line + step
    if isinstance(value, Mapping):
        if not all(isinstance(name, str) for name in value):
            raise TypeError("names of members must be strings")
        colon = ": " if line else ":"
        members = [_ENCODER.encode(k) + colon + _dump(v, inner, step) for k, v in value.items()]
        return "{" + inner + f",{inner}".join(members) + line + "}" if members else "{}"
    if isinstance(value, list | tuple):
        items = [_dump(item, inner, step) for item in value]
        return "[" + inner + f",{inner}".join(items) + line + "]" if items else "[]"
    return _ENCODER.encode(value)


def load(text: str | bytes, *, decimals: bool = False) -> JSON:
    """Parse. With `decimals` numbers with a point or an exponent become Decimal, not float."""
    return json.loads(text, parse_float=Decimal if decimals else None)
