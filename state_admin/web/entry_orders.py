"""The orders of the state browser beside that by key: their headings, and the rows in them.

No index has these orders, because each write would have to update it. They are limited to as many
entries of one namespace as the database can sort for each page.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from state_admin.domain.access import Actor
from state_admin.models.browsing import EntryFilter, EntryLine, sorted_page, window_end
from state_admin.services.errors import BadRequest

from .paging import read_moment, read_required_number
from .tables import Column, Heading, Orders

# The most entries of which a page is sorted, deleted ones included.
MOST: Final = 10_000
# The database's column of each column that orders the list.
_COLUMNS: Final = {
    "changed": "updated_at",
    "version": "version",
    "size": "size_bytes",
    "actor": "actor_name",
}
_NAMES: Final = {"changed": "last change", "version": "version", "size": "size", "actor": "writer"}
# The values of the parameter `sort`; those with `-` are descending.
SORTS: Final = (*_COLUMNS, *(f"-{name}" for name in _COLUMNS))


def headings_of(
    columns: Sequence[Column], sort: str, url: Callable[[str], str] | None, *, searched: bool
) -> list[Heading]:
    """The headings of the key and of the columns. `url` is that of the list in another order, None if
    there is no choice; a search has an order of its own."""
    key = Orders("Key", {} if searched else {"": "ascending"})
    orders = [key, *map(_orders_of, columns)]
    return [each.heading(sort, url) for each in orders]


def _orders_of(column: Column) -> Orders:
    if column.id not in _COLUMNS:
        return Orders(column.label, numeric=column.numeric)
    sorts = {f"-{column.id}": "descending", column.id: "ascending"}
    if column.id == "actor":  # names begin with A
        sorts = dict(reversed(sorts.items()))
    return Orders(column.label, sorts, column.numeric)


def refuse_sort(actor: Actor, query: EntryFilter, sort: str) -> str:
    """Why the entries of a filter cannot be sorted, "" if they can."""
    order = f"Sorting by {_NAMES[sort.removeprefix('-')]}"
    if not query.namespace:
        return f"{order} requires a namespace. Select a namespace"
    if window_end(actor, query, MOST + 1):
        return (
            f"{order} supports at most {MOST:,} entries, including deleted ones. Filter by scope or by"
            " “Key begins with”"
        )
    return ""


def find_sorted(
    actor: Actor, query: EntryFilter, sort: str, after: str, limit: int
) -> tuple[list[EntryLine], str]:
    """Up to `limit` entries in the order `sort`, and the cursor of the next page, "" at the end. The
    cursor contains the key and the value of the last row, with a tab between them, which no key
    contains. BadRequest for another cursor."""
    column = _COLUMNS[sort.removeprefix("-")]
    lines = sorted_page(
        actor,
        query,
        column=column,
        descending=sort.startswith("-"),
        last=_read_cursor(column, after) if after else None,
        limit=limit + 1,
        window=MOST,
    )
    if len(lines) <= limit:
        return lines, ""
    last = lines[limit - 1]
    value = last.updated_at.isoformat() if column == "updated_at" else getattr(last, column)
    return lines[:limit], f"{last.key}\t{value}"


def _read_cursor(column: str, after: str) -> tuple[str, str]:
    """The value and the key of the last row of the previous page."""
    key, tab, value = after.partition("\t")
    if not tab:
        raise BadRequest("after is not a valid cursor for this sort order")
    if column == "updated_at":
        return read_moment("after", value).isoformat(), key
    if column != "actor_name":
        return str(read_required_number("after", value)), key
    return value, key
