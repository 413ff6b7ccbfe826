"""Restoring many entries to a moment: POST /restore."""

from __future__ import annotations

from django.http import HttpResponse

from state_admin.contract import restores as contract
from state_admin.domain import moments
from state_admin.domain.scopes import ScopeKind
from state_admin.domain.values import Fault
from state_admin.rest.bodies import answer
from state_admin.rest.endpoint import Endpoint, handles
from state_admin.services import restores
from state_admin.services.errors import Invalid


@handles(contract.RESTORE_ENTRIES)
def restore_entries(call: Endpoint) -> HttpResponse:
    fields = call.body(contract.Moment).given()
    at = moments.read(fields.pop("at"))
    if at is None:
        expectation = "must be an RFC 3339 time such as 2026-01-31T12:00:00Z"
        raise Invalid(f"at {expectation}", [Fault("/at", expectation)])
    if kind := fields.pop("scope_kind", None):
        fields["scope_kind"] = ScopeKind(kind)
    return answer(restores.restore_entries(**call.author, at=at, dry_run=call.dry_run, **fields))
