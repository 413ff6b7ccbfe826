"""The position of a JSON pointer in a JSON text, to show errors where they are."""

from __future__ import annotations

import json
from collections.abc import Iterable

_DECODER = json.JSONDecoder()
_SPACE = " \t\n\r"


def line_of(text: str, pointer: str) -> int:
    """The line of `pointer` in well-formed `text`, from 1; if it does not exist, that of its
    nearest existing parent."""
    return text.count("\n", 0, _find(text, pointer)[0]) + 1


def span_of(text: str, pointer: str) -> tuple[int, int]:
    """Start and end of the value at `pointer`, in UTF-16 code units as browsers count. For an
    object or array only its first character, since an error of a container seldom concerns all its
    content."""
    start, _ = _find(text, pointer)
    end = start + 1 if text[start : start + 1] in "{[" else _DECODER.raw_decode(text, start)[1]
    return utf16(text, start), utf16(text, end)


def mark_ranges(text: str, pointers: Iterable[str]) -> list[tuple[str, bool]]:
    """The text in parts: those between the values at `pointers`, and those values (True). A pointer
    that does not exist in the text marks nothing."""
    parts, end = [], 0
    for start, stop in sorted(filter(None, (_range_of(text, pointer) for pointer in pointers))):
        if start >= end:
            parts += [(text[end:start], False), (text[start:stop], True)]
            end = stop
    return [*parts, (text[end:], False)]


def _range_of(text: str, pointer: str) -> tuple[int, int] | None:
    at, exists = _find(text, pointer)
    return (at, _DECODER.raw_decode(text, at)[1]) if exists else None


def utf16(text: str, at: int) -> int:
    """The number of UTF-16 code units before the character at `at`."""
    return at if text.isascii() else len(text[:at].encode("utf-16-le", "surrogatepass")) // 2


def _find(text: str, pointer: str) -> tuple[int, bool]:
    """Where the value at `pointer` begins, or its nearest existing parent, and whether it exists."""
    at = _past(text, 0)
    for part in pointer.split("/")[1:]:
        child = _child(text, at, part.replace("~1", "/").replace("~0", "~"))
        if child < 0:
            return at, False
        at = child
    return at, True


def _child(text: str, at: int, part: str) -> int:
    """The index at which the child `part` of the container at `at` begins, or -1."""
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
