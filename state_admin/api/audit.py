"""Who did what: GET /audit."""

from __future__ import annotations

from django.http import HttpResponse

from state_admin.contract import audit as contract
from state_admin.models import AuditRow
from state_admin.rest.endpoint import Endpoint, handles
from state_admin.rest.pagination import answer_rows

from .changes import read_kinds


@handles(contract.LIST_AUDIT)
def list_audit(call: Endpoint) -> HttpResponse:
    filters = call.given(
        namespace="namespace",
        key="key",
        thread_id="thread",
        run_id="run",
        request_id="request_id",
        actor="actor_name",
    )
    if glob := call.query.action:
        filters["action__in"] = read_kinds("action", glob)
    actor = call.actor
    rows = AuditRow.objects.visible_to(actor).filter(**filters)
    within = None
    if filters or actor.restricted:
        within = AuditRow.objects.filter(workspace_id=actor.workspace_id)
    return answer_rows(call, rows, contract.AuditRow.of, created="at", within=within)
