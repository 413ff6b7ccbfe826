"""Search: POST /search."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request

from state_admin.domain import values
from state_admin.domain.access import Role
from state_admin.domain.scopes import ScopeKind
from state_admin.domain.values import JSON, RefusedJSON
from state_admin.services import search
from state_admin.services.errors import Invalid
from state_admin.services.search import Hit

from . import pagination
from .bodies import Body, RawField, Text, Whole, answer
from .clearing import KINDS
from .endpoint import Endpoint
from .entries import show_row


class ConditionBody(Body):
    path = Text(allow_blank=True, max_length=2048)
    equals = RawField()


class SearchBody(Body):
    text = Text(required=False, allow_blank=True)
    where = RawField(required=False)
    namespace = Text(required=False, allow_blank=True, max_length=128)
    prefix = Text(required=False, allow_blank=True, max_length=512)
    scope_kind = serializers.ChoiceField(choices=KINDS, required=False)
    include = serializers.ChoiceField(choices=["value"], required=False)
    limit = Whole(min_value=1, max_value=pagination.MAX_LIMIT, required=False)
    cursor = Text(required=False, allow_null=True)


class Search(Endpoint):
    roles = {"POST": Role.VIEWER}  # a search is a read

    @extend_schema(operation_id="search", request=SearchBody, responses={200: OpenApiTypes.OBJECT})
    def post(self, request: Request) -> HttpResponse:
        """Live entries whose strings hold all words of `text` (`word*`, `"a phrase"`) and whose
        value at each `path` of `where` equals `equals`. Newest entry first. A page may be short:
        there is more as long as there is a `next_cursor`."""
        body = SearchBody.take(request.data)
        filters = {name: part for name, part in body.items() if name not in ("cursor", "limit")}
        where = _read_conditions(filters.pop("where", None))
        page = pagination.page_of(
            limit=body.get("limit"),
            cursor=body.get("cursor"),
            filters=[*sorted(filters.items()), values.dump([list(each) for each in where])],
            path=request.path,
        )
        kind = body.get("scope_kind")
        found = search.search_entries(
            actor=self.actor,
            text=body.get("text", ""),
            where=where,
            namespace=body.get("namespace", ""),
            prefix=body.get("prefix", ""),
            scope_kind=ScopeKind(kind) if kind else None,
            limit=page.limit,
            after=page.after,
        )
        with_value = body.get("include") == "value"
        items = [_show(hit, with_value) for hit in found.hits]
        cursor = None if found.after is None else page.cursor_to(found.after)
        return answer({"items": items, "next_cursor": cursor})


def _read_conditions(raw: values.Raw | None) -> list[tuple[str, JSON]]:
    if raw is None:
        return []
    if not isinstance(raw.value, list):
        raise Invalid("where must be a list of {path, equals}")
    made = []
    for index, item in enumerate(values.items(raw)):
        condition = ConditionBody.take(item, f"/where/{index}")
        equals = condition["equals"]
        try:
            values.check(equals, f"/where/{index}/equals")
        except RefusedJSON as refused:
            raise Invalid("no value can equal this", refused.faults) from refused
        made.append((condition["path"], equals.value))
    return made


def _show(hit: Hit, with_value: bool) -> dict[str, Any]:
    shown = show_row(hit.entry, with_value=with_value, valid=hit.valid, registered=True)
    matches = [{"pointer": match.pointer, "snippet": match.snippet} for match in hit.matches]
    return shown | {"matches": matches}
