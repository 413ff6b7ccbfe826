"""The changes between two texts, word by word. Not here: rendering."""

from __future__ import annotations

import re
from itertools import groupby
from operator import attrgetter
from typing import Final, Literal, NamedTuple

from state_admin.domain.alignment import align

# Two texts with more words than this, or with a smaller share of unchanged text, are shown one
# after the other.
MAX_WORDS: Final = 1_000
_SIMILAR: Final = 0.4
_WORD: Final = re.compile(r"\w+|\s+|[^\w\s]")


class Piece(NamedTuple):
    """A part of the text: in both, only in the old one, or only in the new one."""

    kind: Literal["same", "removed", "added"]
    text: str


def text_changes(before: str, after: str) -> list[Piece] | None:
    """The pieces of both texts in order; None if they are too long or have too little in common."""
    if len(before) + len(after) > 40 * MAX_WORDS:
        return None
    old, new = _WORD.findall(before), _WORD.findall(after)
    if max(len(old), len(new)) > MAX_WORDS:
        return None
    pairs = [
        (place, index)
        for index, place in enumerate(align(old, new, None))
        if place is not None and old[place] == new[index]
    ]
    words = {pair for pair in pairs if not new[pair[1]].isspace()}
    # A space belongs to the word before or after it.
    pairs = [(x, y) for x, y in pairs if words & {(x, y), (x - 1, y - 1), (x + 1, y + 1)}]
    if sum(len(new[index]) for _, index in pairs) < _SIMILAR * max(len(before), len(after)):
        return None
    found: list[Piece] = []
    x = y = 0
    for place, index in [*pairs, (len(old), len(new))]:
        found += [
            Piece("removed", "".join(old[x:place])),
            Piece("added", "".join(new[y:index])),
            Piece("same", "".join(new[index : index + 1])),
        ]
        x, y = place + 1, index + 1
    groups = groupby((piece for piece in found if piece.text), key=attrgetter("kind"))
    return [Piece(kind, "".join(piece.text for piece in group)) for kind, group in groups]
