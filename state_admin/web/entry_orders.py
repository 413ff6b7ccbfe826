"""The orders of the state browser beside that by key: their headings, and the rows in them.

No index has these orders, because each write would have to update it. They are limited to as many
entries of one namespace as the database can sort for each page.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from state_admin.domain.access import Actor
from state_admin.models.browsing import (
    EntryFilter,
    EntryLine,
    Order,
    by_column,
    by_member,
    sorted_page,
    values_in_order,
    window_end,
)
from state_admin.services.errors import BadRequest

from .paging import read_moment, read_required_number
from .tables import Column, Heading, Orders, member_of

_NUMBER: Final = re.compile(r"-?[0-9]{1,2000}(\.[0-9]{1,2000})?")
# The most entries of which a page is sorted, deleted ones included.
MOST: Final = 10_000
# The database's column of each column that orders the list, and its type.
_COLUMNS: Final = {
    "changed": ("updated_at", "timestamptz"),
    "version": ("version", "bigint"),
    "size": ("size_bytes", "bigint"),
    "actor": ("actor_name", "text"),
}
_NAMES: Final = {"changed": "last change", "version": "version", "size": "size", "actor": "writer"}
# Values of the parameter `sort`; those with `-` are descending. It can also be the id of the column of
# a member.
SORTS: Final = (*_COLUMNS, *(f"-{name}" for name in _COLUMNS))


def headings_of(
    columns: Sequence[Column], sort: str, url: Callable[[str], str] | None, *, searched: bool
) -> list[Heading]:
    """The headings of the key and of the columns. `url` is that of the list in another order, None if
    there is no choice; a search has an order of its own."""
    key = Orders("Key", {} if searched else {"": "ascending"})
    orders = [key, *map(_orders_of, columns)]
    return [each.heading(sort, url) for each in orders]


def is_sort(text: str) -> bool:
    """Whether a list can have this value of `sort`."""
    return text in SORTS or member_of(text.removeprefix("-")) is not None


def _orders_of(column: Column) -> Orders:
    if column.id not in _COLUMNS and column.member is None:
        return Orders(column.label, numeric=column.numeric)
    sorts = {f"-{column.id}": "descending", column.id: "ascending"}
    if column.id == "actor" or (column.member is not None and not column.numeric):  # begin with A
        sorts = dict(reversed(sorts.items()))
    return Orders(column.label, sorts, column.numeric)


def refuse_sort(actor: Actor, query: EntryFilter, sort: str) -> str:
    """Why the entries of a filter cannot be sorted, "" if they can."""
    name = sort.removeprefix("-")
    order = f"Sorting by {_NAMES.get(name) or member_of(name)}"
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
    order = _order_of(sort)
    lines = sorted_page(
        actor,
        query,
        order=order,
        last=_read_cursor(order, after) if after else (),
        limit=limit + 1,
        window=MOST,
    )
    if len(lines) <= limit:
        return lines, ""
    last = lines[limit - 1]
    return lines[:limit], "\t".join([last.key, *values_in_order(order, last.id)])


def _order_of(sort: str) -> Order:
    name, descending = sort.removeprefix("-"), sort.startswith("-")
    member = member_of(name)
    if member is not None:
        return by_member(member, descending=descending)
    return by_column(*_COLUMNS[name], descending=descending)


def _read_cursor(order: Order, after: str) -> list[str]:
    """The values and the key of the last row of the previous page."""
    key, *found = after.split("\t", len(order.expressions))
    if len(found) != len(order.expressions):
        raise BadRequest("after is not a valid cursor for this sort order")
    for value, (_, kind, _) in zip(found, order.expressions, strict=True):
        if kind == "timestamptz":
            read_moment("after", value)
        elif kind in ("int", "bigint"):
            read_required_number("after", value)
        elif kind == "numeric" and not _NUMBER.fullmatch(value):
            raise BadRequest("after is not a valid cursor for this sort order")
    return [*found, key]
