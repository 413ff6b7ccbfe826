"""Translates a tool call into a call of the API, and the API's response into the tool's result.

Arguments are read from the body as it was sent, so that a stored value keeps its exact spelling and
duplicate keys are refused as everywhere; the arguments that the SDK has parsed lack both.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, urlencode

from mcp_types import CallToolResult, TextContent

from state_admin.contract.entries import PATCH_TYPES
from state_admin.domain import isolation, values
from state_admin.domain.values import EMPTY_OBJECT, Fault, MalformedJSON, Raw, RefusedJSON
from state_admin.services.errors import BadRequest, Invalid, NotRegistered, Problem, Unavailable

from .host import Answer, Caller, Message
from .tools import Tool

# More than a model can read at once. The result is sent twice: as text, which is exact, and parsed.
MOST_BYTES = 1024 * 1024

_MEDIA_TYPES: dict[str, str] = {kind: media_type for media_type, kind in PATCH_TYPES.items()}
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")
_OPERATIONS = (
    "is not an object with the members to change: for operations, set kind to update or json; to"
    " replace the whole value, use put_state; if it is meant as a merge patch, set kind to merge"
)
_NOT_REGISTERED = (
    "Use list_namespaces to find a namespace. No tool registers one: an admin does it in the REST"
    " API or on the page Namespaces."
)
_ARGUMENTS = "/params/arguments"


def arguments_in(body: bytes) -> dict[str, Raw]:
    """The arguments of a tools/call, each with its exact text. Raises BadRequest, Invalid."""
    try:
        params = values.members(values.read(body)).get("params", EMPTY_OBJECT)
        arguments = values.members(params).get("arguments", EMPTY_OBJECT)
    except MalformedJSON as error:
        raise BadRequest(f"the body is not JSON: {error}") from error
    except RefusedJSON as refused:
        faults = [Fault(f.pointer.removeprefix(_ARGUMENTS), f.message) for f in refused.faults]
        raise Invalid("the arguments cannot be stored", faults) from refused
    return values.members(arguments) if isinstance(arguments.value, dict) else {}


def _are_operations(patch: Any) -> bool:
    """Whether a patch without a kind is hardly meant as a merge patch: one that is not an object
    replaces the whole value, and an operation becomes a part of it."""
    return not isinstance(patch, dict) or (
        {"op", "path"} <= patch.keys() <= {"op", "path", "value", "from"}
    )


def check_arguments(tool: Tool, arguments: Mapping[str, Raw]) -> None:
    """Raise Invalid with the JSON pointer of each invalid argument. Raises Unavailable if the
    validator is busy; the client may retry."""
    properties, needed = tool.takes["properties"], tool.takes["required"]
    # Checked here, because the validator reports both errors without the name of the argument.
    faults = [
        Fault(values.pointer_of(n), "unknown argument") for n in arguments if n not in properties
    ]
    faults += [Fault(values.pointer_of(n), "is missing") for n in needed if n not in arguments]
    for name, raw in arguments.items():
        try:
            values.check(raw, values.pointer_of(name))
        except RefusedJSON as refused:
            faults += refused.faults
    if not faults:
        try:
            faults = tool.validator.faults({name: raw.value for name, raw in arguments.items()})
        except isolation.Busy as busy:
            raise Unavailable(str(busy), hint="Call it again.") from busy
    patch = None if "kind" in arguments else arguments.get("patch")
    if not faults and patch is not None and _are_operations(patch.value):
        faults = [Fault("/patch", _OPERATIONS)]
    if faults:
        raise Invalid(
            f"the arguments of {tool.name} are not valid",
            faults,
            hint=f"Allowed arguments: {', '.join(properties)}. Correct them and call the tool again.",
        )


def request_of(tool: Tool, arguments: Mapping[str, Raw], caller: Caller) -> tuple[Message, bytes]:
    """The API call of a tool call, as an ASGI scope and a body."""
    place = {name: quote(arguments[name].value, safe="") for name in tool.in_path}
    parameters = {name: arguments[name].value for name in tool.query if name in arguments}
    headers = {}
    content = b""
    if tool.body:
        parts = (f'"{name}":{arguments[name].text}' for name in tool.body if name in arguments)
        content = ("{" + ",".join(parts) + "}").encode()
        headers["content-type"] = "application/json"
    if "patch" in arguments:
        content = arguments["patch"].text.encode()
        kind = arguments["kind"].value if "kind" in arguments else "merge"
        headers["content-type"] = _MEDIA_TYPES[kind]
    if "expected_version" in arguments:
        version = arguments["expected_version"].value
        name, tag = ("if-match", f'"{version}"') if version else ("if-none-match", "*")
        headers[name] = tag
    if "reason" in arguments:
        headers["change-reason"] = _CONTROL.sub(" ", arguments["reason"].value).strip()
    if tool.minimal:
        headers["prefer"] = "return=minimal"
    path = "/api/v1" + tool.operation.path.format(**place)
    query = urlencode(parameters, doseq=True)
    scope = caller.scope_of(tool.operation.method, path, query, headers, len(content))
    return scope, content


def does_write(tool: Tool, arguments: Mapping[str, Raw]) -> bool:
    """Whether the call of a tool writes, if it succeeds: a batch may only read."""
    if "operations" in arguments:
        return any(each["op"] != "get" for each in arguments["operations"].value)
    return not tool.reads


def result_of(tool: Tool, answer: Answer, wrote: bool) -> CallToolResult:
    """The tool's result: the response of the API, or its problem document as an error."""
    body, status = answer.body, answer.status
    if status == HTTPStatus.NOT_FOUND:
        return _failed(json.dumps(_advised(tool, json.loads(body)), ensure_ascii=False))
    if status >= HTTPStatus.BAD_REQUEST:
        return _failed(body.decode())
    if len(body) > MOST_BYTES:
        return failure_of(
            Invalid(
                f"the result has {len(body)} bytes; the limit is {MOST_BYTES} bytes",
                hint=("The writes were performed; do not repeat them. " if wrote else "")
                + "Request less: a lower limit, a prefix, no include, or a single entry.",
            )
        )
    text = body.decode() or '{"done":true}'
    return CallToolResult(
        content=[TextContent(type="text", text=text)], structured_content=json.loads(text)
    )


def _advised(tool: Tool, problem: dict[str, Any]) -> dict[str, Any]:
    """A problem document whose hint names tools, because a model cannot call the REST API."""
    if problem["type"] == f"/problems/{NotRegistered.slug}":
        return problem | {"hint": _NOT_REGISTERED}
    return problem | {"hint": tool.hint_if_missing}


def failure_of(problem: Problem, request_id: str = "") -> CallToolResult:
    """A problem document as the result of a tool."""
    return _failed(values.dump(problem.document(request_id)))


def _failed(text: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=True)
