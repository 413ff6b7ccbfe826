"""Builds the context of a thread for a model from its effective view."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from state_admin.domain import boundaries, tokens, values
from state_admin.domain.access import Actor
from state_admin.domain.values import JSON
from state_admin.models import Message

from .effective_views import effective_messages, recent_messages
from .errors import TooLarge
from .threads import find_thread, thread_not_found

# Of the messages of one context: more than models accept, images included.
MAX_CONTEXT_BYTES: Final = 32 << 20
INTERRUPTED = "[Tool execution was interrupted]"


@dataclass(frozen=True)
class Context:
    """A context. `messages` are JSON texts in order. `left_out` is the number of messages omitted
    because of max_tokens."""

    messages: list[str]
    estimated_tokens: int
    message_count: int
    left_out: int
    folded_to_seq: int | None


@dataclass(frozen=True)
class Outline:
    """A context for display. `rows` have no bodies; None: a placeholder for a missing tool result.
    `between` is the number of messages after the leading ones that were counted but not read. They
    are part of the context only if no token limit is set."""

    rows: list[Message | None]
    estimated_tokens: int
    count: int
    left_out: int
    between: int


def read_context(*, actor: Actor, thread_id: str, max_tokens: int | None = None) -> Context:
    """Return the summary of the summarized messages, then the other messages. Each tool call
    without a result gets the result INTERRUPTED, because providers reject conversations without
    one. Raises NotFound, and TooLarge if the messages have more than MAX_CONTEXT_BYTES."""
    thread = find_thread(actor, thread_id)
    view = effective_messages(thread, bodies=False)
    fitted = _trim_view(view, max_tokens)
    bodies = _read_bodies([view[index] for index in fitted.kept])
    if len(bodies) < len(fitted.kept):  # deleted since the view was read
        raise thread_not_found(thread_id)
    texts: list[str] = []
    for index in fitted.kept:
        stand_ins = fitted.stand_ins.get(index, ())
        texts += [bodies.get(view[index].pk) or "{}", *map(values.dump, stand_ins)]
    return Context(
        messages=texts,
        estimated_tokens=fitted.tokens,
        message_count=thread.message_count,
        left_out=len(view) - len(fitted.kept),
        folded_to_seq=view[0].folds_to if view else None,
    )


def _read_bodies(rows: Sequence[Message]) -> dict[int, str | None]:
    """The bodies of rows of `effective_messages`, by primary key. Raises TooLarge."""
    size = sum(getattr(row, "body_bytes", 0) for row in rows)
    if size > MAX_CONTEXT_BYTES:
        raise TooLarge(
            f"the context has {size:,} bytes; the limit is {MAX_CONTEXT_BYTES:,} bytes",
            hint=(
                "Send max_tokens to leave out the oldest messages, or compact the thread. The list of "
                "messages has all of them, in pages."
            ),
            limit=MAX_CONTEXT_BYTES,
        )
    return dict(Message.objects.filter(pk__in=[row.pk for row in rows]).values_list("pk", "body"))


def read_outline(
    *, actor: Actor, thread_id: str, most: int, max_tokens: int | None = None
) -> Outline:
    """Return what `read_context` would return, without bodies. Reads only the newest `most`
    messages of a long view, and takes counts from the thread for the others. Raises NotFound."""
    thread = find_thread(actor, thread_id)
    view, between = recent_messages(thread, most)
    fitted = _trim_view(view, max_tokens)
    rows: list[Message | None] = []
    for index in fitted.kept:
        rows += [view[index], *(None for _ in fitted.stand_ins.get(index, ()))]
    left_out = len(view) - len(fitted.kept)
    if left_out:
        left_out, between = left_out + between, 0
    whole = between and max_tokens is None
    return Outline(
        rows=rows,
        estimated_tokens=thread.context_tokens if whole else fitted.tokens,
        count=len(rows) + (between if whole else 0),
        left_out=left_out,
        between=between,
    )


@dataclass(frozen=True)
class _TrimmedView:
    """The indexes of the messages that are kept, the placeholders to insert after a message, and
    the estimated tokens of all."""

    kept: list[int]
    stand_ins: dict[int, list[JSON]]
    tokens: int


def _trim_view(view: Sequence[Message], max_tokens: int | None) -> _TrimmedView:
    lines = [_line(message) for message in view]
    stand_ins: dict[int, list[JSON]] = {}
    for index, call_id in boundaries.dangling(lines):
        stand_in = {"role": "tool", "tool_call_id": call_id, "content": INTERRUPTED}
        stand_ins.setdefault(index, []).append(stand_in)
        # Count the placeholder as part of its call, so that the total stays within max_tokens.
        more = tokens.estimate_message(stand_in)
        lines[index] = replace(lines[index], tokens=lines[index].tokens + more)
    kept = list(range(len(view))) if max_tokens is None else boundaries.fit(lines, max_tokens)
    return _TrimmedView(kept, stand_ins, sum(lines[index].tokens for index in kept))


def _line(message: Message) -> boundaries.MessageLine:
    """Return the properties of a message that domain/boundaries.py needs."""
    return boundaries.MessageLine(
        seq=message.folds_to or message.seq,
        message_id=message.public_id,
        role=message.role,
        visibility=message.visibility,
        tokens=message.estimated_tokens,
        opens=tuple(message.opens),
        answers=message.answers,
    )
