"""The change feed: GET /changes (semantics §9). The stream is in streams.py."""

from __future__ import annotations

from typing import Any, NamedTuple

from django.conf import settings
from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from state_admin.domain import changes
from state_admin.models import feed_sql
from state_admin.models.feed_sql import FeedEnd, FeedFilter, FeedRow, Position
from state_admin.services.errors import BadRequest, Gone
from state_admin.streams import cursors, events

from .bodies import answer
from .endpoint import Endpoint
from .waiting import answer_news


class ChangeList(Endpoint):
    @extend_schema(operation_id="list_changes")
    def get(self, request: Request) -> HttpResponse:
        """Changes in commit order behind `after`; with `wait` the answer waits for the first.

        `next_cursor` is always there: pass it as `after` to go on without gap or repeat.
        """
        wanted = read_filter(self.query)
        cursor = self.query.get("after", "")
        limit = self.query["limit"]

        def look() -> _Page:
            end = feed_sql.read_end(self.actor.workspace_id)
            after = open_cursor(cursor, end) if cursor else Position()
            rows = feed_sql.read_page(
                self.actor, after=after, until=end.position, wanted=wanted, limit=limit
            )
            if len(rows) == limit:
                return _Page(list(rows), cursors.seal(rows[-1].position, rows[-1].at))
            # A short page has seen everything: the next read need not look again.
            return _Page(list(rows), cursors.seal(max(end.position, after), end.at))

        return answer_news(
            self,
            wanted,
            look=look,
            is_news=lambda page: bool(page.rows),
            show=lambda page: answer(
                {"items": [events.show(row) for row in page.rows], "next_cursor": page.next}
            ),
        )


class _Page(NamedTuple):
    rows: list[FeedRow]
    next: str


def read_filter(query: dict[str, Any]) -> FeedFilter:
    """The filters of a query. BadRequest when `kind` names no kind of change."""
    glob = query.get("kind", "")
    kinds = changes.kinds_matching(glob)
    if glob and not kinds:
        nouns = sorted({kind.partition(".")[0] for kind in changes.KINDS})
        raise BadRequest(
            f"kind matches no kind of change: {glob}",
            hint="Give a kind such as entry.put, or a glob such as entry.*. Kinds begin with one"
            f" of: {', '.join(nouns)}.",
            parameter="kind",
        )
    names = ("namespace", "key", "prefix", "thread", "run")
    return FeedFilter(**{name: query.get(name, "") for name in names}, kinds=kinds if glob else ())


def open_cursor(cursor: str, end: FeedEnd) -> Position:
    """Where a reader with `cursor` goes on. BadRequest when it is not ours, Gone when expired."""
    try:
        return cursors.resume(cursor, end, settings.CHANGE_RETENTION)
    except cursors.BadCursor:
        raise BadRequest("after must be a cursor that this API gave out") from None
    except cursors.ExpiredCursor:
        raise Gone(
            "the cursor has expired",
            hint="Changes are kept for a limited time. Read the state, then follow from now.",
        ) from None
