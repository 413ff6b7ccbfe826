"""The Context tab: the messages that a model would see now, beside the stored messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from state_admin.models import Message, Thread
from state_admin.models.messages import MessageRole
from state_admin.services.contexts import INTERRUPTED, read_outline

from . import paging
from .addresses import thread_url
from .conversations import is_folded
from .htmx import Request

PAGE = 60
_MOST_LINES = 200
# How many of the newest messages the tab reads at most.
_MOST_READ = 500


@dataclass(frozen=True)
class ContextLine:
    """A message as one line. `seq` 0: a placeholder that is not stored."""

    seq: int
    role: str
    text: str
    tokens: int | None = None
    calls: int = 0
    summary_to: int | None = None
    folded_into: int | None = None
    lifted: bool = False
    url: str = ""
    lit: bool = False


def show(request: Request, thread: Thread) -> dict[str, Any]:
    limit = paging.whole_number(request, "max_tokens") or None
    outline = read_outline(
        actor=request.actor, thread_id=thread.public_id, most=_MOST_READ, max_tokens=limit
    )
    log = Message.objects.filter(thread=thread)
    standing = list(log.active_summaries().lines().order_by("-folds_to", "-seq"))
    before = paging.whole_number(request, "before")
    rows = log.lines().order_by("-seq")
    rows = rows.filter(seq__lt=before) if before else rows

    def older(last: Message) -> str:
        return thread_url(thread.public_id, tab="context", before=last.seq, max_tokens=limit)

    messages, older_url = paging.cut(rows, PAGE, older)
    return {
        "view": outline,
        "limit": limit,
        # None is the placeholder for a missing tool result.
        "lines": [
            ContextLine(0, MessageRole.TOOL, INTERRUPTED)
            if row is None
            else line_of(thread, row, ())
            for row in outline.rows[-_MOST_LINES:]
        ],
        "lines_before": max(len(outline.rows) - _MOST_LINES, 0) + outline.between,
        "log": [line_of(thread, row, standing) for row in reversed(messages)],
        "older_url": older_url,
        "newest_url": thread_url(thread.public_id, tab="context") if before else "",
        "standing": standing[0] if standing else None,
        "form_url": thread_url(thread.public_id),
    }


def line_of(thread: Thread, row: Any, standing: Sequence[Message]) -> ContextLine:
    """A row of `lines()` as one line. `standing` are the summaries in use; the first covers the
    most messages and decides which are marked as replaced."""
    top = standing[0] if standing else None
    return ContextLine(
        row.seq,
        row.role,
        row.excerpt.removeprefix("<conversation-summary>\n"),
        row.estimated_tokens,
        len(row.opens),
        summary_to=row.folds_to,
        folded_into=top.seq if top and is_folded(row, top) else None,
        lifted=row.fold_lifted_at is not None,
        url=thread_url(thread.public_id, message=row.seq),
    )
