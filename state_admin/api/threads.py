"""Threads and their messages: /threads, /threads/{id}, …/fork, …/lineage, …/messages, …/context."""

from __future__ import annotations

from typing import Any

import orjson
from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from state_admin.domain import values
from state_admin.domain.access import Actor, Role
from state_admin.domain.moments import timestamp
from state_admin.domain.patches import merge_patch
from state_admin.domain.values import Raw
from state_admin.models import Message, Thread, Visibility
from state_admin.services import forks, messages, threads
from state_admin.services.contexts import read_context
from state_admin.services.errors import BadRequest, Invalid

from . import etags, pagination
from .batches import read_operations, show_outcome
from .bodies import Body, RawField, Text, Whole, answer, no_content, verbatim
from .endpoint import Endpoint

_JSON = "application/json"
_MERGE = "application/merge-patch+json"


class ThreadBody(Body):
    id = Text(required=False)
    resource_id = Text(required=False, allow_blank=True, max_length=128)
    parent_thread_id = Text(required=False, allow_null=True)
    title = Text(required=False, allow_blank=True, max_length=512)
    metadata = RawField(required=False)
    compaction_policy = RawField(required=False)


class ThreadChangeBody(Body):
    resource_id = Text(required=False, allow_blank=True, max_length=128)
    parent_thread_id = Text(required=False, allow_null=True)
    title = Text(required=False, allow_blank=True, max_length=512)
    metadata = RawField(required=False)
    compaction_policy = RawField(required=False)


class ForkBody(Body):
    id = Text(required=False)
    revision = Whole(required=False, min_value=0)
    message_count = Whole(required=False, min_value=0)
    title = Text(required=False, allow_blank=True, max_length=512)
    metadata = RawField(required=False)


class MessagesBody(Body):
    messages = RawField()
    expected_message_count = Whole(required=False, min_value=0)
    operations = RawField(required=False)


def show_thread(row: Thread, actor: Actor) -> dict[str, Any]:
    """The thread as `actor` may see it: one outside a token's prefixes does not exist, be it the
    parent or where this one was forked from."""
    parent = row.parent.public_id if row.parent else None
    return {
        "id": row.public_id,
        "resource_id": row.resource_id or None,
        "parent_thread_id": parent if parent and actor.sees_thread(parent) else None,
        "title": row.title,
        "metadata": verbatim(row.metadata or "{}"),
        "compaction_policy": verbatim(row.policy or "{}"),
        "version": row.version,
        "revision": row.revision,
        "message_count": row.message_count,
        "context_tokens": row.context_tokens,
        "active_run_id": row.active_run.public_id if row.active_run else None,
        "latest_run_id": row.latest_run.public_id if row.latest_run else None,
        "forked_from": _origin(row, actor),
        "created_at": row.created_at,
        "updated_at": row.updated_at,
    }


def _origin(row: Thread, actor: Actor) -> dict[str, Any] | None:
    origin: dict[str, Any] | None = row.forked_from
    return origin if origin and actor.sees_thread(origin["thread_id"]) else None


def show_message(row: Message) -> dict[str, Any]:
    """The message as it was sent, with the server's own fields before it."""
    body: str = row.body or "{}"
    sent = values.load(body)
    ours: dict[str, Any] = {
        "id": row.public_id,
        "seq": row.seq,
        "visibility": row.visibility,
        "run_id": row.run.public_id if row.run else None,
        "created_at": timestamp(row.created_at),
        "estimated_tokens": row.estimated_tokens,
    }
    if row.folds_to is not None:
        lifted = timestamp(row.fold_lifted_at) if row.fold_lifted_at else None
        ours["compaction"] = {
            "from_seq": row.folds_from,
            "to_seq": row.folds_to,
            "undone_at": lifted,
        }
    ours = {name: value for name, value in ours.items() if name not in sent}
    # Spliced as text, so that the body keeps every byte it came with.
    return verbatim(orjson.dumps(ours).decode()[:-1] + "," + body.lstrip()[1:])  # type: ignore[return-value]


class ThreadList(Endpoint):
    @extend_schema(operation_id="list_threads")
    def get(self, request: Request) -> HttpResponse:
        """Threads, newest first; by resource, parent, root or what they were forked from."""
        page = pagination.read_page(self)
        query = self.query
        rows = Thread.objects.visible_to(self.actor).order_by("-id")
        root = self.query["root"]
        if root and query.get("parent_thread_id"):
            raise BadRequest("choose root or parent_thread_id, not both")
        if query.get("resource_id"):
            rows = rows.filter(resource_id=query["resource_id"])
        if parent := query.get("parent_thread_id"):
            rows = rows.filter(parent__public_id=parent)
            rows = rows if self.actor.sees_thread(parent) else rows.none()
        if query.get("prefix"):
            rows = rows.filter(public_id__startswith=query["prefix"])
        if origin := query.get("forked_from"):
            rows = rows.forks_of(origin) if self.actor.sees_thread(origin) else rows.none()
        if root:
            rows = rows.roots_for(self.actor)
        if page.after is not None:
            rows = rows.filter(id__lt=page.after)
        rows = rows.whole()
        shown, cursor = page.close(list(rows[: page.limit + 1]), lambda row: row.pk)
        return answer(
            {"items": [show_thread(row, self.actor) for row in shown], "next_cursor": cursor}
        )

    @extend_schema(operation_id="create_thread", request=ThreadBody)
    def post(self, request: Request) -> HttpResponse:
        """Make a thread. The same id and content again: 200 with what is stored."""
        body = ThreadBody.take(request.data)
        row, created = threads.create_thread(
            actor=self.actor,
            thread_id=body.get("id"),
            resource_id=body.get("resource_id", ""),
            parent_thread_id=body.get("parent_thread_id"),
            title=body.get("title", ""),
            metadata=read_object(body, "metadata"),
            policy=read_policy(body),
            reason=self.reason,
        )
        return answer(show_thread(row, self.actor), 201 if created else 200, etag=row.version)


class ThreadDetail(Endpoint):
    roles = {"DELETE": Role.ADMIN}
    conditional = ("PATCH", "DELETE")

    @extend_schema(operation_id="get_thread")
    def get(self, request: Request, thread_id: str) -> HttpResponse:
        row = threads.read_thread(self.actor, thread_id)
        return answer(show_thread(row, self.actor), etag=row.version)

    @extend_schema(
        operation_id="change_thread", request=dict.fromkeys((_JSON, _MERGE), ThreadChangeBody)
    )
    def patch(self, request: Request, thread_id: str) -> HttpResponse:
        """Change title, metadata, resource, parent or compaction policy, as one new version; with
        `If-Match` only while the thread is at that version. As `application/merge-patch+json` the
        given metadata and policy merge with the stored ones (RFC 7396); else they replace them."""
        merging = (request.content_type or "").partition(";")[0].strip().lower() == _MERGE
        body = ThreadChangeBody.take(request.data)
        row = threads.change_thread(
            actor=self.actor,
            thread_id=thread_id,
            title=body.get("title"),
            resource_id=body.get("resource_id"),
            metadata=read_object(body, "metadata") if "metadata" in body else None,
            policy=read_object(body, "compaction_policy") if "compaction_policy" in body else None,
            parent_thread_id=body.get("parent_thread_id"),
            reparent="parent_thread_id" in body,
            merge=merge_patch if merging else None,
            expected_version=etags.expected_version(request),
            reason=self.reason,
        )
        return answer(show_thread(row, self.actor), etag=row.version)

    @extend_schema(operation_id="delete_thread")
    def delete(self, request: Request, thread_id: str) -> HttpResponse:
        """Delete with all that belongs to it. `children=detach|reject|cascade`; `dry_run=true`
        counts what it would delete; with `If-Match` only while the thread is at that version, with
        `expected_revision` only while its state is at that revision."""
        dry_run = self.query["dry_run"]
        report = threads.delete_thread(
            actor=self.actor,
            thread_id=thread_id,
            children=self.query["children"],
            dry_run=dry_run,
            expected_version=etags.expected_version(request),
            expected_revision=self.query.get("expected_revision"),
            reason=self.reason,
        )
        return answer({"would_delete": vars(report)}) if dry_run else no_content()


class ThreadFork(Endpoint):
    @extend_schema(operation_id="fork_thread", request=ForkBody)
    def post(self, request: Request, thread_id: str) -> HttpResponse:
        """Copy state at `revision` and the first `message_count` messages into a new thread that
        shares nothing with this one. The same id and content again: 200 with what is stored."""
        body = ForkBody.take(request.data)
        row, created = forks.fork_thread(
            actor=self.actor,
            thread_id=thread_id,
            fork_id=body.get("id"),
            revision=body.get("revision"),
            message_count=body.get("message_count"),
            title=body.get("title"),
            metadata=read_object(body, "metadata") if "metadata" in body else None,
            reason=self.reason,
        )
        return answer(show_thread(row, self.actor), 201 if created else 200, etag=row.version)


class ThreadLineage(Endpoint):
    @extend_schema(operation_id="read_lineage")
    def get(self, request: Request, thread_id: str) -> HttpResponse:
        """The threads above this one, nearest first; how many are below it and copied from it."""
        lineage = threads.read_lineage(actor=self.actor, thread_id=thread_id)
        return answer(
            {
                "thread_id": thread_id,
                "ancestors": lineage.ancestors,
                "child_count": lineage.children,
                "forked_from": _origin(lineage.thread, self.actor),
                "fork_count": lineage.forks,
            }
        )


class ThreadMessages(Endpoint):
    conditional = ("POST",)

    @extend_schema(operation_id="list_messages")
    def get(self, request: Request, thread_id: str) -> HttpResponse:
        """The log. `after`, `before` (seq), `order`, `visibility=external|internal|all`, `run_id`."""
        thread = threads.find_thread(self.actor, thread_id)
        page = pagination.read_page(self)
        newest_first = self.query["order"] == "desc"
        rows = Message.objects.filter(thread=thread).order_by("-seq" if newest_first else "seq")
        after, before = (self.query.get(name) for name in ("after", "before"))
        if after is not None:
            rows = rows.filter(seq__gt=after)
        if before is not None:
            rows = rows.filter(seq__lt=before)
        if page.after is not None:
            rows = rows.filter(**{"seq__lt" if newest_first else "seq__gt": page.after})
        visibility = self.query["visibility"]
        if visibility != "all":
            wanted = Visibility.ALL if visibility == "external" else Visibility.INTERNAL
            rows = rows.filter(visibility=wanted)
        if run_id := self.query.get("run_id"):
            rows = rows.filter(run__public_id=run_id)
        found = list(rows.select_related("run")[: page.limit + 1])
        shown, cursor = page.close(found, lambda row: row.seq)
        items = [show_message(row) for row in shown]
        return answer({"items": items, "next_cursor": cursor})

    @extend_schema(operation_id="append_messages", request=MessagesBody)
    def post(self, request: Request, thread_id: str) -> HttpResponse:
        """Append messages; `expected_message_count` guards against a log that moved, `If-Match`
        against a state that did. `operations` on entries, as of an atomic batch, land together
        with them or not at all."""
        body = MessagesBody.take(request.data)
        made = messages.append_messages(
            actor=self.actor,
            thread_id=thread_id,
            messages=read_list(body["messages"], "messages"),
            expected_message_count=body.get("expected_message_count"),
            expected_revision=etags.expected_version(request),
            operations=read_operations(body["operations"], self.reason)
            if "operations" in body
            else (),
            reason=self.reason,
        )
        shown = {
            "message_count": made.thread.message_count,
            "messages": [{"id": identity, "seq": seq} for identity, seq in made.placed],
        }
        if made.outcomes:
            shown["results"] = [show_outcome(outcome) for outcome in made.outcomes]
        return answer(shown, 201)


class ThreadContext(Endpoint):
    @extend_schema(operation_id="read_context")
    def get(self, request: Request, thread_id: str) -> HttpResponse:
        """What a model should see: folded beginning as summary, then the rest; within
        `max_tokens`, never cut between a tool call and its results."""
        limit = self.query.get("max_tokens")
        context = read_context(actor=self.actor, thread_id=thread_id, max_tokens=limit)
        return answer(
            {
                "thread_id": thread_id,
                "messages": [verbatim(text) for text in context.messages],
                "estimated_tokens": context.estimated_tokens,
                "message_count": context.message_count,
                "left_out": context.left_out,
                "folded_to_seq": context.folded_to_seq,
            }
        )


def read_list(raw: Raw, name: str) -> list[Raw]:
    if not isinstance(raw.value, list):
        raise Invalid(f"{name} must be a list", [values.Fault(f"/{name}", "not a list")])
    return values.items(raw)


def read_object(body: dict[str, Any], name: str) -> Raw:
    """A JSON object of the body, or {}; refused when it is anything else or cannot be stored."""
    raw: Raw = body.get(name, threads.EMPTY_OBJECT)
    if not isinstance(raw.value, dict):
        raise Invalid(f"{name} must be an object", [values.Fault(f"/{name}", "not an object")])
    values.check(raw, f"/{name}")
    return raw


def read_policy(body: dict[str, Any]) -> Raw:
    """A compaction policy laid over the workspace's: only the fields it names."""
    raw = read_object(body, "compaction_policy")
    threads.check_policy(raw, "/compaction_policy")
    return raw
