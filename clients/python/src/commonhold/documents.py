"""JSON as the server reads it: integers of any size and, if requested, decimals digit by digit."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Iterable, Mapping
from decimal import Decimal
from enum import Enum
from typing import Any, Final, TypeAlias

from commonhold.arguments import SURROGATE
from commonhold.problems import InvalidArgument

JSON: TypeAlias = Any
"""A JSON value: None, bool, int, float (or Decimal), str, list, dict with str keys."""

MISSING: Final = object()  # marks an absent value

# Converters for types that are not JSON but common in programs.
_CONVERSIONS: Final = {
    "__dataclass_fields__": "dataclasses.asdict(…), or use a ProfileKey",
    "model_dump": "….model_dump(mode='json'), or use profile_key()",
    "tolist": "….tolist()",
    "isoformat": "….isoformat()",
    "__fspath__": "str(…)",
    "hex": "str(…)",
}
_DEEP: Final = 200  # levels; more than the server accepts

_SCALARS: Final = frozenset({str, int, float, bool, type(None)})
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def dump(value: JSON, *, indent: int = 0) -> str:
    """The JSON text, compact or indented; a Decimal keeps its digits. Raises InvalidArgument, with
    a JSON pointer, for a value that is not JSON."""
    try:
        if not indent and _is_plain(value):
            return _ENCODER.encode(value)
        return _dump(value, "\n" if indent else "", " " * indent)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidArgument(_fault(value, "") or str(error)) from None


def encode(value: JSON) -> bytes:
    """The JSON text in UTF-8, as it is sent."""
    text = dump(value)
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgument(_fault(value, "") or str(error)) from None


def _is_plain(value: JSON) -> bool:
    """Whether the encoder, which is written in C, can write it: it has no Decimals, and only str as
    names of members."""
    kind = type(value)
    if kind is dict:
        return all(type(name) is str for name in value) and all(map(_is_plain, value.values()))
    if kind is list or kind is tuple:
        return all(map(_is_plain, value))
    return kind in _SCALARS


def _fault(value: Any, at: str, depth: int = 0) -> str | None:
    """The part of a value that is not JSON, with its pointer. Called only after the encoder refused
    the value."""
    if depth > _DEEP:
        return f"{at[:100]}…: the value is nested too deeply, or contains itself"
    if isinstance(value, Mapping):
        for name, member in value.items():
            if not isinstance(name, str):
                kind = type(name).__name__
                return f"{at or '/'}: names of members must be strings, not {kind}: {name!r}"
            if SURROGATE.search(name):
                return f"{at or '/'}: the name of a member contains a lone surrogate"
            if found := _fault(member, at + pointer_of(name), depth + 1):
                return found
    elif isinstance(value, list | tuple):
        for position, item in enumerate(value):
            if found := _fault(item, f"{at}/{position}", depth + 1):
                return found
    elif isinstance(value, float | Decimal):
        if not math.isfinite(value):
            return f"{at or '/'}: {value} is not JSON; send None or a string"
    elif isinstance(value, str):
        if SURROGATE.search(value):
            return f"{at or '/'}: the string contains a lone surrogate, which UTF-8 cannot encode"
    elif value is not None and not isinstance(value, int):
        return f"{at or '/'}: {type(value).__name__} is not JSON{_remedy(value)}"
    return None


def _remedy(value: Any) -> str:
    if isinstance(value, bytes | bytearray | memoryview):
        return "; send a string, for example in Base64"
    if isinstance(value, Enum):
        return "; send ….value"
    if isinstance(value, type) and isinstance(getattr(value, "KEY", None), str):
        return f"; send {value.__name__}.KEY"  # a ProfileKey or StateKey in place of its name
    for method, advice in _CONVERSIONS.items():
        if hasattr(value, method) and not isinstance(value, type):
            return f"; send {advice}"
    if isinstance(value, Iterable) and not isinstance(value, type):
        return "; send list(…)"
    return ""


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
