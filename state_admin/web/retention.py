"""Removing old snapshots of a thread and old versions in a namespace, after a preview of the
amount; and pinning a version, which compaction then keeps."""

from __future__ import annotations

from django.http import HttpResponse
from django.urls import path
from django.views.decorators.http import require_http_methods, require_POST

from state_admin.domain.access import Role
from state_admin.models.retention_sql import StoredSize
from state_admin.services.errors import BadRequest
from state_admin.services.retention import (
    pin_version,
    preview_snapshots,
    request_history,
    request_snapshots,
    try_preview_history,
)
from state_admin.templatetags.ui import plural, size

from . import paging
from .actors import page
from .addresses import entry_url, namespace_url, thread_action_url, thread_url
from .confirm import Confirm, ask
from .entry_address import entry_page, entry_paths
from .htmx import Request, see_other, toast
from .id_address import id_page, id_path

_FOR_GOOD = "Removed data cannot be restored."


@require_http_methods(["GET", "POST"])
@id_page(role=Role.ADMIN)
def compact_snapshots(request: Request, thread_id: str) -> HttpResponse:
    back = thread_url(thread_id, tab="compactions")
    if request.method == "POST":
        request_snapshots(actor=request.actor, thread_id=thread_id, reason=_reason(request))
        toast(request, "Snapshot compaction requested")
        return see_other(request, back, part="thread")
    preview = preview_snapshots(actor=request.actor, thread_id=thread_id)
    every = f", every {preview.keep_every}th" if preview.keep_every else ""
    question = Confirm(
        title="Remove old snapshots?",
        verb="Remove snapshots",
        url=thread_action_url("compact-snapshots", thread_id),
        back=back,
        lines=[
            f"{preview.dropped:,} of {plural(preview.snapshots, 'snapshot,snapshots')} will be removed, with "
            f"{share(preview.weight, 'value,values')}.",
            f"The newest {preview.keep_last:,}{every}, the last of each run, and those with a "
            "label or a pin are kept.",
            _FOR_GOOD,
        ],
    )
    return ask(request, question, part="thread")


@require_http_methods(["GET", "POST"])
@page(role=Role.ADMIN)
def compact_history(request: Request, name: str) -> HttpResponse:
    if request.method == "POST":
        request_history(actor=request.actor, namespace=name, reason=_reason(request))
        toast(request, "History compaction requested")
        return see_other(request, namespace_url(name))
    weight = try_preview_history(actor=request.actor, namespace=name)
    rule = "according to the history settings of this namespace"
    question = Confirm(
        title=f"Remove old versions in {name}?",
        verb="Remove versions",
        url=namespace_url(name, "compact"),
        back=namespace_url(name),
        lines=[
            f"{share(weight, 'version,versions')} will be removed, {rule}."
            if weight
            else f"Old versions will be removed, {rule}. They could not be counted in time.",
            "The newest version of each entry and pinned versions are kept.",
            _FOR_GOOD,
        ],
    )
    return ask(request, question)


@require_POST
@entry_page(role=Role.EDITOR)
def entry_pin(request: Request, namespace: str, key: str) -> HttpResponse:
    version = paging.whole_number(request, "version")
    if version is None:
        raise BadRequest("version is required: ?version=")
    pinned = request.POST.get("pinned") == "on"
    pin_version(actor=request.actor, namespace=namespace, key=key, version=version, pinned=pinned)
    kept = "is pinned: compaction keeps it" if pinned else "is no longer pinned"
    toast(request, f"Version {version} {kept}")
    return see_other(request, entry_url(namespace, key, tab="history"), part="entry")


def share(weight: StoredSize, forms: str) -> str:
    """ "3 of 10 values (1.2 kB of 4.0 kB)" """
    return (
        f"{weight.rows_removed:,} of {plural(weight.rows, forms)} "
        f"({size(weight.bytes_removed)} of {size(weight.bytes)})"
    )


def _reason(request: Request) -> str:
    return request.POST.get("reason", "").strip()[:500]


urlpatterns = [
    id_path("thread/compact-snapshots", compact_snapshots, "thread-compact-snapshots"),
    path("namespaces/<str:name>/compact", compact_history, name="namespace-compact"),
    *entry_paths("entry/pin", entry_pin, "entry-pin"),
]
