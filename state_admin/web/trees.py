"""Responses for the nodes of large JSON trees, which htmx fetches when they are opened."""

from __future__ import annotations

from django.http import HttpResponse

from state_admin.domain import json_pointers
from state_admin.domain.values import JSON
from state_admin.services.errors import NotFound
from state_admin.templatetags.json_html import tree_piece

from . import paging
from .htmx import Request


def answer_piece(request: Request, value: JSON, pieces_url: str) -> HttpResponse:
    """The children of the value at `?pointer=` in `value`, beginning with number `?start=`."""
    pointer = request.GET.get("pointer", "")
    start = paging.whole_number(request, "start") or 0
    try:
        node = json_pointers.find(value, json_pointers.parts_of(pointer))
    except json_pointers.Mismatch as mismatch:
        raise NotFound(f"no value at this pointer: {mismatch}") from mismatch
    if not isinstance(node, (dict, list)):
        raise NotFound("no value to expand at this pointer")
    return HttpResponse(tree_piece(node, pieces_url, pointer, start))
