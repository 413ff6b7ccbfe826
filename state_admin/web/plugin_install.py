"""Installing a plugin from a JSON document, as `PUT /plugins/{name}` accepts it with `name` added.
A preview of what it would register, or its errors, comes first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

from django.http import HttpResponse
from django.urls import path, reverse
from django.views.decorators.http import require_http_methods

from state_admin.domain import values
from state_admin.domain.access import Role
from state_admin.domain.reducers import Reducer
from state_admin.domain.values import MAX_VALUE_BYTES, Fault, Raw
from state_admin.models import Merge, StateScope
from state_admin.services.errors import BadRequest, Invalid, Problem
from state_admin.services.plugins import MAX_PARTS, install_plugin

from . import snippets
from .actors import page
from .drafts import show_refused
from .htmx import Request, render, see_other, toast

# Checks a member of the document: returns what it must be, "" if it is valid. A member with None
# instead of a reader is taken as its exact JSON.
Reader = Callable[[Any], str]

_SHOWN: Final = 50
_LONGEST: Final = 1_000_000
_TEN_YEARS: Final = 10 * 365 * 86400
_EXAMPLE: Final = """{
  "name": "planner",
  "description": "What a planning agent keeps",
  "state_keys": [
    {"key": "planner.steps", "reducer": "append", "scope": "thread", "default": []}
  ],
  "namespaces": [
    {"name": "planner_notes", "schema": {"type": "object"}, "default": {}}
  ]
}"""


def _text(most: int) -> Reader:
    return lambda value: (
        ""
        if isinstance(value, str) and len(value) <= most
        else f"a string of at most {most:,} characters"
    )


def _flag(value: Any) -> str:
    return "" if isinstance(value, bool) else "true or false"


def _one_of(*choices: str) -> Reader:
    return lambda value: "" if value in choices else f"one of {', '.join(choices)}"


def _whole(most: int) -> Reader:
    return lambda value: (
        ""
        if value is None or (type(value) is int and 1 <= value <= most)
        else f"a whole number from 1 to {most:,}, or null"
    )


_STATE_KEY: Final[Mapping[str, Reader | None]] = {
    "key": _text(128),
    "schema": None,
    "default": None,
    "merge": _one_of(*Merge.values),
    "scope": _one_of(*StateScope.values),
    "reducer": _one_of(*(reducer.value for reducer in Reducer)),
    "persistent": _flag,
    "retain_on_uninstall": _flag,
    "description": _text(10_000),
}
_NAMESPACE: Final[Mapping[str, Reader | None]] = {
    "name": _text(128),
    "schema": None,
    "default": None,
    "description": _text(10_000),
    "max_value_bytes": _whole(MAX_VALUE_BYTES),
    "ttl_seconds": _whole(_TEN_YEARS),
    "history": None,
}
_HISTORY: Final[Mapping[str, Reader | None]] = {
    "keep_last": _whole(1_000_000),
    "keep_seconds": _whole(_TEN_YEARS),
}
_DOCUMENT: Final[Mapping[str, Reader | None]] = {
    "name": _text(128),
    "description": _text(10_000),
    "state_keys": None,
    "namespaces": None,
}


@dataclass(frozen=True)
class Document:
    """The arguments of install_plugin."""

    name: str
    description: str
    state_keys: list[dict[str, Any]]
    namespaces: list[dict[str, Any]]


def read_document(text: str) -> Document:
    """The document in `text`. BadRequest if it is not JSON, Invalid with every error if it is not a
    plugin."""
    try:
        raw = values.read(text)
    except values.MalformedJSON as bad:
        raise BadRequest("the plugin is not valid JSON", hint=str(bad)) from bad
    except values.RefusedJSON as refused:
        raise Invalid("the plugin cannot be stored", refused.faults) from refused
    faults: list[Fault] = []
    members = _fields(raw, "", _DOCUMENT, faults, needed=("name",))
    parts = {
        name: _parts(members.get(name), name, rules, needed, faults)
        for name, rules, needed in (
            ("state_keys", _STATE_KEY, "key"),
            ("namespaces", _NAMESPACE, "name"),
        )
    }
    for index, part in enumerate(parts["namespaces"]):
        history = part.pop("history", None)
        kept = _fields(history, f"/namespaces/{index}/history", _HISTORY, faults) if history else {}
        part |= {f"history_{name}": kept.get(name) for name in _HISTORY}
    if faults:
        raise Invalid("not a valid plugin definition", faults)
    for part in parts["state_keys"]:
        part["name"] = part.pop("key")
    return Document(members["name"], members.get("description", ""), **parts)


def _parts(
    raw: Raw | None,
    name: str,
    rules: Mapping[str, Reader | None],
    needed: str,
    faults: list[Fault],
) -> list[dict[str, Any]]:
    if raw is None:
        return []
    if not isinstance(raw.value, list) or len(raw.value) > MAX_PARTS:
        faults.append(Fault(f"/{name}", f"a list of at most {MAX_PARTS:,}"))
        return []
    defaults = {"schema": Raw("{}", {}), "default": Raw("null", None)}
    return [
        defaults | _fields(part, f"/{name}/{index}", rules, faults, needed=(needed,))
        for index, part in enumerate(values.items(raw))
    ]


def _fields(
    raw: Raw,
    pointer: str,
    rules: Mapping[str, Reader | None],
    faults: list[Fault],
    *,
    needed: tuple[str, ...] = (),
) -> dict[str, Any]:
    """The members of an object according to `rules`; errors are appended to `faults`."""
    if not isinstance(raw.value, dict):
        faults.append(Fault(pointer, "must be an object"))
        return {}
    members: dict[str, Any] = {}
    for name, part in values.members(raw).items():
        at = pointer + values.pointer_of(name)
        if name not in rules:
            faults.append(Fault(at, f"unknown member; expected {', '.join(rules)}"))
        elif (read := rules[name]) is None:
            members[name] = part
        elif wrong := read(part.value):
            faults.append(Fault(at, f"must be {wrong}"))
        else:
            members[name] = part.value
    faults += [Fault(pointer, f"{name} is required") for name in needed if name not in raw.value]
    return members


@require_http_methods(["GET", "POST"])
@page(role=Role.ADMIN)
def plugin_install(request: Request) -> HttpResponse:
    """Show a preview, then install. A document that differs from the preview gets a preview
    first."""
    if request.method != "POST":
        return _form(request, _EXAMPLE)
    text = request.POST.get("document", "").replace("\r\n", "\n")
    reason = request.POST.get("reason", "").strip()[:500]
    digest = sha256(text.encode()).hexdigest()
    agreed = "install" in request.POST and request.POST.get("digest") == digest
    try:
        if len(text) > _LONGEST:
            raise Invalid(f"a plugin must have at most {_LONGEST:,} characters in this form")
        document = read_document(text)
        install_plugin(actor=request.actor, **vars(document), reason=reason, dry_run=not agreed)
    except Problem as problem:
        return _form(request, text, reason, problem=problem, status=422)
    if not agreed:
        return _form(request, text, reason, digest=digest, would=_would(document))
    toast(request, f"Installed {document.name}")
    return see_other(request, reverse("web:state-key-list"))


def _would(document: Document) -> dict[str, Any]:
    lines = [f"{part['name']} (state key)" for part in document.state_keys]
    lines += [f"{part['name']} (namespace)" for part in document.namespaces]
    return {
        "name": document.name,
        "state_keys": len(document.state_keys),
        "namespaces": len(document.namespaces),
        "lines": lines[:_SHOWN],
        "more": max(0, len(lines) - _SHOWN),
    }


def _form(
    request: Request,
    text: str,
    reason: str = "",
    *,
    digest: str = "",
    would: dict[str, Any] | None = None,
    problem: Problem | None = None,
    status: int = 200,
) -> HttpResponse:
    context: dict[str, Any] = {
        "document": text,
        "reason": reason,
        "digest": digest,
        "would": would,
        "url": reverse("web:plugin-install"),
        "back": reverse("web:state-key-list"),
        "curl": snippets.curl(
            "PUT", "plugins/planner", '{"state_keys": [{"key": "planner.steps"}]}'
        ),
    }
    if problem is not None:
        context |= show_refused(text, problem)
    return render(request, "plugins/install.html", context, part="plugin-form", status=status)


urlpatterns = [path("plugins/+install", plugin_install, name="plugin-install")]
