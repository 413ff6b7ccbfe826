"""Keyset pagination: a cursor contains the last row's key and is bound to the filters of its
list."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import orjson
from django.db.models import QuerySet
from django.http import HttpResponse

from state_admin.contract import base as contract
from state_admin.models import creation_times
from state_admin.models.large_columns import large_columns, stored_bytes, without_related
from state_admin.services.batching import split_by_size
from state_admin.services.errors import BadRequest
from state_admin.services.feed_cursors import bad_cursor
from state_admin.services.pointers import cursor_in_body

from .bodies import answer

if TYPE_CHECKING:
    from .endpoint import Endpoint

# The maximum number of rows that a page of a list without an index for its filters examines.
WINDOW = 20_000
# The fields of the index of a list of a workspace, newest first.
_NEWEST = ["workspace", "-id"]


@dataclass(frozen=True)
class Page:
    """The requested page: the number of rows, and the position after which it starts (None: the
    beginning)."""

    limit: int
    after: Any
    filters: str

    def close(
        self, rows: Sequence[Any], position: Callable[[Any], Any]
    ) -> tuple[Sequence[Any], str | None]:
        """Return the rows of this page, from `limit + 1` fetched ones, and the cursor to the next
        page."""
        if len(rows) <= self.limit:
            return rows, None
        rows = rows[: self.limit]
        return rows, self.cursor_to(position(rows[-1]))

    def cursor_to(self, position: Any) -> str:
        """Return the cursor to the rows after `position`."""
        sealed = orjson.dumps([self.filters, position])
        return base64.urlsafe_b64encode(sealed).decode().rstrip("=")


def read_page(view: Endpoint, position: type[int] | type[str] = int) -> Page:
    """Return the page that the query requests; `position` is the type of the sort key. Raises
    BadRequest for an invalid cursor, or one of other filters."""
    parameters = view.request.query_params.lists()
    filters = _fingerprint(
        sorted((k, v) for k, vs in parameters if k not in ("cursor", "limit") for v in vs),
        view.request.path,
    )
    query = view.query
    after = _open(query.cursor, filters, position) if query.cursor is not None else None
    return Page(query.limit, after, filters)


def answer_rows(
    call: Endpoint,
    rows: QuerySet[Any],
    show: Callable[[Any], Any],
    *,
    by: str = "id",
    created: str = "created_at",
    within: QuerySet[Any] | None = None,
    owner: Mapping[str, int] | None = None,
) -> HttpResponse:
    """Return one page of `rows`, each converted by `show`; see fetch_page."""
    page_rows, cursor = fetch_page(call, rows, by=by, created=created, within=within, owner=owner)
    return answer(contract.Page(items=list(map(show, page_rows)), next_cursor=cursor))


def fetch_page(
    call: Endpoint,
    rows: QuerySet[Any],
    *,
    by: str = "id",
    created: str = "created_at",
    within: QuerySet[Any] | None = None,
    owner: Mapping[str, int] | None = None,
) -> tuple[Sequence[Any], str | None]:
    """Return the rows of one page and the cursor to the next. The rows are in the `order` of the
    query by the unique column `by`, and within its time range by the column `created`.

    `within`: the rows without their filters, if these have no index. A page then examines at most
    WINDOW of them, and may have fewer rows than its limit although there are more.

    `owner`: of the rows, if it is not the workspace; see creation_times.id_at.

    A page ends early if its rows have more than MOST_BYTES of text and JSON. Of related rows these are
    not read.
    """
    query = call.query
    rows = without_related(rows)
    if owner is None and any(index.fields == _NEWEST for index in rows.model._meta.indexes):
        owner = {"workspace_id": call.actor.workspace_id}
    page = read_page(call, int if by in ("id", "seq", "version", "number") else str)
    descends = query.order == "desc"

    def remaining(rows: QuerySet[Any]) -> QuerySet[Any]:
        times = (created, query.created_after, query.created_before)
        if by == "id" and owner is not None:
            rows = creation_times.within(rows, *times, owner)
        else:
            rows = creation_times.between(rows, *times)
        if page.after is not None:
            rows = rows.filter(**{f"{by}__{'lt' if descends else 'gt'}": page.after})
        return rows.order_by(f"-{by}" if descends else by)

    end = None
    if within is not None:
        end = remaining(within).values_list(by, flat=True)[WINDOW - 1 : WINDOW].first()
        if end is not None:
            rows = rows.filter(**{f"{by}__{'gte' if descends else 'lte'}": end})
    found, cursor = _fetch_sized(page, remaining(rows), by)
    if cursor is None and end is not None:
        cursor = page.cursor_to(end)
    return found, cursor


def _fetch_sized(page: Page, rows: QuerySet[Any], by: str) -> tuple[Sequence[Any], str | None]:
    """Return the first rows of `rows` that are a page: MOST_BYTES of text and JSON, or one row with
    more. The sizes are read first, because the driver keeps all rows of a statement in memory."""
    if not large_columns(rows):
        return page.close(list(rows[: page.limit + 1]), attrgetter(by.replace("__", ".")))
    sized = list(rows.values_list(by, stored_bytes(rows))[: page.limit + 1])
    keys = next(split_by_size(sized, page.limit), [])
    found = list(rows.filter(**{f"{by}__in": keys})) if keys else []
    return found, page.cursor_to(keys[-1]) if len(keys) < len(sized) else None


def page_of(*, limit: int | None, cursor: str | None, filters: Any, path: str) -> Page:
    """Return the page that a body requests; the list is ordered by an integer."""
    sealed = _fingerprint(filters, path)
    with cursor_in_body():
        after = _open(cursor, sealed, int) if cursor else None
    return Page(limit or contract.DEFAULT_LIMIT, after, sealed)


def _fingerprint(filters: Any, path: str) -> str:
    return hashlib.sha256(orjson.dumps([path, filters])).hexdigest()[:12]


def _open(cursor: str, filters: str, kind: type[int] | type[str]) -> Any:
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        made_for, position = orjson.loads(base64.b64decode(padded, b"-_", validate=True))
        if type(position) is not kind or "\0" in str(position):
            raise TypeError
    except (ValueError, binascii.Error, TypeError):
        raise bad_cursor() from None
    if made_for != filters:
        raise BadRequest(
            "cursor does not match the filters",
            hint="Send the same filters as for the first page.",
            parameter="cursor",
        )
    return position
