"""The tools: what each is called, takes, answers, and which call of the API it is.

Written for the model that reads it. Names, limits and errors are the API's; a contract test holds
this catalogue against docs/openapi.json.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from state_admin.domain.access import Role
from state_admin.domain.schemas import Validator, compile_schema
from state_admin.domain.scopes import NAME

Schema = dict[str, Any]

_ID: Final = {"type": "string", "minLength": 1, "maxLength": 128}
_WHOLE: Final = {"type": "integer", "minimum": 0}
_ANY: Final = {"description": "Any JSON value."}

# The arguments, the same wherever they occur.
FIELDS: Final[dict[str, Schema]] = {
    "namespace": {
        "type": "string",
        "pattern": f"^{NAME}$",
        "description": "A registered namespace; list_namespaces names them.",
    },
    "key": {
        "type": "string",
        "minLength": 1,
        "maxLength": 512,
        "description": "The key within the namespace, such as global, thread::<id> or"
        " parent_thread::<id>.",
    },
    "value": _ANY | {"description": "The new value, whole. It must fit the namespace's schema."},
    "expected_version": _WHOLE
    | {
        "description": "Refuse unless the entry still has this version; 0: unless there is none."
        " Send the version you read, so that nobody's change is lost."
    },
    "version": {"type": "integer", "minimum": 1, "description": "A version from entry_history."},
    "at_version": {"type": "integer", "minimum": 1, "description": "Read this version instead."},
    "at": {"type": "string", "description": "Read the past, at an RFC 3339 time."},
    "ttl_seconds": {"type": "integer", "minimum": 1, "description": "Let it expire after so long."},
    "tags": {"type": "array", "items": {"type": "string"}, "description": "Labels to find it by."},
    "kind": {
        "enum": ["merge", "json", "update"],
        "default": "merge",
        "description": "merge: an RFC 7396 merge patch. json: an RFC 6902 list of operations."
        ' update: {"op": "add|max|min|append|union|remove|merge|set", "path": "/a/b",'
        ' "value": …} or a list of them.',
    },
    "patch": _ANY | {"description": "The patch, of the given kind."},
    "reason": {
        "type": "string",
        "maxLength": 1000,
        "pattern": r"^[^\x00-\x1f\x7f]*$",
        "description": "Why, for the history that people read.",
    },
    "include": {"enum": ["value"], "description": "value: bring the values too."},
    "prefix": {"type": "string", "description": "Only those that begin so."},
    "tag": {"type": "string", "description": "Only entries with this tag."},
    "limit": {"type": "integer", "minimum": 1, "maximum": 200, "description": "50 if not given."},
    "cursor": {"type": "string", "description": "next_cursor of the page before."},
    "text": {"type": "string", "description": 'Words that all occur: word, word*, "a phrase".'},
    "where": {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {"path": {"type": "string"}, "equals": _ANY},
            "required": ["path", "equals"],
            "additionalProperties": False,
        },
        "description": "Conditions: the value at a JSON Pointer equals this.",
    },
    "thread_id": _ID | {"description": "The id of a thread; list_threads names them."},
    "resource_id": {"type": "string", "description": "Only threads of this user or resource."},
    "order": {"enum": ["asc", "desc"], "description": "desc: newest first."},
    "after": _WHOLE | {"description": "Only messages behind this seq."},
    "visibility": {
        "enum": ["external", "internal", "all"],
        "description": "external (if not given): what people see.",
    },
    "max_tokens": {"type": "integer", "minimum": 1, "description": "How much fits your context."},
    "messages": {
        "type": "array",
        "minItems": 1,
        "items": {"type": "object"},
        "description": 'Messages such as {"role": "user", "content": "…"}.',
    },
    "expected_message_count": _WHOLE
    | {"description": "Refuse unless the thread still has so many messages."},
    "revision": _WHOLE | {"description": "A past revision; the present one if not given."},
    "run_id": _ID | {"description": "The id of a run."},
    "status": {
        "enum": ["pending", "resumed", "cancelled", "void"],
        "description": "pending: what waits for a decision.",
    },
    "ticket_id": _ID | {"description": "The id of a ticket; list_tickets names them."},
    "action": {"enum": ["resume", "cancel"], "description": "resume lets the run go on."},
    "payload": _ANY | {"description": "With resume: the answer, fitting the response_schema."},
}


def _object(required: str, **properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "required": required.split()}


_TEXT, _INT, _OBJECT = {"type": "string"}, {"type": "integer"}, {"type": "object"}
_ENTRY: Final = _object(
    "namespace key exists version value",
    namespace=_TEXT,
    key=_TEXT,
    exists={"type": "boolean"},
    value={},
    version=_INT,
    valid={"type": "boolean"},
    updated_at={"type": ["string", "null"]},
    actor={"type": ["string", "null"]},
    tags={"type": "array", "items": _TEXT},
)
_PAGE: Final = _object(
    "items next_cursor",
    items={"type": "array", "items": _OBJECT},
    next_cursor={"type": ["string", "null"]},
)
_THREAD: Final = _object("id revision message_count", id=_TEXT, revision=_INT, message_count=_INT)
_CONTEXT: Final = _object(
    "messages estimated_tokens left_out",
    messages={"type": "array", "items": _OBJECT},
    estimated_tokens=_INT,
    left_out=_INT,
)
_APPENDED: Final = _object(
    "message_count messages",
    message_count=_INT,
    messages={"type": "array", "items": _object("id seq", id=_TEXT, seq=_INT)},
)
_SNAPSHOT: Final = _object("revision extensions", revision=_INT, extensions=_OBJECT)
_RUN: Final = _object("id thread_id status", id=_TEXT, thread_id=_TEXT, status=_TEXT)
_TICKET: Final = _object("id run_id status", id=_TEXT, run_id=_TEXT, status=_TEXT)
_DONE: Final = _object("done", done={"const": True})


@dataclass(frozen=True)
class Tool:
    """One tool, and the call of the API that it is: `{name}` in the path is an argument, `query` and
    `body` name others, `sends` says in which further ways arguments travel (calls.py).

    `required` adds to the arguments of the path. `destroys`: it replaces or removes something.
    """

    name: str
    title: str
    description: str
    method: str
    path: str
    answers: Schema
    query: tuple[str, ...] = ()
    body: tuple[str, ...] = ()
    sends: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    role: Role = Role.EDITOR
    destroys: bool = False
    in_path: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        named = tuple(part[1:-1] for part in self.path.split("/") if part.startswith("{"))
        object.__setattr__(self, "in_path", named)

    @property
    def reads(self) -> bool:
        return self.role == Role.VIEWER

    @cached_property
    def takes(self) -> Schema:
        """The JSON Schema of the arguments."""
        names = [*self.in_path, *self.body, *self.query, *self.sends]
        return {
            "type": "object",
            "properties": {name: FIELDS[name] for name in names},
            "required": [*self.in_path, *self.required],
            "additionalProperties": False,
        }

    @cached_property
    def validator(self) -> Validator:
        return compile_schema(json.dumps(self.takes))


_GUARDED: Final = ("expected_version", "reason")
_PAGED: Final = ("limit", "cursor")

_ALL: Final = (
    Tool(
        "list_namespaces",
        "List namespaces",
        "The namespaces of shared state, each with its JSON Schema, default and description. Start"
        " here to learn what is kept and how a value must look.",
        "GET",
        "/namespaces",
        _PAGE,
        query=("prefix", *_PAGED),
        role=Role.VIEWER,
    ),
    Tool(
        "list_state",
        "List entries",
        "The entries of a namespace, by key, without their values unless include is value.",
        "GET",
        "/state/{namespace}",
        _PAGE,
        query=("prefix", "tag", "include", *_PAGED),
        role=Role.VIEWER,
    ),
    Tool(
        "get_state",
        "Read an entry",
        "One entry: its value, version, who wrote it and when. Without an entry the namespace's"
        " default comes, with version 0 and exists false.",
        "GET",
        "/state/{namespace}/{key}",
        _ENTRY,
        query=("at_version", "at"),
        role=Role.VIEWER,
    ),
    Tool(
        "put_state",
        "Write an entry",
        "Write a whole value. With expected_version it refuses when somebody wrote in between:"
        " read again, redo your change, repeat. To change a part, patch_state is safer.",
        "PUT",
        "/state/{namespace}/{key}",
        _ENTRY,
        body=("value", "ttl_seconds", "tags"),
        sends=_GUARDED,
        required=("value",),
        destroys=True,
    ),
    Tool(
        "patch_state",
        "Change a part of an entry",
        "Change a part of a value on the server: nobody's change in between is lost. A missing"
        " entry starts from the default.",
        "PATCH",
        "/state/{namespace}/{key}",
        _ENTRY,
        sends=("patch", "kind", *_GUARDED),
        required=("patch",),
        destroys=True,
    ),
    Tool(
        "delete_state",
        "Delete an entry",
        "Delete an entry. Its history stays, restore_state brings it back.",
        "DELETE",
        "/state/{namespace}/{key}",
        _DONE,
        sends=_GUARDED,
        destroys=True,
    ),
    Tool(
        "search_state",
        "Search entries",
        "Find entries of any namespace by words in their values, by conditions, or both. A page may"
        " be short: there is more as long as there is a next_cursor.",
        "POST",
        "/search",
        _PAGE,
        body=("text", "where", "namespace", "prefix", "include", *_PAGED),
        role=Role.VIEWER,
    ),
    Tool(
        "entry_history",
        "History of an entry",
        "Every kept version of an entry, newest first: who changed it, when and why.",
        "GET",
        "/history/{namespace}/{key}",
        _PAGE,
        query=("include", *_PAGED),
        role=Role.VIEWER,
    ),
    Tool(
        "restore_state",
        "Restore an old version",
        "Write a new version equal to an old one.",
        "POST",
        "/restore/{namespace}/{key}",
        _ENTRY,
        body=("version",),
        sends=_GUARDED,
        required=("version",),
        destroys=True,
    ),
    Tool(
        "list_threads",
        "List threads",
        "Conversations, newest first.",
        "GET",
        "/threads",
        _PAGE,
        query=("resource_id", "prefix", *_PAGED),
        role=Role.VIEWER,
    ),
    Tool(
        "get_thread",
        "Read a thread",
        "A thread: title, metadata, how many messages, its newest revision, its runs.",
        "GET",
        "/threads/{thread_id}",
        _THREAD,
        role=Role.VIEWER,
    ),
    Tool(
        "list_messages",
        "Read messages",
        "The messages of a thread as they were sent, whole. For what a model should see of a long"
        " conversation take read_context.",
        "GET",
        "/threads/{thread_id}/messages",
        _PAGE,
        query=("after", "order", "visibility", *_PAGED),
        role=Role.VIEWER,
    ),
    Tool(
        "read_context",
        "Read the effective context",
        "What a model should see of a thread: the beginning as a summary where it was compacted,"
        " then the rest, within max_tokens, never cut between a tool call and its result.",
        "GET",
        "/threads/{thread_id}/context",
        _CONTEXT,
        query=("max_tokens",),
        role=Role.VIEWER,
    ),
    Tool(
        "append_messages",
        "Append messages",
        "Append messages to a thread, all or none.",
        "POST",
        "/threads/{thread_id}/messages",
        _APPENDED,
        body=("messages", "expected_message_count"),
        sends=("reason",),
        required=("messages",),
    ),
    Tool(
        "get_thread_state",
        "Read a thread's state",
        "The typed state of a thread, key by key, now or at a past revision.",
        "GET",
        "/threads/{thread_id}/state",
        _SNAPSHOT,
        query=("revision",),
        role=Role.VIEWER,
    ),
    Tool(
        "get_run",
        "Read a run",
        "A run of an agent: its status, what it waits for, how far it is, why it is stuck.",
        "GET",
        "/runs/{run_id}",
        _RUN,
        role=Role.VIEWER,
    ),
    Tool(
        "list_tickets",
        "List tickets",
        "Questions of suspended runs to a person, newest first: what is asked, for which tool call,"
        " and the response_schema that an answer must fit.",
        "GET",
        "/tickets",
        _PAGE,
        query=("status", *_PAGED),
        role=Role.VIEWER,
    ),
    Tool(
        "decide_ticket",
        "Decide a ticket",
        "Answer a ticket, so that its run goes on or is cancelled. The first decision wins and"
        " cannot be taken back: decide only what a person told you to.",
        "POST",
        "/tickets/{ticket_id}/decision",
        _TICKET,
        body=("action", "payload"),
        sends=("reason",),
        required=("action",),
        destroys=True,
    ),
)

TOOLS: Final[Mapping[str, Tool]] = {tool.name: tool for tool in _ALL}
