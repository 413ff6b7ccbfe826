"""The effective view of a thread, ready for a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from state_admin.domain import boundaries, tokens, values
from state_admin.domain.access import Actor
from state_admin.domain.values import JSON
from state_admin.models import Message

from .effective_views import effective_messages, recent_messages
from .threads import find_thread

INTERRUPTED = "[Tool execution was interrupted]"


@dataclass(frozen=True)
class Context:
    """`messages` are JSON texts in order, `rows` the log's rows behind them (None: a stand-in for a
    result that never came). `left_out` counts those that max_tokens cost."""

    messages: list[str]
    rows: list[Message | None]
    estimated_tokens: int
    message_count: int
    left_out: int
    folded_to_seq: int | None


@dataclass(frozen=True)
class Outline:
    """A context for people: `rows` without bodies, None where a stand-in is. `between`: messages
    behind the leading ones that were only counted; they are in the context when no limit is set."""

    rows: list[Message | None]
    estimated_tokens: int
    count: int
    left_out: int
    between: int


def read_context(*, actor: Actor, thread_id: str, max_tokens: int | None = None) -> Context:
    """The folded beginning as its summary, then the rest; a dangling tool call gets a result that
    says it was interrupted, so that no provider refuses the conversation."""
    thread = find_thread(actor, thread_id)
    view = effective_messages(thread)
    fitted = _trim_view(view, max_tokens)
    texts: list[str] = []
    rows: list[Message | None] = []
    for index in fitted.kept:
        stand_ins = fitted.stand_ins.get(index, ())
        texts += [view[index].body or "{}", *map(values.dump, stand_ins)]
        rows += [view[index], *(None for _ in stand_ins)]
    return Context(
        messages=texts,
        rows=rows,
        estimated_tokens=fitted.tokens,
        message_count=thread.message_count,
        left_out=len(view) - len(fitted.kept),
        folded_to_seq=view[0].folds_to if view else None,
    )


def read_outline(
    *, actor: Actor, thread_id: str, most: int, max_tokens: int | None = None
) -> Outline:
    """What `read_context` would hand out, in lines. Of a long view only the newest `most` messages
    are looked at; the thread's own counts stand for the others."""
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
    """The places of a view that stay, what stands behind some of them, and what all that costs."""

    kept: list[int]
    stand_ins: dict[int, list[JSON]]
    tokens: int


def _trim_view(view: Sequence[Message], max_tokens: int | None) -> _TrimmedView:
    lines = [_line(message) for message in view]
    stand_ins: dict[int, list[JSON]] = {}
    for index, call_id in boundaries.dangling(lines):
        stand_in = {"role": "tool", "tool_call_id": call_id, "content": INTERRUPTED}
        stand_ins.setdefault(index, []).append(stand_in)
        # A call costs what stands in for its result, so that the whole keeps to max_tokens.
        more = tokens.estimate_message(stand_in)
        lines[index] = replace(lines[index], tokens=lines[index].tokens + more)
    kept = list(range(len(view))) if max_tokens is None else boundaries.fit(lines, max_tokens)
    return _TrimmedView(kept, stand_ins, sum(lines[index].tokens for index in kept))


def _line(message: Message) -> boundaries.MessageLine:
    """What the rules of cutting need to know of a message of the effective view."""
    return boundaries.MessageLine(
        seq=message.folds_to or message.seq,
        message_id=message.public_id,
        role=message.role,
        visibility=message.visibility,
        tokens=message.estimated_tokens,
        opens=tuple(message.opens),
        answers=message.answers,
    )
