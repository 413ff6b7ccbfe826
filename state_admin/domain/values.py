"""JSON values without loss: their limits, their spelling, their equality.

The functions of `documents` can be imported from here too. Not here: whether a value matches a
schema (schemas) or how a patch changes it (patches).
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterator
from json.encoder import encode_basestring as _quoted
from typing import Final, cast

import jiter

from state_admin.domain.documents import (
    JSON,
    MAX_DEPTH,
    MAX_DIGITS,
    MAX_FAULTS,
    OUT_OF_RANGE,
    SURROGATE,
    TOO_DEEP,
    TOO_LONG,
    Fault,
    FaultError,
    MalformedJSON,
    Raw,
    RefusedJSON,
    check_depth,
    encodable,
    items,
    members,
    pointer_of,
    read,
    records,
)

__all__ = [
    "JSON",
    "MAX_DEPTH",
    "MAX_DIGITS",
    "Fault",
    "FaultError",
    "MalformedJSON",
    "Raw",
    "RefusedJSON",
    "check_depth",
    "items",
    "members",
    "pointer_of",
    "read",
    "records",
]

MISSING: Final = object()  # instead of a value where there is none
EMPTY_OBJECT: Final = Raw("{}", {})

MAX_MEMBERS: Final = 10_000
# Of entries: the limit of a namespace that sets none, and the highest limit that one can set.
DEFAULT_MAX_VALUE_BYTES: Final = 1024 * 1024
MAX_VALUE_BYTES: Final = 8 * 1024 * 1024

_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_SORTED: Final = json.JSONEncoder(sort_keys=True)
_SPREAD: Final = 2**61 - 1  # smaller integers are their own hashes
_BIGGEST: Final = 10**MAX_DIGITS
# Replaces every digit by 0, so that a run of digits is found by one search in C.
_ZEROS: Final = bytes.maketrans(b"123456789", b"000000000")
_LONG_NUMBER: Final = b"0" * (MAX_DIGITS + 1)
# In a run of more than MAX_DIGITS digits, at least _SAMPLES have a multiple of this distance as index.
_SAMPLES: Final = 32
_DISTANCE: Final = MAX_DIGITS // _SAMPLES
_DOUBTFUL_ESCAPE: Final = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")


class Float(float):
    """A number whose spelling Python would not reproduce: `1.10`, `1e2`. Equal to its float."""

    __slots__ = ("literal",)
    literal: str

    def __new__(cls, literal: str) -> Float:
        number = super().__new__(cls, literal)
        number.literal = literal
        return number

    def __copy__(self) -> Float:
        return self

    def __deepcopy__(self, memo: object) -> Float:
        return self

    def __reduce__(self) -> tuple[type[Float], tuple[str]]:
        return Float, (self.literal,)


def check(raw: Raw, pointer: str = "") -> None:
    """Raise RefusedJSON for what a value may not contain; `pointer` is the value's place.

    Limits: no NUL or lone surrogate in a string or key; MAX_DEPTH levels (`[]` is one level);
    MAX_MEMBERS object members and array items over all levels; numbers within a double; integers of
    MAX_DIGITS digits (PostgreSQL stores 131,072, Python parses 4,300; the limit keeps arithmetic on
    them cheap).
    """
    if not _surely_fine(raw.text):
        faults = _faults(raw.value, pointer)
        if faults:
            raise RefusedJSON(faults)


def _surely_fine(text: str) -> bool:
    """True for nearly every valid value, decided by a few searches in C instead of a traversal in
    Python."""
    openers = text.count("[") + text.count("{")
    if openers > MAX_DEPTH:
        return False
    if len(text) > MAX_MEMBERS and openers + text.count(",") > MAX_MEMBERS:
        return False
    if "\\" in text and "\\u" in text and _DOUBTFUL_ESCAPE.search(text):
        return False
    if not (text.isascii() or encodable(text)):
        return False
    if len(text) > MAX_DIGITS and _has_long_number(text):
        return False
    # Single characters are found faster than words.
    return not (("I" in text and "Infinity" in text) or ("N" in text and "NaN" in text))


def _has_long_number(text: str) -> bool:
    """Whether more than MAX_DIGITS digits are in a row. Every _DISTANCE-th character is checked first,
    because the whole search takes long and is rarely needed."""
    samples = text[::_DISTANCE].encode().translate(_ZEROS)
    return b"0" * _SAMPLES in samples and _LONG_NUMBER in text.encode().translate(_ZEROS)


def _faults(value: JSON, pointer: str) -> list[Fault]:
    faults: list[Fault] = []
    count = 0
    stack: list[tuple[JSON, int, str]] = [(value, 0, pointer)]
    while stack and len(faults) < MAX_FAULTS:
        node, depth, place = stack.pop()
        if isinstance(node, str):
            if why := _text_fault(node):
                faults.append(Fault(place, f"the string contains {why}"))
        elif isinstance(node, (dict, list)):
            count += len(node)
            if count > MAX_MEMBERS:
                return [Fault(pointer, f"more than {MAX_MEMBERS:,} members in all"), *faults]
            if depth == MAX_DEPTH:
                faults.append(Fault(place, TOO_DEEP))
            elif isinstance(node, list):
                stack += [(item, depth + 1, f"{place}/{i}") for i, item in enumerate(node)]
            else:
                for name, member in node.items():
                    if why := _text_fault(name):
                        faults.append(Fault(place, f"the key {ascii(name)[:80]} contains {why}"))
                    stack.append((member, depth + 1, place + pointer_of(name)))
        elif isinstance(node, float):
            if node - node:
                faults.append(Fault(place, OUT_OF_RANGE))
        elif isinstance(node, int) and not -_BIGGEST < node < _BIGGEST:
            faults.append(Fault(place, TOO_LONG))
    return faults


def _text_fault(text: str) -> str | None:
    if "\0" in text:
        return "NUL (U+0000)"
    if not (text.isascii() or encodable(text)):
        return SURROGATE
    return None


def _spelled(literal: str) -> float:
    number = float(literal)
    return number if repr(number) == literal else Float(literal)


def _parse_integer(literal: str) -> float:
    # "-0" is an integer that Python's int cannot represent.
    return Float(literal) if literal == "-0" else int(literal)


# Built once: json.loads would build one for each text, which takes longer than to parse a short one.
_DECODER: Final = json.JSONDecoder(parse_float=_spelled)
_DECODER_WITH_MINUS_ZERO: Final = json.JSONDecoder(parse_float=_spelled, parse_int=_parse_integer)


def load(text: str) -> JSON:
    """Parse stored text in order to change it. Numbers keep their spelling: see `dump`."""
    decoder = _DECODER_WITH_MINUS_ZERO if "-0" in text else _DECODER
    return decoder.decode(text)


def stored(text: str) -> Raw:
    """A document from the database, with its parsed value. It was checked when it was written."""
    return Raw(text, load(text))


def load_plain(text: str) -> JSON:
    """Parse stored text in order to compare it. Four times as fast as `load`. The values are
    the `same`, without the spelling of numbers."""
    return jiter.from_json(text.encode())


def dump(value: JSON) -> str:
    """Compact JSON text: key order kept, `Float`s as they were spelled, no ASCII escapes.

    Raises ValueError for NaN and infinities.
    """
    if any(isinstance(node, Float) for node in nodes(value)):
        return "".join(_pieces(value))
    return _ENCODER.encode(value)


def nodes(value: JSON) -> Iterator[JSON]:
    """The value and all values in it, in no particular order."""
    stack = [value]
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, dict):
            stack.extend(node.values())
        elif isinstance(node, list):
            stack.extend(node)


def _pieces(value: JSON) -> Iterator[str]:
    if isinstance(value, Float):
        yield value.literal
    elif isinstance(value, dict):
        between = "{"
        for name, member in value.items():
            yield f"{between}{_quoted(name)}:"
            yield from _pieces(member)
            between = ","
        yield "}" if value else "{}"
    elif isinstance(value, list):
        between = "["
        for item in value:
            yield between
            yield from _pieces(item)
            between = ","
        yield "]" if value else "[]"
    else:
        yield _ENCODER.encode(value)


def same_text(a: str, b: str) -> bool:
    """Whether two JSON texts differ only in white space."""
    return a == b or dump(load(a)) == dump(load(b))


def same(a: JSON, b: JSON) -> bool:
    """Equality of JSON values: numbers by value (1 == 1.0), true is not 1, key order ignored."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, dict):
        if not isinstance(b, dict) or len(a) != len(b):
            return False
        return all(name in b and same(member, b[name]) for name, member in a.items())
    if isinstance(a, list):
        if not isinstance(b, list) or len(a) != len(b):
            return False
        return all(map(same, a, b))
    return bool(a == b)


def identity(value: JSON) -> Hashable:
    """A hashable object that is equal for two values exactly when they are `same`.

    Text where necessary: Python hashes large integers and tuples without a random seed, so that a
    client could send thousands of different ones with one hash, and a set of them would take
    quadratic time.
    """
    if isinstance(value, str):
        return value
    value = _counted(value)
    if type(value) in (int, float) and -_SPREAD < value < _SPREAD:
        return cast(Hashable, value)
    return "\0" + _SORTED.encode(value)  # cannot equal a string of a value, which contains no NUL


def _counted(value: JSON) -> JSON:
    """The value with each whole number as an integer: 1.0 becomes 1."""
    if isinstance(value, dict):
        return {name: _counted(member) for name, member in value.items()}
    if isinstance(value, list):
        return list(map(_counted, value))
    if isinstance(value, float):
        return int(value) if value.is_integer() else float(value)
    return value
