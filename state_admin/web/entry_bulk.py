"""Bulk actions of the state browser, on the selected entries or on all that match its filters.

A confirmation page names the action and the number of entries. Then each request changes up to a
thousand entries, and a page lists the skipped ones. The form holds the progress: leaving the page
stops the action and keeps the changes made so far.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any, Final, cast
from urllib.parse import urlsplit

from django.http import HttpResponse, HttpResponseBase, QueryDict, StreamingHttpResponse
from django.urls import path, reverse

from state_admin.contract.types import MAX_TTL
from state_admin.domain import diffs, values
from state_admin.domain.access import Actor, Role
from state_admin.domain.numbers import read_whole
from state_admin.models import Entry
from state_admin.models.bulk_sql import Action
from state_admin.models.reverts_sql import WrittenEntry
from state_admin.services import bulk
from state_admin.services.bulk import BulkResult, SelectedEntry
from state_admin.services.bulk_patches import PatchResult, patch_entries, read_patch
from state_admin.services.errors import BadRequest, Conflict, Problem, QuotaExceeded
from state_admin.services.namespaces import find_untracked
from state_admin.services.reverts import newest_audit_row, revert_entries
from state_admin.templatetags.ui import plural

from .actors import POST, page
from .addresses import entry_url
from .confirm import PREVIEW, Confirm, Input, ask, reason_of
from .entry_list import EntryListFilters, find_all, read_filters
from .htmx import Request, render, see_other, toast
from .paging import number_in, read_list, read_moment
from .reverts import return_url, undo_of_request

# Entries: counted for the confirmation, changed per request, listed as skipped.
_MOST_COUNTED: Final = 10_000
_CHUNK: Final = bulk.MOST
_MOST_LISTED: Final = 100

_VERBS: Final = {
    "delete": "Delete",
    "patch": "Edit",
    "tag": "Tag",
    "untag": "Untag",
    "expire": "Set the expiry of",
    "export": "Export",
    "restore": "Restore",
}
_PAST: Final = {
    "delete": "Deleted",
    "patch": "Edited",
    "tag": "Tagged",
    "untag": "Untagged",
    "expire": "Set the expiry of",
    "restore": "Restored",
}
_LINES: Final = {
    "delete": "Their history is kept, and each entry can be restored.",
    "patch": "The same change is made to each value. Expiry, tags and pins stay.",
    "tag": "Each gets a new version with the same value.",
    "untag": "Entries without the tag are skipped.",
    "expire": "Reads then return the default. The history is kept.",
    "export": "One JSON object per line, with value, version and tags.",
    "restore": "Each gets its last value, tags and pin again, as a new version.",
}
# Actions that cannot be undone in an untracked namespace.
_FINAL: Final = ("delete", "patch", "expire")
_INPUTS: Final = {
    "tag": Input("tag", "Tag", "1 to 64 characters, no comma"),
    "untag": Input("tag", "Tag to remove"),
    "expire": Input("ttl", "Expires after (seconds)", "One day is 86400", "number"),
}


@dataclass(frozen=True)
class BulkAction:
    """A bulk action. It changes the selected entries (`chosen`) or, with `all`, those that match
    `filters` and were written before `seen_at`. `done`, `skipped` and `more_skipped`
    are the results of earlier requests: how many entries were changed, which were skipped, and how
    many more were."""

    action: str
    back: str
    all: bool
    texts: Sequence[str]
    chosen: Sequence[SelectedEntry]
    filters: EntryListFilters
    seen_at: datetime
    tag: str = ""
    ttl: int = 0
    patch: str = ""
    reason: str = ""
    total: int = 0
    done: int = 0
    skipped: Sequence[Sequence[str]] = ()
    more_skipped: int = 0
    # The request id with which all its steps write, so that they can be reverted together, and the id
    # of the newest of their audit rows (0: none).
    request_id: str = ""
    near: int = 0

    def fields(self) -> list[tuple[str, str | int]]:
        """The hidden fields that carry the action to the next request."""
        hidden: list[tuple[str, str | int]] = [("action", self.action), ("back", self.back)]
        if self.all:
            hidden += [("all", "yes"), ("seen_at", self.seen_at.isoformat())]
        return hidden + [("entry", text) for text in self.texts]


@page(methods=POST, role=Role.EDITOR)
def entry_bulk(request: Request) -> HttpResponseBase:
    order = _order(request)
    if not order.all and not order.chosen:
        toast(request, "Select entries first", kind="note")
        return see_other(request, order.back, part="entry-browser")
    confirmed = "confirmed" in request.POST and "change" not in request.POST and order.patch
    if order.action == "patch" and not confirmed:
        return _edit(request, order)
    if "confirmed" not in request.POST:
        return ask(request, _question(request.actor, order), part="entry-browser")
    if order.action == "export":
        return _export(request.actor, order)
    return _run(request, order)


def _order(request: Request) -> BulkAction:
    post = request.POST
    action, back = post.get("action", ""), return_url(post)
    if action not in _VERBS:
        raise BadRequest("unknown action")
    if action == "tag" and "," in post.get("tag", ""):
        raise BadRequest("a tag must not contain a comma")
    texts = post.getlist("entry")[:_CHUNK]
    every = "all" in post or "all" in request.GET
    filters = read_filters(QueryDict(urlsplit(back).query))
    now = datetime.now(UTC)
    return BulkAction(
        action=action,
        back=back,
        all=every,
        texts=[] if every else texts,
        chosen=[] if every else [_read_selected(text) for text in texts],
        filters=replace(filters, after=post.get("after", "")),
        seen_at=min(read_moment("seen_at", post["seen_at"]), now) if post.get("seen_at") else now,
        tag=post.get("tag", "").strip(),
        ttl=_ttl(post) if action == "expire" and "confirmed" in post else 0,
        patch=post.get("patch", "").strip() if action == "patch" else "",
        reason=reason_of(request),
        total=number_in(post, "total", "0"),
        done=number_in(post, "done", "0"),
        skipped=_read_skipped(post.get("skipped", "[]")),
        more_skipped=number_in(post, "more_skipped", "0"),
        request_id=_read_request_id(post) or request.actor.request_id,
        near=number_in(post, "near", "0"),
    )


@dataclass(frozen=True)
class EditPreview:
    """What a patch would change: the number of entries, and the first changed values."""

    result: PatchResult
    examined: int
    # Whether there are entries that were not examined.
    partly: bool

    @property
    def examples(self) -> list[tuple[str, str, list[diffs.Difference]]]:
        return [
            (each.namespace, each.key, diffs.rows(each.before, each.after))
            for each in self.result.examples
        ]

    @property
    def skipped(self) -> Sequence[bulk.SkippedEntry]:
        return self.result.skipped[:PREVIEW]

    @property
    def more_skipped(self) -> int:
        return max(0, len(self.result.skipped) - PREVIEW)


def _edit(request: Request, order: BulkAction) -> HttpResponse:
    """The form for the patch and, once there is one, what it would change: a dry run of the first
    entries."""
    question = _question(request.actor, order)
    preview, refusal = None, None
    if order.patch and "change" not in request.POST:
        selected, after, _ = _select(request.actor, order)
        try:
            result = patch_entries(
                actor=request.actor, seen=selected, patch=read_patch(order.patch), dry_run=True
            )
            examined = len(result.done) + len(result.skipped)
            preview = EditPreview(result, examined, partly=bool(after) or examined < len(selected))
        except Problem as bad:
            refusal = bad
    context = {
        "confirm": question,
        "total": dict(question.fields)["total"],
        "order": order,
        "preview": preview,
        "refusal": refusal,
    }
    status = refusal.status if refusal else 200
    return render(request, "entries/bulk_edit.html", context, part="bulk-edit", status=status)


def _question(actor: Actor, order: BulkAction) -> Confirm:
    if order.all:
        rows, end = find_all(actor, order.filters, _MOST_COUNTED)
        names = [f"{row.line.namespace_name}/{row.line.key}" for row in rows]
    else:
        names = [f"{each.namespace}/{each.key}" for each in order.chosen]
        end = ""
    what = f"{len(names):,} entries or more" if end else plural(len(names), "entry,entries")
    lines = [_LINES[order.action]]
    final = order.action in _FINAL and find_untracked(
        actor, {name.partition("/")[0] for name in names}
    )
    if final:
        lines = [f"Entries of untracked namespaces cannot be restored ({', '.join(final)})."]
    if order.all:
        lines.append(
            "These are all entries that match the filters now. Entries written from now on are skipped."
        )
    if order.action != "export" and not final:
        lines.append("You can undo this.")
    verb = f"{_VERBS[order.action]} {what}"
    return Confirm(
        title=f"{verb}?",
        verb=verb,
        url=reverse("web:entry-bulk"),
        back=order.back,
        lines=lines,
        names=names,
        fields=[("confirmed", "yes"), ("total", len(names)), *order.fields()],
        inputs=[_INPUTS[order.action]] if order.action in _INPUTS else [],
        kind="danger" if order.action == "delete" else "primary",
        download=order.action == "export",
    )


def _run(request: Request, order: BulkAction) -> HttpResponse:
    """Change the next thousand entries. Show the progress or, at the end, the skipped entries."""
    actor = replace(request.actor, request_id=order.request_id)
    selected, after, late = _select(actor, order)
    try:
        result = _change(actor, order, selected)
    except (Conflict, QuotaExceeded) as problem:
        if not order.done:
            raise
        # Earlier requests have changed entries: end here, with what they did and its Undo.
        after = ""
        skipped = [bulk.SkippedEntry(e.namespace, e.key, problem.detail) for e in selected]
        result = BulkResult([], skipped)
    skipped_entries = [*order.skipped, *late, *(list(each) for each in result.skipped)]
    order = replace(
        order,
        near=newest_audit_row(actor) or order.near,
        done=order.done + len(result.done),
        skipped=skipped_entries[:_MOST_LISTED],
        more_skipped=order.more_skipped + max(0, len(skipped_entries) - _MOST_LISTED),
    )
    return _show_step(request, order, after)


def _select(actor: Actor, order: BulkAction) -> tuple[list[SelectedEntry], str, list[list[str]]]:
    """Return the next thousand entries, the cursor after them ("" at the end), and those that were
    written after `seen_at`, with the reason for skipping them."""
    if not order.all:
        return list(order.chosen), "", []
    rows, after = find_all(actor, order.filters, _CHUNK)
    why = "it was written after the confirmation was shown"
    lines = [row.line for row in rows]
    late = [
        [line.namespace_name, line.key, why] for line in lines if line.updated_at > order.seen_at
    ]
    selected = [
        SelectedEntry(line.namespace_name, line.key, line.version)
        for line in lines
        if line.updated_at <= order.seen_at
    ]
    return selected, after, late


def _show_step(request: Request, order: BulkAction, after: str) -> HttpResponse:
    """The progress, if the action continues at `after`; otherwise a toast, and the skipped
    entries."""
    past, number = _PAST[order.action], len(order.skipped) + order.more_skipped
    context = {
        "order": order,
        "past": past,
        "skipped_json": values.dump(list(order.skipped)),
        "after": after,
        "examined": order.done + number,
        "skipped": [
            (entry_url(namespace, key), f"{namespace}/{key}", why)
            for namespace, key, why in order.skipped
        ],
    }
    if not after:
        text = f"{past} {plural(order.done, 'entry,entries')}"
        if number:
            text += f"; skipped {number:,}"
        # There is no audit row if all changes were in untracked namespaces.
        undo = undo_of_request(order.request_id, order.back, order.near) if order.near else None
        toast(request, text, undo=undo, kind="failed" if number else "done")
    if after or number:
        return render(request, "entries/bulk.html", context, part="entry-bulk")
    return see_other(request, order.back, part="entry-browser")


def _change(actor: Actor, order: BulkAction, selected: Sequence[SelectedEntry]) -> BulkResult:
    if order.action == "restore":  # revert the deletion, which is the newest version
        deleted = [
            WrittenEntry(each.namespace, each.key, each.version, each.version) for each in selected
        ]
        reason = order.reason or "restored"
        return revert_entries(actor=actor, written=deleted, reason=reason, deleted=True)
    if order.action == "patch":
        patch = read_patch(order.patch)
        return patch_entries(actor=actor, seen=selected, patch=patch, reason=order.reason)
    expires_at = order.seen_at + timedelta(seconds=order.ttl) if order.ttl else None
    return bulk.change_entries(
        actor=actor,
        action=cast(Action, order.action),
        seen=[each._replace(expires_at=expires_at) for each in selected],
        tag=order.tag,
        reason=order.reason,
    )


def _export(actor: Actor, order: BulkAction) -> HttpResponseBase:
    lines = _lines(actor, order)
    response = StreamingHttpResponse(lines, content_type="application/x-ndjson")
    response["Content-Disposition"] = 'attachment; filename="entries.jsonl"'
    return response


def _lines(actor: Actor, order: BulkAction) -> Iterator[str]:
    if not order.all:
        yield from _written(actor, [(each.namespace, each.key) for each in order.chosen])
        return
    filters = order.filters
    while True:
        rows, after = find_all(actor, filters, _CHUNK)
        yield from _written(actor, [(row.line.namespace_name, row.line.key) for row in rows])
        if not after:
            return
        filters = replace(filters, after=after)


def _written(actor: Actor, addresses: Sequence[tuple[str, str]]) -> Iterator[str]:
    for namespace, group in groupby(sorted(addresses), key=lambda address: address[0]):
        rows = Entry.objects.visible_to(actor).live().order_by("key")
        for row in rows.filter(namespace__name=namespace, key__in=[key for _, key in group]):
            document: dict[str, Any] = {
                "namespace": namespace,
                "key": row.key,
                "version": row.version,
                "value": values.load(row.value or "null"),
                "tags": row.tags,
                "pinned": row.pinned,
                "expires_at": row.expires_at and row.expires_at.isoformat(),
                "updated_at": row.updated_at.isoformat(),
                "actor": row.actor_name,
            }
            yield values.dump(document) + "\n"


def _read_selected(text: str) -> SelectedEntry:
    number, _, address = text.partition(" ")
    namespace, _, key = address.partition("/")
    version = read_whole(number)
    if version is None or not (namespace and key):
        raise BadRequest("not an entry address")
    return SelectedEntry(namespace, key, version)


def _read_skipped(text: str) -> list[list[str]]:
    skipped = read_list(text, "entries")
    if len(skipped) > _MOST_LISTED:
        raise BadRequest("not a list of entries")
    if any(
        not isinstance(each, list) or [type(p) for p in each] != [str, str, str] for each in skipped
    ):
        raise BadRequest("not a list of skipped entries")
    return skipped


def _read_request_id(post: QueryDict) -> str:
    text = post.get("request", "")
    if len(text) > 64:
        raise BadRequest("request must have at most 64 characters")
    return text


def _ttl(post: QueryDict) -> int:
    ttl = read_whole(post.get("ttl", "").strip(), least=1, most=MAX_TTL)
    if ttl is None:
        raise BadRequest("the lifetime must be a whole number of seconds, at least 1")
    return ttl


urlpatterns = [path("entries/bulk", entry_bulk, name="entry-bulk")]
