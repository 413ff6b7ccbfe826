"""Two values as indented JSON side by side: corresponding lines are in one row, and long unchanged parts
are left out. Array items correspond as in all comparisons (domain/alignment.py)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest
from typing import Any, Final, Literal, NamedTuple

from state_admin.domain.alignment import align, identity_key, in_order
from state_admin.domain.diffs import Difference
from state_admin.domain.text_changes import Piece
from state_admin.domain.values import JSON, dump, same
from state_admin.templatetags.json_html import changed_words, pretty

# They bound the size of the page, to which a row adds markup.
MOST_ROWS: Final = 500
MOST_CHARACTERS: Final = 60_000
# Lines of both values that are compared.
_MOST_LINES: Final = 20_000
_LONGEST: Final = 1_000  # characters of a line
# Characters before a change that are shown of a long line.
_AROUND: Final = 100
# Unchanged lines that are shown around a change.
_CONTEXT: Final = 3
_INDENT: Final = "  "
_MISSING: Final = object()

Line = Sequence[Piece]


@dataclass(frozen=True)
class SideRow:
    """A line of each value; None on a side without a line. `skipped`: the number of unchanged lines that
    the row replaces; it has no lines then."""

    kind: Literal["same", "changed", "added", "removed", "skipped"]
    before: Line | None = None
    after: Line | None = None
    skipped: int = 0


def compare(before: JSON, after: JSON) -> tuple[list[SideRow], bool]:
    """The rows, up to MOST_ROWS and MOST_CHARACTERS, and whether there are more. None for equal
    values."""
    if same(before, after):
        return [], False
    lines = list(islice(_pair(before, after, "", "", _Ends("", "")), _MOST_LINES))
    rows: list[SideRow] = []
    left = MOST_CHARACTERS
    for row in _fold(lines):
        left -= sum(len(piece.text) for side in (row.before, row.after) for piece in side or ())
        if left < 0 or len(rows) == MOST_ROWS:
            return rows, True
        rows.append(row)
    return rows, len(lines) == _MOST_LINES


class _Ends(NamedTuple):
    """The text after the last line of a value on each side: a comma if another item follows."""

    before: str
    after: str


def _pair(before: Any, after: Any, indent: str, label: str, ends: _Ends) -> Iterator[SideRow]:
    """The rows of two values, of which one may be _MISSING. `label`: the name of a member."""
    if before is _MISSING or after is _MISSING:
        yield from _one_sided(before, after, indent, label, ends)
    elif same(before, after):
        lines = _lines(before, indent, label)
        for line in lines[:-1]:
            yield _same_row(line, line)
        yield _same_row(lines[-1] + ends.before, lines[-1] + ends.after)
    elif isinstance(before, dict) and isinstance(after, dict):
        yield from _container("{}", _members(before, after), indent, label, ends)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _container("[]", _items(before, after), indent, label, ends)
    else:
        yield from _changed(before, after, indent, label, ends)


def _container(
    brackets: str, items: list[tuple[str, Any, Any]], indent: str, label: str, ends: _Ends
) -> Iterator[SideRow]:
    opener = indent + label + brackets[0]
    yield _same_row(opener, opener)
    last_before = max((at for at, item in enumerate(items) if item[1] is not _MISSING), default=-1)
    last_after = max((at for at, item in enumerate(items) if item[2] is not _MISSING), default=-1)
    for at, (name, old, new) in enumerate(items):
        commas = _Ends("," if at < last_before else "", "," if at < last_after else "")
        yield from _pair(old, new, indent + _INDENT, name, commas)
    closer = indent + brackets[1]
    yield _same_row(closer + ends.before, closer + ends.after)


def _members(before: dict[str, JSON], after: dict[str, JSON]) -> list[tuple[str, Any, Any]]:
    """The members in the order of `before`, then the new ones."""
    names = {**before, **after}
    return [
        (f"{dump(name)}: ", before.get(name, _MISSING), after.get(name, _MISSING)) for name in names
    ]


def _items(before: list[JSON], after: list[JSON]) -> list[tuple[str, Any, Any]]:
    """The items in order. An item that moved is removed and added."""
    items: list[tuple[str, Any, Any]] = []
    place = 0
    for index, origin in enumerate(in_order(align(before, after, identity_key(before, after)))):
        if origin is None:
            items.append(("", _MISSING, after[index]))
            continue
        items += [("", item, _MISSING) for item in before[place:origin]]
        items.append(("", before[origin], after[index]))
        place = origin + 1
    return items + [("", item, _MISSING) for item in before[place:]]


def _one_sided(before: Any, after: Any, indent: str, label: str, ends: _Ends) -> Iterator[SideRow]:
    removed = after is _MISSING
    lines = _lines(before if removed else after, indent, label)
    lines[-1] += ends.before if removed else ends.after
    for line in lines:
        if removed:
            yield SideRow("removed", before=_marked("removed", line))
        else:
            yield SideRow("added", after=_marked("added", line))


def _changed(before: JSON, after: JSON, indent: str, label: str, ends: _Ends) -> Iterator[SideRow]:
    start = Piece("same", f'{indent}{label}"')
    words = changed_words(Difference("", "changed", before, after))
    if words is not None:
        old_words = [each for each in words if each.kind != "added"]
        new_words = [each for each in words if each.kind != "removed"]
        yield SideRow(
            "changed",
            [start, *old_words, Piece("same", f'"{ends.before}')],
            [start, *new_words, Piece("same", f'"{ends.after}')],
        )
        return
    olds, news = _lines(before, indent, label), _lines(after, indent, label)
    olds[-1] += ends.before
    news[-1] += ends.after
    for old, new in zip_longest(olds, news):
        same_start = _count_same(old or "", new or "")
        skipped = same_start - _AROUND if same_start > _LONGEST // 2 else 0
        yield SideRow(
            "changed",
            None if old is None else _marked("removed", old, skipped),
            None if new is None else _marked("added", new, skipped),
        )


def _count_same(before: str, after: str) -> int:
    """How many characters both texts begin with."""
    pairs = enumerate(zip(before, after, strict=False))
    return next((at for at, (old, new) in pairs if old != new), min(len(before), len(after)))


def _lines(value: JSON, indent: str, label: str) -> list[str]:
    first, *rest = pretty(value).split("\n")
    return [indent + label + first, *(indent + line for line in rest)]


def _marked(kind: Literal["removed", "added"], line: str, skipped: int = 0) -> Line:
    """The line with all but its indentation marked. `skipped`: the number of characters that are left
    out at its start."""
    text = line.lstrip(" ")
    indent = line[: len(line) - len(text)]
    return [Piece("same", indent), Piece(kind, _cut(f"…{line[skipped:]}" if skipped else text))]


def _same_row(before: str, after: str) -> SideRow:
    return SideRow("same", [Piece("same", _cut(before))], [Piece("same", _cut(after))])


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _fold(rows: Sequence[SideRow]) -> Iterator[SideRow]:
    """The rows, with one row for all unchanged lines that are further than _CONTEXT from a change."""
    near = [False] * len(rows)
    for at, row in enumerate(rows):
        if row.kind != "same":
            for place in range(max(0, at - _CONTEXT), min(len(rows), at + _CONTEXT + 1)):
                near[place] = True
    skipped: list[SideRow] = []
    for row, is_near in zip(rows, near, strict=True):
        if not is_near:
            skipped.append(row)
            continue
        yield from _stand_in(skipped)
        skipped = []
        yield row
    yield from _stand_in(skipped)


def _stand_in(skipped: Sequence[SideRow]) -> Sequence[SideRow]:
    """One row that replaces several unchanged lines. A single line is kept."""
    return skipped if len(skipped) < 2 else [SideRow("skipped", skipped=len(skipped))]
