"""Erasure: POST /erase."""

from __future__ import annotations

from django.http import HttpResponse

from state_admin.contract import erasures as contract
from state_admin.rest.bodies import answer
from state_admin.rest.endpoint import Endpoint, handles
from state_admin.services import erasures


@handles(contract.ERASE)
def erase(call: Endpoint) -> HttpResponse:
    fields = call.body(contract.ErasureRequest).given()
    return answer(erasures.erase(actor=call.actor, dry_run=call.dry_run, **fields))
