"""Compaction: …/compactions of a thread, /compactions, /compactions/{id}, retry, cancel, undo."""

from __future__ import annotations

from django.http import HttpResponse

from state_admin.contract import compactions as contract
from state_admin.contract.messages import Message
from state_admin.domain.access import Actor
from state_admin.models import Compaction
from state_admin.rest.bodies import answer
from state_admin.rest.endpoint import Endpoint, handles
from state_admin.rest.pagination import answer_rows
from state_admin.services import compactions, retention


@handles(contract.REQUEST_COMPACTION)
def request_compaction(call: Endpoint, thread_id: str) -> HttpResponse:
    kind = call.body(contract.CompactionRequest).kind
    request = retention.request_snapshots if kind == "snapshot" else compactions.request_compaction
    job = request(**call.author, thread_id=thread_id)
    return _preview(call.actor, thread_id, kind) if call.dry_run else _accepted(call.actor, job)


@handles(contract.PREVIEW_COMPACTION)
def preview_compaction(call: Endpoint, thread_id: str) -> HttpResponse:
    return _preview(call.actor, thread_id, call.query.kind)


def _accepted(actor: Actor, job: Compaction) -> HttpResponse:
    compaction = compactions.find_compaction(actor, job.public_id)
    response = answer(contract.Compaction.of(compaction), 202)
    response["Location"] = f"/api/v1/compactions/{job.public_id}"
    return response


def _preview(actor: Actor, thread_id: str, kind: str) -> HttpResponse:
    if kind == "snapshot":
        snapshots = retention.preview_snapshots(actor=actor, thread_id=thread_id)
        return answer(contract.SnapshotPreview.of_thread(snapshots))
    preview = compactions.preview_compaction(actor=actor, thread_id=thread_id)
    return answer(contract.CompactionPreview.of(preview))


@handles(contract.REQUEST_HISTORY_COMPACTION)
def request_history_compaction(call: Endpoint, namespace: str) -> HttpResponse:
    job = retention.request_history(**call.author, namespace=namespace)
    if call.dry_run:
        return preview_history_compaction(call, namespace)
    return _accepted(call.actor, job)


@handles(contract.PREVIEW_HISTORY_COMPACTION)
def preview_history_compaction(call: Endpoint, namespace: str) -> HttpResponse:
    weight = retention.preview_history(actor=call.actor, namespace=namespace)
    return answer(contract.HistoryPreview.of(weight))


@handles(contract.LIST_COMPACTIONS)
def list_compactions(call: Endpoint) -> HttpResponse:
    given = call.given(thread_id="thread__public_id", kind="kind", status="status")
    rows = Compaction.objects.visible_to(call.actor).filter(**given)
    rows = rows.select_related("thread", "namespace", "summary")
    return answer_rows(call, rows, contract.Compaction.of)


@handles(contract.GET_COMPACTION)
def get_compaction(call: Endpoint, compaction_id: str) -> HttpResponse:
    return answer(contract.Compaction.of(compactions.find_compaction(call.actor, compaction_id)))


@handles(contract.LIST_FOLDED_MESSAGES)
def list_folded_messages(call: Endpoint, compaction_id: str) -> HttpResponse:
    job = compactions.find_compaction(call.actor, compaction_id)
    rows = compactions.folded_messages(job).select_related("run")
    return answer_rows(call, rows, Message.of, by="seq")


@handles(contract.UNDO_COMPACTION)
def undo_compaction(call: Endpoint, compaction_id: str) -> HttpResponse:
    job = compactions.undo_compaction(**call.author, compaction_id=compaction_id)
    return answer(contract.Compaction.of(job))


@handles(contract.CANCEL_COMPACTION)
def cancel_compaction(call: Endpoint, compaction_id: str) -> HttpResponse:
    job = compactions.cancel_compaction(**call.author, compaction_id=compaction_id)
    return answer(contract.Compaction.of(job))


@handles(contract.RETRY_COMPACTION)
def retry_compaction(call: Endpoint, compaction_id: str) -> HttpResponse:
    job = compactions.retry_compaction(**call.author, compaction_id=compaction_id)
    compaction = compactions.find_compaction(call.actor, job.public_id)
    return answer(contract.Compaction.of(compaction), 202)
