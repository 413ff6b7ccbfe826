"""A thread for the AI SDK (v6): its messages as UIMessage[], and the current reply as a UI message
stream that a client may join at any time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from django.http import HttpResponse

from state_admin.contract import agent_views as contract
from state_admin.domain import values
from state_admin.domain.access import Actor
from state_admin.models import Message, Run, RunStatus, Thread, Ticket
from state_admin.models.feed_sql import FeedRow
from state_admin.rest.bodies import no_content
from state_admin.rest.endpoint import Endpoint, handles
from state_admin.services import runs, threads
from state_admin.services.listeners import CLOSED

from . import parts, reading, ui_messages
from .answers import answer
from .following import answer_stream, event
from .parts import ThreadMessage, ToolCall

_HEADERS = {"x-vercel-ai-ui-message-stream": "v1"}
_DONE = b"data: [DONE]\n\n"


def read_log(thread: Thread) -> list[ThreadMessage]:
    """The newest messages. If older ones are left out, the first one does not depend on them."""
    log, cut = reading.read_messages(thread)
    if cut:
        first = next((i for i, message in enumerate(log) if not ui_messages.answers(message)), 0)
        log = log[first:]
    return log


def read_tickets(thread: Thread, log: Sequence[ThreadMessage]) -> dict[str, Ticket]:
    """The newest ticket of each tool call in the messages."""
    calls = [call.id for message in log for call in message.calls]
    tickets = Ticket.objects.filter(run__thread=thread, tool_call_id__in=calls).order_by("pk")
    return {ticket.tool_call_id: ticket for ticket in tickets}


class Reply:
    """The reply of a run for one client: from its beginning, then as it grows."""

    def __init__(self, actor: Actor, run: Run) -> None:
        self.actor, self.over = actor, False
        others = Message.objects.filter(thread=run.thread_id).external()
        others = others.exclude(role__in=["assistant", "tool"]).order_by("-seq")
        self._seq = others.values_list("seq", flat=True).first() or 0
        # Read again: if it is not done, the reply after that message is its reply.
        self.run = runs.find_run(actor, run.public_id)
        self.thread_id = self.run.thread.public_id
        self._revision: int | None = None  # of the state that was sent
        self._calls: set[str] = set()  # calls that were sent
        self._requested: set[str] = set()  # tickets that were sent

    def begin(
        self, missed: Sequence[FeedRow], coming: Callable[[], Sequence[FeedRow]] = tuple
    ) -> bytes:
        return _encode([ui_messages.begin(self._seq, self.run), *self._encode_updates()], self.over)

    def encode_changes(self, rows: Sequence[FeedRow]) -> bytes:
        return _encode(self._encode_updates(), self.over)

    def close(self, why: str) -> bytes:
        return _encode([{"type": "error", "errorText": CLOSED[why].detail}], over=True)

    def _encode_updates(self) -> list[ui_messages.Shape]:
        # The run first, so that all messages and the state of an ended run are sent before its end.
        self.run = runs.find_run(self.actor, self.run.public_id)
        messages = self._messages()
        if self.over:  # the run may have ended before the message that ends the reply
            self.run = runs.find_run(self.actor, self.run.public_id)
        events = [*self._state_news(), *messages]
        if not self.over:
            pending = list(Ticket.objects.filter(run=self.run).pending().order_by("pk"))
            events += self._questions(pending)
            self.over = runs.is_resting(self.actor, self.run, pending)
        return [*events, *(ui_messages.finish(self.run) if self.over else [])]

    def _state_news(self) -> list[ui_messages.Shape]:
        thread = threads.find_thread(self.actor, self.thread_id)
        if thread.revision == self._revision:
            return []
        state = reading.read_state(self.actor, self.thread_id)
        self._revision = state["revision"]
        return [ui_messages.state_part(state)]

    def _messages(self) -> list[ui_messages.Shape]:
        events: list[ui_messages.Shape] = []
        rows = Message.objects.filter(thread=self.run.thread_id, seq__gt=self._seq).external()
        for row in rows.select_related("run").in_order():
            message = parts.read(row)
            if not ui_messages.answers(message):
                self.over = True  # the next reply is another message
                break
            self._seq = message.seq
            if message.role == "assistant":
                events += ui_messages.step(message)
                self._calls |= {call.id for call in message.calls}
            elif message.answers in self._calls:
                events.append(ui_messages.result(message))
        return events

    def _questions(self, pending: Sequence[Ticket]) -> list[ui_messages.Shape]:
        events: list[ui_messages.Shape] = []
        for ticket in pending:
            if ticket.public_id in self._requested or not ticket.tool_call_id:
                continue
            self._requested.add(ticket.public_id)
            # the run waits, but its message with the call is not stored yet
            if ticket.tool_call_id not in self._calls:
                call = ToolCall(ticket.tool_call_id, ticket.tool_name, ticket.arguments or "null")
                events.append(ui_messages.tool_call(call))
                self._calls.add(call.id)
            events.append(ui_messages.approval_request(ticket))
        return events


@handles(contract.LIST_UI_MESSAGES)
def list_ui_messages(call: Endpoint, thread_id: str) -> HttpResponse:
    thread = threads.find_thread(call.actor, thread_id)
    log = read_log(thread)
    return answer(ui_messages.show(log, read_tickets(thread, log)))


@handles(contract.STREAM_UI_MESSAGE)
def stream_ui_message(call: Endpoint, thread_id: str) -> HttpResponse:
    thread = threads.read_thread(call.actor, thread_id)
    if thread.active_run is None:
        return no_content()
    reply = Reply(call.actor, thread.active_run)
    if reply.run.status == RunStatus.DONE:
        return no_content()
    return answer_stream(call, thread_id, reply, headers=_HEADERS)


def _encode(chunks: Sequence[ui_messages.Shape], over: bool) -> bytes:
    frames = b"".join(event(values.dump(chunk)) for chunk in chunks)
    return frames + _DONE if over else frames
