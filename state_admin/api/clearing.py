"""Clearing in bulk: DELETE /state, DELETE /state/{ns}, DELETE /keys/{key}."""

from __future__ import annotations

from django.http import HttpResponse

from state_admin.domain.scopes import ScopeKind
from state_admin.services import clearing

from .bodies import answer
from .endpoint import Endpoint

KINDS = [kind.value for kind in ScopeKind]


def clear(endpoint: Endpoint, namespace: str = "") -> HttpResponse:
    """Clear by the filters of the query."""
    kind = endpoint.query.get("scope_kind")
    dry_run = endpoint.query["dry_run"]
    count = clearing.clear_matching(
        actor=endpoint.actor,
        namespace=namespace,
        prefix=endpoint.query.get("prefix", ""),
        scope_kind=ScopeKind(kind) if kind else None,
        dry_run=dry_run,
        reason=endpoint.reason,
    )
    return show_cleared(count, dry_run)


def show_cleared(count: int, dry_run: bool) -> HttpResponse:
    return answer({"deleted": 0 if dry_run else count, "matched": count})
