"""Ctrl-K: pages, namespaces, keys, threads and runs whose name begins with what is typed."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpResponse
from django.urls import path, reverse
from django.views.decorators.http import require_safe

from state_admin.models import Namespace, Run, Thread
from state_admin.models.browsing import entry_page

from .actors import page
from .addresses import entry_url, namespace_url, run_url, thread_url
from .htmx import Request, render
from .shell import NAVIGATION

_EACH = 6


@dataclass(frozen=True)
class Hit:
    icon: str
    label: str
    note: str
    url: str


@require_safe
@page
def palette(request: Request) -> HttpResponse:
    query = request.GET.get("q", "").replace("\0", "").strip()
    return render(
        request,
        "palette.html",
        {"q": query, "hits": list(enumerate(_hits(request, query)))},
        part="palette-results",
    )


def _hits(request: Request, query: str) -> list[Hit]:
    """Pages first, then exact places by prefix: every search is one range of an index."""
    found = _pages(query)
    if not query:
        return found
    actor = request.actor
    namespaces = Namespace.objects.visible_to(actor).registered()
    found += [
        Hit("layers", name, "namespace", namespace_url(name))
        for name in namespaces.filter(name__startswith=query)
        .order_by("name")
        .values_list("name", flat=True)[:_EACH]
    ]
    namespace, slash, key = query.partition("/")
    lines = entry_page(
        actor, namespace=namespace if slash else "", prefix=key if slash else query, limit=_EACH
    )
    found += [
        Hit("database", f"{e.namespace}/{e.key}", "entry", entry_url(e.namespace, e.key))
        for e in lines
    ]
    for icon, kind, model, url in (
        ("messages-square", "thread", Thread, thread_url),
        ("play", "run", Run, run_url),
    ):
        ids = (
            model.objects.visible_to(actor)
            .filter(public_id__startswith=query)
            .order_by("public_id")
            .values_list("public_id", flat=True)[:_EACH]
        )
        found += [Hit(icon, identifier, kind, url(identifier)) for identifier in ids]
    return found


def _pages(query: str) -> list[Hit]:
    found = []
    for group, items in NAVIGATION:
        for item in items:
            if query.lower() not in item.label.lower():
                continue
            found.append(Hit(item.icon, item.label, group or "page", reverse(item.url_name)))
    return found


urlpatterns = [path("go", palette, name="palette")]
