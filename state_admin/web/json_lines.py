"""On which line of a JSON text a JSON Pointer leads: errors by pointer, shown to people who edit."""

from __future__ import annotations

import json

_DECODER = json.JSONDecoder()
_SPACE = " \t\n\r"


def line_of(text: str, pointer: str) -> int:
    """The line, from 1, of the place in well-formed `text`; of the nearest place above it when
    the pointer leads to something missing."""
    at = _past(text, 0)
    for part in pointer.split("/")[1:]:
        found = _child(text, at, part.replace("~1", "/").replace("~0", "~"))
        if found < 0:
            break
        at = found
    return text.count("\n", 0, at) + 1


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
