"""What the answers look like, as JSON Schema: the components of the OpenAPI document.

The views build their answers by hand, because stored JSON goes out as its own text; a serializer
could not. tests/contract/test_openapi.py holds the two together.
"""

from __future__ import annotations

from typing import Any

from state_admin.models import (
    Merge,
    MessageRole,
    StateScope,
)
from state_admin.services.errors import problem_types

Shape = dict[str, Any]

ANY: Shape = {}
TEXT: Shape = {"type": "string"}
WHOLE: Shape = {"type": "integer"}
NUMBER: Shape = {"type": "number"}
FLAG: Shape = {"type": "boolean"}
TIME: Shape = {"type": "string", "format": "date-time"}
DAY: Shape = {"type": "string", "format": "date"}
OBJECT: Shape = {"type": "object"}


def null(shape: Shape) -> Shape:
    """The shape, or null."""
    if "type" in shape and "enum" not in shape:
        return {**shape, "type": [shape["type"], "null"]}
    return {"oneOf": [shape, {"type": "null"}]}


def many(shape: Shape) -> Shape:
    return {"type": "array", "items": shape}


def one_of(choices: Any) -> Shape:
    return {"type": "string", "enum": [str(getattr(each, "value", each)) for each in choices]}


def ref(name: str) -> Shape:
    return {"$ref": f"#/components/schemas/{name}"}


def shape(optional: Shape | None = None, /, **fields: Shape) -> Shape:
    """An object in which all `fields` are there, those of `optional` sometimes."""
    return {
        "type": "object",
        "properties": {**fields, **(optional or {})},
        "required": sorted(fields),
    }


def page(name: str) -> Shape:
    """A list of a component. `next_cursor` null: that was all."""
    return shape(items=many(ref(name)), next_cursor=null(TEXT))


_FAULT = shape(pointer=TEXT, message=TEXT)
_PLUGIN = {"name": TEXT, "description": TEXT, "installed_at": TIME}

SHAPES: dict[str, Shape] = {
    "Problem": {
        **shape(
            {
                "hint": {**TEXT, "description": "What to do"},
                "instance": {**TEXT, "description": "The id of the request"},
                "errors": {
                    **many(_FAULT),
                    "description": "Each JSON pointer and what is wrong there",
                },
            },
            type={
                **TEXT,
                "description": "The problem type, and the path of the page that explains it: "
                + ", ".join(
                    f"`/problems/{kind.slug}` ({kind.status} {kind.title})"
                    for kind in problem_types()
                ),
            },
            title={**TEXT, "description": "Constant per problem type"},
            status={**WHOLE, "description": "The HTTP status code"},
            detail={**TEXT, "description": "The message of this occurrence"},
        ),
        "description": "A problem document (RFC 9457). Some types have further members: `expected`"
        " and `actual` of a conflict, `limit`, `retry_after`.",
        "additionalProperties": True,
    },
    "Namespace": shape(
        name=TEXT,
        schema={"type": ["object", "boolean"]},
        schema_version=WHOLE,
        default=ANY,
        description=TEXT,
        plugin=TEXT,
        max_value_bytes=WHOLE,
        ttl_seconds=null(WHOLE),
        history=shape(keep_last=null(WHOLE), keep_seconds=null(WHOLE)),
        created_at=TIME,
        updated_at=TIME,
    ),
    "DryRun": shape(dry_run={"const": True}),
    "Cleared": shape(deleted=WHOLE, matched=WHOLE),
    "StateKey": shape(
        key=TEXT,
        schema={"type": ["object", "boolean"]},
        default=ANY,
        merge=one_of(Merge.values),
        scope=one_of(StateScope.values),
        reducer=TEXT,
        persistent=FLAG,
        retain_on_uninstall=FLAG,
        plugin=TEXT,
        description=TEXT,
        created_at=TIME,
        updated_at=TIME,
    ),
    "Plugin": shape(**_PLUGIN, state_keys=many(ref("StateKey")), namespaces=many(ref("Namespace"))),
    "PluginRow": shape(**_PLUGIN, state_keys=many(TEXT), namespaces=many(TEXT)),
    "PluginRemoval": shape(
        dry_run=FLAG,
        would_remove=shape(
            state_keys=WHOLE,
            threads=WHOLE,
            values=WHOLE,
            retained=WHOLE,
            namespaces=WHOLE,
            entries=WHOLE,
        ),
    ),
    "UIMessage": shape(
        id=TEXT,
        role=one_of([MessageRole.SYSTEM, MessageRole.USER, MessageRole.ASSISTANT]),
        metadata=shape(run_id=null(TEXT), created_at=TIME),
        parts=many(OBJECT),
    ),
    "AgentThread": shape(
        thread_id=TEXT,
        created_at=TIME,
        updated_at=TIME,
        metadata=OBJECT,
        status=one_of(["idle", "busy", "interrupted", "error"]),
        values=OBJECT,
        interrupts=OBJECT,
    ),
    "AgentState": OBJECT,
    "StoreItem": shape(
        namespace=many(TEXT),
        key=TEXT,
        value=OBJECT,
        version=WHOLE,
        created_at=TIME,
        updated_at=TIME,
    ),
}
