"""Entries: /state, /state/{ns}, /state/{ns}/{key}, /history, /diff, /restore, /keys/{key}."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db.models import Q, QuerySet
from django.http import HttpResponse
from rest_framework.request import Request

from state_admin.contract import base
from state_admin.contract import entries as contract
from state_admin.contract.types import Cleared, Diff
from state_admin.domain import scopes, values
from state_admin.domain.patches import PatchKind
from state_admin.domain.values import JSON, Raw
from state_admin.models import EntryRevision
from state_admin.models.feed_sql import FeedFilter
from state_admin.rest import etags, long_polling, preferences
from state_admin.rest.bodies import Response, answer, no_content
from state_admin.rest.endpoint import Endpoint, handles
from state_admin.rest.pagination import Page, answer_rows, read_page
from state_admin.services import clearing, entries, entry_views, listings, namespaces, retention
from state_admin.services.entries import WriteResult
from state_admin.services.entry_views import EntryView
from state_admin.services.errors import BadRequest
from state_admin.services.finding import checked
from state_admin.services.listings import EntryPage, ListFilters


@handles(contract.READ_ENTRY)
def read_entry(call: Endpoint, namespace: str, key: str) -> HttpResponse:
    entries.check_address(namespace, key)
    query = call.query
    if query.at_version is not None or query.at is not None:
        if len(call.request.query_params) > 1:
            raise BadRequest(
                "at_version and at cannot be combined with other parameters",
                parameter="at" if query.at_version is None else "at_version",
            )
        past = entry_views.read_past(
            actor=call.actor, namespace=namespace, key=key, at_version=query.at_version, at=query.at
        )
        return _show(call, past)

    def read() -> EntryView:
        return entry_views.read_entry(actor=call.actor, namespace=namespace, key=key)

    if not query.wait:
        return _show(call, read())
    if not namespaces.find_definition(call.actor, namespace).tracked:
        # No change would end the wait.
        raise BadRequest(
            f"wait is not supported for entries of the untracked namespace {namespace}",
            hint="Read the entry again without wait.",
            parameter="wait",
        )
    since = query.since
    if since is None:
        since = long_polling.memory_of(call.request)
    if since is None:
        since = read().version

    def look() -> tuple[EntryView, bool]:
        """The entry, and whether the wait is over: it has a later version, or it is absent and the
        caller knows an earlier version than that of the deletion or expiry."""
        entry = read()
        if entry.exists or not since:
            return entry, entry.version > since
        last = entry_views.last_version(call.actor, namespace, key)
        entry = read()  # again, so that an entry written meanwhile is not shown as absent
        return entry, entry.version > since if entry.exists else last != since

    return long_polling.answer_news(
        call,
        FeedFilter(namespace=namespace, key=key),
        look=look,
        is_news=lambda found: found[1],
        show=lambda found: _show(call, found[0]),
        memory=since,
    )


def _show(call: Endpoint, entry: EntryView) -> Response:
    if etags.not_modified(call.request, entry.version):
        return etags.answer_empty(entry.version, 304)
    return answer(contract.Entry.of(entry), etag=entry.version)


@handles(contract.WRITE_ENTRY)
def write_entry(call: Endpoint, namespace: str, key: str) -> HttpResponse:
    entries.check_address(namespace, key)
    written = entries.put_entry(
        **call.author,
        namespace=namespace,
        key=key,
        precondition=etags.precondition(call.request),
        **call.body(contract.Write).given(),
    )
    return _show_written(call, written)


@handles(contract.PATCH_ENTRY)
def patch_entry(call: Endpoint, namespace: str, key: str) -> HttpResponse:
    entries.check_address(namespace, key)
    kind, operations = read_patch(call.request)
    written = entries.patch_entry(
        **call.author,
        namespace=namespace,
        key=key,
        kind=kind,
        operations=operations,
        precondition=etags.precondition(call.request),
    )
    return _show_written(call, written)


def _show_written(call: Endpoint, written: WriteResult) -> HttpResponse:
    # The response to a dry run is what its client wants to see.
    if preferences.prefers_minimal(call.request.META) and not call.dry_run:
        return preferences.mark_applied(etags.answer_empty(written.entry.version, 204))
    status = 201 if written.created else 200
    return answer(contract.Entry.of(written.entry), status, etag=written.entry.version)


def read_patch(request: Request) -> tuple[PatchKind, JSON]:
    """Return the kind of patch that the media type names, and the body."""
    raw: Any = request.data
    if not isinstance(raw, Raw):
        raise BadRequest("the request body is missing")
    values.check(raw)
    media_type = request.content_type.partition(";")[0].strip().lower()
    return contract.PATCH_TYPES[media_type], values.load(raw.text)


@handles(contract.DELETE_ENTRY)
def delete_entry(call: Endpoint, namespace: str, key: str) -> HttpResponse:
    entries.check_address(namespace, key)
    version = entries.delete_entry(
        **call.author, namespace=namespace, key=key, precondition=etags.precondition(call.request)
    )
    return _show_cleared(call, 1 if version else 0) if call.dry_run else no_content()


@handles(contract.RESTORE_ENTRY)
def restore_entry(call: Endpoint, namespace: str, key: str) -> HttpResponse:
    entries.check_address(namespace, key)
    written = entries.restore_entry(
        **call.author,
        namespace=namespace,
        key=key,
        version=call.body(contract.VersionToRestore).version,
        precondition=etags.precondition(call.request),
    )
    return answer(contract.Entry.of(written.entry), etag=written.entry.version)


# History ---------------------------------------------------------------------------------------


@handles(contract.READ_HISTORY)
def read_history(call: Endpoint, namespace: str, key: str) -> HttpResponse:
    entries.check_address(namespace, key)
    namespaces.find_definition(call.actor, namespace, fresh=True)
    rows = EntryRevision.objects.visible_to(call.actor).of_key(namespace, key)
    return answer_versions(call, rows)


def answer_versions(call: Endpoint, rows: QuerySet[EntryRevision]) -> HttpResponse:
    """Return one page of versions, newest first."""
    with_value = call.query.include == "value"
    rows = rows.annotate(has_value=Q(value__isnull=False))
    return answer_rows(
        call,
        rows if with_value else rows.defer("value"),
        lambda row: contract.EntryVersion.of(row, exists=row.has_value, with_value=with_value),
        by="version",
        created="at",
    )


@handles(contract.PIN_VERSION)
def pin_version(call: Endpoint, namespace: str, key: str) -> HttpResponse:
    entries.check_address(namespace, key)
    body = call.body(contract.VersionPin)
    row = retention.pin_version(**call.author, namespace=namespace, key=key, **body.given())
    return answer(contract.EntryVersion.of(row, exists=row.value is not None))


@handles(contract.DIFF_ENTRY)
def diff_entry(call: Endpoint, namespace: str, key: str) -> HttpResponse:
    entries.check_address(namespace, key)
    old, new = call.query.from_, call.query.to
    before, after = entry_views.diff_entry(
        actor=call.actor, namespace=namespace, key=key, old=old, new=new
    )
    return answer(Diff.of(before, after, old=old, new=new))


# Lists -----------------------------------------------------------------------------------------


@handles(contract.LIST_STATE)
def list_state(call: Endpoint) -> HttpResponse:
    page = read_page(call, str)
    listed = listings.list_entries(
        actor=call.actor,
        filters=_filters_of(call.query),
        plugin=call.query.plugin or "",
        with_values=with_values(call),
        limit=page.limit,
        after=page.after,
    )
    return show_listed(call, page, listed)


@handles(contract.LIST_ENTRIES)
def list_entries(call: Endpoint, namespace: str) -> HttpResponse:
    page = read_page(call, str)
    listed = listings.list_namespace(
        actor=call.actor,
        namespace=namespace,
        filters=_filters_of(call.query),
        with_values=with_values(call),
        last_first=call.query.order == "desc",
        before=call.query.before or "",
        limit=page.limit,
        after=page.after,
    )
    return show_listed(call, page, listed)


def _filters_of(query: contract.ListFilters) -> ListFilters:
    # `tags` is split at commas; `tag` is taken as a whole, since a tag may contain a comma.
    tags = query.tag + ",".join(query.tags).split(",")
    return ListFilters(
        prefix=query.prefix or "",
        scope_kind=scopes.ScopeKind(query.scope_kind) if query.scope_kind else None,
        updated_since=query.updated_since,
        created_after=query.created_after,
        created_before=query.created_before,
        tags=[tag for tag in tags if tag],
        valid=query.valid,
    )


@handles(contract.LIST_KEY)
def list_key(call: Endpoint, key: str) -> HttpResponse:
    page = read_page(call, str)
    listed = listings.list_key(
        actor=call.actor,
        key=_checked(key),
        created_after=call.query.created_after,
        created_before=call.query.created_before,
        with_values=with_values(call),
        last_first=call.query.order == "desc",
        limit=page.limit,
        after=page.after,
    )
    return show_listed(call, page, listed)


def with_values(call: Endpoint) -> bool:
    return bool(call.query.include == "value")


def show_listed(
    call: Endpoint,
    page: Page,
    listed: EntryPage,
    show: Callable[..., contract.EntryRow] = contract.EntryRow.of,
) -> HttpResponse:
    """Return one page of entries, each converted by `show`."""
    with_value = with_values(call)
    items = [show(row, valid=valid, with_value=with_value) for row, valid in listed.rows]
    cursor = page.cursor_to(listed.after) if listed.after is not None else None
    return answer(base.Page(items=items, next_cursor=cursor))


# Deletion in bulk ------------------------------------------------------------------------------


@handles(contract.CLEAR_STATE)
@handles(contract.CLEAR_NAMESPACE)
def clear_entries(call: Endpoint, namespace: str = "") -> HttpResponse:
    kind = call.query.scope_kind
    count = clearing.clear_matching(
        **call.author,
        namespace=namespace,
        prefix=call.query.prefix or "",
        scope_kind=scopes.ScopeKind(kind) if kind else None,
        limit=call.query.limit,
        dry_run=call.dry_run,
    )
    return _show_cleared(call, count)


@handles(contract.CLEAR_KEY)
def clear_key(call: Endpoint, key: str) -> HttpResponse:
    count = clearing.clear_key(**call.author, key=_checked(key), dry_run=call.dry_run)
    return _show_cleared(call, count)


def _show_cleared(call: Endpoint, count: int) -> HttpResponse:
    return answer(Cleared(deleted=0 if call.dry_run else count, matched=count))


def _checked(key: str) -> str:
    return checked("key", scopes.check_key, key, BadRequest)
