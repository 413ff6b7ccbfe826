"""Storage: what is stored, where, how fast it grows, what compaction saved."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from state_admin.services.errors import BadRequest
from state_admin.services.storage import (
    Level,
    list_levels,
    measure_namespace,
    measure_thread,
)

from . import pagination
from .bodies import answer
from .endpoint import Endpoint


class StorageList(Endpoint):
    @extend_schema(operation_id="list_storage")
    def get(self, request: Request) -> HttpResponse:
        """What was stored at the last measurement, with a sample for each day: of the workspace, or
        of its namespaces or its largest threads, biggest first."""
        group = self.query["group"]
        page = pagination.read_page(self, position=str)
        levels = list_levels(
            self.actor,
            group=group,
            days=self.query["days"],
            limit=page.limit + 1,
            after=_place(page.after),
        )
        shown, cursor = page.close(levels, lambda last: _position(last))
        return answer({"items": [_show(level) for level in shown], "next_cursor": cursor})


class StorageOfNamespace(Endpoint):
    @extend_schema(operation_id="measure_namespace")
    def get(self, request: Request, namespace: str) -> HttpResponse:
        """What a namespace holds now. `exact` false: it is too large for that, and this is what the
        last sweep found."""
        return answer(_show(measure_namespace(self.actor, namespace, days=self.query["days"])))


class StorageOfThread(Endpoint):
    @extend_schema(operation_id="measure_thread")
    def get(self, request: Request, thread_id: str) -> HttpResponse:
        """What a thread holds now. `exact` false: it is too large for that, and this is what the
        last sweep found."""
        return answer(_show(measure_thread(self.actor, thread_id, days=self.query["days"])))


def _position(level: Level) -> str:
    return f"{level.newest.total_bytes}:{level.newest.pk}"


def _place(position: str | None) -> tuple[int, int] | None:
    if position is None:
        return None
    size, _, pk = position.partition(":")
    if not all(part.isascii() and part.isdigit() and len(part) <= 18 for part in (size, pk)):
        raise BadRequest("cursor must be one that this API gave out")
    return int(size), int(pk)


def _show(level: Level) -> dict[str, Any]:
    newest = level.newest
    return {
        "group": level.group,
        "name": level.name or None,
        "measured_at": newest.measured_at,
        "exact": level.exact,
        "rows": newest.total_rows,
        "bytes": newest.total_bytes,
        "estimated_tokens": newest.estimated_tokens,
        "entries": newest.entries,
        "entry_bytes": newest.entry_bytes,
        "history_rows": newest.history_rows,
        "history_bytes": newest.history_bytes,
        "messages": newest.messages,
        "message_bytes": newest.message_bytes,
        "state_rows": newest.state_rows,
        "state_bytes": newest.state_bytes,
        "growth_bytes_per_day": level.growth,
        "days": [
            {
                "day": sample.day.isoformat(),
                "rows": sample.total_rows,
                "bytes": sample.total_bytes,
                "estimated_tokens": sample.estimated_tokens,
                "tokens_saved": sample.tokens_saved,
                "rows_removed": sample.rows_removed,
            }
            for sample in level.days
        ],
    }
