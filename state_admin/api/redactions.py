"""Redaction: POST /redact/{ns}/{key}."""

from __future__ import annotations

from django.http import HttpResponse

from state_admin.contract import redactions as contract
from state_admin.rest.bodies import answer
from state_admin.rest.endpoint import Endpoint, handles
from state_admin.services import entries, redactions


@handles(contract.REDACT_ENTRY)
def redact_entry(call: Endpoint, namespace: str, key: str) -> HttpResponse:
    entries.check_address(namespace, key)
    body = call.body(contract.RedactionRequest)
    done = redactions.redact_entry(
        actor=call.actor,
        namespace=namespace,
        key=key,
        pointers=body.pointers or (),
        reason=body.reason,
    )
    return answer(done, etag=done.version)
