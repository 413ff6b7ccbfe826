"""Responses for htmx: the whole page or the requested part, toasts, redirects."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, cast

from django.contrib import messages
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template import Context, Engine, Template
from django.template.context import make_context
from django.template.loader_tags import BlockNode
from django.template.response import TemplateResponse
from django.utils.cache import patch_vary_headers
from django.utils.html import format_html
from django_htmx.middleware import HtmxDetails

from state_admin.domain.access import Actor
from state_admin.models import User
from state_admin.models.counts import Counts
from state_admin.templatetags.csrf import WORKSPACE_FIELD


class AnyRequest(HttpRequest):
    """A request of any visitor, with the attributes that the middleware adds."""

    htmx: HtmxDetails
    user: User | AnonymousUser


class Request(AnyRequest):
    """A request of a member of the workspace (actors.page). `counts`: see
    shell.read_counts_first."""

    actor: Actor
    user: User
    counts: Counts


@dataclass(frozen=True)
class Undo:
    """The form behind the Undo button of a toast. Its view must refuse if the data was changed
    since."""

    url: str
    fields: Mapping[str, str | int] = field(default_factory=dict)


def wants_part(request: HttpRequest) -> bool:
    """Whether htmx will swap a part. Restoring a page of the browser history needs the whole
    page."""
    htmx = cast(AnyRequest, request).htmx
    return bool(htmx) and htmx.request_type != "full" and not htmx.history_restore_request


def page_workspace(request: HttpRequest) -> str:
    """The workspace that the page of the request shows: from the header of htmx (base.html), or the
    hidden field of every form. "" if the request does not say."""
    return request.headers.get("X-Workspace", "") or request.POST.get(WORKSPACE_FIELD, "")


def target_id(request: HttpRequest) -> str:
    """The id of the element that htmx will swap, "" without one (htmx 4 sends `tag#id`)."""
    return (cast(AnyRequest, request).htmx.target or "").partition("#")[2]


class PartResponse(TemplateResponse):
    """A part of a page. If it contains the heading of the page, the title of the page is added, which
    htmx moves to the window."""

    @property
    def rendered_content(self) -> str:
        engine, name = Engine.get_default(), str(self.template_name)
        page = engine.get_template(name.partition("#")[0])
        context = make_context(self.resolve_context(self.context_data), self._request)
        with context.bind_template(page):  # runs the context processors
            part: str = engine.get_template(name).render(context)
            return _title_of(page, context) + part if "<h1" in part else part


def _title_of(page: Template, context: Context) -> str:
    """As in base.html, which a part does not render."""
    blocks = cast(list[BlockNode], page.nodelist.get_nodes_by_type(BlockNode))
    block = next((each for each in blocks if each.name == "title"), None)
    if block is None:
        return ""
    with context.render_context.push_state(page):
        text = block.render(context)
    return format_html("<title>{} · {}</title>", text, context["workspace"])


def render(
    request: HttpRequest,
    template: str,
    context: Mapping[str, Any] | None = None,
    *,
    part: str = "",
    status: int = 200,
) -> HttpResponse:
    """The page or, for htmx, its partial `part` (whose name is the DOM id). Without `part`, the
    whole template, for templates that are fragments."""
    values = dict(context or {})
    if part and wants_part(request):
        response: TemplateResponse = PartResponse(
            request, f"{template}#{part}", values, status=status
        )
    else:
        response = TemplateResponse(request, template, values, status=status)
    patch_vary_headers(response, ["HX-Request", "HX-Request-Type"])
    if wants_part(request):
        deliver_toasts(request, response)
    return response


def render_list(
    request: Request,
    template: str,
    context: Mapping[str, Any],
    *,
    part: str,
    rows: str = "",
    url: str = "",
    status: int = 200,
) -> HttpResponse:
    """As `render`, with the part `rows` if htmx will swap only that. After a search or a filter, the
    address bar gets `url`, by default that of the list (tables.Table): the form's own address has its
    empty fields, too."""
    if rows and target_id(request) == rows:
        part = rows
    response = render(request, template, context, part=part, status=status)
    if (request.htmx.source or "").startswith(("form", "input")):
        response["HX-Replace-Url"] = url or context["list_url"]
    return response


def toast(request: HttpRequest, text: str, *, undo: Undo | None = None, kind: str = "done") -> None:
    """Show `text` with the next response that renders toasts, as a page or in a header.

    `kind` is `done`, `note` or `failed`.
    """
    message = {
        # lets the browser drop a duplicate if two concurrent responses deliver it
        "id": secrets.token_hex(4),
        "text": text,
        "kind": kind,
        "undo": asdict(undo) if undo else None,
    }
    # Django stores messages as text.
    messages.add_message(request, messages.INFO, json.dumps(message))


def pending_toasts(request: HttpRequest) -> list[dict[str, Any]]:
    """The toasts that were not delivered yet. Reading removes them."""
    return [json.loads(str(message)) for message in messages.get_messages(request)]


def deliver_toasts(request: HttpRequest, response: HttpResponse) -> None:
    """Put pending toasts into the HX-Trigger header; app.js displays them."""
    if toasts := pending_toasts(request):
        # Header values are latin-1; json.dumps escapes everything else.
        response["HX-Trigger"] = json.dumps({"toast": {"toasts": toasts}})


def list_url_of_page(request: Request, home: str, otherwise: str = "") -> str:
    """The URL of the list `home` with the filters of the page that sent the request, which an action
    keeps. If that page shows something else, or without htmx: `otherwise`, by default `home`."""
    url = request.htmx.current_url_abs_path or ""
    return url if url.partition("?")[0] == home else otherwise or home


def see_other(
    request: HttpRequest, url: str, *, part: str = "", swap: str = "outerHTML show:top"
) -> HttpResponse:
    """The redirect after a write. If the page of the request shows `#part`, htmx loads `url`, swaps
    its `#part` and pushes the URL."""
    if not wants_part(request):
        return HttpResponseRedirect(url)
    response = HttpResponse()
    if part and target_id(request) == part:
        place = {"path": url, "target": f"#{part}", "swap": swap}
        response["HX-Location"] = json.dumps(place)
    else:
        response["HX-Redirect"] = url
    return response
