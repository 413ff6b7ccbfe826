"""State keys: which slots of thread state are registered, and how they merge. Read only."""

from __future__ import annotations

from django.http import HttpResponse
from django.urls import path
from django.views.decorators.http import require_safe

from state_admin.domain import values
from state_admin.models import StateKey

from . import paging, snippets
from .actors import page
from .htmx import Request, render

MOST = 200


@require_safe
@page
def state_key_list(request: Request) -> HttpResponse:
    """By name; a workspace has few, so more than a page is rare and reached by prefix."""
    prefix = paging.text(request, "prefix")
    rows = StateKey.objects.visible_to(request.actor).order_by("name")
    if prefix:
        rows = rows.filter(name__startswith=prefix)
    found = list(rows[: MOST + 1])
    body = '{"reducer": "append", "scope": "thread", "default": [], "schema": {"type": "array"}}'
    context = {
        "keys": [
            (row, values.load(row.schema or "{}"), values.load(row.default or "null"))
            for row in found[:MOST]
        ],
        "more": len(found) > MOST,
        "most": MOST,
        "prefix": prefix,
        "curl": snippets.curl("PUT", "state-keys/plan", body),
        "python": snippets.python("PUT", "state-keys/plan", body),
    }
    return render(request, "state_keys/list.html", context, part="state-keys")


urlpatterns = [path("state-keys", state_key_list, name="state-key-list")]
