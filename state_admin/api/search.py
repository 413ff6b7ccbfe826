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
    given = call.body(contract.Search).given()
    where = _read_conditions(given.pop("where", []))
    limit, cursor = given.pop("limit", None), given.pop("cursor", None)
    page = page_of(
        limit=limit,
        cursor=cursor,
        filters=[*sorted(given.items()), values.dump([list(each) for each in where])],
        path=call.request.path,
    )
    with_value = given.pop("include", None) == "value"
    if kind := given.pop("scope_kind", None):
        given["scope_kind"] = ScopeKind(kind)
    found = search.search_entries(
        actor=call.actor, where=where, limit=page.limit, after=page.after, **given
    )
    items = [contract.Hit.of_hit(hit, with_value=with_value) for hit in found.hits]
    cursor = None if found.after is None else page.cursor_to(found.after)
    return answer(base.Page(items=items, next_cursor=cursor))


def _read_conditions(where: list[contract.Condition]) -> list[tuple[str, JSON]]:
    for index, condition in enumerate(where):
        try:
            values.check(condition.equals, f"/where/{index}/equals")
        except RefusedJSON as refused:
            raise Invalid("no value can equal this", refused.faults) from refused
    return [(condition.path, condition.equals.value) for condition in where]
