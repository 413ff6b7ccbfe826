"""Fragments of an entry's page: a node of a large value, the value as stored, whether it
changed."""

from __future__ import annotations

from django.http import HttpResponse
from django.urls import reverse

from state_admin.domain import json_pointers, values
from state_admin.domain.numbers import read_whole
from state_admin.services.entry_views import read_entry
from state_admin.services.errors import NotFound
from state_admin.templatetags.json_html import tree_piece

from .addresses import entry_action_url
from .entry_address import entry_page, entry_paths, read_requested_entry
from .htmx import Request, render


@entry_page()
def entry_tree(request: Request, namespace: str, key: str) -> HttpResponse:
    """A node of a large value: the children at `pointer`, beginning with number `start`."""
    now = read_entry(actor=request.actor, namespace=namespace, key=key)
    entry, past = read_requested_entry(request, now)
    pointer = request.GET.get("pointer", "")
    start = read_whole(request.GET.get("start", "0")) or 0
    try:
        part = json_pointers.find(values.load(entry.value), json_pointers.parts_of(pointer))
    except json_pointers.Mismatch as missing:
        raise NotFound(f"no value at {pointer}: {missing}") from missing
    pieces_url = entry_action_url("tree", namespace, key, version=past or None)
    context = {
        "entry": entry,
        "part": part,
        "pointer": pointer,
        "pieces_url": pieces_url,
        "list_url": reverse("web:entry-list"),
    }
    if isinstance(part, (dict, list)):
        context["piece"] = tree_piece(part, pieces_url, pointer, start)
    return render(request, "entries/tree.html", context, part="piece")


@entry_page()
def entry_newer(request: Request, namespace: str, key: str) -> HttpResponse:
    """Whether the entry was written after the version that the page shows, `version`. The page then
    shows a notice and keeps its content."""
    version = read_whole(request.GET.get("version", "")) or 0
    now = read_entry(actor=request.actor, namespace=namespace, key=key)
    changed = now.version > version or (version and not now.exists)
    context = {
        "entry": now,
        "version": version,
        "changed": changed,
        "editing": "editing" in request.GET,
    }
    return render(request, "entries/_newer.html", context)


@entry_page(replica=True)
def entry_raw(request: Request, namespace: str, key: str) -> HttpResponse:
    """The value as it is stored, byte for byte."""
    now = read_entry(actor=request.actor, namespace=namespace, key=key)
    entry, _ = read_requested_entry(request, now)
    response = HttpResponse(entry.value, content_type="application/json; charset=utf-8")
    response["ETag"] = f'"{entry.version}"'
    return response


urlpatterns = [
    *entry_paths("entry/tree", entry_tree, "entry-tree"),
    *entry_paths("entry/raw", entry_raw, "entry-raw"),
    *entry_paths("entry/newer", entry_newer, "entry-newer"),
]
