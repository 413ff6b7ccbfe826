"""Compaction: …/compactions of a thread, /compactions, /compactions/{id}, retry, cancel, undo."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request

from state_admin.domain.access import Actor, Role
from state_admin.models import Compaction, CompactionKind
from state_admin.models.retention_sql import Weight
from state_admin.services import compactions, retention

from . import pagination
from .bodies import Body, answer, verbatim
from .endpoint import Endpoint
from .threads import show_message

_OF_THREADS = [CompactionKind.CONTEXT.value, CompactionKind.SNAPSHOT.value]


class CompactionBody(Body):
    kind = serializers.ChoiceField(choices=_OF_THREADS, required=False)


def show_compaction(row: Compaction) -> dict[str, Any]:
    return {
        "id": row.public_id,
        "kind": row.kind,
        "status": row.status,
        "phase": row.phase or None,
        "trigger": row.trigger,
        "thread_id": row.thread.public_id if row.thread else None,
        "namespace": row.namespace.name if row.namespace else None,
        "requested_by": row.requested_by,
        "reason": row.reason,
        "policy": verbatim(row.policy or "{}"),
        "from_seq": 1 if row.boundary_seq else None,
        "to_seq": row.boundary_seq,
        "carried_seq": row.summary.fold_carries if row.summary else None,
        "tokens_before": row.tokens_before,
        "tokens_after": row.tokens_after,
        "to_revision": row.to_revision,
        "rows_before": row.rows_before,
        "rows_after": row.rows_after,
        "rows_removed": row.rows_removed,
        "bytes_before": row.bytes_before,
        "bytes_after": row.bytes_after,
        "summary": row.summary_text or None,
        "summary_message_id": row.summary.public_id if row.summary else None,
        "summarizer": row.summarizer or None,
        "provider": row.provider or None,
        "model": row.model or None,
        "instructions": row.instructions or None,
        "input_tokens": row.input_tokens,
        "output_tokens": row.output_tokens,
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
        """Ask for a compaction of the thread's context, or with `kind: snapshot` of its old snapshots:
        an admin's, because they do not come back. 202: a worker does it; follow the id."""
        kind = CompactionBody.take(request.data).get("kind")
        ask = (
            retention.request_snapshots
            if kind == CompactionKind.SNAPSHOT
            else compactions.request_compaction
        )
        job = ask(actor=self.actor, thread_id=thread_id, reason=self.reason)
        if self.query["dry_run"]:
            return _preview(self.actor, thread_id, kind)
        return _taken_on(self.actor, job)

    @extend_schema(operation_id="preview_compaction")
    def get(self, request: Request, thread_id: str) -> HttpResponse:
        """What compaction would do to this thread now, and why: `would_fold` or `skip`. The summary
        can have `tokens_after` at most, so `savings_ratio` is the least; `problem` says why nobody
        could write it now, `warning` what to know before. `?kind=snapshot`: how many snapshots and rows would go."""
        return _preview(self.actor, thread_id, self.query["kind"])


def _taken_on(actor: Actor, job: Compaction) -> HttpResponse:
    response = answer(show_compaction(compactions.find_compaction(actor, job.public_id)), 202)
    response["Location"] = f"/api/v1/compactions/{job.public_id}"
    return response


def _preview(actor: Actor, thread_id: str, kind: str | None) -> HttpResponse:
    if kind == CompactionKind.SNAPSHOT:
        return _show_snapshots(actor, thread_id)
    preview = compactions.preview_compaction(actor=actor, thread_id=thread_id)
    return answer(
        {
            "policy": preview.policy.to_json(),
            "sources": preview.effective.sources,
            "context_tokens": preview.context_tokens,
            "would_fold": vars(preview.plan) if preview.plan else None,
            "tokens_after": preview.tokens_after,
            "savings_ratio": preview.savings_ratio,
            "skip": preview.skip or None,
            "problem": preview.problem or None,
            "warning": preview.warning or None,
        }
    )


def _show_snapshots(actor: Actor, thread_id: str) -> HttpResponse:
    preview = retention.preview_snapshots(actor=actor, thread_id=thread_id)
    return answer(
        {
            "keep_last": preview.keep_last,
            "keep_every": preview.keep_every,
            "snapshots": preview.snapshots,
            "snapshots_removed": preview.dropped,
            **_show_weight(preview.weight),
        }
    )


def _show_weight(weight: Weight) -> dict[str, int]:
    return {
        "rows": weight.rows,
        "rows_removed": weight.rows_removed,
        "bytes": weight.bytes,
        "bytes_removed": weight.bytes_removed,
    }


class NamespaceCompactions(Endpoint):
    roles = {"POST": Role.ADMIN}

    @extend_schema(operation_id="request_history_compaction", request=None)
    def post(self, request: Request, namespace: str) -> HttpResponse:
        """Remove the versions that the namespace's `history` no longer keeps. They do not come back.
        202: a worker does it; follow the id."""
        job = retention.request_history(actor=self.actor, namespace=namespace, reason=self.reason)
        return self.get(request, namespace) if self.query["dry_run"] else _taken_on(self.actor, job)

    @extend_schema(operation_id="preview_history_compaction")
    def get(self, request: Request, namespace: str) -> HttpResponse:
        """How many versions the namespace's entries have, and how many would go now."""
        weight = retention.preview_history(actor=self.actor, namespace=namespace)
        return answer(_show_weight(weight))


class CompactionList(Endpoint):
    @extend_schema(operation_id="list_compactions")
    def get(self, request: Request) -> HttpResponse:
        """Compactions, newest first, by thread, kind or status."""
        page = pagination.read_page(self)
        rows = Compaction.objects.visible_to(self.actor).order_by("-id")
        rows = rows.select_related("thread", "namespace", "summary")
        if thread_id := self.query.get("thread_id"):
            rows = rows.filter(thread__public_id=thread_id)
        if kind := self.query.get("kind"):
            rows = rows.filter(kind=kind)
        if status := self.query.get("status"):
            rows = rows.filter(status=status)
        if page.after is not None:
            rows = rows.filter(id__lt=page.after)
        shown, cursor = page.close(list(rows[: page.limit + 1]), lambda row: row.pk)
        return answer({"items": [show_compaction(row) for row in shown], "next_cursor": cursor})


class CompactionDetail(Endpoint):
    @extend_schema(operation_id="get_compaction")
    def get(self, request: Request, compaction_id: str) -> HttpResponse:
        return answer(show_compaction(compactions.find_compaction(self.actor, compaction_id)))


class CompactionMessages(Endpoint):
    @extend_schema(operation_id="list_folded_messages")
    def get(self, request: Request, compaction_id: str) -> HttpResponse:
        """The messages that the summary stands for, as they are in the log, in order."""
        page = pagination.read_page(self)
        job = compactions.find_compaction(self.actor, compaction_id)
        rows = compactions.folded_messages(job).select_related("run")
        if page.after is not None:
            rows = rows.filter(seq__gt=page.after)
        shown, cursor = page.close(list(rows[: page.limit + 1]), lambda row: row.seq)
        return answer({"items": [show_message(row) for row in shown], "next_cursor": cursor})


class CompactionUndo(Endpoint):
    @extend_schema(operation_id="undo_compaction", request=None)
    def post(self, request: Request, compaction_id: str) -> HttpResponse:
        """Lift the fold: the context shows the original messages again. 409 with `later` while a
        later compaction stands on it."""
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
