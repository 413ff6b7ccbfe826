"""Installing a plugin from a JSON document, as `PUT /plugins/{name}` accepts it with `name` added.
A preview of what it would register, or its errors, comes first."""

from __future__ import annotations

from hashlib import sha256
from typing import Any, Final

from django.http import HttpResponse
from django.urls import path, reverse

from state_admin.contract.plugins import Installation, PluginName
from state_admin.domain.access import Role
from state_admin.rest.bodies import decode
from state_admin.services.errors import Invalid, Problem
from state_admin.services.plugins import install_plugin

from . import snippets
from .actors import FORM, page
from .confirm import reason_of
from .drafts import show_refused
from .htmx import Request, render, see_other, toast
from .paging import parse_typed_json

_SHOWN: Final = 50
_LONGEST: Final = 1_000_000
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


class Document(Installation, kw_only=True):
    """A plugin with its name, which is a part of the URL in the API."""

    name: PluginName


def read_document(text: str) -> Document:
    """The document in `text`. Invalid if it is not JSON or not a plugin, BadRequest if it has an unknown
    member."""
    raw = parse_typed_json(text, "the plugin")
    if not isinstance(raw.value, dict):
        raise Invalid("a plugin must be a JSON object")
    document = decode(raw, Document)
    if faults := document.foreign_parts(document.name):
        raise Invalid("a part of a plugin names another plugin", faults)
    return document


@page(methods=FORM, role=Role.ADMIN)
def plugin_install(request: Request) -> HttpResponse:
    """Show a preview, then install. A document that differs from the preview gets a preview
    first."""
    if request.method != "POST":
        return _form(request, _EXAMPLE)
    text = request.POST.get("document", "").replace("\r\n", "\n")
    reason = reason_of(request)
    digest = sha256(text.encode()).hexdigest()
    agreed = "install" in request.POST and request.POST.get("digest") == digest
    try:
        if len(text) > _LONGEST:
            raise Invalid(f"a plugin must have at most {_LONGEST:,} characters in this form")
        document = read_document(text)
        state_keys, namespaces = document.parts()
        install_plugin(
            actor=request.actor,
            name=document.name,
            description=document.description,
            state_keys=state_keys,
            namespaces=namespaces,
            reason=reason,
            dry_run=not agreed,
        )
    except Problem as problem:
        return _form(request, text, reason, problem=problem, status=422)
    if not agreed:
        return _form(request, text, reason, digest=digest, would=_would(document))
    toast(request, f"Installed {document.name}")
    return see_other(request, reverse("web:state-key-list"))


def _would(document: Document) -> dict[str, Any]:
    lines = [f"{part.key} (state key)" for part in document.state_keys]
    lines += [f"{part.name} (namespace)" for part in document.namespaces]
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
        **snippets.both(
            "PUT",
            "plugins/planner",
            '{"state_keys": [{"key": "planner.steps"}]}',
            call='plugins.install("planner", state_keys=[{"key": "planner.steps"}])',
        ),
    }
    if problem is not None:
        context |= show_refused(text, problem)
    return render(request, "plugins/install.html", context, part="plugin-form", status=status)


urlpatterns = [path("plugins/+install", plugin_install, name="plugin-install")]
