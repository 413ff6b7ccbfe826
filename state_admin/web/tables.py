"""Parts of data tables: the columns that a list shows, in which order, and chips for active filters.

A list is a data table if its template uses components/_columns.html and components/_chips.html and the
classes `.data-table`; static/js/tables.js adds keys, the selection and the pane.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.http import QueryDict

from state_admin.domain import json_pointers
from state_admin.domain.values import pointer_of

# A row has at most so many cells, which bounds the size of a page.
MOST_COLUMNS = 10
# The column that cannot be hidden, and stands for an empty selection.
KEY = "key"


@dataclass(frozen=True)
class Column:
    """A column. `id` is its name in the address; that of a member of a value begins with `/`."""

    id: str
    label: str
    numeric: bool = False

    @property
    def member(self) -> str | None:
        """The name of the member of the value that the column shows, None for other columns."""
        return member_of(self.id)


@dataclass(frozen=True)
class Columns:
    """The columns that a list shows, in order, and those that it could show."""

    shown: Sequence[Column]
    hidden: Sequence[Column]
    chosen: bool

    def __contains__(self, identity: str) -> bool:
        return any(column.id == identity for column in self.shown)


@dataclass(frozen=True)
class Chip:
    """An active filter, and the URL of the list without it."""

    label: str
    text: str
    url: str


def member_column(name: str, label: str = "", *, numeric: bool = False) -> Column:
    """The column of the member `name` of a value. A comma separates columns in the address, so it is
    written as `~2`, which no JSON pointer contains."""
    return Column(pointer_of(name).replace(",", "~2"), label or name, numeric)


def member_of(identity: str) -> str | None:
    if not identity.startswith("/"):
        return None
    try:
        parts = json_pointers.parts_of(identity.replace("~2", ","))
    except json_pointers.Mismatch:
        return None
    return parts[0] if len(parts) == 1 else None


def read_columns(query: QueryDict) -> str:
    """The parameter `columns`: ids with commas between them, or repeated as by a form. `left` moves one
    column to the left. "" means the default columns."""
    ids = [each for text in query.getlist("columns") for each in text.split(",") if each]
    ids = list(dict.fromkeys(ids))[: MOST_COLUMNS + 1]
    moved = query.get("left", "")
    if moved in ids[1:]:
        at = ids.index(moved)
        ids[at - 1 : at + 1] = [ids[at], ids[at - 1]]
    return ",".join([each for each in ids if each != KEY] or ids[:1])


def choose_columns(text: str, available: Iterable[Column], default: Sequence[str]) -> Columns:
    """The columns that `text` (read_columns) names; without it, the default ones. A member that is not
    among the available columns can be shown, too: the row may have it."""
    known = {column.id: column for column in available}
    shown = []
    for identity in text.split(",") if text else default:
        name = member_of(identity)
        if identity in known:
            shown.append(known.pop(identity))
        elif name is not None:
            shown.append(member_column(name))
    return Columns(shown[:MOST_COLUMNS], list(known.values()), chosen=bool(text))


def is_plain(query: QueryDict) -> bool:
    """Whether the address is the list's own, not that of a form, which has empty and repeated
    parameters."""
    return "left" not in query and all(
        len(texts) == 1 and texts[0] for name, texts in query.lists()
    )
