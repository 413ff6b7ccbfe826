"""Compares the output of a block with the output on its page.

`…` in expected text matches any text; a JSON string that is only `…` matches any value. An expected
object may omit members; in an array `"…"` matches any number of elements.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

ANY = "…"

_PRINTED = re.compile(r"^\s*(?:print|console\.log)\(.*\);?\s+(?:#|//) (?P<text>.+)$")


def printed_in_comments(source: str) -> str:
    """The expected lines in comments after calls of `print` and `console.log`."""
    found = (_PRINTED.match(line) for line in source.splitlines())
    return "".join(f"{line['text']}\n" for line in found if line)


def shows_text(expected: str, actual: str) -> bool:
    """Whether every expected line is a line of `actual`, in order."""
    lines = iter(line.strip() for line in actual.splitlines())
    patterns = [line.strip() for line in expected.splitlines() if line.strip()]
    return all(any(_line_matches(pattern, line) for line in lines) for pattern in patterns)


def shows_json(expected: str, actual: str) -> bool:
    """Whether `actual`, or one of its lines, is the expected document."""
    document = json.loads(expected)
    return any(_value_matches(document, candidate) for candidate in _documents(actual))


def _documents(text: str) -> Iterator[Any]:
    lines = text.splitlines()
    tails = ("\n".join(lines[start:]) for start in range(len(lines)))
    for candidate in (*lines, *tails):
        try:
            yield json.loads(candidate)
        except ValueError:
            continue


def _line_matches(pattern: str, line: str) -> bool:
    parts = (re.escape(part) for part in pattern.split(ANY))
    return re.fullmatch(".*".join(parts), line, re.DOTALL) is not None


def _value_matches(expected: Any, actual: Any) -> bool:
    if isinstance(expected, str):
        if expected == ANY:
            return True
        return isinstance(actual, str) and _line_matches(expected, actual)
    if isinstance(expected, dict):
        return isinstance(actual, dict) and all(
            name in actual and _value_matches(value, actual[name])
            for name, value in expected.items()
        )
    if isinstance(expected, list):
        return isinstance(actual, list) and _array_matches(expected, actual)
    return type(expected) is type(actual) and bool(expected == actual)


def _array_matches(expected: list[Any], actual: list[Any]) -> bool:
    if ANY not in expected:
        return len(expected) == len(actual) and all(map(_value_matches, expected, actual))
    rest = iter(actual)
    return all(
        any(_value_matches(element, candidate) for candidate in rest)
        for element in expected
        if element != ANY
    )
