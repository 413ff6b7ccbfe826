"""Removing old snapshots of a thread and old versions in a namespace, after a preview of the
amount; and pinning a version, which compaction then keeps."""

from __future__ import annotations

from django.http import HttpResponse
from django.urls import path

from state_admin.domain.access import Role
from state_admin.models.retention_sql import StoredSize
from state_admin.services.errors import BadRequest
from state_admin.services.retention import (
    VersionCount,
    count_old_versions,
    pin_version,
    preview_snapshots,
    request_history,
    request_snapshots,
)
from state_admin.templatetags.ui import plural, size

from . import paging
from .actors import FORM, POST, page
from .addresses import entry_url, namespace_url, thread_action_url, thread_url
from .confirm import Confirm, Count, ask, reason_of
from .entry_address import entry_page, entry_paths
from .htmx import Request, render, see_other, toast
from .id_address import id_page, id_path

# How long a page counts before it is shown, a fragment before it shows what it has counted, and a page
# without JavaScript if all is to be counted, in seconds.
COUNT_FIRST = 0.03
_COUNT_NEXT = 0.1
_COUNT_ALL = 20
_FOR_GOOD = "Removed data cannot be restored."


@id_page(methods=FORM, role=Role.ADMIN)
def compact_snapshots(request: Request, thread_id: str) -> HttpResponse:
    back = thread_url(thread_id, tab="compactions")
    if request.method == "POST":
        request_snapshots(actor=request.actor, thread_id=thread_id, reason=reason_of(request))
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


@page(methods=FORM, role=Role.ADMIN)
def compact_history(request: Request, name: str) -> HttpResponse:
    if request.method == "POST":
        request_history(actor=request.actor, namespace=name, reason=reason_of(request))
        toast(request, "History compaction requested")
        return see_other(request, namespace_url(name))
    seconds = _COUNT_ALL if request.GET.get("count") == "all" else COUNT_FIRST
    count = count_old_versions(actor=request.actor, namespace=name, seconds=seconds)
    question = Confirm(
        title=f"Remove old versions in {name}?",
        verb="Remove versions",
        back=namespace_url(name),
        count=show_count(name, count, whole_url=namespace_url(name, "compact", count="all")),
        lines=[
            "The newest version of each entry, pinned versions, and those that the history settings "
            "of this namespace keep are not removed.",
            _FOR_GOOD,
        ],
    )
    return ask(request, question)


@page(role=Role.ADMIN, replica=True)
def old_versions(request: Request, name: str) -> HttpResponse:
    """Continue a count from the numbers of the query, which are those counted up to now."""
    size_before = (paging.whole_number(request, each) or 0 for each in StoredSize._fields)
    keeps = (
        paging.whole_number(request, "keep_last"),
        paging.whole_number(request, "keep_seconds"),
    )
    rule = keeps if any(keeps) else None
    count = count_old_versions(
        actor=request.actor,
        namespace=name,
        seconds=_COUNT_NEXT,
        rule=rule,
        since=VersionCount(StoredSize(*size_before), paging.text(request, "after")),
    )
    return render(request, "components/_count.html", {"count": show_count(name, count, rule)})


def show_count(
    name: str,
    count: VersionCount,
    rule: tuple[int | None, int | None] | None = None,
    *,
    whole_url: str = "",
) -> Count:
    """The old versions that were counted in the namespace, and the address that continues."""
    if count.complete:
        return Count(f"{share(count.size, 'version,versions')} will be removed.")
    text = ""
    if count.size.rows:
        text = f"{share(count.size, 'version,versions', of='the first ')} will be removed. "
    if count.stopped:
        rest = "others" if text else "old versions"
        return Count(f"{text}The {rest} could not be counted in time.")
    rules = zip(("keep_last", "keep_seconds"), rule or (), strict=False)
    query = {**count.size._asdict(), **dict(rules)}
    next_url = namespace_url(name, "old-versions", after=count.after or "", **query)
    return Count(text, next_url, whole_url)


@entry_page(methods=POST, role=Role.EDITOR)
def entry_pin(request: Request, namespace: str, key: str) -> HttpResponse:
    version = paging.whole_number(request, "version")
    if version is None:
        raise BadRequest("version is required: ?version=")
    pinned = request.POST.get("pinned") == "on"
    pin_version(actor=request.actor, namespace=namespace, key=key, version=version, pinned=pinned)
    kept = "is pinned: compaction keeps it" if pinned else "is no longer pinned"
    toast(request, f"Version {version} {kept}")
    return see_other(request, entry_url(namespace, key, tab="history"), part="entry")


def share(weight: StoredSize, forms: str, *, of: str = "") -> str:
    """ "3 of 10 values (1.2 kB of 4.0 kB)" """
    return (
        f"{weight.rows_removed:,} of {of}{plural(weight.rows, forms)} "
        f"({size(weight.bytes_removed)} of {size(weight.bytes)})"
    )


urlpatterns = [
    id_path("thread/compact-snapshots", compact_snapshots, "thread-compact-snapshots"),
    path("namespaces/<str:name>/compact", compact_history, name="namespace-compact"),
    path("namespaces/<str:name>/old-versions", old_versions, name="namespace-old-versions"),
    *entry_paths("entry/pin", entry_pin, "entry-pin"),
]
