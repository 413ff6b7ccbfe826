"""Messages: the append-only messages of a thread."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Self

from django.db import models
from django.db.models import F, Func, Q
from django.db.models.functions import Now

from .fields import RawJSON
from .threads import Thread

if TYPE_CHECKING:
    from .snapshots import Revision


class Visibility(models.TextChoices):
    ALL = "all"
    INTERNAL = "internal"


class MessageRole(models.TextChoices):
    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class MessageExcerpt(Func):
    """The first `length` characters of a message's text, computed in the database so that lists of
    large messages transfer little. A large body is not parsed: the text after its first "content"
    is used."""

    template = (
        "CASE WHEN octet_length(%(expressions)s::text) < 200000 THEN"
        " left(coalesce(%(expressions)s #>> '{content,0,text}', %(expressions)s ->> 'content', ''),"
        " %(length)s) ELSE coalesce(substring(left(%(expressions)s::text, 2000)"
        " from '\"(?:content|text)\"\\s*:\\s*\"((?:[^\"\\\\]|\\\\.){1,250})'), '') END"
    )
    arity = 1
    output_field = models.TextField()

    def __init__(self, body: F, *, length: int = 300) -> None:
        super().__init__(body, length=length)


class ToolCalls(Func):
    """The first tool calls of a body, in OpenAI's format or that of the reference implementation:
    objects with `id`, `name`, the beginning of `arguments` as JSON text, and `size`, the characters
    of all of it. None for a message without calls."""

    template = (
        "CASE WHEN %(calling)s THEN (SELECT jsonb_agg(jsonb_build_object('id', call ->> 'id',"
        " 'name', coalesce(call #>> '{function,name}', call ->> 'name', 'tool'),"
        " 'arguments', left(arguments, %(length)s), 'size', length(arguments)))"
        " FROM (SELECT call, coalesce(call #>> '{function,arguments}', call ->> 'arguments', '')"
        " AS arguments FROM json_array_elements(%(expressions)s -> 'tool_calls') AS call"
        " LIMIT %(most)s) calls) END"
    )
    arity = 1
    output_field = models.JSONField()

    def __init__(self, body: F, *, length: int, most: int) -> None:
        calling = "messages.role = 'assistant' AND messages.opens <> '[]'"
        super().__init__(body, calling=calling, length=length, most=most)


class ToolFailed(Func):
    """Whether a tool message reports that the tool failed."""

    template = (
        "(messages.role = 'tool' AND (%(expressions)s ->> 'is_error' = 'true'"
        " OR %(expressions)s ->> 'status' = 'error'))"
    )
    arity = 1
    output_field = models.BooleanField()


class MessageQuerySet(models.QuerySet["Message"]):
    def in_order(self) -> Self:
        return self.order_by("seq")

    def external(self) -> Self:
        return self.filter(visibility=Visibility.ALL)

    def active_summaries(self, at: datetime | None = None) -> Self:
        """The summaries that were not undone, or were not yet at a time."""
        lifted_later = Q(fold_lifted_at__gt=at) if at else Q()
        return self.filter(Q(fold_lifted_at=None) | lifted_later, folds_to__isnull=False)

    def at_revision(self, revision: Revision) -> Self:
        """The messages that the thread had at one of its revisions."""
        return self.filter(thread=revision.thread_id, seq__lte=revision.message_count)

    def lines(self) -> Any:
        """All columns but the bodies, with the beginning of each as `excerpt`."""
        return self.defer("body").annotate(excerpt=MessageExcerpt(F("body")))

    def traced(self, length: int, most: int) -> Any:
        """As `lines`, with excerpts of `length` characters, up to `most` tool calls of each message
        as `called`, and `failed`, whether a tool failed."""
        body = F("body")
        return self.defer("body").annotate(
            excerpt=MessageExcerpt(body, length=length),
            called=ToolCalls(body, length=length, most=most),
            failed=ToolFailed(body),
        )


class Message(models.Model):
    """One message. `body` is the message as it was sent, unknown fields included."""

    thread = models.ForeignKey(
        Thread, on_delete=models.CASCADE, related_name="messages", db_index=False
    )
    seq = models.IntegerField()
    public_id = models.CharField(max_length=128, db_collation="C")
    role = models.CharField(max_length=16, choices=MessageRole.choices)
    visibility = models.CharField(max_length=8, choices=Visibility.choices, default=Visibility.ALL)
    body = RawJSON()
    # What compaction reads instead of the body: ids of tool calls that the message opens and
    # answers.
    opens = models.JSONField(default=list, db_default=[])
    answers = models.CharField(max_length=256, null=True, blank=True)  # noqa: DJ001 (absent is not "")
    estimated_tokens = models.IntegerField()
    run = models.ForeignKey(
        "Run", null=True, blank=True, on_delete=models.SET_NULL, related_name="+", db_index=False
    )
    # A summary replaces the messages [folds_from, folds_to] until it is undone.
    folds_from = models.IntegerField(null=True, blank=True)
    folds_to = models.IntegerField(null=True, blank=True)
    # The user message in that range that is retained after the summary (ADR 5), or NULL.
    fold_carries = models.IntegerField(null=True, blank=True)
    fold_lifted_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = MessageQuerySet.as_manager()

    class Meta:
        db_table = "messages"
        constraints = [
            # The messages in order; pages by seq.
            models.UniqueConstraint(fields=["thread", "seq"], name="messages_seq_unique"),
            # A repeated message id is refused.
            models.UniqueConstraint(fields=["thread", "public_id"], name="messages_id_unique"),
        ]
        indexes = [
            # The marks of a thread's effective view.
            models.Index(
                fields=["thread", "seq"],
                name="messages_summaries",
                condition=Q(folds_to__isnull=False),
            ),
        ]
