"""JSON documents from outside: strict parsing, and the exact source text of their parts.

Not here: the limits of a value, and operations on Python values (both in values).
"""

from __future__ import annotations

import gc
import json
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

import jiter
import msgspec

JSON: TypeAlias = Any

MAX_DEPTH: Final = 64
# A document may wrap values in an envelope. Deeper documents are refused by the parser, so that no
# recursive function can reach Python's recursion limit.
MAX_DOCUMENT_DEPTH: Final = 200  # the fast parser's own limit
MAX_DIGITS: Final = 1_000
MAX_FAULTS: Final = 20

TOO_DEEP: Final = f"too deep: at most {MAX_DEPTH} levels of arrays and objects"
TOO_LONG: Final = f"an integer takes at most {MAX_DIGITS} digits"
SURROGATE: Final = "a lone surrogate"
OUT_OF_RANGE: Final = "the number is outside the range of a double"

_SPACE: Final = " \t\n\r"


@dataclass(frozen=True)
class Fault:
    """An error and its place: a JSON Pointer (RFC 6901, "" is the whole document)."""

    pointer: str
    message: str

    def __str__(self) -> str:
        return f"{self.pointer}: {self.message}" if self.pointer else self.message

    def inside(self, pointer: str) -> Fault:
        """The same error, with its place in a document that has the faulty one at `pointer`."""
        return Fault(pointer + self.pointer, self.message)


class FaultError(ValueError):
    """The base of errors that name the faults of a document."""

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__("; ".join(map(str, faults)))
        self.faults = faults


class MalformedJSON(ValueError):
    """The text is not JSON (RFC 8259). `str(e)` says what was expected and where."""


class RefusedJSON(FaultError):
    """The text is JSON, but contains something that cannot be stored."""


class Raw(NamedTuple):
    """A JSON text without surrounding whitespace, and its value."""

    text: str
    value: JSON


def _constant(literal: str) -> JSON:
    raise MalformedJSON(f"{literal} is not JSON")


_LENIENT: Final = json.JSONDecoder(parse_constant=_constant)
# Each digit or point of a number becomes "0", and its "E" becomes "e". Its signs are deleted.
_OF_NUMBERS: Final = bytes.maketrans(b"123456789.E", b"0000000000e")
# The least length, in characters, of a document for which garbage collection is paused while it is parsed.
_LARGE: Final = 64 * 1024
_pausing: Final = threading.Lock()
_pauses = 0
_SLICES: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_LISTS: Final = msgspec.json.Decoder(list[msgspec.Raw])
_RECORDS: Final = msgspec.json.Decoder(list[dict[str, msgspec.Raw]])


def read(body: bytes | str) -> Raw:
    """Parse a whole document strictly.

    Raises MalformedJSON for what is not JSON (syntax, NaN, BOM, not UTF-8, empty) and
    RefusedJSON, with pointers from the document's root, for duplicate keys, lone surrogates,
    numbers that are neither an integer nor within a double, and documents deeper than
    MAX_DOCUMENT_DEPTH.
    The limits of a value are `check`'s.
    """
    text = _text(body)
    if len(text) < _LARGE:
        return Raw(text, _read(text))
    with _without_collection():
        return Raw(text, _read(text))


def _read(text: str) -> JSON:
    try:
        return _parse(text)
    except ValueError:
        # Refused, or beyond the limits of the fast parser; the slower parser finds the place and
        # reason.
        if faults := _faults(text):
            raise RefusedJSON(faults) from None
        value = _whole(_LENIENT, text)
        check_depth(value)
        return value


@contextmanager
def _without_collection() -> Iterator[None]:
    """Pause garbage collection. It would visit the growing document again and again: with millions of
    arrays, it takes nine tenths of the time, in which no other thread can run."""
    global _pauses
    with _pausing:
        _pauses += 1
        gc.disable()
    try:
        yield
    finally:
        with _pausing:
            _pauses -= 1
            if _pauses == 0:
                gc.enable()


def _parse(text: str) -> JSON:
    encoded = text.encode()
    if _may_be_odd(encoded) and _may_be_odd(_outside_strings(encoded)):
        raise ValueError
    return jiter.from_json(encoded, catch_duplicate_keys=True, allow_inf_nan=False)


def _may_be_odd(text: bytes) -> bool:
    """Whether the text may contain a number outside the range of a double: one with a long exponent or
    very many digits. Searches in C, because a regular expression takes longer than the parser."""
    numbers = text.translate(_OF_NUMBERS, b"+-")
    return b"e000" in numbers or b"0" * 200 in numbers


def _outside_strings(text: bytes) -> bytes:
    """What is between the strings of a JSON text: not, for example, the digits of a UUID."""
    if b"\\" in text:
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    return b'"'.join(text.split(b'"')[::2])


def _text(body: bytes | str) -> str:
    if isinstance(body, bytes):
        try:
            body = body.decode()
        except UnicodeDecodeError as error:
            raise MalformedJSON(f"not UTF-8: {error.reason} at byte {error.start}") from None
    if body.startswith("\ufeff"):
        raise MalformedJSON("a byte order mark is not JSON")
    body = body.strip(_SPACE)
    if not body:
        raise MalformedJSON("the document is empty")
    return body


def _whole(decoder: json.JSONDecoder, text: str) -> JSON:
    value, end = decoder.raw_decode(text)
    if end != len(text):
        raise json.JSONDecodeError("Extra data", text, end)
    return value


def encodable(text: str) -> bool:
    """Whether a text can be encoded as UTF-8: it has no lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class _Pairs(list[tuple[str, JSON]]):
    """The members of an object as written, duplicates included."""


class _InvalidNumber(NamedTuple):
    """A number that is refused, and why."""

    why: str


def _real_fault(literal: str, number: float) -> str | None:
    if len(literal) > MAX_DIGITS:
        return f"a number takes at most {MAX_DIGITS} characters"
    # The float 0.0 may hide an underflow (1e-400) or an exponent beyond numeric columns (0e-99999).
    mantissa, _, exponent = literal.lower().partition("e")
    underflow = not number and (mantissa.strip("-0.") or abs(int(exponent or 0)) > 400)
    if number - number or underflow:
        return OUT_OF_RANGE
    return None


def _faults(text: str) -> list[Fault]:
    """Return the faults of a text that cannot be stored. Raises MalformedJSON if it is not JSON."""

    def real(literal: str) -> JSON:
        why = _real_fault(literal, float(literal))
        return _InvalidNumber(why) if why else 0.0

    def integer(literal: str) -> JSON:
        too_long = len(literal) > MAX_DIGITS + 1
        return _InvalidNumber(TOO_LONG) if too_long else 0

    decoder = json.JSONDecoder(
        object_pairs_hook=_Pairs, parse_float=real, parse_int=integer, parse_constant=_constant
    )
    try:
        value = _whole(decoder, text)
    except json.JSONDecodeError as error:
        raise MalformedJSON(str(error)) from None
    except RecursionError:
        return [Fault("", TOO_DEEP)]
    faults: list[Fault] = []
    stack = [("", value)]
    while stack and len(faults) < MAX_FAULTS:
        pointer, node = stack.pop()
        if isinstance(node, _InvalidNumber):
            faults.append(Fault(pointer, node.why))
        elif isinstance(node, str):
            if not encodable(node):
                faults.append(Fault(pointer, f"the string contains {SURROGATE}"))
        elif isinstance(node, _Pairs):
            seen: set[str] = set()
            for name, member in node:
                place = pointer + pointer_of(name)
                if name in seen:
                    faults.append(Fault(place, "the object has this key twice"))
                elif not encodable(name):
                    faults.append(
                        Fault(pointer, f"the key {ascii(name)[:80]} contains {SURROGATE}")
                    )
                seen.add(name)
                stack.append((place, member))
        elif isinstance(node, list):
            stack += [(f"{pointer}/{index}", item) for index, item in enumerate(node)]
    return faults


def members(raw: Raw) -> dict[str, Raw]:
    """The members of an object, each with its exact source text, in order.

    `raw` is a result of `read`, `members` or `items`, so its text is valid.
    """
    slices = _SLICES.decode(raw.text)
    return {name: Raw(_spelling(at), raw.value[name]) for name, at in slices.items()}


def items(raw: Raw) -> list[Raw]:
    """The items of an array, each with its exact source text. `raw` as for `members`."""
    slices = _LISTS.decode(raw.text)
    return [Raw(_spelling(at), item) for at, item in zip(slices, raw.value, strict=True)]


def records(raw: Raw, names: Collection[str]) -> list[dict[str, Raw]]:
    """Those `members` of each object of an array that have one of these names, in one pass. `raw`
    as for `members`."""
    selected = [[name for name in names if name in item] for item in raw.value]
    if not any(selected):
        return [{} for _ in selected]
    return [
        {name: Raw(_spelling(slices[name]), item[name]) for name in found}
        for found, slices, item in zip(selected, _RECORDS.decode(raw.text), raw.value, strict=True)
    ]


def _spelling(slice_: msgspec.Raw) -> str:
    return bytes(slice_).decode()


def check_depth(value: JSON) -> None:
    """Raise RefusedJSON if a value has more than MAX_DOCUMENT_DEPTH levels. Does not recurse. The result of
    a patch is checked, too: `move` and `copy` can nest values without limit, and `values.dump` recurses."""
    level = [value] if isinstance(value, (dict, list)) else []
    depth = 0
    while level:
        depth += 1
        if depth > MAX_DOCUMENT_DEPTH:
            raise RefusedJSON([Fault("", TOO_DEEP)])
        level = [
            child
            for node in level
            for child in (node.values() if isinstance(node, dict) else node)
            if isinstance(child, (dict, list))
        ]


def pointer_of(*parts: str | int) -> str:
    """A JSON Pointer (RFC 6901) from its parts. NUL and lone surrogates, which no value may
    contain, are escaped, so that a pointer to them can be sent and stored."""
    pointer = "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)
    if not pointer.isascii():
        pointer = pointer.encode("utf-8", "backslashreplace").decode()
    return pointer.replace("\0", "\\u0000")
