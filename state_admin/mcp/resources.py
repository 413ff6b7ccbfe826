"""Entries as resources: commonhold://entry/{namespace}/{key}.

A resource is the value alone, as JSON text; the other fields of the entry are in `_meta`.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any
from urllib.parse import quote, unquote

from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    ListResourcesResult,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)

from state_admin.domain import scopes, values
from state_admin.models import Entry
from state_admin.rest.pagination import page_of
from state_admin.services import actors
from state_admin.services.errors import BadRequest, Problem

from .host import Answer, Caller, Message

_ROOT = "commonhold://entry/"
_PAGE = 100
_JSON = "application/json"

Address = tuple[str, str]

TEMPLATES = [
    ResourceTemplate(
        name="entry",
        title="An entry of shared state",
        uri_template=_ROOT + "{namespace}/{key}",
        description="The value of an entry as JSON; both parts percent-encoded. Without an entry,"
        " the namespace's default.",
        mime_type=_JSON,
    )
]


def uri_of(namespace: str, key: str) -> str:
    return f"{_ROOT}{quote(namespace, safe='')}/{quote(key, safe='')}"


def address_in(uri: str) -> Address | None:
    """Namespace and key of a URI; None for other resources."""
    namespace, slash, key = uri.removeprefix(_ROOT).partition("/")
    if not (uri.startswith(_ROOT) and slash):
        return None
    try:
        address = unquote(namespace, errors="strict"), unquote(key, errors="strict")
        scopes.check_name(address[0])
        scopes.check_key(address[1])
    except ValueError:  # not UTF-8, or not a valid name or key
        return None
    return address


def list_entries(caller: Caller, cursor: str | None) -> ListResourcesResult:
    """A page of the entries of tracked namespaces that the client may see, newest first. Runs in a
    thread; counts as one call."""
    spend(caller)
    rows = Entry.objects.visible_to(caller.actor).live().open().select_related("namespace")
    # Untracked ones are the storage of a framework, and nobody can subscribe to them.
    rows = rows.filter(namespace__unregistered_at=None, namespace__tracked=True)
    try:
        page = page_of(limit=_PAGE, cursor=cursor, filters=None, path=_ROOT)
    except BadRequest:
        raise MCPError(INVALID_PARAMS, "Invalid cursor", {"cursor": cursor}) from None
    if page.after is not None:
        rows = rows.filter(id__lt=page.after)
    fetched = list(rows.order_by("-id").defer("value")[: page.limit + 1])
    entries, next_cursor = page.close(fetched, attrgetter("pk"))
    return ListResourcesResult(
        resources=[
            Resource(
                uri=uri_of(row.namespace.name, row.key),
                name=f"{row.namespace.name}/{row.key}",
                description=row.namespace.description or None,
                mime_type=_JSON,
                size=row.size_bytes,
            )
            for row in entries
        ],
        next_cursor=next_cursor,
    )


def spend(caller: Caller) -> None:
    """Count a call that does not go through the API against the token's rate limit. Raises MCPError
    beyond it."""
    try:
        actors.admit_token(caller.token)
    except Problem as problem:
        raise error_of(problem) from None


def error_of(problem: Problem) -> MCPError:
    """The error of MCP for a problem, which is its data."""
    return MCPError(INTERNAL_ERROR, problem.detail, problem.document())


def read_request(uri: str, caller: Caller) -> Message:
    """The API call that reads a resource. Raises MCPError for the URI of another resource."""
    address = address_in(uri)
    if address is None:
        raise _absent(uri)
    namespace, key = (quote(part, safe="") for part in address)
    return caller.scope_of("GET", f"/api/v1/state/{namespace}/{key}", "", {}, 0)


def read_result(uri: str, answer: Answer) -> ReadResourceResult:
    """The response of the API as the contents of the resource."""
    if answer.status == 404:
        raise _absent(uri)
    raw = values.read(answer.body)
    if answer.status >= 400:
        problem: Any = raw.value
        raise MCPError(INTERNAL_ERROR, problem["detail"], problem)
    parts = values.members(raw)
    about = {name: parts[name].value for name in ("version", "exists", "updated_at", "actor")}
    return ReadResourceResult(
        contents=[
            TextResourceContents(
                uri=uri,
                mime_type=_JSON,
                text=parts["value"].text,
                _meta={"commonhold/entry": about},
            )
        ]
    )


def _absent(uri: str) -> MCPError:
    # The same error whether the resource is missing, hidden or cannot exist.
    return MCPError(INVALID_PARAMS, "Resource not found", {"uri": uri})
