"""The change feed: GET /changes (semantics §9)."""

from __future__ import annotations

import base64
import binascii
import time
from typing import Any

import orjson
from django.conf import settings
from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from state_admin.models import feed_sql
from state_admin.models.feed_sql import FeedFilter, FeedRow
from state_admin.services.errors import BadRequest, Gone

from . import pagination
from .bodies import answer
from .endpoint import Endpoint
from .entries import MAX_WAIT

_POLL = 0.05


class ChangeList(Endpoint):
    @extend_schema(operation_id="list_changes")
    def get(self, request: Request) -> HttpResponse:
        """Changes in commit order behind `after`; with `wait` the answer waits for the first.

        `next_cursor` is always there: pass it as `after` to go on without gap or repeat.
        """
        fields = FeedFilter._fields
        pagination.refuse_unknown(request, *fields, "after", "wait", "limit")
        query = request.query_params
        wanted = FeedFilter(**{name: query.get(name, "") for name in fields})
        after = _open(query["after"]) if query.get("after") else (0, 0)
        limit = pagination.read_limit(request)
        deadline = time.monotonic() + min(pagination.read_int(request, "wait") or 0, MAX_WAIT)
        while True:
            horizon = feed_sql.read_horizon()
            rows = feed_sql.read_feed(
                self.actor, after=after, horizon=horizon, wanted=wanted, limit=limit
            )
            if rows or time.monotonic() >= deadline:
                break
            time.sleep(_POLL)
        # A short page has seen everything below the horizon: the next read need not look again.
        end = (rows[-1].xid, rows[-1].id) if len(rows) == limit else (max(horizon - 1, 0), _LAST)
        items = [show_change(row) for row in rows]
        return answer({"items": items, "next_cursor": _seal(max(end, after))})


_LAST = 2**62


def show_change(row: FeedRow) -> dict[str, Any]:
    return {
        "cursor": _seal((row.xid, row.id)),
        "kind": row.kind,
        "namespace": row.namespace or None,
        "key": row.key or None,
        "thread_id": row.thread or None,
        "run_id": row.run or None,
        "version": row.version,
        "actor": row.actor_name,
        "at": row.at,
    }


def _seal(position: tuple[int, int]) -> str:
    raw = orjson.dumps([*position, int(time.time())])
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _open(cursor: str) -> tuple[int, int]:
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), b"-_", validate=True)
        xid, identity, issued = map(int, orjson.loads(raw))
    except (ValueError, binascii.Error, TypeError):
        raise BadRequest("after must be a cursor that this API gave out") from None
    if issued < time.time() - settings.CHANGE_RETENTION.total_seconds():
        raise Gone(
            "the cursor has expired",
            detail="Changes are kept for a limited time. Read the state, then follow from now.",
        )
    return xid, identity
