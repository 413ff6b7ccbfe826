"""The Conversation tab: the messages of a thread, with tool results below their calls."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any
from urllib.parse import quote

from django.http import HttpResponse

from state_admin.domain import summaries, values
from state_admin.domain.values import JSON, MISSING
from state_admin.models import Compaction, Message, Thread
from state_admin.models.messages import MessageQuerySet
from state_admin.services.effective_views import active_summary
from state_admin.services.errors import NotFound
from state_admin.services.threads import find_thread

from . import paging, snippets
from .addresses import thread_action_url, thread_url
from .htmx import Request, render
from .id_address import id_page, id_path
from .trees import answer_piece

PAGE = 40
CLIP = 1500
# Characters of a text shown on the page of one message.
_LONGEST = 50_000
# JSON in a longer text is shown as text, not as a tree.
_LONGEST_TREE = 200_000
# A page does not separate tool calls from their results, unless there are more messages than this.
_LONGEST_ROUND = 40


@dataclass(frozen=True)
class MessagePart:
    """A part of a message: a text, or a value that is shown as a tree. `name` is its place in the
    body (`content`, `content.0`, `call.1`)."""

    name: str
    kind: str
    text: str = ""
    value: JSON = None
    whole_size: int = 0
    tree_url: str = ""

    @property
    def clipped(self) -> bool:
        return self.whole_size > len(self.text)


@dataclass
class Call:
    """A tool call with its arguments, and its result if that is on the page."""

    id: str
    name: str
    arguments: MessagePart
    gist: str
    result: ConversationItem | None = None


@dataclass
class ConversationItem:
    """A message with its parts, as the template needs it."""

    row: Message
    pieces: list[MessagePart]
    url: str
    whole_url: str
    name: str = ""
    calls: list[Call] = field(default_factory=list)
    folded: bool = False
    fold: Compaction | None = None
    # Its tokens in percent of the largest message of the page; 0 on a page of its own.
    share: int = 0

    @property
    def is_summary(self) -> bool:
        return self.row.folds_to is not None

    @property
    def first_line(self) -> str:
        return next((piece.text.strip()[:160] for piece in self.pieces if piece.text), "")


@dataclass(frozen=True)
class Window:
    rows: list[Message]
    older: int | None
    newer: int | None


def show(request: Request, thread: Thread) -> dict[str, Any]:
    """The context of the tab: the newest messages, or those around the message in the query
    string."""
    position = {name: paging.whole_number(request, name) for name in ("before", "after", "message")}
    log = Message.objects.filter(thread=thread)
    window = read_window(log, thread.message_count, **position)
    standing = active_summary(thread)
    items = build_conversation(thread.public_id, window.rows)
    largest = max((row.estimated_tokens for row in window.rows), default=0) or 1
    for item in items:
        item.folded = is_folded(item.row, standing)
        item.share = max(100 * item.row.estimated_tokens // largest, 1)
    jobs = {
        job.summary_id: job
        for job in Compaction.objects.filter(
            thread=thread, summary__in=[i.row.pk for i in items if i.is_summary]
        )
    }
    for item in items:
        item.fold = jobs.get(item.row.pk)
    url = thread.public_id
    return {
        "items": items,
        "marked": position["message"],
        "standing": standing,
        "older_url": thread_url(url, before=window.older) if window.older else "",
        "newer_url": thread_url(url, after=window.newer) if window.newer else "",
        "newest_url": thread_url(url) if window.newer else "",
        **_how_to_append(url),
    }


def _how_to_append(thread_id: str) -> dict[str, str]:
    target = f"threads/{quote(thread_id, safe='')}/messages"
    message = {"role": "user", "content": "Where is my refund?"}
    return {
        "append_curl": snippets.curl("POST", target, json.dumps({"messages": [message]})),
        "append_python": snippets.python(
            f"print(state.threads.append({thread_id!r}, {message!r}))"
        ),
    }


def read_window(
    log: MessageQuerySet,
    count: int,
    *,
    before: int | None = None,
    after: int | None = None,
    message: int | None = None,
) -> Window:
    """A page of the messages in order: those after `after`, those around `message`, else the last
    ones before `before`. Tool calls and their results are not separated."""
    if after is not None or message is not None:
        start = after if after is not None else max((message or 0) - PAGE // 2, 0)
        rows = list(log.filter(seq__gt=start).order_by("seq")[:PAGE])
    else:
        earlier = log.filter(seq__lt=before) if before is not None else log
        rows = list(earlier.order_by("-seq")[:PAGE])[::-1]
    if not rows:
        return Window([], None, None)
    if rows[0].role == "tool":
        lead = log.filter(seq__lt=rows[0].seq).order_by("-seq")[:_LONGEST_ROUND]
        rows = [*_until_call(lead)][::-1] + rows
    if rows[-1].opens or rows[-1].role == "tool":
        tail = log.filter(seq__gt=rows[-1].seq).order_by("seq")[:_LONGEST_ROUND]
        rows += takewhile(lambda row: row.role == "tool", tail)
    older = rows[0].seq if rows[0].seq > 1 else None
    return Window(rows, older, rows[-1].seq if rows[-1].seq < count else None)


def _until_call(rows: Iterable[Message]) -> Iterator[Message]:
    for row in rows:
        yield row
        if row.role != "tool":
            return


def is_folded(row: Message, standing: Message | None) -> bool:
    """Whether the summary in use replaces the message in the model's context."""
    if standing is None or row.pk == standing.pk or row.seq == standing.fold_carries:
        return False
    return (row.folds_to or row.seq) <= (standing.folds_to or 0)


def build_conversation(thread_id: str, rows: Sequence[Message]) -> list[ConversationItem]:
    """The messages as a conversation: the result of a tool call is attached to its call."""
    items: list[ConversationItem] = []
    waiting: dict[str, Call] = {}
    for row in rows:
        item = read_message(thread_id, row)
        call = waiting.pop(row.answers, None) if row.answers else None
        if call is not None:
            call.result = item
        else:
            items.append(item)
        waiting |= {call.id: call for call in item.calls}
    return items


def read_message(thread_id: str, row: Message, clip: int = CLIP) -> ConversationItem:
    body = values.load(row.body or "{}")
    item = ConversationItem(
        row=row,
        pieces=list(_pieces(thread_id, row, body, clip)),
        url=thread_url(thread_id, message=row.seq),
        whole_url=thread_action_url(f"message/{row.seq}", thread_id),
        name=str(body.get("name") or ""),
    )
    for index, call in enumerate(body.get("tool_calls") or ()):
        name, arguments = _call(call)
        piece = _piece(thread_id, row, f"call.{index}", arguments, clip)
        gist = arguments if isinstance(arguments, str) else values.dump(arguments)
        item.calls.append(Call(str(call.get("id")), name, piece, gist[:160]))
    return item


def _call(call: JSON) -> tuple[str, JSON]:
    """The name and the arguments of a tool call, in OpenAI's format or in that of this API."""
    body = call["function"] if isinstance(call.get("function"), dict) else call
    return str(body.get("name") or "tool"), body.get("arguments")


def _pieces(thread_id: str, row: Message, body: JSON, clip: int) -> Iterator[MessagePart]:
    content = body.get("content")
    if isinstance(content, list):
        for index, block in enumerate(content):
            yield _piece(thread_id, row, f"content.{index}", block, clip)
    elif content is not None and content != "":
        if row.folds_to is not None:
            content = summaries.unwrap(body)
        yield _piece(thread_id, row, "content", content, clip)


def _piece(thread_id: str, row: Message, name: str, value: JSON, clip: int) -> MessagePart:
    kind = "text"
    if isinstance(value, dict) and isinstance(value.get("text"), str):
        value = value["text"]
    elif isinstance(value, dict) and isinstance(value.get("thinking"), str):
        kind, value = "thinking", value["thinking"]
    if isinstance(value, str) and (row.role == "tool" or name.startswith("call")):
        value = parsed(value)
    if isinstance(value, str):
        return MessagePart(name, kind, text=value[:clip], whole_size=len(value))
    url = thread_action_url(f"piece/{row.seq}/{name}", thread_id)
    return MessagePart(name, "data", value=value, tree_url=url)


def parsed(text: str, longest: int = _LONGEST_TREE) -> JSON:
    """The value of JSON in a text, as tools use it for arguments and results; other text
    unchanged."""
    if text[:1] not in ("{", "[") or len(text) > longest:
        return text
    try:
        return values.load(text)
    except (ValueError, RecursionError):
        return text


@id_page(replica=True)
def message_detail(request: Request, thread_id: str, seq: int) -> HttpResponse:
    """The page of one message: its texts in full, and its body as it was sent."""
    thread, row = _find(request, thread_id, seq)
    item = read_message(thread_id, row, clip=_LONGEST)
    item.whole_url = thread_action_url(f"sent/{seq}", thread_id)
    context = {
        "thread": thread,
        "item": item,
        "body": values.load(row.body or "{}"),
        "body_url": thread_action_url(f"piece/{seq}/body", thread_id),
        "big": len(row.body or "") > _LONGEST,
    }
    return render(request, "threads/message.html", context, part="message")


@id_page()
def message_sent(request: Request, thread_id: str, seq: int) -> HttpResponse:
    """The body of a message as it was sent, byte for byte."""
    _, row = _find(request, thread_id, seq)
    return HttpResponse(row.body, content_type="application/json; charset=utf-8")


@id_page()
def message_piece(request: Request, thread_id: str, seq: int, piece: str) -> HttpResponse:
    """The children of a node of a large tree, fetched when the node is opened."""
    _, row = _find(request, thread_id, seq)
    value = _value_of(values.load(row.body or "{}"), piece)
    return answer_piece(request, value, thread_action_url(f"piece/{seq}/{piece}", thread_id))


def _value_of(body: JSON, piece: str) -> JSON:
    kind, _, index = piece.partition(".")
    value: JSON = MISSING
    try:
        if kind == "body":
            return body
        if kind == "call":
            value = _call(body["tool_calls"][int(index)])[1]
        elif kind == "content":
            value = body["content"][int(index)] if index else body["content"]
    except (KeyError, IndexError, ValueError, TypeError):
        return MISSING
    return parsed(value) if isinstance(value, str) else value


def _find(request: Request, thread_id: str, seq: int) -> tuple[Thread, Message]:
    thread = find_thread(request.actor, thread_id)
    row = Message.objects.filter(thread=thread, seq=seq).select_related("run").first()
    if row is None:
        raise NotFound(f"thread {thread_id} has no message {seq}")
    return thread, row


urlpatterns = [
    id_path("thread/message/<int:seq>", message_detail, "thread-message"),
    id_path("thread/sent/<int:seq>", message_sent, "thread-message-sent"),
    id_path("thread/piece/<int:seq>/<str:piece>", message_piece, "thread-piece"),
]
