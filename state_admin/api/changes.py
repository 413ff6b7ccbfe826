"""The change feed: GET /changes. The stream is in streams.py."""

from __future__ import annotations

from typing import NamedTuple

from django.http import HttpResponse

from state_admin.contract import changes as contract
from state_admin.contract.base import Page
from state_admin.domain import changes
from state_admin.models import feed_sql
from state_admin.models.feed_sql import FeedFilter, FeedRow, Position
from state_admin.rest.bodies import answer
from state_admin.rest.endpoint import Endpoint, handles
from state_admin.rest.long_polling import answer_news
from state_admin.services.errors import BadRequest
from state_admin.services.feed_cursors import open_cursor
from state_admin.streams import cursors, events


@handles(contract.LIST_CHANGES)
def list_changes(call: Endpoint) -> HttpResponse:
    filters = read_filter(call.query)
    cursor, limit = call.query.cursor, call.query.limit

    def look() -> _ChangePage:
        end = feed_sql.read_end(call.actor.workspace_id)
        after = open_cursor(cursor, end)[0] if cursor else Position()
        rows = feed_sql.read_page(
            call.actor, after=after, until=end.position, filters=filters, limit=limit
        )
        if len(rows) == limit:
            return _ChangePage(list(rows), cursors.seal(rows[-1].position, rows[-1].at))
        # A short page has reached the end: the next read starts there.
        return _ChangePage(list(rows), cursors.seal(max(end.position, after), end.at))

    return answer_news(
        call,
        filters,
        look=look,
        is_news=lambda found: bool(found.rows),
        show=lambda found: answer(
            Page(items=list(map(events.show, found.rows)), next_cursor=found.next)
        ),
    )


class _ChangePage(NamedTuple):
    rows: list[FeedRow]
    next: str


def read_filter(query: contract.FeedQuery) -> FeedFilter:
    """Return the filters of a query. Raises BadRequest."""
    return FeedFilter(
        namespace=query.namespace or "",
        key=query.key or "",
        prefix=query.prefix or "",
        thread=query.thread_id or "",
        run=query.run_id or "",
        kinds=read_kinds("kind", query.kind) if query.kind else (),
    )


def read_kinds(parameter: str, glob: str) -> tuple[str, ...]:
    """Return the kinds of changes that a glob matches. Raises BadRequest if there are none."""
    if kinds := changes.kinds_matching(glob):
        return kinds
    nouns = sorted({kind.partition(".")[0] for kind in changes.KINDS})
    raise BadRequest(
        f"{parameter} matches no kind of change: {glob}",
        hint="Give a kind such as entry.put, or a glob such as entry.*. Kinds begin with one"
        f" of: {', '.join(nouns)}.",
        parameter=parameter,
    )
