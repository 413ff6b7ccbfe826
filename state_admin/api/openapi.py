"""The OpenAPI document: what drf-spectacular cannot read off views that answer by hand.

OPERATIONS names for each operation its query parameters and its answers (shapes.py); request
bodies come from the serializers. The document is committed as docs/openapi.json.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from drf_spectacular.extensions import (
    OpenApiAuthenticationExtension,
    OpenApiSerializerFieldExtension,
)
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import ResolvedComponent
from drf_spectacular.utils import OpenApiParameter

from state_admin.domain.config import Kind
from state_admin.domain.scopes import NAME, ScopeKind
from state_admin.models import (
    CompactionKind,
    CompactionStatus,
    DeliveryStatus,
    DispatchStatus,
    RunStatus,
    StateScope,
    TicketStatus,
    WebhookStatus,
)
from state_admin.services.storage import GROUPS, MOST_DAYS

from .pagination import MAX_LIMIT
from .shapes import SHAPES, TEXT, TIME, Shape, one_of, page, ref


class Operation(NamedTuple):
    """The answers by status (None: no body), the query parameters, and which headers count."""

    answers: dict[int, Shape | None]
    query: dict[str, Shape] = {}
    headers: tuple[str, ...] = ()


_BOOL = one_of(["true", "false"])
_COUNT = {"type": "integer", "minimum": 0}
_VERSION = {"type": "integer", "minimum": 1}
_WAIT = {"type": "integer", "minimum": 0, "maximum": 30}
_PAGE = {
    "limit": {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": 50},
    "cursor": TEXT,
}
_VALUE = {"include": one_of(["value"])}
_LISTED = {
    "prefix": TEXT,
    "scope_kind": one_of(ScopeKind),
    "updated_since": TIME,
    "tag": TEXT,
    "tags": TEXT,
    "valid": _BOOL,
    **_VALUE,
}
_CLEAR = {"prefix": TEXT, "scope_kind": one_of(ScopeKind), "dry_run": _BOOL}
_FEED = dict.fromkeys(("namespace", "key", "prefix", "thread", "run", "kind", "after"), TEXT)
_AUDIT = dict.fromkeys(
    ("namespace", "key", "thread_id", "run_id", "action", "request_id", "actor"), TEXT
)
_DAYS = {"days": {"type": "integer", "minimum": 1, "maximum": MOST_DAYS, "default": 30}}
_GUARDS = ("If-Match", "If-None-Match", "If-Changed", "On-Conflict")


def _ok(name: str, *statuses: int) -> dict[int, Shape | None]:
    return dict.fromkeys(statuses or (200,), ref(name))


def _list(name: str, **query: Shape) -> Operation:
    return Operation({200: page(name)}, {**query, **_PAGE})


OPERATIONS: dict[str, Operation] = {
    "list_namespaces": _list("Namespace", prefix=TEXT, plugin=TEXT),
    "get_namespace": Operation(_ok("Namespace")),
    "register_namespace": Operation(
        {
            200: {"oneOf": [ref("Namespace"), ref("DryRegistration")]},
            201: ref("Namespace"),
        },
        {"dry_run": _BOOL},
        _GUARDS[:2],
    ),
    "unregister_namespace": Operation({204: None}, {"entries": one_of(["retain", "delete"])}),
    "run_batch": Operation(_ok("BatchResults")),
    "list_state": _list("EntryRow", plugin=TEXT, **_LISTED),
    "list_entries": _list("EntryRow", order=one_of(["asc", "desc"]), before=TEXT, **_LISTED),
    "clear_state": Operation(_ok("Cleared"), _CLEAR),
    "clear_namespace": Operation(_ok("Cleared"), _CLEAR),
    "read_entry": Operation(
        {**_ok("Entry"), 304: None},
        {"at_version": _VERSION, "at": TIME, "wait": _WAIT, "since": _COUNT},
        ("If-None-Match",),
    ),
    "write_entry": Operation(_ok("Entry", 200, 201), headers=_GUARDS),
    "patch_entry": Operation(_ok("Entry", 200, 201), headers=_GUARDS),
    "delete_entry": Operation({204: None}, headers=(*_GUARDS[:2], "On-Conflict")),
    "read_history": _list("EntryVersion", **_VALUE),
    "pin_version": Operation(_ok("EntryVersion")),
    "blame_entry": Operation({200: page("Attribution")}),
    "diff_entry": Operation(_ok("Diff"), {"from": _VERSION, "to": _VERSION}),
    "restore_entry": Operation(_ok("Entry"), headers=_GUARDS[:3]),
    "restore_entries": Operation(_ok("Restoration")),
    "redact_entry": Operation(_ok("Redaction")),
    "erase": Operation(_ok("Erasure")),
    "search": Operation({200: page("Hit")}),
    "list_key": _list("EntryRow", **_VALUE),
    "clear_key": Operation(_ok("Cleared"), {"dry_run": _BOOL}),
    "list_config": _list("RecordRow", prefix=TEXT, **_VALUE),
    "read_config": Operation({**_ok("Record"), 304: None}, headers=("If-None-Match",)),
    "write_config": Operation(_ok("Record", 200, 201), headers=_GUARDS),
    "patch_config": Operation(_ok("Record"), headers=_GUARDS),
    "delete_config": Operation(
        {200: ref("Dependents"), 204: None},
        {"force": _BOOL, "dry_run": _BOOL},
        (*_GUARDS[:2], "On-Conflict"),
    ),
    "read_config_history": _list("EntryVersion", **_VALUE),
    "restore_config": Operation(_ok("Record"), headers=_GUARDS[:3]),
    "list_config_dependents": Operation({200: page("Dependent")}),
    "list_state_keys": _list("StateKey"),
    "get_state_key": Operation(_ok("StateKey")),
    "register_state_key": Operation(_ok("StateKey", 200, 201)),
    "unregister_state_key": Operation(
        {200: ref("StateKeyRemoval"), 204: None},
        {"values": one_of(["retain", "clear"]), "dry_run": _BOOL},
    ),
    "list_plugins": _list("PluginRow"),
    "get_plugin": Operation(_ok("Plugin")),
    "install_plugin": Operation(_ok("Plugin", 201)),
    "uninstall_plugin": Operation(
        {200: ref("PluginRemoval"), 204: None},
        {"entries": one_of(["retain", "delete"]), "dry_run": _BOOL},
    ),
    "list_threads": _list(
        "Thread", resource_id=TEXT, parent_thread_id=TEXT, root=_BOOL, prefix=TEXT, forked_from=TEXT
    ),
    "create_thread": Operation(_ok("Thread", 200, 201)),
    "get_thread": Operation(_ok("Thread")),
    "change_thread": Operation(_ok("Thread"), headers=_GUARDS[:1]),
    "delete_thread": Operation(
        {200: ref("ThreadDeletion"), 204: None},
        {
            "children": one_of(["detach", "reject", "cascade"]),
            "expected_revision": _COUNT,
            "dry_run": _BOOL,
        },
        _GUARDS[:1],
    ),
    "fork_thread": Operation(_ok("Thread", 200, 201)),
    "read_lineage": Operation(_ok("Lineage")),
    "list_messages": _list(
        "Message",
        after=_COUNT,
        before=_COUNT,
        order=one_of(["asc", "desc"]),
        visibility=one_of(["external", "internal", "all"]),
        run_id=TEXT,
    ),
    "append_messages": Operation(_ok("Appended", 201), headers=_GUARDS[:1]),
    "read_context": Operation(_ok("Context"), {"max_tokens": _VERSION}),
    "read_state": Operation(
        {**_ok("Snapshot"), 304: None},
        {"revision": _COUNT, "scope": one_of(StateScope.values), "export": _BOOL},
        ("If-None-Match",),
    ),
    "list_snapshots": _list("Revision"),
    "mark_snapshot": Operation(_ok("Revision")),
    "diff_snapshots": Operation(_ok("Diff"), {"from": _COUNT, "to": _COUNT}),
    "restore_snapshot": Operation(_ok("Snapshot"), headers=_GUARDS[:1]),
    "import_snapshot": Operation(_ok("ImportedSnapshot"), headers=_GUARDS[:1]),
    "start_run": Operation(_ok("Run", 200, 201)),
    "list_runs": _list(
        "Run", thread_id=TEXT, status=one_of(RunStatus.values), agent_id=TEXT, stuck=_BOOL
    ),
    "get_run": Operation(_ok("Run"), {"wait": _WAIT, "since": _COUNT}),
    "change_run": Operation(_ok("Run"), headers=_GUARDS[:1]),
    "commit": Operation(_ok("Committed"), headers=_GUARDS[:1]),
    "heartbeat_run": Operation(_ok("Run")),
    "cancel_run": Operation(_ok("Run"), headers=_GUARDS[:1]),
    "take_lease": Operation(_ok("Run")),
    "release_lease": Operation(_ok("Run"), {"fencing_token": _VERSION}),
    "fail_run": Operation(_ok("Run"), headers=_GUARDS[:1]),
    "resume_run": Operation(_ok("Run")),
    "read_knowledge": Operation(
        _ok("Knowledge"), {"step": _VERSION, "revision": _VERSION, **_PAGE}
    ),
    "list_run_reads": _list("RunRead", stale=_BOOL),
    "list_readers": _list("EntryReader", version=_COUNT),
    "list_run_tickets": _list("Ticket"),
    "list_tickets": _list("Ticket", status=one_of(TicketStatus.values)),
    "get_ticket": Operation(_ok("Ticket"), {"wait": _WAIT}),
    "decide_ticket": Operation(_ok("Ticket")),
    "enqueue_dispatch": Operation(_ok("Dispatch", 201)),
    "interrupt_thread": Operation(_ok("Interruption")),
    "list_dispatches": _list(
        "Dispatch",
        thread_id=TEXT,
        agent_id=TEXT,
        status=one_of(DispatchStatus.values),
        dedupe_key=TEXT,
    ),
    "count_dispatches": Operation(_ok("DispatchCounts"), {"thread_id": TEXT, "agent_id": TEXT}),
    "claim_dispatches": Operation(_ok("Claims"), {"wait": _WAIT}),
    "get_dispatch": Operation(_ok("Dispatch")),
    "extend_dispatch": Operation(_ok("Dispatch")),
    "ack_dispatch": Operation(_ok("Dispatch")),
    "nack_dispatch": Operation(_ok("Dispatch")),
    "cancel_dispatch": Operation(_ok("Dispatch")),
    "replay_dispatch": Operation(_ok("Dispatch")),
    "replay_dead_letters": Operation(_ok("Replayed")),
    "clear_dead_letters": Operation(_ok("Cleared")),
    "request_compaction": Operation(_ok("Compaction", 202)),
    "preview_compaction": Operation(
        {200: {"oneOf": [ref("CompactionPreview"), ref("SnapshotPreview")]}},
        {"kind": one_of(["context", "snapshot"])},
    ),
    "request_history_compaction": Operation(_ok("Compaction", 202)),
    "preview_history_compaction": Operation(_ok("HistoryPreview")),
    "list_compactions": _list(
        "Compaction",
        thread_id=TEXT,
        kind=one_of(CompactionKind.values),
        status=one_of(CompactionStatus.values),
    ),
    "get_compaction": Operation(_ok("Compaction")),
    "list_folded_messages": _list("Message"),
    "undo_compaction": Operation(_ok("Compaction")),
    "cancel_compaction": Operation(_ok("Compaction")),
    "retry_compaction": Operation(_ok("Compaction", 202)),
    "list_policies": Operation({200: page("CompactionPolicy")}),
    "get_workspace_policy": Operation(_ok("CompactionPolicy")),
    "put_workspace_policy": Operation(_ok("CompactionPolicy"), headers=_GUARDS[:1]),
    "delete_workspace_policy": Operation({204: None}, headers=_GUARDS[:1]),
    "get_agent_policy": Operation(_ok("CompactionPolicy")),
    "put_agent_policy": Operation(_ok("CompactionPolicy"), headers=_GUARDS[:1]),
    "delete_agent_policy": Operation({204: None}, headers=_GUARDS[:1]),
    "get_thread_policy": Operation(_ok("CompactionPolicy")),
    "put_thread_policy": Operation(_ok("CompactionPolicy"), headers=_GUARDS[:1]),
    "delete_thread_policy": Operation({204: None}, headers=_GUARDS[:1]),
    "list_changes": Operation(
        {200: page("Change")}, {**_FEED, "wait": _WAIT, "limit": _PAGE["limit"]}
    ),
    "stream_changes": Operation({200: TEXT}, _FEED, ("Last-Event-ID",)),
    "watch_thread": Operation({200: TEXT}, headers=("Last-Event-ID",)),
    "join_run": Operation({200: TEXT}),
    "list_ui_messages": Operation({200: {"type": "array", "items": ref("UIMessage")}}),
    "stream_ui_message": Operation({200: TEXT, 204: None}),
    "get_store_item": Operation(
        {200: {"oneOf": [ref("StoreItem"), {"type": "null"}]}},
        {"namespace": TEXT, "key": TEXT, "refresh_ttl": _BOOL},
    ),
    "put_store_item": Operation({204: None}, headers=_GUARDS[:2]),
    "delete_store_item": Operation({204: None}, headers=_GUARDS[:2]),
    "search_store_items": Operation({200: {"type": "object"}}),
    "list_store_namespaces": Operation({200: {"type": "object"}}),
    "create_agent_thread": Operation(_ok("AgentThread")),
    "search_agent_threads": Operation({200: {"type": "array", "items": {"type": "object"}}}),
    "count_agent_threads": Operation({200: _COUNT}),
    "get_agent_thread": Operation({200: {"type": "object"}}, {"include": TEXT}),
    "patch_agent_thread": Operation({200: {"type": "object"}}),
    "delete_agent_thread": Operation({204: None}),
    "copy_agent_thread": Operation(_ok("AgentThread")),
    "get_agent_state": Operation(_ok("AgentState"), {"subgraphs": _BOOL, "select": TEXT}),
    "update_agent_state": Operation({200: {"type": "object"}}),
    "get_agent_state_at": Operation(_ok("AgentState"), {"subgraphs": _BOOL, "select": TEXT}),
    "get_agent_state_of": Operation(_ok("AgentState")),
    "list_agent_history": Operation(
        {200: {"type": "array", "items": ref("AgentState")}},
        {"limit": {"type": "integer", "minimum": 1, "maximum": 100}, "before": TEXT},
    ),
    "search_agent_history": Operation({200: {"type": "array", "items": ref("AgentState")}}),
    "list_audit": _list("AuditRow", **_AUDIT),
    "get_me": Operation(_ok("Me")),
    "get_usage": Operation(_ok("Usage")),
    "list_storage": _list("Storage", group=one_of(GROUPS), **_DAYS),
    "measure_namespace": Operation(_ok("Storage"), _DAYS),
    "measure_thread": Operation(_ok("Storage"), _DAYS),
    "explain_access": Operation(
        _ok("Explanation"),
        {"token_id": _COUNT, "username": TEXT, "namespace": TEXT, "key": TEXT, "thread_id": TEXT},
    ),
    "list_webhooks": _list("Webhook", status=one_of(WebhookStatus.values)),
    "create_webhook": Operation(_ok("WebhookWithSecret", 201)),
    "get_webhook": Operation(_ok("Webhook")),
    "change_webhook": Operation(_ok("Webhook")),
    "delete_webhook": Operation({204: None}),
    "pause_webhook": Operation(_ok("Webhook")),
    "resume_webhook": Operation(_ok("Webhook")),
    "rotate_webhook_secret": Operation(_ok("WebhookWithSecret")),
    "test_webhook": Operation(_ok("Delivery", 202)),
    "list_deliveries": _list("Delivery", status=one_of(DeliveryStatus.values)),
    "replay_webhook": Operation(_ok("WebhookReplayed", 202)),
    "replay_delivery": Operation(_ok("Delivery", 202)),
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

    def get_override_parameters(self) -> Any:
        found = self._operation
        made: list[Any] = [*super().get_override_parameters()]
        named = {parameter.name for parameter in made if isinstance(parameter, OpenApiParameter)}
        for name, schema in (found.query if found else {}).items():
            if name not in named:
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
        made: dict[str, Any] = {}
        for status, schema in answers.items():
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
