"""The config registry: /config/{kind}, /config/{kind}/{id}, its history, restore and dependents.

The past, differences and blame of a record are read where every entry's are: under
`config.{kind}` and its id.
"""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from state_admin.domain.access import Role
from state_admin.domain.config import Kind
from state_admin.models import Entry, EntryRevision
from state_admin.services import config, namespaces
from state_admin.services.config import Dependent
from state_admin.services.entries import EntryView, is_valid
from state_admin.services.errors import NotFound

from . import etags, pagination
from .bodies import Body, RawField, answer, no_content
from .endpoint import Endpoint
from .entries import PATCH_TYPES, RestoreBody, read_patch, show_entry, show_revision, show_row


class RecordBody(Body):
    value = RawField()


def show_record(kind: Kind, entry: EntryView) -> dict[str, Any]:
    return {"kind": kind.value, "id": entry.key, **show_entry(entry)}


def show_dependent(each: Dependent) -> dict[str, str]:
    return {"kind": each.kind.value, "id": each.id, "pointer": each.pointer}


class RecordList(Endpoint):
    @extend_schema(operation_id="list_config")
    def get(self, request: Request, kind: str) -> HttpResponse:
        """The records of a kind, by id. `include=value` brings the values, with markers."""
        known = namespaces.definition(self.actor, Kind(kind).namespace, fresh=True)
        page = pagination.read_page(self, str)
        rows = Entry.objects.filter(namespace_id=known.id).live().order_by("key")
        rows = rows.select_related("namespace")
        if prefix := self.query.get("prefix"):
            rows = rows.filter(key__startswith=prefix)
        if page.after is not None:
            rows = rows.filter(key__gt=page.after)
        shown, cursor = page.close(list(rows[: page.limit + 1]), lambda row: row.key)
        with_value = self.query.get("include") == "value"
        items = [
            {
                "kind": kind,
                "id": row.key,
                **show_row(row, with_value=with_value, valid=is_valid(row, known), registered=True),
            }
            for row in shown
        ]
        return answer({"items": items, "next_cursor": cursor})


class RecordDetail(Endpoint):
    roles = {"PUT": Role.ADMIN, "PATCH": Role.ADMIN, "DELETE": Role.ADMIN}
    conditional = ("PUT", "PATCH", "DELETE")

    @extend_schema(operation_id="read_config")
    def get(self, request: Request, kind: str, record_id: str) -> HttpResponse:
        """One record; a marker stands for each secret."""
        found = config.read_record(actor=self.actor, kind=Kind(kind), identity=record_id)
        if etags.not_modified(request, found.version):
            return etags.unchanged(found.version)
        return answer(show_record(Kind(kind), found), etag=found.version)

    @extend_schema(operation_id="write_config", request=RecordBody)
    def put(self, request: Request, kind: str, record_id: str) -> HttpResponse:
        """Write a record. A string sets its secret, the marker that was read keeps it, null or
        nothing clears it."""
        made = config.put_record(
            actor=self.actor,
            kind=Kind(kind),
            identity=record_id,
            value=RecordBody.take(request.data)["value"],
            when=etags.precondition(request),
            reason=self.reason,
        )
        shown = show_record(Kind(kind), made.entry)
        return answer(shown, 201 if made.created else 200, etag=made.entry.version)

    @extend_schema(operation_id="patch_config", request=dict.fromkeys(PATCH_TYPES, Any))
    def patch(self, request: Request, kind: str, record_id: str) -> HttpResponse:
        """Patch a record on the server, by the media types of entries."""
        patch, operations = read_patch(request)
        made = config.patch_record(
            actor=self.actor,
            kind=Kind(kind),
            identity=record_id,
            patch=patch,
            operations=operations,
            when=etags.precondition(request),
            reason=self.reason,
        )
        return answer(show_record(Kind(kind), made.entry), etag=made.entry.version)

    @extend_schema(operation_id="delete_config")
    def delete(self, request: Request, kind: str, record_id: str) -> HttpResponse:
        """Delete a record and its secrets; 409 with `dependents` while others name it, unless
        `?force=true`. `?dry_run=true` only tells who does; `hidden` counts those that the token does
        not see."""
        dry_run = self.query["dry_run"]
        done = config.delete_record(
            actor=self.actor,
            kind=Kind(kind),
            identity=record_id,
            when=etags.precondition(request),
            force=self.query["force"],
            dry_run=dry_run,
            reason=self.reason,
        )
        if dry_run:
            shown = [show_dependent(each) for each in done.dependents]
            return answer({"dependents": shown, "hidden": done.hidden})
        return no_content()


class RecordHistory(Endpoint):
    @extend_schema(operation_id="read_config_history")
    def get(self, request: Request, kind: str, record_id: str) -> HttpResponse:
        """Every kept version, newest first. `include=value` brings the values, with markers."""
        namespace = Kind(kind).namespace
        namespaces.definition(self.actor, namespace, fresh=True)
        page = pagination.read_page(self)
        rows = EntryRevision.objects.visible_to(self.actor).of_key(namespace, record_id)
        if page.after is not None:
            rows = rows.filter(version__lt=page.after)
        found = list(rows.order_by("-version")[: page.limit + 1])
        if not found and page.after is None:
            raise NotFound(f"no config {kind}/{record_id}")
        shown, cursor = page.close(found, lambda row: row.version)
        with_value = self.query.get("include") == "value"
        items = [show_revision(row, with_value=with_value) for row in shown]
        return answer({"items": items, "next_cursor": cursor})


class RecordRestore(Endpoint):
    roles = {"POST": Role.ADMIN}
    conditional = ("POST",)

    @extend_schema(operation_id="restore_config", request=RestoreBody)
    def post(self, request: Request, kind: str, record_id: str) -> HttpResponse:
        """Write a new version equal to an old one; secrets stay as they are now."""
        made = config.restore_record(
            actor=self.actor,
            kind=Kind(kind),
            identity=record_id,
            version=RestoreBody.take(request.data)["version"],
            when=etags.precondition(request),
            reason=self.reason,
        )
        return answer(show_record(Kind(kind), made.entry), etag=made.entry.version)


class RecordDependents(Endpoint):
    @extend_schema(operation_id="list_config_dependents")
    def get(self, request: Request, kind: str, record_id: str) -> HttpResponse:
        """The records that name this one, and where."""
        found = config.find_dependents(actor=self.actor, kind=Kind(kind), identity=record_id)
        return answer({"items": [show_dependent(each) for each in found], "next_cursor": None})
