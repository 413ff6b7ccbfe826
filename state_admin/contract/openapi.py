"""The OpenAPI 3.1 document, generated from the operations of the contract."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from inspect import cleandoc
from typing import Any, Final

import msgspec

from state_admin import __version__
from state_admin.domain.config import Kind
from state_admin.domain.numbers import MAX_WHOLE
from state_admin.domain.scopes import NAME, PRINTABLE

from .base import JSON_TYPE, DryRun, Operation
from .problems import Problem

Schema = dict[str, Any]

_REF: Final = "#/components/schemas/{name}"
# The slugs that every operation can return, by what it has. A body is refused where none is declared.
_ALWAYS: Final = (
    "bad-request",
    "unauthenticated",
    "forbidden",
    "unsupported-media-type",
    "rate-limited",
    "internal",
    "unavailable",
    "workspace-moved",
    "misdirected-request",
)
_WITH_BODY: Final = ("too-large", "request-timeout", "invalid")
# Path parameters that cannot cause `not-found`: a namespace causes `not-registered` instead, and an
# absent key or agent has defaults.
_OPTIONAL: Final = {"namespace", "key", "agent_id"}


def _header(description: str, **schema: Any) -> Schema:
    """A header, whose value is a string unless `schema` says otherwise."""
    return {"schema": {"type": "string", **schema}, "description": description}


_ETAG_PATTERN: Final = r'^(W/)?"[0-9]{1,18}"$'
REQUEST_HEADERS: Final[dict[str, Schema]] = {
    "If-Match": _header(
        "Perform the operation only if the current version or revision is this one:"
        " the ETag of a previous response, with its quotes.",
        pattern=_ETAG_PATTERN,
        examples=['"41"'],
    ),
    "If-None-Match": _header("`*`: create only, never replace.", enum=["*"]),
    "If-Changed": _header(
        "`true`: a write of an equal value creates no new version.", enum=["true", "false"]
    ),
    "On-Conflict": _header(
        "`merge`, together with If-Match: merge with concurrent changes that do not"
        " overlap instead of refusing the write. Objects are merged by member, arrays by item.",
        enum=["merge"],
    ),
    "Prefer": _header(
        "`return=minimal` (RFC 7240): the response has the version of what was written,"
        " but not the value. Other preferences are ignored, and so is this one in a dry run.",
        examples=["return=minimal"],
    ),
    "Last-Event-ID": _header("Id of the last event received; the stream continues after it."),
    "Idempotency-Key": _header(
        "A unique key of this request. A repetition with the same key within 24 hours"
        " returns the first response and does nothing.",
        minLength=1,
        maxLength=255,
    ),
    "Change-Reason": _header(
        "Why the change is made; kept in history and audit. UTF-8.", maxLength=1000
    ),
    "Run-Id": _header(
        "The run on whose behalf the change is made; kept in history and audit. UTF-8.",
        maxLength=128,
    ),
}
# What a header of writes means on a read.
_READ_HEADERS: Final[dict[str, Schema]] = {
    "If-None-Match": _header("An ETag: 304 if the version is still this one.", examples=['"41"']),
}
_RESPONSE_HEADERS: Final[dict[str, Schema]] = {
    "ETag": _header(
        "Version or revision of the resource, in quotes. Send it as If-Match.", examples=['"41"']
    ),
    "Location": _header(
        "Path of the new resource, or of the job that a worker performs.",
        examples=["/api/v1/dispatches/7"],
    ),
    "Idempotent-Replayed": _header(
        "`true`: the response to an earlier request with this Idempotency-Key; this one "
        "changed nothing. Absent otherwise.",
        enum=["true"],
    ),
    "Accept": _header(
        "The media types that the operation accepts for the request body.", examples=[JSON_TYPE]
    ),
    "Accept-Patch": _header(
        "The media types that the operation accepts for the request body.",
        examples=["application/merge-patch+json"],
    ),
    "Preference-Applied": _header(
        "The preference that the response follows. Absent without one.", examples=["return=minimal"]
    ),
    "Retry-After": _header(
        "Seconds to wait before the request is repeated.", type="integer", minimum=0
    ),
    "Read-From": _header(
        "`replica`: a read replica responded, whose state may be some seconds old. Absent otherwise.",
        enum=["replica"],
    ),
    "X-Pagination-Total": _header(
        "The number of threads that the search finds.", type="integer", minimum=0
    ),
    "X-Pagination-Next": _header(
        "The `offset` of the next page. Absent on the last one.", type="integer", minimum=0
    ),
    "x-vercel-ai-ui-message-stream": _header(
        "The version of the AI SDK's stream protocol.", enum=["v1"]
    ),
    "WWW-Authenticate": _header(
        "The scheme of authentication.", examples=['Bearer realm="commonhold"']
    ),
    "RateLimit-Policy": _header(
        "The rate limit of the token: `q` requests per `w` seconds. Absent if it has no limit.",
        examples=['"token";q=600;w=60'],
    ),
    "RateLimit": _header(
        "`r`: remaining requests. `t`: seconds until all requests are available again if "
        "none is sent; with status 429, seconds until the next request is accepted.",
        examples=['"token";r=599;t=1'],
    ),
}
_HEADER_REF: Final = "#/components/headers/{name}"
_LIMITS: Final = ("RateLimit-Policy", "RateLimit")


def _headers(*names: str) -> Schema:
    """References to the response headers of these names."""
    return {name: {"$ref": _HEADER_REF.format(name=name)} for name in names}


def _problem_headers(op: Operation, status: int, slugs: set[str]) -> Schema:
    """The headers of a response with a problem of one of these types (rest/problems.py). A repeated
    request may get the stored one."""
    names: dict[int, tuple[str, ...]] = {
        401: ("WWW-Authenticate",),
        409: ("Retry-After",) if "in-flight" in slugs else (),
        412: ("ETag",),
        415: ("Accept-Patch" if op.method == "PATCH" else "Accept",),
        429: ("Retry-After", *_LIMITS),
        503: ("Retry-After",),
    }
    replayed = ("Idempotent-Replayed",) if op.keeps(status) else ()
    headers = _headers(*names.get(status, ()), *replayed)
    return {"headers": headers} if headers else {}


_STATUSES: Final = {
    200: "OK",
    201: "Created",
    202: "Accepted; processed in the background",
    204: "Deleted, or already absent",
    304: "Not modified",
}


TAGS: Final[dict[str, str]] = {
    "namespaces": "A namespace has a JSON Schema and a default for its entries.",
    "entries": "An entry is a versioned value under a namespace and a key.",
    "state keys": "Typed keys of the state of a thread, with their merge strategies.",
    "plugins": "Sets of state keys and namespaces that are installed together.",
    "config": "Providers, models and agents. Secrets can be written but not read.",
    "threads": "A thread has messages and a state.",
    "messages": "The conversation of a thread, and the part of it that a model receives.",
    "snapshots": "The state of a thread at a revision.",
    "runs": "One execution of an agent on a thread; its steps are committed atomically.",
    "tickets": "Decisions that a suspended run waits for.",
    "dispatches": "The mailbox of a thread: work that agents claim, acknowledge and retry.",
    "compactions": "Summaries that shorten a thread's context, and the removal of old history.",
    "compaction policies": "When context is compacted, by workspace, agent and thread.",
    "search": "Full-text search in entries.",
    "provenance": "Which versions of entries a run read, and which runs read an entry.",
    "storage": "How much is stored, and where.",
    "changes": "The change feed, by polling or as a stream.",
    "webhooks": "Changes delivered to an URL.",
    "management": "Workspaces, members and API tokens.",
    "audit": "Who did what, when and why.",
    "reverts": "Jobs that undo the writes of a request, or all writes since a moment.",
    "access": "The caller, its permissions and its usage.",
    "frontends": "A thread in the protocols of AG-UI and the AI SDK.",
    "agent protocol": "The Agent Protocol, as LangGraph's SDK speaks it.",
}


def document(operations: Iterable[Operation], problems: Mapping[str, Any]) -> Schema:
    """The whole document. `problems`: the problem types by slug."""
    path_items, components = paths(operations, problems)
    return {
        "openapi": "3.1.1",
        "info": {
            "title": "Commonhold",
            "version": __version__,
            "description": "Typed, scoped, versioned, shared state for AI agents. Percent-encode ids "
            "and keys in paths; a slash within an id is `%2F`.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
            "contact": {"name": "Maintainers of Commonhold"},
        },
        "servers": [{"url": "/", "description": "The server that serves this document."}],
        "tags": [{"name": name, "description": TAGS[name]} for name in TAGS],
        "paths": path_items,
        "components": {
            "schemas": components,
            "headers": _RESPONSE_HEADERS,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "ch_…"},
                "session": {"type": "apiKey", "in": "cookie", "name": "commonhold_session"},
            },
        },
    }


def paths(operations: Iterable[Operation], problems: Mapping[str, Any]) -> tuple[Schema, Schema]:
    """The `paths` and the component schemas. `problems`: the problem types by slug."""
    operations = list(operations)
    types = list(dict.fromkeys(each for op in operations for each in _types_of(op)))
    schemas, components = msgspec.json.schema_components(types, ref_template=_REF)
    components = {_component(name): _renamed(part) for name, part in components.items()}
    for part in components.values():
        _complete(part)
    struct_schemas = dict(zip(types, map(_renamed, schemas), strict=True))
    path_items: Schema = {}
    for op in operations:
        path_items.setdefault(f"/api/v1{op.path}", {})[op.method.lower()] = _operation(
            op, struct_schemas, components, problems
        )
    return path_items, components


def _types_of(op: Operation) -> Iterator[Any]:
    yield Problem
    if op.body is not None:
        yield op.body
    for answer in (*op.answers.values(), op.dry_run):
        yield from _choices(answer)
    if op.dry_run is not None:
        yield DryRun


def _choices(answer: Any) -> tuple[Any, ...]:
    """The types that a response can have."""
    if isinstance(answer, tuple):
        return answer
    return () if answer is None else (answer,)


def _component(name: str) -> str:
    """msgspec names a page of tickets Page_Ticket_."""
    listed = re.fullmatch(r"Page_(\w+)_", name)
    return f"{listed[1]}Page" if listed else name


def _renamed(part: Any) -> Any:
    if isinstance(part, dict):
        if isinstance(part.get("type"), list) and None in part.get("enum", ()):
            # Generators make three classes of an enumeration with null, and one of this.
            values = [each for each in part["enum"] if each is not None]
            rest = {name: each for name, each in part.items() if name not in ("type", "enum")}
            part = {**rest, "anyOf": [{"type": "string", "enum": values}, {"type": "null"}]}
        return {
            name: f"{_REF[:-6]}{_component(each.rpartition('/')[2])}"
            if name == "$ref"
            else _renamed(each)
            for name, each in part.items()
        }
    if isinstance(part, list):
        return [_renamed(each) for each in part]
    return part


def _complete(component: Schema) -> None:
    component.pop("title", None)
    if "description" in component:  # before Python 3.13, docstrings keep their indentation
        component["description"] = cleandoc(component["description"])
    for schema in component.get("properties", {}).values():
        if schema.get("default", ...) is None:
            del schema["default"]
        # Of a field that may also be null, msgspec describes the other type.
        described = [each for each in schema.get("anyOf", ()) if "description" in each]
        if "description" not in schema and len(described) == 1:
            (alternative,) = described
            for name in {"description", "examples"} & alternative.keys():
                schema[name] = alternative.pop(name)


def _operation(
    op: Operation,
    struct_schemas: Mapping[Any, Schema],
    components: Schema,
    problems: Mapping[str, Any],
) -> Schema:
    document: Schema = {
        "operationId": op.id,
        "tags": [op.tag],
        "summary": op.summary,
        "description": op.description or f"{op.summary}.",
        "parameters": list(_parameters(op)),
        "responses": _responses(op, struct_schemas, components, problems),
        "security": [{"bearer": []}, *([{"session": []}] if op.session else [])],
    }
    if op.body is not None:
        content: Schema = {"schema": struct_schemas[op.body]}
        if (example := example_of(struct_schemas[op.body], components)) is not None:
            content["example"] = example
        document["requestBody"] = {
            "required": op.body_required,
            "content": {kind: content | _own_example(op, kind) for kind in op.media_types},
        }
    return document


def _own_example(op: Operation, media_type: str) -> Schema:
    return {"example": op.examples[media_type]} if media_type in op.examples else {}


def _parameters(op: Operation) -> Iterator[Schema]:
    for name in op.path_parameters:
        parameter = path_parameter(name)
        if name == "key":
            parameter["description"] += " Slashes may be sent as they are."
        elif name.endswith("_id") and parameter["schema"]["pattern"] == PRINTABLE:
            parameter["description"] += " Send a slash in it as %2F."
        yield {"name": name, "in": "path", "required": True, **parameter}
    for name, schema in op.parameters.items():
        rest = {k: v for k, v in schema.items() if k != "description"}
        yield {
            "name": name,
            "in": "query",
            "required": name in op.required,
            "description": schema.get("description", ""),
            "schema": rest,
        }
    headers = op.headers
    if not op.reads and op.kept:
        headers += ("Idempotency-Key", "Change-Reason", "Run-Id")
    described = REQUEST_HEADERS | _READ_HEADERS if op.reads else REQUEST_HEADERS
    for name in headers:
        yield {"name": name, "in": "header", "required": False, **described[name]}


def path_parameter(name: str) -> Schema:
    """The schema and the description of a path parameter. Only the OpenAPI document adds how to
    encode it in a URL."""
    schema: Schema = {"type": "string", "minLength": 1, "maxLength": 128, "pattern": PRINTABLE}
    if name in ("namespace", "name", "record_id"):
        schema = {"type": "string", "pattern": f"^{NAME}$"}
    if name == "key":
        schema["maxLength"] = 512
    if name == "kind":
        # The kind of the records in examples.
        schema = {
            "type": "string",
            "enum": [str(each) for each in Kind],
            "examples": [str(Kind.PROVIDERS)],
        }
    if name == "revision":
        schema = {"type": "integer", "minimum": 0, "maximum": MAX_WHOLE}
    noun = name.removesuffix("_id")
    return {"schema": schema, "description": _PATH_DESCRIPTIONS.get(name, f"Id of the {noun}.")}


_PATH_DESCRIPTIONS: Final = {
    "namespace": "Name of the namespace.",
    "name": "Name.",
    "key": "Key within the namespace, such as `global` or `thread::thread-1`.",
    "kind": "Kind of config record.",
    "workspace": "Slug of the workspace.",
    "revision": "Revision of the thread's state.",
}


def _responses(
    op: Operation,
    struct_schemas: Mapping[Any, Schema],
    components: Schema,
    problems: Mapping[str, Any],
) -> Schema:
    answers: dict[int, list[Schema]] = {}
    for status, answer in op.answers.items():
        answers[status] = [struct_schemas[each] for each in _choices(answer)]
    if op.dry_run is not None:
        mark = struct_schemas[DryRun]
        marked = [
            mark if each is DryRun else {"allOf": [mark, struct_schemas[each]]}
            for each in _choices(op.dry_run)
        ]
        answers[200] = [*answers.get(200, []), *marked]
    responses: Schema = {}
    for status, schemas in sorted(answers.items()):
        # 204 to a write is the response to `Prefer: return=minimal`.
        minimal = status == 204 and op.etag
        response: Schema = {"description": "Stored" if minimal else _STATUSES[status]}
        if schemas:
            schema = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
            content: Schema = {"schema": schema} | _own_example(op, op.answer_type)
            if op.answer_type == JSON_TYPE:
                content["example"] = example_of(schemas[0], components)
            response["content"] = {op.answer_type: content}
        names: tuple[str, ...] = ("ETag",) if op.etag else ()
        if op.location and status != 200:  # 200 is a dry run
            names += ("Location",)
        if op.keeps(status):
            names += ("Idempotent-Replayed",)
        if "Prefer" in op.headers and (minimal or not op.etag):
            names += ("Preference-Applied",)
        if op.replica:
            names += ("Read-From",)
        names += op.response_headers
        response["headers"] = _headers(*names, *_LIMITS)
        responses[str(status)] = response
    return responses | _problem_responses(op, problems)


def problems_of(op: Operation) -> set[str]:
    """The slugs of the problem types that the operation can return."""
    slugs = {*_ALWAYS, *op.problems}
    if op.body is not None:
        slugs |= {*_WITH_BODY}
    if op.method not in ("PUT", "DELETE") and set(op.path_parameters) - _OPTIONAL:
        # PUT creates an absent resource, and DELETE of one succeeds. Those that differ declare it.
        slugs.add("not-found")
    if not op.reads:
        slugs.add("workspace-frozen")
    if not op.reads and op.kept:
        # Of the Idempotency-Key: in use, or used for another request, or its response was removed.
        slugs |= {"in-flight", "conflict", "invalid", "gone"}
    return slugs


def _problem_responses(op: Operation, problems: Mapping[str, Any]) -> Schema:
    by_status: dict[int, list[Any]] = {}
    for slug in sorted(problems_of(op)):
        by_status.setdefault(problems[slug].status, []).append(problems[slug])
        if slug == "revision-conflict" and "If-Match" in op.headers:  # rest/problems.py
            by_status.setdefault(412, []).append(problems[slug])
    return {
        str(status): {
            "description": " ".join(
                f"[{kind.title}](/problems/{kind.slug}): {kind.meaning}" for kind in kinds
            ),
            "content": {op.problem_type: {"schema": {"$ref": _REF.format(name="Problem")}}},
            **_problem_headers(op, status, {kind.slug for kind in kinds}),
        }
        for status, kinds in sorted(by_status.items())
    }


# Examples ------------------------------------------------------------------------------------


def example_of(schema: Schema, components: Schema) -> Any:
    """An example that the schema accepts, from the examples of its fields."""
    if "examples" in schema:
        return schema["examples"][0]
    if "$ref" in schema:
        return example_of(components[schema["$ref"].rpartition("/")[2]], components)
    if "default" in schema:
        return schema["default"]
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return example_of(schema["anyOf"][0], components)
    if "allOf" in schema:
        parts = [example_of(part, components) for part in schema["allOf"]]
        return {name: member for part in parts for name, member in part.items()}
    match schema.get("type"):
        case "object":
            members = schema.get("properties", {}).items()
            return {name: example_of(part, components) for name, part in members}
        case "array":
            return [example_of(schema["items"], components)] if schema.get("items") else []
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return True
        case "string":
            return "text"
    return None
