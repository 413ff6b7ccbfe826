"""The OpenAPI document: what drf-spectacular cannot read off views that answer by hand.

OPERATIONS declares for each operation its query parameters and its answers (shapes.py); request
bodies come from the serializers. The views of the API and of the protocols refuse a request that
the declaration does not allow (Schema.check_request). The document is committed as
docs/openapi.json.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from drf_spectacular.extensions import (
    OpenApiAuthenticationExtension,
    OpenApiSerializerFieldExtension,
)
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import ResolvedComponent
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request

from state_admin.domain.config import Kind
from state_admin.domain.scopes import NAME
from state_admin.services.errors import BadRequest, UnsupportedMediaType

from .pagination import DEFAULT_LIMIT, MAX_LIMIT
from .parameters import read_query
from .shapes import FLAG, SHAPES, TEXT, Shape, many, one_of, page, ref
from .waiting import MAX_WAIT


class Operation(NamedTuple):
    """The answers by status (None: no body), the query parameters, and which headers count.

    `dry_run`: the answer to a dry run. An operation that has one takes `?dry_run=true`, and the
    base of the views runs it in a transaction that is rolled back (endpoint.py).
    """

    answers: dict[int, Shape | None]
    query: dict[str, Shape] = {}
    headers: tuple[str, ...] = ()
    dry_run: Shape | None = None

    @property
    def parameters(self) -> dict[str, Shape]:
        """All query parameters."""
        return self.query if self.dry_run is None else {**self.query, "dry_run": _DRY_RUN}


_SWITCH = {**FLAG, "default": False}
_DRY_RUN = {
    **_SWITCH,
    "description": "true: validate and count, change nothing; the answer has `dry_run: true`",
}
_COUNT = {"type": "integer", "minimum": 0}
_VERSION = {"type": "integer", "minimum": 1}
_WAIT = {"type": "integer", "minimum": 0, "maximum": MAX_WAIT}
_PAGE = {
    "limit": {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT},
    "cursor": TEXT,
}
_GUARDS = ("If-Match", "If-None-Match", "If-Changed", "On-Conflict")


def _dry(name: str) -> Shape:
    """The answer that the operation would give, marked as that of a dry run."""
    return {"allOf": [ref("DryRun"), ref(name)]}


def _ok(name: str, *statuses: int) -> dict[int, Shape | None]:
    return dict.fromkeys(statuses or (200,), ref(name))


def _list(name: str, **query: Shape) -> Operation:
    return Operation({200: page(name)}, {**query, **_PAGE})


OPERATIONS: dict[str, Operation] = {
    "list_plugins": _list("PluginRow"),
    "get_plugin": Operation(_ok("Plugin")),
    "install_plugin": Operation(_ok("Plugin", 201), dry_run=_dry("Plugin")),
    "uninstall_plugin": Operation(
        {204: None}, {"entries": one_of(["retain", "delete"])}, dry_run=ref("PluginRemoval")
    ),
    "watch_thread": Operation({200: TEXT}, headers=("Last-Event-ID",)),
    "join_run": Operation({200: TEXT}),
    "list_ui_messages": Operation({200: {"type": "array", "items": ref("UIMessage")}}),
    "stream_ui_message": Operation({200: TEXT, 204: None}),
    "get_store_item": Operation(
        {200: {"oneOf": [ref("StoreItem"), {"type": "null"}]}},
        {"namespace": TEXT, "key": TEXT, "refresh_ttl": _SWITCH},
    ),
    "put_store_item": Operation({204: None}, headers=_GUARDS[:2]),
    "delete_store_item": Operation({204: None}, headers=_GUARDS[:2]),
    "search_store_items": Operation({200: {"type": "object"}}),
    "list_store_namespaces": Operation({200: {"type": "object"}}),
    "create_agent_thread": Operation(_ok("AgentThread")),
    "search_agent_threads": Operation({200: {"type": "array", "items": {"type": "object"}}}),
    "count_agent_threads": Operation({200: _COUNT}),
    "get_agent_thread": Operation({200: {"type": "object"}}, {"include": many(TEXT)}),
    "patch_agent_thread": Operation({200: {"type": "object"}}),
    "delete_agent_thread": Operation({204: None}),
    "copy_agent_thread": Operation(_ok("AgentThread")),
    "get_agent_state": Operation(_ok("AgentState"), {"subgraphs": _SWITCH, "select": many(TEXT)}),
    "update_agent_state": Operation({200: {"type": "object"}}),
    "get_agent_state_at": Operation(
        _ok("AgentState"), {"subgraphs": _SWITCH, "select": many(TEXT)}
    ),
    "get_agent_state_of": Operation(_ok("AgentState")),
    "list_agent_history": Operation(
        {200: {"type": "array", "items": ref("AgentState")}},
        {
            "limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": 10},
            "before": TEXT,
        },
    ),
    "search_agent_history": Operation({200: {"type": "array", "items": ref("AgentState")}}),
}

_TAG = {"type": "string", "pattern": r'^(W/)?"[0-9]{1,18}"$'}
_HEADERS: dict[str, Shape] = {
    "If-Match": {**_TAG, "description": 'only if the version or revision is this one: "41"'},
    "If-None-Match": {
        "type": "string",
        "description": '"41": 304 when nothing is newer; * on a write: only if it does not exist',
    },
    "If-Changed": {
        **one_of(["true", "false"]),
        "description": "true: a write that would change nothing makes no version",
    },
    "On-Conflict": {
        **one_of(["merge"]),
        "description": "merge: beside If-Match, join changes that do not clash",
    },
    "Last-Event-ID": {"type": "string", "description": "the cursor to go on from"},
    "Idempotency-Key": {
        "type": "string",
        "minLength": 1,
        "maxLength": 255,
        "description": "the same request again gets the first answer, for 24 hours",
    },
    "Change-Reason": {
        "type": "string",
        "maxLength": 1000,
        "description": "why, kept in history and audit; UTF-8",
    },
}
# A query that makes no sense without them.
_REQUIRED = {"from", "to"}


def only_api(endpoints: Any) -> Any:
    """A preprocessing hook: leave out what is no operation."""
    return [each for each in endpoints if each[0].startswith("/api/v1/")]


def finish(result: Any, **_: Any) -> Any:
    """A postprocessing hook: bodies take no unknown fields, and paths say what is legal in them
    (their regular expressions are Django's, not JSON Schema's)."""
    for name, component in result["components"]["schemas"].items():
        if name not in SHAPES:
            component["additionalProperties"] = False
            component.pop("description", None)
    for operations in result["paths"].values():
        for operation in operations.values():
            for parameter in operation.get("parameters", ()):
                if parameter["in"] == "path" and parameter["schema"].get("type") == "string":
                    parameter["schema"] = _PATH.get(parameter["name"], _ID)
    return result


_ID: Shape = {"type": "string", "minLength": 1, "maxLength": 128}
_PATH: dict[str, Shape] = {
    "namespace": {"type": "string", "pattern": f"^{NAME}$"},
    "name": {"type": "string", "pattern": f"^{NAME}$"},
    "key": {"type": "string", "minLength": 1, "maxLength": 512},
    "kind": one_of(Kind),
    "record_id": {"type": "string", "pattern": f"^{NAME}$"},
}


class Schema(AutoSchema):
    """Puts OPERATIONS into the document."""

    @property
    def _operation(self) -> Operation | None:
        return OPERATIONS.get(self.get_operation_id())

    def check_request(self, request: Request) -> dict[str, Any]:
        """Refuse what the operation of `request` does not declare; returns its query parameters
        (parameters.py). For the views' bases; those of the protocols may not import this module.

        Raises BadRequest, UnsupportedMediaType.
        """
        handler = getattr(self.view, str(request.method).lower())
        contract = _CONTRACTS.get(handler.__func__)
        if contract is None:
            contract = _CONTRACTS[handler.__func__] = _contract_of(self.view, handler)
        query: dict[str, Any] = read_query(contract.query, _REQUIRED, request.query_params)
        if request.META.get("CONTENT_LENGTH") not in (None, "", "0"):
            check_body(request, contract.media_types)
        return query

    def get_override_parameters(self) -> Any:
        found = self._operation
        made: list[Any] = [*super().get_override_parameters()]
        for name, schema in (found.parameters if found else {}).items():
            made.append(OpenApiParameter(name, schema, required=name in _REQUIRED))
        headers = list(found.headers if found else ())
        if self.method != "GET":
            headers += getattr(self.view, "write_headers", ("Idempotency-Key", "Change-Reason"))
        made += [
            OpenApiParameter(name, _HEADERS[name], OpenApiParameter.HEADER, required=False)
            for name in headers
        ]
        return made

    def get_request_serializer(self) -> Any:
        """No body, where @extend_schema names none. (Without this: a guess, and an error.)"""
        return None

    def get_response_serializers(self) -> Any:
        return None

    def map_parsers(self) -> Any:
        return ["application/json"]

    def _get_response_bodies(self, direction: Any = "response") -> Any:
        found = self._operation
        answers: dict[int, Shape | None] = found.answers if found else {200: {"type": "object"}}
        if found and found.dry_run is not None:
            real = answers.get(200)
            answers = {**answers, 200: {"anyOf": [real, found.dry_run]} if real else found.dry_run}
        made: dict[str, Any] = {}
        for status, schema in sorted(answers.items()):
            made[str(status)] = {"description": _DESCRIPTIONS[status]}
            if schema is not None:
                self._register(schema)
                kind = "text/event-stream" if schema is TEXT else "application/json"
                made[str(status)]["content"] = {kind: {"schema": schema}}
        self._register(ref("Problem"))
        made["default"] = {
            "description": "Refused, or failed: a problem document",
            "content": {
                getattr(self.view, "error_type", "application/problem+json"): {
                    "schema": ref("Problem")
                }
            },
        }
        return made

    def _register(self, schema: Any) -> None:
        """Put the components into the document that `schema` refers to."""
        if isinstance(schema, list):
            for part in schema:
                self._register(part)
        if not isinstance(schema, dict):
            return
        for name, part in schema.items():
            if name != "$ref":
                self._register(part)
                continue
            known = part.rpartition("/")[2]
            component = ResolvedComponent(  # type: ignore[no-untyped-call]
                name=known, type=ResolvedComponent.SCHEMA, schema=SHAPES[known], object=known
            )
            if component not in self.registry:
                self.registry.register(component)
                self._register(SHAPES[known])


_DESCRIPTIONS = {
    200: "Done, or read",
    201: "Made",
    202: "Taken on: a worker does it",
    204: "Gone, or it was not there",
    304: "Nothing is newer",
}


class _Contract(NamedTuple):
    """What a handler accepts: query parameters, and the media types of a body ((): no body)."""

    query: Mapping[str, Shape]
    media_types: tuple[str, ...]


_CONTRACTS: dict[Callable[..., Any], _Contract] = {}
_JSON = "application/json"
_SAFE = ("GET", "HEAD", "OPTIONS")


def _contract_of(view: Any, handler: Any) -> _Contract:
    """What @extend_schema and OPERATIONS say about a handler; OPTIONS is no operation."""
    if "schema" not in getattr(handler, "kwargs", {}):
        return _Contract({}, ())
    schema = handler.kwargs["schema"]()
    schema.view = view
    body = schema.get_request_serializer()
    media_types = tuple(body) if isinstance(body, dict) else (_JSON,) if body else ()
    return _Contract(OPERATIONS[schema.get_operation_id()].parameters, media_types)


def check_body(request: Request, media_types: tuple[str, ...]) -> None:
    """Refuse a body of another type, or one that an operation without a body would ignore."""
    supported = media_types or (_JSON,)
    media_type = (request.content_type or "").partition(";")[0].strip().lower()
    if media_type not in supported:
        raise UnsupportedMediaType(
            f"unsupported Content-Type: {media_type}" if media_type else "Content-Type is missing",
            hint=f"Send one of: {', '.join(supported)}.",
            supported=list(supported),
        )
    if media_types or request.method in _SAFE:
        return
    body: Any = request.data
    if body.value != {}:
        raise BadRequest("this operation takes no request body")


class _Bearer(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "state_admin.api.authentication.TokenAuthentication"
    name = "bearer"

    def get_security_definition(self, auto_schema: Any) -> Any:
        return {"type": "http", "scheme": "bearer", "bearerFormat": "ch_…"}


class _Page(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "state_admin.api.authentication.PageAuthentication"
    name = "session"

    def get_security_definition(self, auto_schema: Any) -> Any:
        return {"type": "apiKey", "in": "cookie", "name": "commonhold_session"}


class _AnyValue(OpenApiSerializerFieldExtension):  # type: ignore[no-untyped-call]
    target_class = "state_admin.api.bodies.RawField"

    def map_serializer_field(self, auto_schema: Any, direction: Any) -> Any:
        # All types but null, which the field's nullability adds.
        return {"type": ["array", "boolean", "number", "object", "string"]}
