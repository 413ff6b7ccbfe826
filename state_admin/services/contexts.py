"""The effective view of a thread, ready for a model (semantics §8)."""

from __future__ import annotations

from dataclasses import dataclass

from state_admin.domain import boundaries, tokens, values
from state_admin.domain.access import Actor
from state_admin.models import Message

from .compactions import line
from .messages import effective_messages
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


def read_context(*, actor: Actor, thread_id: str, max_tokens: int | None = None) -> Context:
    """The folded beginning as its summary, then the rest; a dangling tool call gets a result that
    says it was interrupted, so that no provider refuses the conversation."""
    thread = find_thread(actor, thread_id)
    view = effective_messages(thread)
    lines = [line(message) for message in view]
    kept = list(range(len(view)))
    if max_tokens is not None:
        kept = boundaries.fit(lines, max_tokens)
    shown = [view[index] for index in kept]
    texts: list[str] = []
    rows: list[Message | None] = []
    total = 0
    interrupted: dict[int, list[str]] = {}
    for index, call_id in boundaries.dangling([lines[index] for index in kept]):
        interrupted.setdefault(index, []).append(call_id)
    for index, message in enumerate(shown):
        texts.append(message.body or "{}")
        rows.append(message)
        total += message.estimated_tokens
        for call_id in interrupted.get(index, ()):
            stand_in = {"role": "tool", "tool_call_id": call_id, "content": INTERRUPTED}
            texts.append(values.dump(stand_in))
            rows.append(None)
            total += tokens.estimate_message(stand_in)
    return Context(
        messages=texts,
        rows=rows,
        estimated_tokens=total,
        message_count=thread.message_count,
        left_out=len(view) - len(kept),
        folded_to_seq=view[0].folds_to if view else None,
    )
