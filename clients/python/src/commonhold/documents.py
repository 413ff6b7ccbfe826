"""JSON as the server means it: integers of any size, and decimals digit by digit if asked for."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from decimal import Decimal
from typing import Any, Final, TypeAlias

JSON: TypeAlias = Any
"""A JSON value: None, bool, int, float (or Decimal), str, list, dict with str keys."""

MISSING: Final = object()  # instead of a value where there is none

_SCALARS: Final = frozenset({str, int, float, bool, type(None)})
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def dump(value: JSON, *, indent: int = 0) -> str:
    """JSON, compact or for people; a Decimal keeps its digits. TypeError, ValueError: it is none."""
    if not indent and _is_plain(value):
        return _ENCODER.encode(value)
    return _dump(value, "\n" if indent else "", " " * indent)


def _is_plain(value: JSON) -> bool:
    """Whether the encoder, which is written in C, can write it: it has no Decimals, and only str as
    names of members."""
    kind = type(value)
    if kind is dict:
        return all(type(name) is str for name in value) and all(map(_is_plain, value.values()))
    if kind is list or kind is tuple:
        return all(map(_is_plain, value))
    return kind in _SCALARS


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


def same(a: JSON, b: JSON) -> bool:
    """Equal as JSON: True is not 1, but 1 is 1.0."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[name], b[name]) for name in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


def identity(value: JSON) -> Hashable:
    """A hashable object that is equal for two values exactly when they are `same`."""
    if isinstance(value, bool):
        return bool, value
    if isinstance(value, dict):
        return frozenset((name, identity(member)) for name, member in value.items())
    if isinstance(value, list):
        return list, *map(identity, value)
    scalar: Hashable = value
    return scalar


def pointer_of(part: str) -> str:
    """The JSON Pointer (RFC 6901) of a member."""
    return "/" + part.replace("~", "~0").replace("/", "~1")
