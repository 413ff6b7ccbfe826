"""The value of an entry line by line, each with the version that set it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from state_admin.domain.values import JSON, dump, pointer_of
from state_admin.services.blame import Attribution

MOST_LINES = 200
_LONGEST = 400  # characters of a line
_INDENT = "  "


@dataclass(frozen=True)
class BlameLine:
    """A line of indented JSON. `new`: another version set it than the line above."""

    pointer: str
    text: str
    by: Attribution
    new: bool


def annotate(
    value: JSON, blamed: Sequence[Attribution], start: int = 0
) -> tuple[list[BlameLine], bool]:
    """At most MOST_LINES lines of `value` after the first `start`, and whether there are more.
    `blamed`: the attributions of this value, including the one with the pointer ""."""
    by = {each.pointer: each for each in blamed}
    walk = _walk(value, "", 0, "", "", by, by[""])
    lines = list(islice(walk, start, start + MOST_LINES + 1))
    annotated = [
        BlameLine(
            pointer,
            _INDENT * depth + text[:_LONGEST],
            each,
            i == 0 or each.version != lines[i - 1][3].version,
        )
        for i, (pointer, depth, text, each) in enumerate(lines[:MOST_LINES])
    ]
    return annotated, len(lines) > MOST_LINES


def _walk(
    value: JSON,
    pointer: str,
    depth: int,
    before: str,
    after: str,
    by: Mapping[str, Attribution],
    inherited: Attribution,
) -> Iterator[tuple[str, int, str, Attribution]]:
    own = by.get(pointer, inherited)
    if not isinstance(value, dict | list) or not value:
        yield pointer, depth, before + dump(value) + after, own
        return
    if isinstance(value, dict):
        start, end = "{", "}"
        items = [(pointer_of(name), f"{dump(name)}: ", part) for name, part in value.items()]
    else:
        start, end = "[", "]"
        items = [(pointer_of(i), "", part) for i, part in enumerate(value)]
    yield pointer, depth, before + start, own
    for i, (name, label, part) in enumerate(items, 1):
        comma = "," if i < len(items) else ""
        yield from _walk(part, pointer + name, depth + 1, label, comma, by, own)
    yield pointer, depth, end + after, own
