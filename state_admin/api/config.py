"""The config registry: /config/{kind}, /config/{kind}/{id}, its history, restore and dependents.

Past versions, differences and blame of a record are read as those of the entry in the namespace
`config.{kind}` whose key is the record's id.
"""

from __future__ import annotations

from django.http import HttpResponse

from state_admin.contract import base
from state_admin.contract import config as contract
from state_admin.contract.entries import VersionToRestore
from state_admin.domain.config import Kind
from state_admin.models import Entry, EntryRevision
from state_admin.rest import etags
from state_admin.rest.bodies import answer, no_content
from state_admin.rest.endpoint import Endpoint, handles
from state_admin.rest.pagination import read_page
from state_admin.services import config, listings, namespaces
from state_admin.services.entry_views import EntryView
from state_admin.services.errors import NotFound
from state_admin.services.listings import ListFilters

from .entries import answer_versions, read_patch, show_listed, with_values


@handles(contract.LIST_CONFIG)
def list_config(call: Endpoint, kind: str) -> HttpResponse:
    page = read_page(call, str)
    listed = listings.list_namespace(
        actor=call.actor,
        namespace=Kind(kind).namespace,
        filters=ListFilters(
            prefix=call.query.prefix or "",
            created_after=call.query.created_after,
            created_before=call.query.created_before,
        ),
        with_values=with_values(call),
        last_first=call.query.order == "desc",
        limit=page.limit,
        after=page.after,
    )

    def show(row: Entry, **more: bool) -> contract.RecordRow:
        return contract.RecordRow.of(row, kind=kind, id=row.key, **more)

    return show_listed(call, page, listed, show)


@handles(contract.READ_CONFIG)
def read_config(call: Endpoint, kind: str, record_id: str) -> HttpResponse:
    record = config.read_record(actor=call.actor, kind=Kind(kind), identity=record_id)
    if etags.not_modified(call.request, record.version):
        return etags.answer_empty(record.version, 304)
    return _show(kind, record)


def _show(kind: str, record: EntryView, status: int = 200) -> HttpResponse:
    document = contract.Record.of(record, kind=kind, id=record.key)
    return answer(document, status, etag=record.version)


@handles(contract.WRITE_CONFIG)
def write_config(call: Endpoint, kind: str, record_id: str) -> HttpResponse:
    written = config.put_record(
        **call.author,
        kind=Kind(kind),
        identity=record_id,
        value=call.body(contract.RecordWrite).value,
        precondition=etags.precondition(call.request),
    )
    return _show(kind, written.entry, 201 if written.created else 200)


@handles(contract.PATCH_CONFIG)
def patch_config(call: Endpoint, kind: str, record_id: str) -> HttpResponse:
    patch, operations = read_patch(call.request)
    written = config.patch_record(
        **call.author,
        kind=Kind(kind),
        identity=record_id,
        patch=patch,
        operations=operations,
        precondition=etags.precondition(call.request),
    )
    return _show(kind, written.entry)


@handles(contract.DELETE_CONFIG)
def delete_config(call: Endpoint, kind: str, record_id: str) -> HttpResponse:
    done = config.delete_record(
        **call.author,
        kind=Kind(kind),
        identity=record_id,
        precondition=etags.precondition(call.request),
        force=call.query.force,
        dry_run=call.dry_run,
    )
    if not call.dry_run:
        return no_content()
    return answer(contract.Dependents(dependents=done.dependents, hidden=done.hidden))


@handles(contract.READ_CONFIG_HISTORY)
def read_config_history(call: Endpoint, kind: str, record_id: str) -> HttpResponse:
    config.check_id(record_id)
    namespace = Kind(kind).namespace
    namespaces.find_definition(call.actor, namespace, fresh=True)
    rows = EntryRevision.objects.visible_to(call.actor).of_key(namespace, record_id)
    if call.query.cursor is None and not rows.exists():
        raise NotFound(f"config not found: {kind}/{record_id}")
    return answer_versions(call, rows)


@handles(contract.RESTORE_CONFIG)
def restore_config(call: Endpoint, kind: str, record_id: str) -> HttpResponse:
    written = config.restore_record(
        **call.author,
        kind=Kind(kind),
        identity=record_id,
        version=call.body(VersionToRestore).version,
        precondition=etags.precondition(call.request),
    )
    return _show(kind, written.entry)


@handles(contract.LIST_CONFIG_DEPENDENTS)
def list_config_dependents(call: Endpoint, kind: str, record_id: str) -> HttpResponse:
    items = config.find_dependents(actor=call.actor, kind=Kind(kind), identity=record_id)
    return answer(base.Page(items=items, next_cursor=None))
