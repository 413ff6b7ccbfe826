"""Namespaces: /namespaces, /namespaces/{ns}."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from state_admin.contract.types import MAX_TTL
from state_admin.domain.access import Role
from state_admin.domain.values import Raw
from state_admin.models import Namespace
from state_admin.services import namespaces
from state_admin.services.errors import NotRegistered

from . import etags, pagination
from .bodies import Body, Part, RawField, Text, Whole, answer, no_content, verbatim
from .endpoint import Endpoint


class HistoryPolicy(Part):
    keep_last = Whole(min_value=1, max_value=1_000_000, required=False, allow_null=True)
    keep_seconds = Whole(min_value=1, max_value=10 * 365 * 86400, required=False, allow_null=True)


class NamespaceBody(Body):
    schema = RawField(required=False)
    default = RawField(required=False)
    description = Text(required=False, allow_blank=True, max_length=10_000)
    plugin = Text(required=False, allow_blank=True, max_length=128)
    max_value_bytes = Whole(
        required=False, allow_null=True, min_value=1, max_value=namespaces.MAX_VALUE_BYTES
    )
    ttl_seconds = Whole(required=False, allow_null=True, min_value=1, max_value=MAX_TTL)
    history = HistoryPolicy(required=False)


def namespace_content(body: dict[str, Any]) -> dict[str, Any]:
    """A body as the arguments of register_namespace."""
    given = {"schema": Raw("{}", {}), "default": Raw("null", None), **body}
    history = given.pop("history", {})
    return given | {
        "history_keep_last": history.get("keep_last"),
        "history_keep_seconds": history.get("keep_seconds"),
    }


def show_namespace(row: Namespace) -> dict[str, Any]:
    return {
        "name": row.name,
        "schema": verbatim(row.schema or "{}"),
        "schema_version": row.schema_version,
        "default": verbatim(row.default or "null"),
        "description": row.description,
        "plugin": row.plugin,
        "max_value_bytes": row.max_value_bytes or namespaces.DEFAULT_MAX_VALUE_BYTES,
        "ttl_seconds": row.ttl_seconds,
        "history": {
            "keep_last": row.history_keep_last,
            "keep_seconds": row.history_keep_seconds,
        },
        "created_at": row.created_at,
        "updated_at": row.updated_at,
    }


class NamespaceList(Endpoint):
    @extend_schema(operation_id="list_namespaces")
    def get(self, request: Request) -> HttpResponse:
        """Registered namespaces, by name; not those of the config registry."""
        page = pagination.read_page(self, str)
        rows = Namespace.objects.visible_to(self.actor).registered().open().order_by("name")
        if prefix := self.query.get("prefix"):
            rows = rows.filter(name__startswith=prefix)
        if plugin := self.query.get("plugin"):
            rows = rows.filter(plugin=plugin)
        if page.after is not None:
            rows = rows.filter(name__gt=page.after)
        shown, cursor = page.close(list(rows[: page.limit + 1]), lambda row: row.name)
        return answer({"items": [show_namespace(row) for row in shown], "next_cursor": cursor})


class NamespaceDetail(Endpoint):
    roles = {"PUT": Role.ADMIN, "DELETE": Role.ADMIN}
    conditional = ("PUT",)

    @extend_schema(operation_id="get_namespace")
    def get(self, request: Request, namespace: str) -> HttpResponse:
        """One namespace. ETag is its schema version."""
        row = Namespace.objects.visible_to(self.actor).registered().filter(name=namespace).first()
        if row is None:
            raise NotRegistered(namespace)
        return answer(show_namespace(row), etag=row.schema_version)

    @extend_schema(operation_id="register_namespace", request=NamespaceBody)
    def put(self, request: Request, namespace: str) -> HttpResponse:
        """Register, or replace what is registered. `If-Match` names the schema version to replace,
        and `If-None-Match: *` only registers. `?dry_run=true` returns the entries that a new schema
        would make invalid.

        `?if_exists=accept` never changes a registered namespace: the registered definition is
        returned if it is compatible, otherwise the response is 409 `schema-conflict` and `errors`
        lists the differences. Schemas are compatible if they are the same except for optional
        fields: `properties` of one schema that the other lacks, that neither requires, and that
        the other allows (it does not restrict `additionalProperties`). Annotations such as `title`
        and `description` do not count. Defaults may differ by such fields only. A `schema` or
        `default` that the body omits is compatible; the other members of the body are used only
        when the namespace is created."""
        body = NamespaceBody.take(request.data)
        arguments = {
            "actor": self.actor,
            "name": namespace,
            "expected_version": etags.precondition(request).version,
            "dry_run": self.query["dry_run"],
            "reason": self.reason,
            **namespace_content(body),
        }
        if self.query["if_exists"] == "accept":
            definition = {part: body.get(part) for part in ("schema", "default")}
            made = namespaces.ensure_namespace(**{**arguments, **definition})
        else:
            made = namespaces.register_namespace(**arguments)
        if made.violations is not None:
            broken = {"count": made.violations.count, "first": made.violations.first}
            return answer({"would_change": made.changed, "violations": broken})
        shown = show_namespace(made.namespace)
        status = 201 if made.created else 200
        return answer(shown, status, etag=made.namespace.schema_version)

    @extend_schema(operation_id="unregister_namespace")
    def delete(self, request: Request, namespace: str) -> HttpResponse:
        """Unregister. With live entries choose `?entries=retain` or `?entries=delete`."""
        held = namespaces.unregister_namespace(
            actor=self.actor,
            name=namespace,
            entries=self.query.get("entries", ""),
            reason=self.reason,
        )
        return answer({"held": {"entries": held}}) if self.query["dry_run"] else no_content()
