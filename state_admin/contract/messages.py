"""Messages of a thread, and the context that a model receives."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
import orjson
from msgspec import UNSET, UnsetType

from state_admin.domain import values
from state_admin.domain.messages import ROLES, VISIBILITIES

from .base import Answer, AscendingList, Body, Natural, Operation, Page, Positive, Query, doc
from .batches import BatchOperations, BatchResult
from .types import MAX_ID, OBJECT, BigInt, JsonIn, JsonOut, RunId, ThreadId, Time, Tokens, time_of

if TYPE_CHECKING:
    from state_admin import models


MessageId = Annotated[
    str,
    doc(
        "Id of the message, unique in its thread.",
        "m-1",
        schema={"minLength": 1, "maxLength": MAX_ID},
    ),
]
MessageRole = Annotated[str, doc("Who speaks.", "user", choices=ROLES)]
Visibility = Annotated[
    str,
    doc("`internal`: hidden from lists of messages unless requested.", "all", choices=VISIBILITIES),
]
Seq = Annotated[
    int, doc("Position of the message in its thread: 1 for the first one, without gaps.", 8, ge=1)
]
_CONTENT: Final = "Text of the message, or a list of content parts."
# A message stays as it was sent, with members that the server does not know. Its rules are those of
# domain.messages; this is the part of them that generators of clients use.
MessageIn = Annotated[
    JsonIn,
    doc(
        "A message in the format of OpenAI's chat completions. Further members are kept.",
        {"role": "user", "content": "Where is my refund?"},
        schema={
            "type": "object",
            "required": ["role"],
            "properties": {
                "id": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": MAX_ID,
                    "description": "Id of the message, unique in its thread. Default: generated.",
                },
                "role": {"type": "string", "enum": list(ROLES), "description": "Who speaks."},
                "content": {"description": _CONTENT},
                "visibility": {
                    "type": "string",
                    "enum": list(VISIBILITIES),
                    "default": "all",
                    "description": "`internal`: hidden from lists of messages unless requested.",
                },
                "tool_calls": {
                    "type": "array",
                    "items": OBJECT,
                    "description": "Tool calls of an `assistant` message.",
                },
                "tool_call_id": {
                    "type": "string",
                    "description": "Of a `tool` message: the tool call that it answers.",
                },
            },
        },
    ),
]
MessagesIn = Annotated[
    list[MessageIn], doc("1 to 1,000 messages, in order.", schema={"minItems": 1, "maxItems": 1000})
]


class Summarized(Answer):
    """Which messages a summary replaces in the context."""

    from_seq: Annotated[int, doc("`seq` of the first of them.", 1, ge=1)]
    to_seq: Annotated[int, doc("`seq` of the last of them.", 6, ge=1)]
    undone_at: Annotated[
        Time | None, doc("When the compaction was undone; null: the summary is in effect.", None)
    ]


class Message(Answer):
    """A message as it was sent, with the members that the server adds. Further members of the
    message are kept."""

    id: MessageId
    seq: Seq
    visibility: Visibility
    run_id: Annotated[RunId | None, doc("The run that committed it; null: appended without one.")]
    created_at: Annotated[Time, doc("When it was stored.")]
    estimated_tokens: Tokens
    role: MessageRole
    compaction: Annotated[Summarized | UnsetType, doc("Only on a summary.")] = UNSET
    content: Annotated[JsonOut | UnsetType, doc(_CONTENT, "Where is my refund?")] = UNSET
    tool_calls: Annotated[
        list[Annotated[JsonOut, doc("A tool call.", schema=OBJECT)]] | UnsetType,
        doc("Tool calls of an `assistant` message."),
    ] = UNSET
    tool_call_id: Annotated[
        str | UnsetType, doc("Of a `tool` message: the tool call that it answers.", "call-1")
    ] = UNSET

    @classmethod
    def of(cls, row: models.Message) -> msgspec.Raw:
        """The stored text with the server's members before it, so that the message keeps every byte
        and every member that it was sent with; an instance could not."""
        body = row.body or "{}"
        sent = values.load(body)
        ours: dict[str, Any] = {
            "id": row.public_id,
            "seq": row.seq,
            "visibility": row.visibility,
            "run_id": row.run.public_id if row.run else None,
            "created_at": time_of(row.created_at),
            "estimated_tokens": row.estimated_tokens,
        }
        if row.folds_to is not None:
            ours["compaction"] = {
                "from_seq": row.folds_from,
                "to_seq": row.folds_to,
                "undone_at": time_of(row.fold_lifted_at),
            }
        ours = {name: value for name, value in ours.items() if name not in sent}
        return msgspec.Raw(orjson.dumps(ours)[:-1] + b"," + body.lstrip()[1:].encode())


class MessageFilters(AscendingList):
    after: Annotated[Natural | None, doc("Only messages with a greater `seq`.")] = None
    before: Annotated[Natural | None, doc("Only messages with a smaller `seq`.")] = None
    visibility: Annotated[
        str,
        doc(
            "`external`: those that people see; `internal`: the others; `all`: both.",
            choices=("external", "internal", "all"),
        ),
    ] = "external"
    run_id: Annotated[str | None, doc("Only messages that this run committed.")] = None


class NewMessages(Body):
    """Messages to append, and operations on entries that are performed with them."""

    messages: MessagesIn
    expected_message_count: Annotated[
        BigInt | UnsetType, doc("Append only if the thread has this number of messages.", 8)
    ] = UNSET
    operations: (
        Annotated[
            BatchOperations,
            doc("Operations on entries, performed together with the messages or not at all."),
        ]
        | UnsetType
    ) = UNSET


class AppendedMessage(Answer):
    """The id and the position of a message that was appended."""

    id: MessageId
    seq: Seq


class Appended(Answer):
    """What was appended to a thread."""

    message_count: Annotated[int, doc("Number of messages of the thread now.", 9, ge=0)]
    messages: Annotated[list[AppendedMessage], doc("The new messages, in order.")]
    results: Annotated[
        list[BatchResult] | UnsetType,
        doc("Results of `operations`, in order; absent without operations.", []),
    ] = UNSET


class ContextQuery(Query):
    max_tokens: Annotated[
        Positive | None,
        doc(
            "Leave out the oldest messages so that the rest has at most this number of "
            "estimated tokens. A tool call is never separated from its results."
        ),
    ] = None


class Context(Answer):
    """The messages to send to a model."""

    thread_id: ThreadId
    messages: Annotated[
        list[
            Annotated[
                JsonOut,
                doc(
                    "A message as it was sent.",
                    {"role": "user", "content": "Where is my refund?"},
                    schema=OBJECT,
                ),
            ]
        ],
        doc("In order: the summary of compacted messages, if any, then the messages after it."),
    ]
    estimated_tokens: Annotated[int, doc("Estimated tokens of `messages`.", 1800, ge=0)]
    message_count: Annotated[int, doc("Number of messages of the thread.", 8, ge=0)]
    left_out: Annotated[int, doc("Messages left out because of `max_tokens`.", 0, ge=0)]
    folded_to_seq: Annotated[
        int | None, doc("`seq` of the last message in the summary; null: no summary.", None)
    ]


_operation = partial(Operation, tag="messages")
LIST_MESSAGES = _operation(
    id="list_messages",
    route="GET /threads/{thread_id}/messages",
    summary="List messages",
    description="All messages of the thread, compacted ones and summaries included. For what a "
    "model should receive, read the context.",
    query=MessageFilters,
    answers={200: Page[Message]},
)
APPEND_MESSAGES = _operation(
    id="append_messages",
    route="POST /threads/{thread_id}/messages",
    summary="Append messages",
    description="State and revision of the thread do not change. With `If-Match`, only if the "
    "state is at that revision. A message id that the thread contains already is a conflict.",
    body=NewMessages,
    answers={201: Appended},
    headers=("If-Match",),
    problems=("revision-conflict", "not-registered", "quota-exceeded", "version-conflict"),
)
READ_CONTEXT = _operation(
    id="read_context",
    route="GET /threads/{thread_id}/context",
    summary="Read the context for a model",
    description="Compacted messages are replaced by their summary. A tool call without a result "
    "gets one that says that it was interrupted, because model providers refuse it otherwise. A "
    "context that exceeds 32 MiB gets 413.",
    query=ContextQuery,
    answers={200: Context},
    problems=("too-large",),
)
