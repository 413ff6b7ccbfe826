"""Threads and their messages: /threads, /threads/{id}, …/fork, …/lineage, …/messages, …/context."""

from __future__ import annotations

from contextlib import suppress

from django.http import HttpResponse
from msgspec import UNSET, UnsetType

from state_admin.contract import messages as message_contract
from state_admin.contract import threads as contract
from state_admin.contract.batches import BatchResult
from state_admin.contract.types import json_of
from state_admin.domain import values
from state_admin.domain.patches import merge_patch
from state_admin.domain.values import Raw
from state_admin.models import Message, Thread, Visibility
from state_admin.rest import etags
from state_admin.rest.bodies import answer, no_content
from state_admin.rest.endpoint import Endpoint, handles
from state_admin.rest.items import answer_items
from state_admin.rest.pagination import answer_rows
from state_admin.services import forks, messages, threads
from state_admin.services.contexts import read_context as read_messages
from state_admin.services.errors import BadRequest, Invalid, NotFound

from .batches import read_operations


@handles(contract.LIST_THREADS)
def list_threads(call: Endpoint) -> HttpResponse:
    query, actor = call.query, call.actor
    given = call.given(resource_id="resource_id", prefix="public_id__startswith")
    rows = Thread.objects.visible_to(actor).whole().defer("created_from").filter(**given)
    if query.root and query.parent_thread_id:
        raise BadRequest("choose root or parent_thread_id, not both")
    if parent := query.parent_thread_id:
        rows = rows.filter(parent__public_id=parent)
        rows = rows if actor.sees_thread(parent) else rows.none()
    if origin := query.forked_from:
        rows = rows.forks_of(origin) if actor.sees_thread(origin) else rows.none()
    if query.root:
        rows = rows.roots_for(actor)
    if query.text:
        rows = threads.filter_by_title(rows, threads.read_words(query.text))
    return answer_rows(call, rows, lambda row: contract.Thread.of(row, actor))


@handles(contract.CREATE_THREAD)
def create_thread(call: Endpoint) -> HttpResponse:
    body = call.body(contract.NewThread)
    policy = read_object(body.compaction_policy, "compaction_policy")
    threads.check_policy(policy, "/compaction_policy")
    row, created = threads.create_thread(
        **call.author,
        thread_id=body.id or None,
        resource_id=body.resource_id,
        parent_thread_id=body.parent_thread_id,
        title=body.title,
        metadata=read_object(body.metadata, "metadata"),
        policy=policy,
    )
    return _answer_thread(call, row, created=created)


def _answer_thread(call: Endpoint, row: Thread, *, created: bool = False) -> HttpResponse:
    document = contract.Thread.of(row, call.actor)
    return answer(document, 201 if created else 200, etag=row.version)


@handles(contract.GET_THREAD)
def get_thread(call: Endpoint, thread_id: str) -> HttpResponse:
    return _answer_thread(call, threads.read_thread(call.actor, thread_id))


@handles(contract.CHANGE_THREAD)
def change_thread(call: Endpoint, thread_id: str) -> HttpResponse:
    media_type = (call.request.content_type or "").partition(";")[0].strip().lower()
    fields = call.body(contract.ThreadChange).given()
    for name in ("metadata", "compaction_policy"):
        if name in fields:
            fields[name] = read_object(fields[name], name)
    row = threads.change_thread(
        **call.author,
        thread_id=thread_id,
        policy=fields.pop("compaction_policy", None),
        reparent="parent_thread_id" in fields,
        merge=merge_patch if media_type == contract.MERGE_PATCH else None,
        expected_version=etags.expected_version(call.request),
        **fields,
    )
    return _answer_thread(call, row)


@handles(contract.DELETE_THREAD)
def delete_thread(call: Endpoint, thread_id: str) -> HttpResponse:
    report = threads.delete_thread(
        **call.author,
        thread_id=thread_id,
        children=call.query.children,
        dry_run=call.dry_run,
        expected_version=etags.expected_version(call.request),
        expected_revision=call.query.expected_revision,
    )
    if not call.dry_run:
        return no_content()
    return answer(contract.ThreadDeletion(would_delete=report))


@handles(contract.DELETE_THREADS)
def delete_threads(call: Endpoint) -> HttpResponse:
    body = call.body(contract.ThreadSelection)

    def delete(thread_id: str) -> int:
        with suppress(NotFound):  # deleted already
            threads.delete_thread(
                **call.author, thread_id=thread_id, children=body.children, dry_run=call.dry_run
            )
        return 204

    return answer_items(body.ids, delete)


@handles(contract.FORK_THREAD)
def fork_thread(call: Endpoint, thread_id: str) -> HttpResponse:
    fields = call.body(contract.NewFork).given()
    if "metadata" in fields:
        fields["metadata"] = read_object(fields["metadata"], "metadata")
    row, created = forks.fork_thread(
        **call.author, thread_id=thread_id, fork_id=fields.pop("id", None), **fields
    )
    return _answer_thread(call, row, created=created)


@handles(contract.READ_LINEAGE)
def read_lineage(call: Endpoint, thread_id: str) -> HttpResponse:
    return answer(threads.read_lineage(actor=call.actor, thread_id=thread_id))


@handles(message_contract.LIST_MESSAGES)
def list_messages(call: Endpoint, thread_id: str) -> HttpResponse:
    query = call.query
    rows = Message.objects.filter(thread=threads.find_thread(call.actor, thread_id))
    if query.after is not None:
        rows = rows.filter(seq__gt=query.after)
    if query.before is not None:
        rows = rows.filter(seq__lt=query.before)
    if query.visibility != "all":
        external = query.visibility == "external"
        rows = rows.filter(visibility=Visibility.ALL if external else Visibility.INTERNAL)
    if query.run_id:
        rows = rows.filter(run__public_id=query.run_id)
    return answer_rows(call, rows.select_related("run"), message_contract.Message.of, by="seq")


@handles(message_contract.APPEND_MESSAGES)
def append_messages(call: Endpoint, thread_id: str) -> HttpResponse:
    body = call.body(message_contract.NewMessages)
    operations = () if body.operations is UNSET else read_operations(body.operations, call.reason)
    appended = messages.append_messages(
        **call.author,
        thread_id=thread_id,
        messages=body.messages,
        expected_message_count=body.given().get("expected_message_count"),
        expected_revision=etags.expected_version(call.request),
        operations=operations,
    )
    document = message_contract.Appended(
        message_count=appended.thread.message_count,
        messages=[
            message_contract.AppendedMessage(id=name, seq=seq) for name, seq in appended.placed
        ],
    )
    if appended.outcomes:
        document.results = list(map(BatchResult.of, appended.outcomes))
    return answer(document, 201)


@handles(message_contract.READ_CONTEXT)
def read_context(call: Endpoint, thread_id: str) -> HttpResponse:
    context = read_messages(actor=call.actor, thread_id=thread_id, max_tokens=call.query.max_tokens)
    return answer(
        message_contract.Context(
            thread_id=thread_id,
            messages=list(map(json_of, context.messages)),
            estimated_tokens=context.estimated_tokens,
            message_count=context.message_count,
            left_out=context.left_out,
            folded_to_seq=context.folded_to_seq,
        )
    )


def read_object(raw: Raw | UnsetType, name: str, within: str = "") -> Raw:
    """Return the JSON object `name` of the part of the body at `within`, {} if absent. Raises Invalid
    for anything else, or if it cannot be stored."""
    if raw is UNSET:
        return values.EMPTY_OBJECT
    if not isinstance(raw.value, dict):
        raise Invalid(
            f"{name} must be an object", [values.Fault(f"{within}/{name}", "not an object")]
        )
    values.check(raw, f"{within}/{name}")
    return raw
