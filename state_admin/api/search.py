"""Search: POST /search."""

from __future__ import annotations

from django.http import HttpResponse

from state_admin.contract import base
from state_admin.contract import search as contract
from state_admin.domain import values
from state_admin.domain.scopes import ScopeKind
from state_admin.domain.values import JSON, RefusedJSON
from state_admin.rest.bodies import answer
from state_admin.rest.endpoint import Endpoint, handles
from state_admin.rest.pagination import page_of
from state_admin.services import search
from state_admin.services.errors import Invalid


@handles(contract.SEARCH)
def search_entries(call: Endpoint) -> HttpResponse:
    fields = call.body(contract.Search).given()
    where = _read_conditions(fields.pop("where", []))
    limit, cursor = fields.pop("limit", None), fields.pop("cursor", None)
    page = page_of(
        limit=limit,
        cursor=cursor,
        filters=[*sorted(fields.items()), values.dump([list(each) for each in where])],
        path=call.request.path,
    )
    with_value = fields.pop("include", None) == "value"
    if kind := fields.pop("scope_kind", None):
        fields["scope_kind"] = ScopeKind(kind)
    results = search.search_entries(
        actor=call.actor, where=where, limit=page.limit, after=page.after, **fields
    )
    items = [contract.Hit.of_hit(hit, with_value=with_value) for hit in results.hits]
    cursor = None if results.after is None else page.cursor_to(results.after)
    return answer(base.Page(items=items, next_cursor=cursor))


def _read_conditions(where: list[contract.Condition]) -> list[tuple[str, JSON]]:
    for index, condition in enumerate(where):
        try:
            values.check(condition.equals, f"/where/{index}/equals")
        except RefusedJSON as refused:
            raise Invalid("no value can equal this", refused.faults) from refused
    return [(condition.path, condition.equals.value) for condition in where]
