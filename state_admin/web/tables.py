"""Parts of data tables: the filters of a list with their chips, headings that order it, the number of
its rows, and the columns that it shows.

A list is a data table if its template uses components/_search.html, _table_top.html, _headings.html,
the tag `cells` (templatetags/table_cells.py) and the class `.data-table`; static/js/tables.js adds keys,
the selection and the pane.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar
from urllib.parse import parse_qsl, urlsplit

from django.db.models import Model, QuerySet
from django.http import HttpRequest, QueryDict
from django.urls import reverse

from state_admin.domain import json_pointers
from state_admin.domain.values import pointer_of
from state_admin.templatetags.ui import plural, words

from . import paging
from .addresses import with_query

Item = TypeVar("Item")
Row = TypeVar("Row", bound=Model)
Rows = TypeVar("Rows", bound="QuerySet[Any]")
# Returns a page of a list, and the URL of the next page. Takes a request, what Table.read returned, and the
# name of the URL of the list or of its file.
FindRows = Callable[[Any, dict[str, str], str], tuple[Sequence[Item], str]]

# A row has at most so many cells, which bounds the size of a page.
MOST_COLUMNS = 10
# The column that cannot be hidden, and means an empty selection in the URL.
KEY = "key"
# Lists count their rows up to this number.
COUNTED = 1000


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

    visible: Sequence[Column]
    hidden: Sequence[Column]
    chosen: bool

    def __contains__(self, identity: str) -> bool:
        return any(column.id == identity for column in self.visible)


@dataclass(frozen=True)
class Chip:
    """An active filter, and the URL of the list without it."""

    label: str
    text: str
    url: str


@dataclass(frozen=True)
class Field:
    """A filter of a list: a field of its menu, and a chip while it has a value. `choices` are the
    values with their labels, if it has a fixed set, and `unset` the label of none of them.
    `suggestions` are offered while typing. `clears` is the parameter that its chip removes, if that is
    not `name`."""

    name: str
    label: str
    value: str = ""
    choices: Mapping[str, str] = field(default_factory=dict)
    unset: str = "any"
    type: str = "text"
    placeholder: str = ""
    suggestions: Sequence[str] = ()
    clears: str = ""

    def read(self, request: HttpRequest) -> dict[str, str]:
        """Its value in the query string, by its name."""
        if self.choices:
            return {self.name: paging.choice(request, self.name, tuple(self.choices))}
        return {self.name: paging.text(request, self.name)}

    def filled(self, filters: Mapping[str, str]) -> list[Field]:
        """The field with its value."""
        return [replace(self, value=filters[self.name])]


class Filter(Protocol):
    """A part of the menu of filters: a Field, or several that belong together (periods.Period)."""

    def read(self, request: HttpRequest) -> dict[str, str]:
        """The parameters of the list that the chip represents."""

    def filled(self, filters: Mapping[str, str]) -> list[Field]:
        """Its fields with their values."""


def chips_of(fields: Iterable[Field], url: Callable[[str], str]) -> list[Chip]:
    """The chips of active filters. `url` is that of the first page without the filter of a name."""
    return [
        Chip(
            each.label.removesuffix(", UTC"),
            each.choices.get(each.value, each.value),
            url(each.clears or each.name),
        )
        for each in fields
        if each.value
    ]


def choices_of(values: Iterable[str]) -> dict[str, str]:
    """Choices that are values of the API, with their labels."""
    return {value: words(value) for value in values}


@dataclass(frozen=True)
class Heading:
    """The heading of a column. `url` orders the list by it, or the other way round; "" if it cannot.
    `sorted` is the value of aria-sort, "" if the list is not ordered by it."""

    label: str
    url: str
    sorted: str
    numeric: bool


@dataclass(frozen=True)
class Orders:
    """A column, and the orders of the list by it, by values of the parameter `sort`: an Order or, of a list
    that sorts its rows itself, the value of aria-sort."""

    label: str
    sorts: Mapping[str, paging.Order | str] = field(default_factory=dict)
    numeric: bool = False

    @property
    def column(self) -> Column:
        return Column(self.label.lower().replace(" ", "-"), self.label, self.numeric)

    def heading(self, sort: str, url: Callable[[str], str] | None) -> Heading:
        """The heading in a list that is ordered by `sort`. `url` is that of the list in another
        order, None if there is no choice."""
        # Each click on a heading takes the next of its orders.
        sorts = [*self.sorts, *self.sorts]
        following = sorts[sorts.index(sort) + 1] if sort in sorts else next(iter(sorts), sort)
        link = url(following) if url and following != sort else ""
        order = self.sorts.get(sort, "")
        direction = order.direction if isinstance(order, paging.Order) else order
        return Heading(self.label, link, direction, self.numeric)


@dataclass(frozen=True)
class Table:
    """A data table: what its page and its files share. `name` is the name of its URL. The first of the
    `columns` is always shown; the list can be ordered by the others as these say. `search` is the field
    beside the menu of filters, `address` are filters that only links set. `cursor` is the query
    parameter of the cursor."""

    name: str
    columns: Sequence[Orders]
    search: Field | None = None
    menu: Sequence[Filter] = ()
    address: Sequence[Field] = ()
    cursor: str = "after"

    def read(self, request: HttpRequest) -> dict[str, str]:
        """The parameters of the list but that of the page: filters, order and columns. Invalid choices
        are ignored."""
        filters: dict[str, str] = {}
        for each in (*([self.search] if self.search else ()), *self.menu, *self.address):
            filters |= each.read(request)
        sorts = [sort for column in self.columns for sort in column.sorts]
        filters["sort"] = paging.choice(request, "sort", sorts)
        return {**filters, "columns": read_columns(request.GET)}

    @property
    def orders(self) -> dict[str, paging.Order]:
        """The orders in which `page` reads the rows, by values of the parameter `sort`."""
        sorts = (sort for column in self.columns for sort in column.sorts.items())
        return {name: order for name, order in sorts if isinstance(order, paging.Order)}

    def is_bounded(self, sort: str) -> bool:
        """Whether the order has the newest rows only (paging.Order)."""
        order = self.orders.get(sort)
        return order is not None and order.bounded

    def page(
        self,
        request: HttpRequest,
        rows: QuerySet[Row],
        most: int,
        root: str,
        filters: Mapping[str, str],
    ) -> tuple[Sequence[Row], str]:
        """A page of the list with the URL `root`, in the chosen order, and the URL of the next page."""
        return self.orders[filters["sort"]].page(
            rows,
            paging.cursor(request),
            most,
            lambda after: with_query(root, **filters, after=after),
            whole=paging.is_file(request),
        )

    def load(
        self, request: HttpRequest, find: FindRows[Item], **urls: Any
    ) -> tuple[dict[str, str], Sequence[Item], dict[str, Any]]:
        """The results of `read`, of `find` (its rows), and of `describe`, to which `urls` are passed."""
        filters = self.read(request)
        rows, next_url = find(request, filters, self.name)
        return filters, rows, self.describe(request, filters, next_url, **urls)

    def describe(
        self,
        request: HttpRequest,
        filters: Mapping[str, str],
        next_url: str = "",
        *,
        args: Sequence[str] = (),
        root: str = "",
        file: str = "",
    ) -> dict[str, Any]:
        """What the templates show of the list: its filters and their chips, its columns with their headings,
        its pager, and the URLs of the list, of its first page, of this page and of the JSON file. `filters`:
        what `read` returned; `root` and `file`: the URLs, if they are not those of the names with `args`."""
        root = root or reverse(self.name, args=args)
        file = file or reverse(f"{self.name}-json", args=args)
        sort, after = filters["sort"], paging.cursor(request, self.cursor)
        bounded = self.is_bounded(sort)
        menu = [field for each in self.menu for field in each.filled(filters)]
        address = [field for each in self.address for field in each.filled(filters) if field.value]

        def url(**changes: str) -> str:
            return with_query(root, **{**filters, **changes})

        first, *others = self.columns
        orders = {each.column.id: each for each in others}
        available = [each.column for each in others]
        chosen = choose_columns(filters["columns"], available, list(orders))
        kept = {each: filters[each] for each in ("sort", "columns") if filters[each]}
        return {
            "root": root,
            "list_url": url(),
            "current_url": with_query(url(), **{self.cursor: after}),
            "pager": {"first": url() if after else "", "next": next_url},
            # Files have all rows. A bounded order has only some of them.
            "json_url": with_query(
                file, **{**filters, "sort": "" if bounded else sort, "columns": ""}
            ),
            "most_sorted": paging.WINDOW if bounded else None,
            "search": self.search and self.search.filled(filters)[0],
            "menu": menu,
            "address": address,
            "chips": chips_of([*menu, *address], lambda each: url(**{each: ""})),
            "clear_url": with_query(root, **kept),
            "kept": kept.items(),
            "headings": [
                each.heading(sort, lambda sort: url(sort=sort))
                for each in (first, *(orders[column.id] for column in chosen.visible))
            ],
            "columns": chosen if others else None,
            # A form does not send the query of its URL.
            "column_fields": [
                *parse_qsl(urlsplit(root).query),
                *(each for each in filters.items() if each[1] and each[0] != "columns"),
            ],
            "default_columns_url": url(columns=""),
            "filtered": any(filters[each] for each in filters if each not in ("sort", "columns")),
        }


def matching(rows: Rows, filters: Mapping[str, str], **lookups: str) -> Rows:
    """The rows that match the named filters, as far as these are set, each by its lookup."""
    return rows.filter(
        **{lookup: filters[name] for name, lookup in lookups.items() if filters[name]}
    )


def format_row_count(count: int, forms: str, most_sorted: int | None = None) -> str:
    """A number of rows that was counted up to COUNTED + 1: "22 entries", "1,000+ entries".
    `most_sorted`: how many of them their order has at most."""
    if count > COUNTED:
        text = f"{COUNTED:,}+ {forms.rpartition(',')[2]}"
        return f"{text}; the newest {most_sorted:,} are sorted" if most_sorted else text
    return plural(count, forms)


def count_rows(
    table: Mapping[str, Any],
    rows_of_page: Sequence[object],
    rows: Callable[[], QuerySet[Any]],
    forms: str,
) -> str:
    """The number of matching rows, counted up to a limit. `table`: what Table.describe returned;
    `rows_of_page`: the rows of this page; `rows` returns those of all pages."""
    more = any(table["pager"].values())
    found = rows()[: COUNTED + 1].count() if more else len(rows_of_page)
    return format_row_count(found, forms, table["most_sorted"])


def member_column(name: str, *, numeric: bool = False) -> Column:
    """The column of the member `name` of a value. A comma separates columns in the address, so it is
    written as `~2`, which no JSON pointer contains."""
    return Column(pointer_of(name).replace(",", "~2"), name, numeric)


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
    texts = [text.replace("\0", "") for text in query.getlist("columns")]
    ids = [each for text in texts for each in text.split(",") if each]
    ids = list(dict.fromkeys(ids))[: MOST_COLUMNS + 1]
    moved = query.get("left", "")
    if moved in ids[1:]:
        at = ids.index(moved)
        ids[at - 1 : at + 1] = [ids[at], ids[at - 1]]
    return ",".join([each for each in ids if each != KEY] or ids[:1])


def choose_columns(
    text: str, available: Iterable[Column], default: Sequence[str], *, members: bool = False
) -> Columns:
    """The columns that `text` (read_columns) names; without it, the default ones. With `members`, a
    member that is not among the available columns can be shown, too: the row may have it."""
    unused = {column.id: column for column in available}
    columns = []
    for identity in text.split(",") if text else default:
        name = member_of(identity) if members else None
        if identity in unused:
            columns.append(unused.pop(identity))
        elif name is not None:
            columns.append(member_column(name))
    return Columns(columns[:MOST_COLUMNS], list(unused.values()), chosen=bool(text))


def is_plain(query: QueryDict) -> bool:
    """Whether the address is the list's own, not that of a form, which has empty and repeated
    parameters."""
    return "left" not in query and all(
        len(texts) == 1 and texts[0] for name, texts in query.lists()
    )
