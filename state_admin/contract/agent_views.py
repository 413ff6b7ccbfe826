"""A thread for frontends, in their own protocols: AG-UI events, and messages of the AI SDK."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Final

import msgspec

from state_admin.domain.access import Role

from .base import EVENT_STREAM, Answer, Operation, doc
from .types import RunId, ThreadId, Time


class MessageMetadata(Answer):
    """Which run appended the message, and when."""

    run_id: RunId | None
    created_at: Time


class UIMessage(Answer):
    """A message as the AI SDK renders it."""

    id: Annotated[str, doc("Id of the message.", "message-1")]
    role: Annotated[str, doc("Who says it.", "assistant", choices=("system", "user", "assistant"))]
    metadata: MessageMetadata
    parts: Annotated[
        list[dict[str, Any]],
        doc("Parts as the AI SDK defines them.", [{"type": "text", "text": "Done."}]),
    ]


class RunAgentInput(msgspec.Struct, kw_only=True, rename="camel"):
    """AG-UI's request. Its other members are accepted and not used."""

    thread_id: ThreadId
    run_id: RunId


_operation = partial(Operation, tag="frontends", kept=False)
_SNAPSHOTS: Final = (
    'data: {"type":"STATE_SNAPSHOT","snapshot":{"revision":12,"extensions":{"plan":"flights"}}}\n\n'
    'data: {"type":"MESSAGES_SNAPSHOT","messages":'
    '[{"id":"message-1","role":"user","content":"Find offers."}]}\n\n'
)
WATCH_THREAD = _operation(
    id="watch_thread",
    route="GET /threads/{thread_id}/ag-ui/stream",
    summary="Follow a thread as AG-UI events",
    description="STATE_SNAPSHOT and MESSAGES_SNAPSHOT first, then every change, over all runs. With "
    "Last-Event-ID, the runs missed since are included.",
    answers={200: str},
    answer_type=EVENT_STREAM,
    examples={EVENT_STREAM: f"{_SNAPSHOTS}id: WzcsMywxNzY5ODYwODAwXQ\n\n"},
    headers=("Last-Event-ID",),
    problems=("too-large",),
)
JOIN_RUN = _operation(
    id="join_run",
    route="POST /threads/{thread_id}/ag-ui/stream",
    summary="Follow a run as AG-UI events",
    description="For AG-UI's HttpAgent: the run `runId`, otherwise the active one, until it ends or "
    "waits. Without a run, the thread as it is.",
    role=Role.VIEWER,
    body=RunAgentInput,
    answers={200: str},
    answer_type=EVENT_STREAM,
    examples={
        EVENT_STREAM: 'data: {"type":"RUN_STARTED","threadId":"trip-lisbon","runId":"trip-lisbon-3"}\n\n'
        f"{_SNAPSHOTS}"
        'data: {"type":"RUN_FINISHED","threadId":"trip-lisbon","runId":"trip-lisbon-3"}\n\n'
    },
)
LIST_UI_MESSAGES = _operation(
    id="list_ui_messages",
    route="GET /threads/{thread_id}/ui-messages",
    summary="List messages for the AI SDK",
    description="The newest messages as UIMessage[], oldest first, without internal ones.",
    answers={200: list[UIMessage]},
)
STREAM_UI_MESSAGE = _operation(
    id="stream_ui_message",
    route="GET /threads/{thread_id}/ui-messages/stream",
    summary="Follow the reply of the active run",
    description="A UI message stream of the AI SDK, from the beginning of the reply until the run ends "
    "or waits. 204 without an active run.",
    answers={200: str, 204: None},
    problems=("too-large",),
    answer_type=EVENT_STREAM,
    response_headers=("x-vercel-ai-ui-message-stream",),
    examples={
        EVENT_STREAM: 'data: {"type":"start","messageId":"message-2"}\n\n'
        'data: {"type":"start-step"}\n\ndata: {"type":"text-start","id":"text-1"}\n\n'
        'data: {"type":"text-delta","id":"text-1","delta":"Done."}\n\n'
        'data: {"type":"text-end","id":"text-1"}\n\ndata: {"type":"finish-step"}\n\n'
        'data: {"type":"finish","finishReason":"stop"}\n\ndata: [DONE]\n\n'
    },
)
