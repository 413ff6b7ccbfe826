"""Thread state over time: …/state, …/snapshots, …/diff, …/restore, …/import."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request

from state_admin.domain import values
from state_admin.domain.values import Raw
from state_admin.models import Revision
from state_admin.services import exports, snapshots, threads
from state_admin.services.errors import Invalid
from state_admin.services.snapshots import Snapshot

from . import etags, pagination
from .bodies import Body, Flag, RawField, Text, Whole, answer, verbatim
from .endpoint import Endpoint
from .entries import show_diff


class RestoreSnapshotBody(Body):
    revision = Whole(min_value=0)


class SnapshotBody(Body):
    revision = Whole(min_value=0)
    extensions = RawField()


class ImportSnapshotBody(Body):
    snapshot = RawField()
    unknown_keys = serializers.ChoiceField(choices=["error", "skip"], required=False)
    mode = serializers.ChoiceField(choices=["replace", "merge"], required=False)


class MarkBody(Body):
    label = Text(  # type: ignore[assignment]  # the wire name
        required=False, allow_blank=True, max_length=128
    )
    pinned = Flag(required=False)


def show_snapshot(snapshot: Snapshot) -> dict[str, Any]:
    extensions = {key: verbatim(text) for key, text in snapshot.extensions.items()}
    return {"revision": snapshot.revision, "extensions": extensions}


def show_revision(row: Revision) -> dict[str, Any]:
    return {
        "revision": row.number,
        "kind": row.kind,
        "run_id": row.run.public_id if row.run else None,
        "touched_keys": row.touched,
        "message_count": row.message_count,
        "label": row.label,
        "pinned": row.pinned,
        "kept": not row.dropped,
        "actor": row.actor_name,
        "reason": row.reason,
        "request_id": row.request_id,
        "at": row.at,
    }


def read_extensions(raw: Raw) -> dict[str, Raw]:
    if not isinstance(raw.value, dict):
        fault = values.Fault("/snapshot/extensions", "not an object")
        raise Invalid("extensions must be an object", [fault])
    return values.members(raw)


class ThreadState(Endpoint):
    @extend_schema(operation_id="read_state")
    def get(self, request: Request, thread_id: str) -> HttpResponse:
        """The state now, or at `?revision=`; `?scope=run|thread` narrows it. `?export=true`: only
        what another place can take, the values of registered and persistent keys."""
        revision = self.query.get("revision")
        scope = self.query.get("scope", "")
        export = self.query["export"]
        read = exports.export_snapshot if export else snapshots.read_snapshot
        snapshot = read(actor=self.actor, thread_id=thread_id, revision=revision, scope=scope)
        # What an export leaves out changes with the registered keys, without a revision.
        if not export and etags.not_modified(request, snapshot.revision):
            return etags.unchanged(snapshot.revision)
        return answer(show_snapshot(snapshot), etag=snapshot.revision)


class ThreadSnapshots(Endpoint):
    @extend_schema(operation_id="list_snapshots")
    def get(self, request: Request, thread_id: str) -> HttpResponse:
        """The revisions of a thread, newest first: what each touched, by whom, why."""
        thread = threads.find_thread(self.actor, thread_id)
        page = pagination.read_page(self)
        rows = Revision.objects.filter(thread=thread).select_related("run").order_by("-number")
        if page.after is not None:
            rows = rows.filter(number__lt=page.after)
        shown, cursor = page.close(list(rows[: page.limit + 1]), lambda row: row.number)
        return answer({"items": [show_revision(row) for row in shown], "next_cursor": cursor})


class ThreadSnapshotDetail(Endpoint):
    @extend_schema(operation_id="mark_snapshot", request=MarkBody)
    def patch(self, request: Request, thread_id: str, revision: int) -> HttpResponse:
        """Label or pin a revision, so that compaction keeps it."""
        body = MarkBody.take(request.data)
        row = snapshots.mark_revision(
            actor=self.actor,
            thread_id=thread_id,
            revision=revision,
            label=body.get("label"),
            pinned=body.get("pinned"),
            reason=self.reason,
        )
        return answer(show_revision(row))


class ThreadDiff(Endpoint):
    @extend_schema(operation_id="diff_snapshots")
    def get(self, request: Request, thread_id: str) -> HttpResponse:
        """What changed in state between two revisions."""
        old, new = self.query["from"], self.query["to"]
        before, after = snapshots.diff_snapshots(
            actor=self.actor, thread_id=thread_id, old=old, new=new
        )
        return answer(show_diff(before, after) | {"from": old, "to": new})


class ThreadRestore(Endpoint):
    conditional = ("POST",)

    @extend_schema(operation_id="restore_snapshot", request=RestoreSnapshotBody)
    def post(self, request: Request, thread_id: str) -> HttpResponse:
        """Make a new revision whose state equals an old one."""
        body = RestoreSnapshotBody.take(request.data)
        snapshot = snapshots.restore_snapshot(
            actor=self.actor,
            thread_id=thread_id,
            revision=body["revision"],
            expected_revision=etags.expected_version(request),
            reason=self.reason,
        )
        return answer(show_snapshot(snapshot), etag=snapshot.revision)


class ThreadImport(Endpoint):
    conditional = ("POST",)

    @extend_schema(operation_id="import_snapshot", request=ImportSnapshotBody)
    def post(self, request: Request, thread_id: str) -> HttpResponse:
        """Take an exported snapshot as a new revision. `mode` replace (default) or merge;
        `unknown_keys` error (default) or skip."""
        body = ImportSnapshotBody.take(request.data)
        snapshot = SnapshotBody.take(body["snapshot"], "/snapshot")
        done = exports.import_snapshot(
            actor=self.actor,
            thread_id=thread_id,
            revision=snapshot["revision"],
            extensions=read_extensions(snapshot["extensions"]),
            unknown_keys=body.get("unknown_keys", "error"),
            mode=body.get("mode", "replace"),
            expected_revision=etags.expected_version(request),
            reason=self.reason,
        )
        shown = {**show_snapshot(done.snapshot), "skipped_keys": done.skipped}
        return answer(shown, etag=done.snapshot.revision)
