"""What the paths of the Agent Protocol share: `x-api-key`, bodies, errors with a `detail`."""

from __future__ import annotations

import re
from typing import Any

from django.http import HttpRequest, HttpResponse
from rest_framework.request import Request

from state_admin.domain import values
from state_admin.domain.values import JSON, Fault, Raw
from state_admin.protocols.endpoint import Endpoint as Base
from state_admin.services.errors import BadRequest, Invalid

# More rows than this nobody asks for at once.
MOST = 1000


class Endpoint(Base):
    error_type = "application/json"  # for the document

    def initialize_request(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Request:
        """LangGraph's SDK shows its key by `x-api-key`: a token of ours."""
        key = request.META.get("HTTP_X_API_KEY")
        if key and "HTTP_AUTHORIZATION" not in request.META:
            request.META["HTTP_AUTHORIZATION"] = f"Bearer {key}"
        return super().initialize_request(request, *args, **kwargs)

    def handle_exception(self, exc: Exception) -> HttpResponse:  # type: ignore[override]
        """The problem document as plain JSON: the protocol's errors are objects with a `detail`."""
        response = super().handle_exception(exc)
        response["Content-Type"] = "application/json"
        return response


def take(raw: Any, **kinds: type) -> dict[str, Raw]:
    """The fields of a body by name, each of its kind; null counts as absent. BadRequest names the
    unknown ones, Invalid the wrong ones."""
    if not isinstance(raw, Raw) or not isinstance(raw.value, dict):
        raise BadRequest("the body must be a JSON object")
    given = values.members(raw)
    if unknown := sorted(given.keys() - kinds.keys()):
        raise BadRequest(
            f"unknown field: {', '.join(unknown)}", hint=f"Known fields: {', '.join(kinds)}."
        )
    given = {name: part for name, part in given.items() if part.value is not None}
    faults = [
        Fault(values.pointer_of(name), f"must be {_KINDS[kinds[name]]}")
        for name, part in given.items()
        if not _is(part.value, kinds[name])
    ]
    if faults:
        raise Invalid(f"{faults[0].pointer[1:]} {faults[0].message}", faults)
    return given


def _is(value: JSON, kind: type) -> bool:
    if isinstance(value, bool) and kind in (int, float):
        return False
    return isinstance(value, (int, float) if kind is float else kind)


_KINDS: dict[type, str] = {
    str: "a string",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    dict: "an object",
    list: "a list",
    object: "a value",
}


def refuse(given: dict[str, Raw], *names: str) -> None:
    """Invalid for what the SDK can ask and we do not do: better said than left out."""
    asked = [name for name in names if name in given and given[name].value is not False]
    if asked:
        faults = [Fault(values.pointer_of(name), "is not offered by this server") for name in asked]
        raise Invalid(f"{asked[0]} is not offered by this server", faults)


def bounds(given: dict[str, Raw], *, limit: int = 10) -> tuple[int, int]:
    """`limit` and `offset` of a body."""
    found = {"limit": limit, "offset": 0} | {
        name: given[name].value for name in ("limit", "offset") if name in given
    }
    if not 1 <= found["limit"] <= MOST:
        raise Invalid(f"limit must be between 1 and {MOST}", [Fault("/limit", "out of range")])
    if not 0 <= found["offset"] < 2**31:
        raise Invalid("offset must be at least 0", [Fault("/offset", "out of range")])
    return found["limit"], found["offset"]


def strings(given: dict[str, Raw], name: str) -> list[str]:
    """A list of strings of a body, [] when it is not there."""
    listed: JSON = given[name].value if name in given else []
    if not all(isinstance(item, str) for item in listed):
        raise Invalid(f"{name} must be a list of strings", [Fault(f"/{name}", "not strings")])
    return list(listed)


def choice(given: dict[str, Raw], name: str, choices: tuple[str, ...], default: str) -> str:
    found: str = given[name].value if name in given else default
    if found not in choices:
        told = f"{name} must be one of {', '.join(choices)}"
        raise Invalid(told, [Fault(f"/{name}", told)])
    return found


_TAG = re.compile(r'(?:W/)?"(\d{1,18})"\Z')


def expected_version(request: Request) -> int | None:
    """The version that If-Match demands; 0 for `If-None-Match: *`; None without either."""
    match, none = (request.META.get(f"HTTP_IF_{name}") for name in ("MATCH", "NONE_MATCH"))
    if match is not None:
        found = _TAG.match(match.strip())
        if found is None:
            raise BadRequest('If-Match takes a version with quotes, for example "41"')
        return int(found[1])
    if none is not None and none.strip() != "*":
        raise BadRequest("If-None-Match on a write takes only *")
    return None if none is None else 0
