"""The access page: what a member or a token may do, where, and by which rule."""

from __future__ import annotations

from django.http import HttpResponse
from django.urls import path, reverse

from state_admin.contract.access import Explanation
from state_admin.domain.access import Role
from state_admin.models import ApiToken, Membership
from state_admin.services.access import explain_access

from . import paging
from .actors import page
from .htmx import Request, render

_OFFERED = 200
_LABELS = {"namespace": "Namespace", "key": "Key", "thread_id": "Thread"}


@page(role=Role.ADMIN)
def access(request: Request) -> HttpResponse:
    actor = request.actor
    members = Membership.objects.filter(workspace_id=actor.workspace_id).order_by("user__username")
    tokens = ApiToken.objects.visible_to(actor).order_by("-pk")
    filters = {name: paging.text(request, name) for name in _LABELS}
    username, token_id = paging.text(request, "username"), paging.whole_number(request, "token_id")
    explanation: Explanation | None = None
    if username or token_id is not None:
        explanation = explain_access(
            actor=actor,
            username=username or None,
            token_id=None if username else token_id,
            **filters,
        )
    context = {
        "fields": [(name, _LABELS[name], text) for name, text in filters.items()],
        "username": username,
        "token_id": token_id,
        "members": members.values_list("user__username", flat=True)[:_OFFERED],
        "tokens": tokens.values_list("pk", "name", "lookup")[:_OFFERED],
        "found": explanation,
        "root": reverse("web:access"),
    }
    return render(request, "access/explain.html", context, part="verdict")


urlpatterns = [path("access", access, name="access")]
