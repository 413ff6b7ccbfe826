"""Blame: GET /blame/{ns}/{key}."""

from __future__ import annotations

from django.http import HttpResponse

from state_admin.contract import base
from state_admin.contract import blame as contract
from state_admin.rest.bodies import answer
from state_admin.rest.endpoint import Endpoint, handles
from state_admin.services import entries
from state_admin.services.blame import blame_entry as attribute


@handles(contract.BLAME_ENTRY)
def blame_entry(call: Endpoint, namespace: str, key: str) -> HttpResponse:
    entries.check_address(namespace, key)
    attributions = attribute(actor=call.actor, namespace=namespace, key=key)
    items = list(map(contract.Attribution.of, attributions))
    return answer(base.Page(items=items, next_cursor=None))
