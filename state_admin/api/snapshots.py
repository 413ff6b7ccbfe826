"""Thread state over time: …/state, …/snapshots, …/diff, …/restore, …/import."""

from __future__ import annotations

from django.http import HttpResponse

from state_admin.contract import snapshots as contract
from state_admin.contract.types import Diff
from state_admin.models import Revision
from state_admin.rest import etags
from state_admin.rest.bodies import answer
from state_admin.rest.endpoint import Endpoint, handles
from state_admin.rest.pagination import answer_rows
from state_admin.services import exports, snapshots, threads


@handles(contract.READ_STATE)
def read_state(call: Endpoint, thread_id: str) -> HttpResponse:
    query = call.query
    read = exports.export_snapshot if query.export else snapshots.read_snapshot
    snapshot = read(
        actor=call.actor, thread_id=thread_id, revision=query.revision, scope=query.scope or ""
    )
    # What an export omits depends on the registered keys, which change without a new revision.
    if not query.export and etags.not_modified(call.request, snapshot.revision):
        return etags.answer_empty(snapshot.revision, 304)
    return answer(contract.Snapshot.of(snapshot), etag=snapshot.revision)


@handles(contract.LIST_SNAPSHOTS)
def list_snapshots(call: Endpoint, thread_id: str) -> HttpResponse:
    thread = threads.find_thread(call.actor, thread_id)
    rows = Revision.objects.filter(thread=thread).select_related("run")
    return answer_rows(call, rows, contract.Revision.of, by="number", created="at")


@handles(contract.MARK_SNAPSHOT)
def mark_snapshot(call: Endpoint, thread_id: str, revision: int) -> HttpResponse:
    row = snapshots.mark_revision(
        **call.author,
        thread_id=thread_id,
        revision=revision,
        **call.body(contract.SnapshotMark).given(),
    )
    return answer(contract.Revision.of(row))


@handles(contract.DIFF_SNAPSHOTS)
def diff_snapshots(call: Endpoint, thread_id: str) -> HttpResponse:
    old, new = call.query.from_, call.query.to
    before, after = snapshots.diff_snapshots(
        actor=call.actor, thread_id=thread_id, old=old, new=new
    )
    return answer(Diff.of(before, after, old=old, new=new))


@handles(contract.RESTORE_SNAPSHOT)
def restore_snapshot(call: Endpoint, thread_id: str) -> HttpResponse:
    snapshot = snapshots.restore_snapshot(
        **call.author,
        thread_id=thread_id,
        revision=call.body(contract.SnapshotRestoration).revision,
        expected_revision=etags.expected_version(call.request),
    )
    return answer(contract.Snapshot.of(snapshot), etag=snapshot.revision)


@handles(contract.IMPORT_SNAPSHOT)
def import_snapshot(call: Endpoint, thread_id: str) -> HttpResponse:
    body = call.body(contract.SnapshotImport)
    imported = exports.import_snapshot(
        **call.author,
        thread_id=thread_id,
        revision=body.snapshot.revision,
        extensions=body.snapshot.extensions,
        unknown_keys=body.unknown_keys,
        mode=body.mode,
        expected_revision=etags.expected_version(call.request),
    )
    return answer(contract.ImportedSnapshot.of(imported), etag=imported.snapshot.revision)
