"""Where in a JSON text a JSON Pointer leads: errors by pointer, shown to people who edit."""

from __future__ import annotations

import json

_DECODER = json.JSONDecoder()
_SPACE = " \t\n\r"


def line_of(text: str, pointer: str) -> int:
    """The line, from 1, of the place in well-formed `text`; of the nearest place above it when
    the pointer leads to something missing."""
    return text.count("\n", 0, _place_of(text, pointer)) + 1


def span_of(text: str, pointer: str) -> tuple[int, int]:
    """Where the place begins and ends, as browsers count (UTF-16). Of an object or array only its
    first character is meant: what is wrong with it is seldom wrong with all that it holds."""
    start = _place_of(text, pointer)
    end = start + 1 if text[start : start + 1] in "{[" else _DECODER.raw_decode(text, start)[1]
    return utf16(text, start), utf16(text, end)


def utf16(text: str, at: int) -> int:
    """How many UTF-16 code units stand before the character at `at`."""
    return at if text.isascii() else len(text[:at].encode("utf-16-le", "surrogatepass")) // 2


def _place_of(text: str, pointer: str) -> int:
    at = _past(text, 0)
    for part in pointer.split("/")[1:]:
        child = _child(text, at, part.replace("~1", "/").replace("~0", "~"))
        if child < 0:
            break
        at = child
    return at


def _child(text: str, at: int, part: str) -> int:
    """Where the child `part` of the container at `at` begins, or -1."""
    opener = text[at]
    if opener not in "{[":
        return -1
    at = _past(text, at + 1)
    index = 0
    while text[at] not in "}]":
        name = str(index)
        if opener == "{":
            name, at = _DECODER.raw_decode(text, at)
            at = _past(text, _past(text, at) + 1)
        if name == part:
            return at
        at = _past(text, _DECODER.raw_decode(text, at)[1])
        if text[at] == ",":
            at = _past(text, at + 1)
        index += 1
    return -1


def _past(text: str, at: int) -> int:
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at
