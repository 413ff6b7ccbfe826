"""The tools: operations of the contract, described for a model that has to choose one.

Each tool has the title, arguments, role, limits and results of its operation, without the members
that a model does not need. Only the description is different, because those of operations explain
HTTP.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from state_admin.contract import OPERATIONS
from state_admin.contract.base import Operation
from state_admin.contract.entries import PATCH_TYPES
from state_admin.contract.json_schemas import Schema, schema_of
from state_admin.contract.openapi import REQUEST_HEADERS, path_parameter
from state_admin.domain.access import Role
from state_admin.domain.patches import UPDATE_OPS
from state_admin.domain.schemas import Validator, compile_schema

# The tool with which a model finds the value of a path parameter.
_FINDERS: Final = {
    "namespace": "list_namespaces",
    "thread_id": "list_threads",
    "run_id": "list_runs",
    "ticket_id": "list_tickets",
}
# Arguments that become headers and media types.
_PATCH: Final[dict[str, Schema]] = {
    "patch": {
        "description": "The patch, in the format that kind selects. With merge: an object with the"
        " members to change, in which null removes a member."
    },
    "kind": {
        "enum": list(PATCH_TYPES.values()),
        "default": "merge",
        "description": "merge: an RFC 7396 merge patch. json: an RFC 6902 list of operations."
        f' update: {{"op": "{UPDATE_OPS.replace(", ", "|")}", "path": "/a/b",'
        ' "value": …} or a list of them.',
    },
}
_EXPECTED_VERSION: Final[Schema] = {
    "type": "integer",
    "minimum": 0,
    "description": "Write only if the entry has this version; 0: only if it does not exist. Send"
    " the version that you read, so that no concurrent change is lost.",
}
_REASON: Final[Schema] = REQUEST_HEADERS["Change-Reason"]["schema"] | {
    "description": REQUEST_HEADERS["Change-Reason"]["description"],
}
_DONE: Final[Schema] = {
    "type": "object",
    "properties": {"done": {"const": True}},
    "required": ["done"],
}


@dataclass(frozen=True)
class Tool:
    """One tool. `offers`: the query parameters and members of the body that it accepts, besides the
    path parameters and what its headers need. `destroys`: it replaces or removes data. `needs`: a
    higher role than that of the operation, if the body decides whether the operation writes. `minimal`:
    writes return no values. The model has just sent them, and they could exceed the limit of a result."""

    name: str
    description: str
    operation: Operation
    offers: tuple[str, ...] = ()
    destroys: bool = False
    needs: Role | None = None
    minimal: bool = False

    @property
    def role(self) -> Role:
        return self.needs or self.operation.least_role

    @property
    def reads(self) -> bool:
        return self.role == Role.VIEWER

    @cached_property
    def in_path(self) -> tuple[str, ...]:
        return tuple(self.operation.path_parameters)

    @cached_property
    def query(self) -> tuple[str, ...]:
        return tuple(name for name in self.offers if name in self.operation.parameters)

    @cached_property
    def body(self) -> tuple[str, ...]:
        return tuple(name for name in self.offers if name not in self.operation.parameters)

    @cached_property
    def takes(self) -> Schema:
        """The JSON Schema of the arguments."""
        operation = self.operation
        arguments = {name: _path_argument(name) for name in self.in_path}
        required = [*self.in_path, *operation.required]
        body = {} if operation.body in (None, Any) else schema_of(operation.body)
        members = operation.parameters | body.get("properties", {})
        arguments |= {name: members[name] for name in self.offers}
        required += body.get("required", [])
        if operation.media_types == tuple(PATCH_TYPES):
            arguments |= _PATCH
            required.append("patch")
        if not self.reads:
            if {"If-Match", "If-None-Match"} <= {*operation.headers}:
                arguments["expected_version"] = _EXPECTED_VERSION
            arguments["reason"] = _REASON
        return {
            "type": "object",
            "properties": arguments,
            "required": required,
            "additionalProperties": False,
        }

    @cached_property
    def answers(self) -> Schema:
        """The JSON Schema of the result."""
        answer = self.operation.answers.get(200) or self.operation.answers.get(201)
        return _DONE if answer is None else schema_of(answer)

    @property
    def hint_if_missing(self) -> str:
        """What to do after a 404, with the tools that there are."""
        if "key" in self.in_path:
            return "Use entry_history to list the versions."
        if not self.in_path:
            return "Use list_state to find what exists."
        (name,) = self.in_path
        creator = (
            "create_thread creates a thread." if name == "thread_id" else "No tool creates it."
        )
        return f"Use {_FINDERS[name]} to find what exists. {creator}"

    @cached_property
    def validator(self) -> Validator:
        return compile_schema(json.dumps(self.takes))


def _path_argument(name: str) -> Schema:
    parameter = path_parameter(name)
    tool = _FINDERS.get(name)
    advice = f" Use {tool} to find it." if tool else ""
    return {**parameter["schema"], "description": parameter["description"] + advice}


_PAGED: Final = ("limit", "cursor")

_ALL: Final = (
    Tool(
        "list_namespaces",
        "The namespaces of shared state, each with its JSON Schema, default and description. Start"
        " here to learn what is stored and which values are valid.",
        OPERATIONS["list_namespaces"],
        ("prefix", *_PAGED),
    ),
    Tool(
        "list_state",
        "The entries of a namespace, by key, without their values unless include is value."
        " With tag, a page may be short: there are more pages as long as there is a next_cursor.",
        OPERATIONS["list_entries"],
        ("prefix", "tag", "include", *_PAGED),
    ),
    Tool(
        "get_state",
        "One entry: its value, its version, who wrote it and when. If there is no entry, the result"
        " is the namespace's default with version 0 and exists false.",
        OPERATIONS["read_entry"],
        ("at_version", "at"),
    ),
    Tool(
        "put_state",
        "Write a whole value. With expected_version it fails if the entry was changed since you read"
        " it: read it again, apply your change to the new value, and write again. To change a part"
        " of a value, patch_state is safer.",
        OPERATIONS["write_entry"],
        ("value", "ttl_seconds", "tags"),
        destroys=True,
    ),
    Tool(
        "patch_state",
        "Change a part of a value on the server, so that no concurrent change is lost. A missing"
        " entry starts from the default.",
        OPERATIONS["patch_entry"],
        destroys=True,
    ),
    Tool(
        "delete_state",
        "Delete an entry. Its history is kept, and restore_state can restore it.",
        OPERATIONS["delete_entry"],
        destroys=True,
    ),
    Tool(
        "batch",
        "Read, write, patch and delete up to 1,000 entries in one call, in this order. By default all"
        " operations are performed or none; with atomic false, each on its own, and results has a problem for"
        " each that failed. Writes return versions instead of entries. With if_version an operation fails if"
        " the entry was changed since you read it.",
        OPERATIONS["run_batch"],
        ("operations", "atomic"),
        destroys=True,
        needs=Role.EDITOR,
        minimal=True,
    ),
    Tool(
        "search_state",
        "Find entries of any namespace by words in their values, by conditions, or both. A page may"
        " be short: there are more pages as long as there is a next_cursor.",
        OPERATIONS["search"],
        ("text", "where", "namespace", "prefix", "include", *_PAGED),
    ),
    Tool(
        "entry_history",
        "Every retained version of an entry, newest first: who changed it, when and why.",
        OPERATIONS["read_history"],
        ("include", *_PAGED),
    ),
    Tool(
        "diff_state",
        "What changed between two versions of an entry: each difference with its JSON pointer, the old and"
        " the new value.",
        OPERATIONS["diff_entry"],
        ("from", "to"),
    ),
    Tool(
        "restore_state",
        "Write an old version of an entry again, as a new version.",
        OPERATIONS["restore_entry"],
        ("version",),
        destroys=True,
    ),
    Tool(
        "list_changes",
        "What happened to entries, threads and runs, in commit order and without gaps: kind, place,"
        " version, actor. Without a cursor it starts at the oldest retained change; next_cursor"
        " continues after this page, also later.",
        OPERATIONS["list_changes"],
        ("namespace", "key", "prefix", "thread_id", "run_id", "kind", *_PAGED),
    ),
    Tool(
        "list_threads",
        "Threads (conversations), newest first.",
        OPERATIONS["list_threads"],
        ("resource_id", "prefix", *_PAGED),
    ),
    Tool(
        "create_thread",
        "Create a thread, for example to append messages to it. If a thread with this id and the"
        " same content exists, it is returned.",
        OPERATIONS["create_thread"],
        ("id", "title", "resource_id", "parent_thread_id", "metadata"),
    ),
    Tool(
        "get_thread",
        "A thread: title, metadata, number of messages, newest revision, runs.",
        OPERATIONS["get_thread"],
    ),
    Tool(
        "list_messages",
        "The messages of a thread as they were sent. To continue a long conversation, use"
        " read_context.",
        OPERATIONS["list_messages"],
        ("after", "order", "visibility", *_PAGED),
    ),
    Tool(
        "read_context",
        "The messages of a thread that a model should see, within max_tokens: a summary in place of"
        " compacted messages, then the newest ones. A tool call is not separated from its result.",
        OPERATIONS["read_context"],
        ("max_tokens",),
    ),
    Tool(
        "append_messages",
        "Append messages to a thread, all or none.",
        OPERATIONS["append_messages"],
        ("messages", "expected_message_count"),
    ),
    Tool(
        "get_thread_state",
        "The typed state of a thread by key, now or at a past revision.",
        OPERATIONS["read_state"],
        ("revision",),
    ),
    Tool(
        "list_runs",
        "Runs of agents, newest first, with their status. stuck=true: only stuck runs.",
        OPERATIONS["list_runs"],
        ("thread_id", "status", "agent_id", "stuck", *_PAGED),
    ),
    Tool(
        "get_run",
        "A run of an agent: its status, what it waits for, its progress, and why it is stuck.",
        OPERATIONS["get_run"],
    ),
    Tool(
        "list_tickets",
        "Tickets, newest first: questions of suspended runs to a person, each with its tool call"
        " and the response_schema that an answer must match.",
        OPERATIONS["list_tickets"],
        ("status", *_PAGED),
    ),
    Tool(
        "decide_ticket",
        "Decide a ticket, so that its run resumes or is cancelled. The first decision wins and"
        " cannot be undone: decide only as a person instructed you.",
        OPERATIONS["decide_ticket"],
        ("action", "payload"),
        destroys=True,
    ),
)

TOOLS: Final[Mapping[str, Tool]] = {tool.name: tool for tool in _ALL}
