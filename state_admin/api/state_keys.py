"""State keys: /state-keys, /state-keys/{key}."""

from __future__ import annotations

from django.http import HttpResponse

from state_admin.contract import state_keys as contract
from state_admin.models import StateKey
from state_admin.rest.bodies import answer, no_content
from state_admin.rest.endpoint import Endpoint, handles
from state_admin.rest.pagination import answer_rows
from state_admin.services import state_keys
from state_admin.services.errors import NotFound
from state_admin.services.state_removals import unregister_state_key as unregister


@handles(contract.LIST_STATE_KEYS)
def list_state_keys(call: Endpoint) -> HttpResponse:
    rows = StateKey.objects.visible_to(call.actor)
    return answer_rows(call, rows, contract.StateKey.of, by="name")


@handles(contract.GET_STATE_KEY)
def get_state_key(call: Endpoint, name: str) -> HttpResponse:
    row = StateKey.objects.visible_to(call.actor).filter(name=name).first()
    if row is None:
        raise NotFound(f"unknown key: {name}")
    return answer(contract.StateKey.of(row))


@handles(contract.REGISTER_STATE_KEY)
def register_state_key(call: Endpoint, name: str) -> HttpResponse:
    definition = call.body(contract.StateKeyDefinition)
    row, created = state_keys.register_state_key(**call.author, name=name, **definition.arguments())
    return answer(contract.StateKey.of(row), 201 if created else 200)


@handles(contract.UNREGISTER_STATE_KEY)
def unregister_state_key(call: Endpoint, name: str) -> HttpResponse:
    count = unregister(
        **call.author, name=name, clear=call.query.values == "clear", dry_run=call.dry_run
    )
    if call.dry_run:
        return answer(contract.StateKeyRemoval(held=count))
    return no_content()
