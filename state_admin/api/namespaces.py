"""Namespaces: /namespaces, /namespaces/{ns}."""

from __future__ import annotations

import msgspec
from django.http import HttpResponse
from msgspec import UNSET

from state_admin.contract import namespaces as contract
from state_admin.models import Namespace
from state_admin.rest import etags
from state_admin.rest.bodies import answer, no_content
from state_admin.rest.endpoint import Endpoint, handles
from state_admin.rest.pagination import answer_rows
from state_admin.services import namespaces
from state_admin.services.namespace_updates import update_namespace


@handles(contract.LIST_NAMESPACES)
def list_namespaces(call: Endpoint) -> HttpResponse:
    rows = Namespace.objects.visible_to(call.actor).registered().open()
    rows = rows.filter(**call.given(prefix="name__startswith", plugin="plugin"))
    return answer_rows(call, rows, contract.Namespace.of, by="name")


@handles(contract.GET_NAMESPACE)
def get_namespace(call: Endpoint, namespace: str) -> HttpResponse:
    row = namespaces.find_registered(call.actor, namespace)
    return answer(contract.Namespace.of(row), etag=row.schema_version)


_VERBS = {
    "replace": namespaces.register_namespace,
    "accept": namespaces.ensure_namespace,
    "update": update_namespace,
}


@handles(contract.REGISTER_NAMESPACE)
def register_namespace(call: Endpoint, namespace: str) -> HttpResponse:
    body = call.body(contract.NamespaceDefinition)
    arguments = {
        "actor": call.actor,
        "name": namespace,
        "expected_version": etags.precondition(call.request).version,
        "dry_run": call.dry_run,
        "reason": call.reason,
        **body.arguments(),
    }
    if call.query.if_exists != "replace":
        for part, raw in (("schema", body.schema), ("default", body.default)):
            arguments[part] = None if raw is UNSET else raw
    registered = _VERBS[call.query.if_exists](**arguments)
    if registered.violations is not None:
        found = msgspec.convert(registered.violations, contract.Violations, from_attributes=True)
        return answer(
            contract.RegistrationPreview(would_change=registered.changed, violations=found)
        )
    document = contract.Namespace.of(registered.namespace)
    status = 201 if registered.created else 200
    return answer(document, status, etag=registered.namespace.schema_version)


@handles(contract.UNREGISTER_NAMESPACE)
def unregister_namespace(call: Endpoint, namespace: str) -> HttpResponse:
    count = namespaces.unregister_namespace(
        **call.author, name=namespace, entries=call.query.entries or ""
    )
    if not call.dry_run:
        return no_content()
    return answer(contract.NamespaceRemoval(held=contract.HeldEntries(entries=count)))
