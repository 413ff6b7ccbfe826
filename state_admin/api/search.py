"""Search: POST /search."""

from __future__ import annotations

from django.http import HttpResponse

from state_admin.contract import base
from state_admin.contract import search as contract
from state_admin.domain import values
from state_admin.domain.scopes import ScopeKind
from state_admin.domain.search import Condition, Operator
from state_admin.domain.values import Fault, RefusedJSON
from state_admin.rest.bodies import answer
from state_admin.rest.endpoint import Endpoint, handles
from state_admin.rest.pagination import page_of
from state_admin.services import search
from state_admin.services.errors import Invalid


@handles(contract.SEARCH)
def search_entries(call: Endpoint) -> HttpResponse:
    fields = call.body(contract.Search).given()
    conditions = enumerate(fields.pop("where", []))
    where = [_read_condition(f"/where/{index}", each) for index, each in conditions]
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
    response = answer(base.Page(items=items, next_cursor=cursor))
    response.is_kept = False
    return response


def _read_condition(pointer: str, condition: contract.Condition) -> Condition:
    given = condition.given()
    path = given.pop("path")
    match given:
        case {"equals": operand, **rest} if not rest:
            operator: Operator = "="
        case {"operator": "exists", **rest} if not rest:
            return Condition(path, "exists", None)
        case {"operator": operator, "value": operand, **rest} if operator != "exists" and not rest:
            pass
        case _:
            fault = Fault(pointer, "needs either equals, or operator and value (exists: no value)")
            raise Invalid("a condition is incomplete or ambiguous", [fault])
    try:
        values.check(operand, f"{pointer}/{'equals' if 'equals' in given else 'value'}")
    except RefusedJSON as refused:
        raise Invalid("no value can be compared with this", refused.faults) from refused
    return Condition(path, operator, operand.value)
