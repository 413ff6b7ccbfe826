"""Entries: /state, /state/{ns}, /state/{ns}/{key}, /history, /diff, /restore, /keys/{key}."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request

from state_admin.domain import diffs, scopes, values
from state_admin.domain.values import JSON, Raw
from state_admin.models import Entry, EntryRevision
from state_admin.models.feed_sql import FeedFilter
from state_admin.services import clearing, entries, listings, namespaces, retention
from state_admin.services.entries import EntryView, PatchKind
from state_admin.services.errors import BadRequest
from state_admin.services.listings import Listed, Wanted

from . import etags, pagination, waiting
from .bodies import Body, Flag, RawField, Text, Whole, answer, no_content, verbatim
from .clearing import clear, show_cleared
from .endpoint import Endpoint

MAX_TTL = 10 * 365 * 86400

PATCH_TYPES: dict[str, PatchKind] = {
    "application/merge-patch+json": "merge",
    "application/json-patch+json": "json",
    "application/vnd.commonhold.update+json": "update",
}


class EntryBody(Body):
    value = RawField()
    ttl_seconds = Whole(required=False, allow_null=True, min_value=1, max_value=MAX_TTL)
    tags = serializers.ListField(child=Text(max_length=64), required=False, max_length=32)
    pinned = Flag(required=False)


class RestoreBody(Body):
    version = Whole(min_value=1)


class PinBody(Body):
    version = Whole(min_value=1)
    pinned = Flag()


def show_entry(entry: EntryView, *, with_value: bool = True) -> dict[str, Any]:
    shown = {
        "namespace": entry.namespace,
        "key": entry.key,
        "scope_kind": entry.scope_kind,
        "exists": entry.exists,
        "value": verbatim(entry.value),
        "version": entry.version,
        "schema_version": entry.schema_version,
        "valid": entry.valid,
        "created_at": entry.created_at,
        "updated_at": entry.updated_at,
        "expires_at": entry.expires_at,
        "actor": entry.actor,
        "tags": list(entry.tags),
        "pinned": entry.pinned,
        "size_bytes": entry.size_bytes,
        "estimated_tokens": entry.estimated_tokens,
    }
    if entry.redacted_at is not None:
        shown |= {"redacted_at": entry.redacted_at, "redacted_by": entry.redacted_by}
    if not with_value:
        del shown["value"]
    return shown


def show_row(row: Entry, *, with_value: bool, valid: bool, registered: bool) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "namespace": row.namespace.name,
        "key": row.key,
        "scope_kind": scopes.scope_kind(row.key).value,
        "version": row.version,
        "schema_version": row.schema_version,
        "valid": valid,
        "registered": registered,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
        "expires_at": row.expires_at,
        "actor": row.actor_name,
        "tags": row.tags,
        "pinned": row.pinned,
        "size_bytes": row.size_bytes,
        "estimated_tokens": row.estimated_tokens,
    }
    if with_value:
        shown["value"] = verbatim(row.value or "null")
    return shown


class StateList(Endpoint):
    @extend_schema(operation_id="list_state")
    def get(self, request: Request) -> HttpResponse:
        """Live entries of all namespaces, unregistered ones too, or of those of a `plugin`, by
        namespace and key. `include=value` brings the values. With filters a page may come short:
        `next_cursor` goes on."""
        page = pagination.read_page(self, str)
        listed = listings.list_entries(
            actor=self.actor,
            wanted=_read_wanted(self.query),
            plugin=self.query.get("plugin", ""),
            limit=page.limit,
            after=page.after,
        )
        return _show_listed(self, page, listed)

    @extend_schema(operation_id="clear_state")
    def delete(self, request: Request) -> HttpResponse:
        """Delete the entries of all namespaces, unregistered ones too, by `prefix` or
        `scope_kind`. All or none."""
        return clear(self)


class EntryList(Endpoint):
    @extend_schema(operation_id="list_entries")
    def get(self, request: Request, namespace: str) -> HttpResponse:
        """Live entries of a namespace, by key; `order=desc` from the last one, `before` a key.
        `include=value` brings the values. With `valid` a page may come short: `next_cursor` goes
        on."""
        page = pagination.read_page(self, str)
        listed = listings.list_namespace(
            actor=self.actor,
            namespace=namespace,
            wanted=_read_wanted(self.query),
            last_first=self.query["order"] == "desc",
            before=self.query.get("before", ""),
            limit=page.limit,
            after=page.after,
        )
        return _show_listed(self, page, listed)

    @extend_schema(operation_id="clear_namespace")
    def delete(self, request: Request, namespace: str) -> HttpResponse:
        """Delete every entry of a namespace, or those of a `prefix` or `scope_kind`. All or none."""
        return clear(self, namespace)


class EntryDetail(Endpoint):
    conditional = ("PUT", "PATCH", "DELETE")

    @extend_schema(operation_id="read_entry")
    def get(self, request: Request, namespace: str, key: str) -> HttpResponse:
        """The entry, or the namespace's default with version 0. `at_version` and `at` read the
        past; `wait` and `since` wait for a version newer than `since`."""
        entries.check_address(namespace, key)
        address: dict[str, Any] = {"actor": self.actor, "namespace": namespace, "key": key}
        if not self.query:
            return self._show(entries.read_entry(**address))
        if self.query.keys() & {"at_version", "at"}:
            if len(self.query) > 1:
                raise BadRequest("at_version and at cannot be combined with other parameters")
            return self._show(entries.read_past(**address, **self.query))
        return self._wait(address)

    def _wait(self, address: dict[str, Any]) -> HttpResponse:
        since = self.query.get("since")
        if since is None:
            since = waiting.memory_of(self.request)
        if since is None:
            since = entries.read_entry(**address).version
        return waiting.answer_news(
            self,
            FeedFilter(namespace=address["namespace"], key=address["key"]),
            look=lambda: entries.read_entry(**address),
            is_news=lambda entry: entry.version > since,
            show=self._show,
            memory=since,
        )

    def _show(self, entry: EntryView) -> HttpResponse:
        if etags.not_modified(self.request, entry.version):
            return etags.unchanged(entry.version)
        return answer(show_entry(entry), etag=entry.version)

    @extend_schema(operation_id="write_entry", request=EntryBody)
    def put(self, request: Request, namespace: str, key: str) -> HttpResponse:
        """Write. `If-Match` compares, `If-None-Match: *` creates, neither: last write wins."""
        entries.check_address(namespace, key)
        body = read_entry_body(request.data)
        made = entries.put_entry(
            actor=self.actor,
            namespace=namespace,
            key=key,
            value=body["value"],
            when=etags.precondition(request),
            ttl_seconds=body.get("ttl_seconds"),
            tags=body.get("tags"),
            pinned=body.get("pinned"),
            reason=self.reason,
        )
        return answer(show_entry(made.entry), 201 if made.created else 200, etag=made.entry.version)

    @extend_schema(operation_id="patch_entry", request=dict.fromkeys(PATCH_TYPES, Any))
    def patch(self, request: Request, namespace: str, key: str) -> HttpResponse:
        """Patch on the server: a merge patch, a JSON patch, or update operations, by media type."""
        entries.check_address(namespace, key)
        kind, operations = read_patch(request)
        made = entries.patch_entry(
            actor=self.actor,
            namespace=namespace,
            key=key,
            kind=kind,
            operations=operations,
            when=etags.precondition(request),
            reason=self.reason,
        )
        return answer(show_entry(made.entry), 201 if made.created else 200, etag=made.entry.version)

    @extend_schema(operation_id="delete_entry")
    def delete(self, request: Request, namespace: str, key: str) -> HttpResponse:
        """Delete; again changes nothing. History and the version counter stay."""
        entries.check_address(namespace, key)
        version = entries.delete_entry(
            actor=self.actor,
            namespace=namespace,
            key=key,
            when=etags.precondition(request),
            reason=self.reason,
        )
        return (
            show_cleared(1 if version else 0, dry_run=True)
            if self.query["dry_run"]
            else no_content()
        )


class EntryHistory(Endpoint):
    @extend_schema(operation_id="read_history")
    def get(self, request: Request, namespace: str, key: str) -> HttpResponse:
        """Every kept version, newest first. `include=value` brings the values."""
        entries.check_address(namespace, key)
        namespaces.definition(self.actor, namespace, fresh=True)
        page = pagination.read_page(self)
        rows = EntryRevision.objects.visible_to(self.actor).of_key(namespace, key)
        if page.after is not None:
            rows = rows.filter(version__lt=page.after)
        found = list(rows.order_by("-version")[: page.limit + 1])
        shown, cursor = page.close(found, lambda row: row.version)
        with_value = self.query.get("include") == "value"
        items = [show_revision(row, with_value=with_value) for row in shown]
        return answer({"items": items, "next_cursor": cursor})

    @extend_schema(operation_id="pin_version", request=PinBody)
    def patch(self, request: Request, namespace: str, key: str) -> HttpResponse:
        """Pin a version, so that history compaction keeps it, or let it go."""
        entries.check_address(namespace, key)
        body = PinBody.take(request.data)
        row = retention.pin_version(
            actor=self.actor, namespace=namespace, key=key, reason=self.reason, **body
        )
        return answer(show_revision(row, with_value=False))


def show_revision(row: EntryRevision, *, with_value: bool) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "version": row.version,
        "operation": row.operation,
        "exists": row.value is not None,
        "actor": row.actor_name,
        "actor_kind": row.actor_kind,
        "reason": row.reason,
        "request_id": row.request_id,
        "run_id": row.run or None,
        "at": row.at,
        "schema_version": row.schema_version,
        "size_bytes": row.size_bytes,
        "pinned": row.pinned,
    }
    if row.redacted_at is not None:
        shown |= {"redacted_at": row.redacted_at, "redacted_by": row.redacted_by}
    if with_value:
        shown["value"] = verbatim(row.value) if row.value is not None else None
    return shown


class EntryDiff(Endpoint):
    @extend_schema(operation_id="diff_entry")
    def get(self, request: Request, namespace: str, key: str) -> HttpResponse:
        """What changed between two versions: as JSON Patch, and as rows for people."""
        entries.check_address(namespace, key)
        old, new = self.query["from"], self.query["to"]
        before, after = entries.diff_entry(
            actor=self.actor, namespace=namespace, key=key, old=old, new=new
        )
        return answer(show_diff(before, after) | {"from": old, "to": new})


def show_diff(before: Any, after: Any) -> dict[str, Any]:
    rows = [
        {"pointer": r.pointer, "kind": r.kind, "before": r.before, "after": r.after}
        for r in diffs.rows(before, after)
    ]
    # Spelled by us: orjson refuses integers beyond 64 bits.
    patch = values.dump(diffs.json_patch(before, after))
    return {"patch": verbatim(patch), "rows": verbatim(values.dump(rows))}


class EntryRestore(Endpoint):
    conditional = ("POST",)

    @extend_schema(operation_id="restore_entry", request=RestoreBody)
    def post(self, request: Request, namespace: str, key: str) -> HttpResponse:
        """Write a new version equal to an old one; with `If-Match` it refuses to clobber."""
        entries.check_address(namespace, key)
        body = RestoreBody.take(request.data)
        made = entries.restore_entry(
            actor=self.actor,
            namespace=namespace,
            key=key,
            version=body["version"],
            when=etags.precondition(request),
            reason=self.reason,
        )
        return answer(show_entry(made.entry), etag=made.entry.version)


class KeyDetail(Endpoint):
    @extend_schema(operation_id="list_key")
    def get(self, request: Request, key: str) -> HttpResponse:
        """Everything under one key over all namespaces, unregistered ones too."""
        page = pagination.read_page(self, str)
        rows = Entry.objects.visible_to(self.actor).live().filter(key=_checked(key))
        rows = rows.select_related("namespace").order_by("namespace__name")
        if page.after is not None:
            rows = rows.filter(namespace__name__gt=page.after)
        shown, cursor = page.close(list(rows[: page.limit + 1]), lambda row: row.namespace.name)
        with_value = self.query.get("include") == "value"
        items = [
            show_row(
                row,
                with_value=with_value,
                valid=entries.is_valid(row, namespaces.define(row.namespace)),
                registered=row.namespace.unregistered_at is None,
            )
            for row in shown
        ]
        return answer({"items": items, "next_cursor": cursor})

    @extend_schema(operation_id="clear_key")
    def delete(self, request: Request, key: str) -> HttpResponse:
        """Delete everything under one key."""
        dry_run = self.query["dry_run"]
        count = clearing.clear_key(
            actor=self.actor, key=_checked(key), dry_run=dry_run, reason=self.reason
        )
        return show_cleared(count, dry_run)


def _read_wanted(query: dict[str, Any]) -> Wanted:
    kind = query.get("scope_kind")
    # A tag may hold a comma: `tag` takes it as it is.
    tags = query.get("tag", []) + ",".join(query.get("tags", [])).split(",")
    return Wanted(
        prefix=query.get("prefix", ""),
        scope_kind=scopes.ScopeKind(kind) if kind else None,
        updated_since=query.get("updated_since"),
        tags=[tag for tag in tags if tag],
        valid=query.get("valid"),
    )


def _show_listed(view: Endpoint, page: pagination.Page, listed: Listed) -> HttpResponse:
    with_value = view.query.get("include") == "value"
    items = [
        show_row(
            row,
            with_value=with_value,
            valid=valid,
            registered=row.namespace.unregistered_at is None,
        )
        for row, valid in listed.rows
    ]
    cursor = page.cursor_to(listed.after) if listed.after is not None else None
    return answer({"items": items, "next_cursor": cursor})


def read_entry_body(raw: Any) -> dict[str, Any]:
    """An EntryBody. The common one, a value and nothing else, needs no serializer."""
    if isinstance(raw, Raw) and isinstance(raw.value, dict) and raw.value.keys() == {"value"}:
        return dict(values.members(raw))
    return EntryBody.take(raw)


def read_patch(request: Request) -> tuple[PatchKind, JSON]:
    """What the media type says the body is, and the body."""
    raw: Any = request.data
    if not isinstance(raw, Raw):
        raise BadRequest("the request body is missing")
    values.check(raw)
    media_type = request.content_type.partition(";")[0].strip().lower()
    return PATCH_TYPES[media_type], values.load(raw.text)


def _checked(key: str) -> str:
    try:
        scopes.check_key(key)
    except scopes.BadName as bad:
        raise BadRequest(f"invalid key: {bad}") from bad
    return key
