"""Keyset pagination: reading cursors and filters from the query string, and the URL of the next
page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Any, Final, TypeVar

from django.db.models import Model, Q, QuerySet
from django.db.models.expressions import Combinable
from django.http import HttpRequest, QueryDict

from state_admin.domain import moments, values
from state_admin.domain.numbers import read_whole
from state_admin.domain.values import Raw
from state_admin.services.errors import BadRequest, Invalid, check_storable

T = TypeVar("T")
Row = TypeVar("Row", bound=Model)
Rows = TypeVar("Rows", bound="QuerySet[Any]")
# How many of its newest rows a list can order by a column without an index.
WINDOW: Final = 10_000
# How many pages without a match a search continues by itself, before a person has to.
MOST_CONTINUED: Final = 10


def whole_number(request: HttpRequest, name: str) -> int | None:
    """A number in the query string, None if it is missing. BadRequest for anything else."""
    return read_number(name, request.GET.get(name, ""))


def next_continuation(request: HttpRequest) -> int:
    """The number of the page with which a search without a match continues by itself, 0 if a person
    decides. It is in a header, so that the URL is that of the page."""
    number = (read_whole(request.headers.get("Continued", "")) or 0) + 1
    return number if number <= MOST_CONTINUED else 0


def read_number(name: str, text: str) -> int | None:
    """The parameter `name` as a number, None for "". BadRequest for anything else, and for a number
    beyond bigint."""
    return read_required_number(name, text) if text else None


def read_required_number(name: str, text: str) -> int:
    """As read_number, with BadRequest for "" too."""
    number = read_whole(text)
    if number is None:
        raise BadRequest(f"{name} must be a whole number")
    return number


def number_in(query: QueryDict, name: str, default: str = "") -> int:
    """As read_required_number, of a parameter or field of a form."""
    return read_required_number(name, query.get(name, default))


def read_moment(name: str, text: str) -> datetime:
    """The parameter `name` as a time, in UTC unless it has an offset. BadRequest if it is
    malformed."""
    moment = moments.read(text, assume_utc=True)
    if moment is None:
        raise BadRequest(f"{name} must be a time like 2026-01-31T18:30")
    return moment


def read_list(text: str, items: str) -> list[Any]:
    """A list as JSON that a form carries. `items` says of what. BadRequest for anything else."""
    refusal = f"not a list of {items}"
    value = parse_json_field(text, refusal).value
    if not isinstance(value, list):
        raise BadRequest(refusal)
    return value


def parse_json_field(text: str, refusal: str) -> Raw:
    """Parse a hidden form field that contains JSON. Raises BadRequest with the message `refusal` if the
    text is not JSON or cannot be stored."""
    try:
        raw = parse_typed_json(text, "the field")
        check_storable(raw, "the field")
    except Invalid as bad:
        raise BadRequest(refusal) from bad
    return raw


def parse_typed_json(text: str, what: str, place: str = "") -> Raw:
    """Parse JSON that a user has typed. `what` names it in messages, `place` is its place in the body.
    Raises Invalid: with a hint if it is not JSON, with the faults if it contains something that JSON
    permits and Commonhold does not."""
    try:
        return values.read(text)
    except values.MalformedJSON as bad:
        raise Invalid(f"{what} is not valid JSON", hint=str(bad)) from bad
    except values.RefusedJSON as refused:
        faults = [fault.inside(place) for fault in refused.faults]
        raise Invalid(f"{what} cannot be stored", faults) from refused


def choice(request: HttpRequest, name: str, choices: Sequence[str]) -> str:
    """One of `choices` from the query string, else "": invalid values are ignored."""
    text = request.GET.get(name, "")
    return text if text in choices else ""


def text(request: HttpRequest, name: str) -> str:
    """A text of the query string without NUL, which PostgreSQL cannot compare."""
    return request.GET.get(name, "").replace("\0", "").strip()


def last_text(query: QueryDict, name: str) -> str:
    """The last text of a parameter that is not empty, "" without one: a form may have several fields of
    a name."""
    return ([""] + [text for text in query.getlist(name) if text])[-1].replace("\0", "")


def cut(
    rows: Sequence[T] | QuerySet[Any, T], most: int, url: Callable[[T], str]
) -> tuple[list[T], str]:
    """The first `most` rows, of which one more is fetched, and the URL of the next page, or ""."""
    found = list(rows[: most + 1])
    return found[:most], url(found[most - 1]) if len(found) > most else ""


def newest(rows: Rows, *, whole: bool) -> Rows:
    """The newest WINDOW ones. With `whole`, BadRequest instead if there are more."""
    keys = rows.order_by("-pk").values_list("pk", flat=True)[WINDOW - 1 : WINDOW + 1]
    first, *more = list(keys) or [None]
    if more and whole:
        raise BadRequest(
            f"this order supports at most {WINDOW:,} rows, and more match",
            hint="Leave out sort to get all rows, or filter them.",
        )
    return rows.filter(pk__gte=first) if more else rows


def is_file(request: HttpRequest) -> bool:
    """Whether the list is requested as a file (web/lists.py), which must not leave out rows."""
    name = request.resolver_match and request.resolver_match.url_name
    return bool(name) and str(name).endswith(("-json", "-csv"))


def fetch_in_order(rows: QuerySet[Row], keys: Sequence[int]) -> list[Row]:
    """The rows with these primary keys, which a query has sorted without their joins: PostgreSQL would
    join all rows before it sorts them. A row that was deleted meanwhile is left out."""
    found = rows.in_bulk(keys)
    return [found[key] for key in keys if key in found]


@dataclass(frozen=True)
class Order:
    """An order of rows by `field`, which is never NULL, then by primary key. `value` computes it,
    if it is not a column. `read` converts the value in a cursor.

    Without an index, the database sorts all rows for each page. If there may be many, the order is
    `bounded`: it has the newest WINDOW rows, and a file with more is refused."""

    field: str = "pk"
    descending: bool = False
    read: Callable[[str], Any] = str
    value: Combinable | None = None
    bounded: bool = False

    @property
    def direction(self) -> str:
        """The value of aria-sort."""
        return "descending" if self.descending else "ascending"

    def page(
        self,
        rows: QuerySet[Row],
        after: str,
        most: int,
        url: Callable[[str], str],
        *,
        whole: bool = False,
    ) -> tuple[Sequence[Row], str]:
        """The page after the row of the cursor `after`, and the URL of the next page. BadRequest for
        an invalid cursor and, with `whole`, if more rows match than the order supports."""
        ordered = self._following(newest(rows, whole=whole) if self.bounded else rows, after)
        if self.bounded:
            ordered = ordered.select_related(None).only("pk" if self.value else self.field)
        found, next_url = cut(ordered, most, lambda row: url(self._cursor(row)))
        if not self.bounded:
            return found, next_url
        return fetch_in_order(rows, [row.pk for row in found]), next_url

    def _following(self, rows: QuerySet[Row], after: str) -> QuerySet[Row]:
        """The rows in this order, from the one after the cursor."""
        if self.value:
            rows = rows.annotate(**{self.field: self.value})
        sign, beyond = ("-", "lt") if self.descending else ("", "gt")
        value, _, pk = ("", "", after) if self.field == "pk" else after.rpartition("~")
        behind = Q(**{f"pk__{beyond}": read_required_number("after", pk)}) if after else Q()
        if self.field == "pk":
            return rows.filter(behind).order_by(f"{sign}pk")
        if after:
            last = {self.field: self.read(value)}
            behind = Q(**{f"{self.field}__{beyond}": last[self.field]}) | Q(**last) & behind
        return rows.filter(behind).order_by(f"{sign}{self.field}", f"{sign}pk")

    def _cursor(self, row: Model) -> str:
        if self.field == "pk":
            return str(row.pk)
        value = attrgetter(self.field.replace("__", "."))(row)
        text = value.isoformat() if isinstance(value, datetime) else value
        return f"{text}~{row.pk}"


def read_key(text: str) -> int:
    return read_required_number("after", text)


def read_time(text: str) -> datetime:
    return read_moment("after", text)


OLDEST = Order()
NEWEST = Order(descending=True)
# The orders of the column of a time, by values of the parameter `sort`.
BY_AGE = {"": NEWEST, "oldest": OLDEST}


def upwards(
    name: str, field: str, read: Callable[[str], Any] = read_key, value: Combinable | None = None
) -> dict[str, Order]:
    """The bounded orders of a column by `field`, at first from the smallest."""
    return {
        name: Order(field, read=read, value=value, bounded=True),
        f"-{name}": Order(field, descending=True, read=read, value=value, bounded=True),
    }


def downwards(
    name: str, field: str, read: Callable[[str], Any] = read_key, value: Combinable | None = None
) -> dict[str, Order]:
    """The same, at first from the largest."""
    return dict(reversed(upwards(name, field, read, value).items()))


def by_column(field: str, name: str | None = None) -> dict[str, Order]:
    """The orders of a column of text that has an index, at first from A. `name`: of the first in the
    parameter `sort`; "" for the usual order of the list."""
    first = field if name is None else name
    return {first: Order(field), f"-{first or field}": Order(field, descending=True)}


# The orders of the column of the last change of rows with `updated_at`.
BY_CHANGE = {
    "-changed": Order("updated_at", descending=True, read=read_time),
    "changed": Order("updated_at", read=read_time),
}


def cursor(request: HttpRequest, name: str = "after") -> str:
    """The cursor of an Order in the query string."""
    return request.GET.get(name, "").replace("\0", "")
