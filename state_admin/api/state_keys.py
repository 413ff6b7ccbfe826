"""State keys: /state-keys, /state-keys/{key}."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request

from state_admin.domain.access import Role
from state_admin.domain.reducers import Reducer
from state_admin.domain.values import Raw
from state_admin.models import Merge, StateKey, StateScope
from state_admin.services import state_keys
from state_admin.services.errors import NotFound
from state_admin.services.state_removals import unregister_state_key

from . import pagination
from .bodies import Body, Flag, RawField, Text, answer, no_content, verbatim
from .endpoint import Endpoint


class StateKeyBody(Body):
    schema = RawField(required=False)
    default = RawField(required=False)
    merge = serializers.ChoiceField(choices=Merge.choices, required=False)
    scope = serializers.ChoiceField(choices=StateScope.choices, required=False)
    reducer = serializers.ChoiceField(choices=[r.value for r in Reducer], required=False)
    persistent = Flag(required=False)
    retain_on_uninstall = Flag(required=False)
    plugin = Text(required=False, allow_blank=True, max_length=128)
    description = Text(required=False, allow_blank=True, max_length=10_000)


def state_key_content(body: dict[str, Any]) -> dict[str, Any]:
    """A body as the arguments of register_state_key."""
    return {"schema": Raw("{}", {}), "default": Raw("null", None), **body}


def show_state_key(row: StateKey) -> dict[str, Any]:
    return {
        "key": row.name,
        "schema": verbatim(row.schema or "{}"),
        "default": verbatim(row.default or "null"),
        "merge": row.merge,
        "scope": row.scope,
        "reducer": row.reducer,
        "persistent": row.persistent,
        "retain_on_uninstall": row.retain_on_uninstall,
        "plugin": row.plugin,
        "description": row.description,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
    }


class StateKeyList(Endpoint):
    @extend_schema(operation_id="list_state_keys")
    def get(self, request: Request) -> HttpResponse:
        """Registered state keys, by name."""
        page = pagination.read_page(self, str)
        rows = StateKey.objects.visible_to(self.actor).order_by("name")
        if page.after is not None:
            rows = rows.filter(name__gt=page.after)
        shown, cursor = page.close(list(rows[: page.limit + 1]), lambda row: row.name)
        return answer({"items": [show_state_key(row) for row in shown], "next_cursor": cursor})


class StateKeyDetail(Endpoint):
    roles = {"PUT": Role.ADMIN, "DELETE": Role.ADMIN}

    @extend_schema(operation_id="get_state_key")
    def get(self, request: Request, name: str) -> HttpResponse:
        row = StateKey.objects.visible_to(self.actor).filter(name=name).first()
        if row is None:
            raise NotFound(f"unknown key: {name}")
        return answer(show_state_key(row))

    @extend_schema(operation_id="register_state_key", request=StateKeyBody)
    def put(self, request: Request, name: str) -> HttpResponse:
        """Register, or change. Idempotent."""
        body = StateKeyBody.take(request.data)
        row, created = state_keys.register_state_key(
            actor=self.actor, name=name, reason=self.reason, **state_key_content(body)
        )
        return answer(show_state_key(row), 201 if created else 200)

    @extend_schema(operation_id="unregister_state_key")
    def delete(self, request: Request, name: str) -> HttpResponse:
        """Unregister. What threads hold of it stays readable and comes back with the name;
        `?values=clear` clears it, as one revision of each thread. `?dry_run=true` only counts."""
        dry_run = self.query["dry_run"]
        held = unregister_state_key(
            actor=self.actor,
            name=name,
            clear=self.query["values"] == "clear",
            dry_run=dry_run,
            reason=self.reason,
        )
        if dry_run:
            return answer({"held": asdict(held)})
        return no_content()
