"""Restoring many entries to a moment: POST /restore."""

from __future__ import annotations

from typing import Any

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
    fields = read_moment(call.body(contract.Moment))
    return answer(restores.restore_entries(**call.author, dry_run=call.dry_run, **fields))


def read_moment(body: contract.EntrySelection) -> dict[str, Any]:
    """The members that were sent, as the services take them. Raises Invalid if `at` is not a time."""
    fields = body.given()
    if "at" in fields:
        fields["at"] = moments.read(fields["at"])
        if fields["at"] is None:
            expectation = "must be an RFC 3339 time such as 2026-01-31T12:00:00Z"
            raise Invalid(f"at {expectation}", [Fault("/at", expectation)])
    if kind := fields.pop("scope_kind", None):
        fields["scope_kind"] = ScopeKind(kind)
    return fields
