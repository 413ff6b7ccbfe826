"""The Context tab: what a model would see now, beside the raw log it was made from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from state_admin.domain import values
from state_admin.models import Message, Thread
from state_admin.services.contexts import read_context
from state_admin.services.messages import effective_messages

from . import paging
from .addresses import thread_url
from .conversations import is_folded
from .htmx import Request

PAGE = 60
_MOST_SEEN = 200
_SAID = 300


@dataclass(frozen=True)
class Line:
    """A message in a line. `seq` 0: a stand-in that is not in the log."""

    seq: int
    role: str
    said: str
    tokens: int | None = None
    calls: int = 0
    summary_to: int | None = None
    folded_into: int | None = None
    lifted: bool = False
    url: str = ""


def show(request: Request, thread: Thread) -> dict[str, Any]:
    limit = paging.whole_number(request, "max_tokens") or None
    context = read_context(actor=request.actor, thread_id=thread.public_id, max_tokens=limit)
    seen = list(_seen(thread, context.messages, effective_messages(thread)))
    log = Message.objects.filter(thread=thread)
    standing = list(log.standing_summaries().lines().order_by("-folds_to", "-seq"))
    before = paging.whole_number(request, "before")
    rows = log.lines().order_by("-seq")
    rows = list((rows.filter(seq__lt=before) if before else rows)[: PAGE + 1])

    def older(last: Message) -> str:
        return thread_url(thread.public_id, tab="context", before=last.seq, max_tokens=limit)

    shown, older_url = paging.cut(rows, PAGE, older)
    return {
        "view": context,
        "limit": limit,
        "seen": seen[-_MOST_SEEN:],
        "seen_before": max(len(seen) - _MOST_SEEN, 0),
        "log": [line_of(thread, row, standing) for row in reversed(shown)],
        "older_url": older_url,
        "newest_url": thread_url(thread.public_id, tab="context") if before else "",
        "standing": standing[0] if standing else None,
        "form_url": thread_url(thread.public_id),
    }


def _seen(thread: Thread, texts: Sequence[str], rows: Sequence[Message]) -> Iterator[Line]:
    """The messages of the view as lines; what is no row of the log stands in for a result."""
    at = 0
    for text in texts:
        body = values.load(text)
        found = next((i for i in range(at, len(rows)) if rows[i].body == text), None)
        said = _said(body)
        if found is None:
            yield Line(0, str(body.get("role")), said)
            continue
        row, at = rows[found], found + 1
        yield Line(
            row.seq,
            row.role,
            said,
            row.estimated_tokens,
            len(row.opens),
            summary_to=row.folds_to,
            url=thread_url(thread.public_id, message=row.seq),
        )


def _said(body: Any) -> str:
    content = body.get("content")
    if isinstance(content, list):
        texts = (block.get("text") for block in content if isinstance(block, dict))
        content = next((text for text in texts if isinstance(text, str)), "")
    return str(content or "").removeprefix("<conversation-summary>\n")[:_SAID]


def line_of(thread: Thread, row: Any, standing: Sequence[Message]) -> Line:
    """A row of `lines()`. Of the standing summaries the first, which reaches furthest, has a say."""
    top = standing[0] if standing else None
    return Line(
        row.seq,
        row.role,
        row.said.removeprefix("<conversation-summary>\n"),
        row.estimated_tokens,
        len(row.opens),
        summary_to=row.folds_to,
        folded_into=top.seq if top and is_folded(row, top) else None,
        lifted=row.fold_lifted_at is not None,
        url=thread_url(thread.public_id, message=row.seq),
    )
