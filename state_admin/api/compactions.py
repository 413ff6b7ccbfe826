"""Compaction: …/compactions of a thread, /compactions, /compactions/{id}, retry, cancel, undo."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request

from state_admin.models import Compaction, CompactionStatus
from state_admin.services import compactions

from . import pagination
from .bodies import Body, answer, verbatim
from .endpoint import Endpoint


class CompactionBody(Body):
    kind = serializers.ChoiceField(choices=["context"], required=False)


def show_compaction(row: Compaction) -> dict[str, Any]:
    return {
        "id": row.public_id,
        "kind": row.kind,
        "status": row.status,
        "trigger": row.trigger,
        "thread_id": row.thread.public_id if row.thread else None,
        "requested_by": row.requested_by,
        "policy": verbatim(row.policy or "{}"),
        "from_seq": 1 if row.boundary_seq else None,
        "to_seq": row.boundary_seq,
        "tokens_before": row.tokens_before,
        "tokens_after": row.tokens_after,
        "rows_removed": row.rows_removed,
        "summary": row.summary_text or None,
        "summary_message_id": row.summary.public_id if row.summary else None,
        "summarizer": row.summarizer or None,
        "model": row.model or None,
        "cost_usd": row.cost_usd,
        "detail": row.detail,
        "attempts": row.attempts,
        "created_at": row.created_at,
        "started_at": row.started_at,
        "finished_at": row.finished_at,
        "undone_at": row.undone_at,
        "undone_by": row.undone_by or None,
    }


class ThreadCompactions(Endpoint):
    @extend_schema(operation_id="request_compaction", request=CompactionBody)
    def post(self, request: Request, thread_id: str) -> HttpResponse:
        """Ask for a compaction of the thread's context. 202: a worker does it; follow the id."""
        CompactionBody.take(request.data)
        job = compactions.request_compaction(
            actor=self.actor, thread_id=thread_id, reason=self.reason
        )
        found = compactions.find_compaction(self.actor, job.public_id)
        response = answer(show_compaction(found), 202)
        response["Location"] = f"/api/v1/compactions/{job.public_id}"
        return response

    @extend_schema(operation_id="preview_compaction")
    def get(self, request: Request, thread_id: str) -> HttpResponse:
        """What compaction would do to this thread now, and why."""
        preview = compactions.preview_compaction(actor=self.actor, thread_id=thread_id)
        return answer(
            {
                "policy": preview.policy.to_json(),
                "context_tokens": preview.context_tokens,
                "would_fold": vars(preview.plan) if preview.plan else None,
                "skip": preview.skip or None,
            }
        )


class CompactionList(Endpoint):
    @extend_schema(operation_id="list_compactions")
    def get(self, request: Request) -> HttpResponse:
        """Compactions, newest first, by thread or status."""
        pagination.refuse_unknown(request, "thread_id", "status", "limit", "cursor")
        page = pagination.read_page(request)
        rows = Compaction.objects.visible_to(self.actor).order_by("-id")
        rows = rows.select_related("thread", "summary")
        if thread_id := request.query_params.get("thread_id"):
            rows = rows.filter(thread__public_id=thread_id)
        if status := pagination.read_choice(request, "status", CompactionStatus.values):
            rows = rows.filter(status=status)
        if page.after is not None:
            rows = rows.filter(id__lt=page.after)
        shown, cursor = page.close(list(rows[: page.limit + 1]), lambda row: row.pk)
        return answer({"items": [show_compaction(row) for row in shown], "next_cursor": cursor})


class CompactionDetail(Endpoint):
    @extend_schema(operation_id="get_compaction")
    def get(self, request: Request, compaction_id: str) -> HttpResponse:
        return answer(show_compaction(compactions.find_compaction(self.actor, compaction_id)))


class CompactionUndo(Endpoint):
    @extend_schema(operation_id="undo_compaction", request=None)
    def post(self, request: Request, compaction_id: str) -> HttpResponse:
        """Lift the fold: the context shows the original messages again."""
        job = compactions.undo_compaction(
            actor=self.actor, compaction_id=compaction_id, reason=self.reason
        )
        return answer(show_compaction(job))


class CompactionCancel(Endpoint):
    @extend_schema(operation_id="cancel_compaction", request=None)
    def post(self, request: Request, compaction_id: str) -> HttpResponse:
        job = compactions.cancel_compaction(
            actor=self.actor, compaction_id=compaction_id, reason=self.reason
        )
        return answer(show_compaction(job))


class CompactionRetry(Endpoint):
    @extend_schema(operation_id="retry_compaction", request=None)
    def post(self, request: Request, compaction_id: str) -> HttpResponse:
        job = compactions.retry_compaction(
            actor=self.actor, compaction_id=compaction_id, reason=self.reason
        )
        found = compactions.find_compaction(self.actor, job.public_id)
        return answer(show_compaction(found), 202)
