"""Who did what: GET /audit."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from state_admin.domain.access import Role
from state_admin.models import AuditRow

from . import pagination
from .bodies import answer
from .endpoint import Endpoint

_FILTERS = {
    "namespace": "namespace",
    "key": "key",
    "thread_id": "thread",
    "run_id": "run",
    "action": "action",
    "request_id": "request_id",
    "actor": "actor_name",
}


def show_audit(row: AuditRow) -> dict[str, Any]:
    return {
        "at": row.at,
        "action": row.action,
        "namespace": row.namespace or None,
        "key": row.key or None,
        "thread_id": row.thread or None,
        "run_id": row.run or None,
        "version": row.version,
        "actor": row.actor_name,
        "actor_kind": row.actor_kind,
        "reason": row.reason,
        "request_id": row.request_id,
        "detail": row.detail,
    }


class AuditList(Endpoint):
    roles = {"GET": Role.ADMIN}

    @extend_schema(operation_id="list_audit")
    def get(self, request: Request) -> HttpResponse:
        """The audit, newest first, by any of its columns."""
        page = pagination.read_page(self)
        rows = AuditRow.objects.visible_to(self.actor).order_by("-id")
        for name, column in _FILTERS.items():
            if wanted := self.query.get(name):
                rows = rows.filter(**{column: wanted})
        if page.after is not None:
            rows = rows.filter(id__lt=page.after)
        shown, cursor = page.close(list(rows[: page.limit + 1]), lambda row: row.pk)
        return answer({"items": [show_audit(row) for row in shown], "next_cursor": cursor})
