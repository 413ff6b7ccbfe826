"""The change feed as server-sent events: GET /changes/stream.

Django checks the request like any other, so errors are the same. The stream itself is sent on the
event loop, by state_admin/streams. Who may listen and for how long: services/listeners.py.
"""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse

from state_admin.contract import changes as contract
from state_admin.models import feed_sql
from state_admin.rest.endpoint import Endpoint, handles
from state_admin.rest.event_streams import begin_stream, continue_stream
from state_admin.rest.long_polling import hub_of
from state_admin.services.feed_cursors import open_cursor
from state_admin.services.listeners import CLOSED, check_live
from state_admin.streams import events
from state_admin.streams.stream import ChangeStream

from .changes import read_filter

# Changes in the response of a server that cannot stream.
_FINITE = 200


def _describe(why: str) -> dict[str, Any]:
    return CLOSED[why].document()


@handles(contract.STREAM_CHANGES)
def stream_changes(call: Endpoint) -> HttpResponse:
    request, filters = call.request, read_filter(call.query)
    check_live(call.actor)
    cursor = request.META.get("HTTP_LAST_EVENT_ID") or call.query.cursor
    end = feed_sql.read_end(call.actor.workspace_id)
    after = open_cursor(cursor, end) if cursor else None
    response = begin_stream()
    hub = hub_of(request)
    if hub is None:
        start, at = after or (end.position, end.at)
        rows = feed_sql.read_page(
            call.actor, after=start, until=end.position, filters=filters, limit=_FINITE
        )
        parts = [
            events.hello(start, at),
            *map(events.change, rows),
            events.closed(_describe("page")),
        ]
        response.content = b"".join(parts)
    elif request.method == "GET":
        continue_stream(call, response, ChangeStream(hub, call.actor, filters, after, _describe))
    return response
