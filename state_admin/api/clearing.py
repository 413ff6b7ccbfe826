"""Clearing in bulk: DELETE /state, DELETE /state/{ns}, DELETE /keys/{key}."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request

from state_admin.domain.scopes import ScopeKind
from state_admin.services import clearing

from . import pagination
from .bodies import answer
from .endpoint import Endpoint

KINDS = [kind.value for kind in ScopeKind]
FILTERS: Any = [
    OpenApiParameter("prefix", str, description="only keys that begin with it"),
    OpenApiParameter("scope_kind", str, enum=KINDS),
    OpenApiParameter("dry_run", bool, description="true: only count"),
]
COUNTED: Any = {200: OpenApiTypes.OBJECT}


def clear(endpoint: Endpoint, request: Request, namespace: str = "") -> HttpResponse:
    """Clear by the filters of the query string."""
    pagination.refuse_unknown(request, "prefix", "scope_kind", "dry_run")
    kind = pagination.read_choice(request, "scope_kind", KINDS)
    dry_run = read_dry_run(request)
    count = clearing.clear_matching(
        actor=endpoint.actor,
        namespace=namespace,
        prefix=request.query_params.get("prefix", ""),
        scope_kind=ScopeKind(kind) if kind else None,
        dry_run=dry_run,
        reason=endpoint.reason,
    )
    return show_cleared(count, dry_run)


def read_dry_run(request: Request) -> bool:
    return pagination.read_choice(request, "dry_run", ("true", "false")) == "true"


def show_cleared(count: int, dry_run: bool) -> HttpResponse:
    return answer({"deleted": 0 if dry_run else count, "matched": count, "dry_run": dry_run})
