"""Bulk actions of the state browser, on the selected entries or on all that match its filters.

A confirmation says what happens to how many entries. Then each request changes up to a thousand,
and a page lists the skipped entries. The form holds the progress: leaving the page stops the action
and keeps the changes made so far.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any, Final, cast, get_args
from urllib.parse import urlsplit

from django.http import HttpResponse, HttpResponseBase, QueryDict, StreamingHttpResponse
from django.urls import path, reverse
from django.views.decorators.http import require_POST

from state_admin.domain import moments, values
from state_admin.domain.access import Actor, Role
from state_admin.domain.numbers import read_whole
from state_admin.models import Entry
from state_admin.models.bulk_sql import Action
from state_admin.services import bulk
from state_admin.services.bulk import ChangedEntry, SelectedEntry
from state_admin.services.errors import BadRequest, Problem
from state_admin.services.namespaces import find_untracked

from .actors import page
from .confirm import PREVIEW, Confirm, Input, ask
from .entry_list import EntryListFilters, find_all, read_filters
from .entry_undo import undelete
from .htmx import Request, Undo, render, see_other, toast
from .paging import read_required_number

# Entries: counted for the confirmation, changed per request, listed as skipped, undone by one button.
_MOST_COUNTED: Final = 10_000
_CHUNK: Final = bulk.MOST
_MOST_LISTED: Final = 100
_MOST_UNDOABLE: Final = 50
_MOST_TTL: Final = 10 * 365 * 86400

_VERBS: Final = {
    "delete": "Delete",
    "tag": "Tag",
    "untag": "Untag",
    "expire": "Set the expiry of",
    "export": "Export",
}
_PAST: Final = {
    "delete": "Deleted",
    "tag": "Tagged",
    "untag": "Untagged",
    "expire": "Set the expiry of",
}
_LINES: Final = {
    "delete": "Their history is kept, and each entry can be restored.",
    "tag": "Each gets a new version with the same value.",
    "untag": "Entries without the tag are skipped.",
    "expire": "Reads then return the default. The history is kept.",
    "export": "One JSON object per line, with value, version and tags.",
}
# Actions that cannot be undone in an untracked namespace.
_FINAL: Final = ("delete", "expire")
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
    reason: str = ""
    total: int = 0
    done: int = 0
    skipped: Sequence[Sequence[str]] = ()
    more_skipped: int = 0

    @property
    def root(self) -> str:
        return reverse("web:entry-bulk")

    def fields(self) -> list[tuple[str, str | int]]:
        """The hidden fields that carry the action to the next request."""
        hidden: list[tuple[str, str | int]] = [("action", self.action), ("back", self.back)]
        if self.all:
            hidden += [("all", "yes"), ("seen_at", self.seen_at.isoformat())]
        return hidden + [("entry", text) for text in self.texts]


@require_POST
@page(role=Role.EDITOR)
def entry_bulk(request: Request) -> HttpResponseBase:
    order = _order(request)
    if not order.all and not order.chosen:
        toast(request, "Select entries first", kind="note")
        return see_other(request, order.back, part="entry-browser")
    if "confirmed" not in request.POST:
        return ask(request, _question(request.actor, order), part="entry-browser")
    if order.action == "export":
        return _export(request.actor, order)
    return _run(request, order)


@require_POST
@page(role=Role.EDITOR)
def entry_bulk_undo(request: Request) -> HttpResponse:
    """Undo an action on a few entries. Entries that were written since then are skipped."""
    back = _return_url(request.POST)
    action = request.POST.get("action", "delete")
    written = _read_written(request.POST.get("entries", ""))
    restored = (
        _undelete(request.actor, written) if action == "undelete" else _reverse(request, written)
    )
    refused = len(written) - restored
    text = f"Undone for {_count(restored)}"
    if refused:
        text += f"; skipped {_count(refused)} that changed since"
    toast(request, text, kind="failed" if refused else "done")
    return see_other(request, back, part="entry-browser")


def _order(request: Request) -> BulkAction:
    post = request.POST
    action, back = post.get("action", ""), _return_url(post)
    if action not in _VERBS:
        raise BadRequest("unknown action")
    if action == "tag" and "," in post.get("tag", ""):
        raise BadRequest("a tag must not contain a comma")
    texts = post.getlist("entry")[:_CHUNK]
    every = "all" in post or "all" in request.GET
    filters = read_filters(QueryDict(urlsplit(back).query))
    return BulkAction(
        action=action,
        back=back,
        all=every,
        texts=[] if every else texts,
        chosen=[] if every else [_read_selected(text) for text in texts],
        filters=replace(filters, after=post.get("after", "")),
        seen_at=_read_time(post.get("seen_at", "")) or datetime.now(UTC),
        tag=post.get("tag", "").strip(),
        ttl=_ttl(post) if action == "expire" and "confirmed" in post else 0,
        reason=post.get("reason", "").strip()[:500],
        total=read_required_number("total", post.get("total", "0")),
        done=read_required_number("done", post.get("done", "0")),
        skipped=_read_skipped(post.get("skipped", "[]")),
        more_skipped=read_required_number("more_skipped", post.get("more_skipped", "0")),
    )


def _question(actor: Actor, order: BulkAction) -> Confirm:
    if order.all:
        rows, end = find_all(actor, order.filters, _MOST_COUNTED)
        names = [f"{row.line.namespace_name}/{row.line.key}" for row in rows]
    else:
        names = [f"{each.namespace}/{each.key}" for each in order.chosen]
        end = ""
    what = f"{len(names):,} entries or more" if end else _count(len(names))
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
    if order.action != "export" and len(names) <= _MOST_UNDOABLE and not final:
        lines.append("You can undo this for ten seconds.")
    verb = f"{_VERBS[order.action]} {what}"
    return Confirm(
        title=f"{verb}?",
        verb=verb,
        url=order.root,
        back=order.back,
        lines=lines,
        preview=names[:PREVIEW],
        more=max(0, len(names) - PREVIEW),
        fields=[("confirmed", "yes"), ("total", len(names)), *order.fields()],
        inputs=[_INPUTS[order.action]] if order.action in _INPUTS else [],
        kind="danger" if order.action == "delete" else "primary",
        download=order.action == "export",
    )


def _run(request: Request, order: BulkAction) -> HttpResponse:
    """Change the next thousand entries. Show the progress or, at the end, the skipped entries."""
    after, late = "", []
    selected = list(order.chosen)
    if order.all:
        rows, after = find_all(request.actor, order.filters, _CHUNK)
        for row in rows:
            line = row.line
            if line.updated_at > order.seen_at:
                late.append(
                    [
                        line.namespace_name,
                        line.key,
                        "it was written after the confirmation was shown",
                    ]
                )
            else:
                selected.append(SelectedEntry(line.namespace_name, line.key, line.version))
    expires_at = order.seen_at + timedelta(seconds=order.ttl) if order.ttl else None
    result = bulk.change_entries(
        actor=request.actor,
        action=cast(Action, order.action),
        seen=[each._replace(expires_at=expires_at) for each in selected],
        tag=order.tag,
        reason=order.reason,
    )
    skipped_entries = [*order.skipped, *late, *(list(each) for each in result.skipped)]
    order = replace(
        order,
        done=order.done + len(result.done),
        skipped=skipped_entries[:_MOST_LISTED],
        more_skipped=order.more_skipped + max(0, len(skipped_entries) - _MOST_LISTED),
    )
    context = {
        "order": order,
        "past": _PAST[order.action],
        "skipped_json": values.dump(list(order.skipped)),
    }
    if after:
        context |= {
            "after": after,
            "examined": order.done + len(order.skipped) + order.more_skipped,
        }
        return render(request, "entries/bulk.html", context, part="entry-bulk")
    text = f"{_PAST[order.action]} {_count(order.done)}"
    if skipped := len(order.skipped) + order.more_skipped:
        text += f"; skipped {skipped:,}"
    undo = _undo(request.actor, order, result.done) if 0 < order.done == len(result.done) else None
    toast(request, text, undo=undo, kind="failed" if skipped else "done")
    if skipped:
        return render(request, "entries/bulk.html", context, part="entry-bulk")
    return see_other(request, order.back, part="entry-browser")


def _undo(actor: Actor, order: BulkAction, done: Sequence[ChangedEntry]) -> Undo | None:
    if len(done) > _MOST_UNDOABLE:
        return None
    if order.action in _FINAL and find_untracked(actor, {each.namespace for each in done}):
        return None
    written = [
        [each.namespace, each.key, each.version, each.expired_at and each.expired_at.isoformat()]
        for each in done
    ]
    action = {"delete": "undelete", "tag": "untag", "untag": "tag", "expire": "expire"}
    fields = {"action": action[order.action], "tag": order.tag, "back": order.back}
    return Undo(reverse("web:entry-bulk-undo"), {**fields, "entries": values.dump(written)})


def _undelete(actor: Actor, written: Sequence[SelectedEntry]) -> int:
    restored = 0
    for each in written:
        try:
            undelete(actor, each.namespace, each.key, each.version)
        except Problem:
            continue
        restored += 1
    return restored


def _reverse(request: Request, written: Sequence[SelectedEntry]) -> int:
    action = request.POST.get("action", "")
    if action not in get_args(Action) or action == "delete":
        raise BadRequest("this action cannot be undone")
    result = bulk.change_entries(
        actor=request.actor,
        action=cast(Action, action),
        seen=written,
        tag=request.POST.get("tag", ""),
        reason="undo",
    )
    return len(result.done)


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


def _read_written(text: str) -> list[SelectedEntry]:
    """The entries of an undo form: namespace, key, version written, and the previous expiry."""
    written = _list(text, _MOST_UNDOABLE)
    for each in written:
        if not isinstance(each, list) or [type(part) for part in each[:3]] != [str, str, int]:
            raise BadRequest("not a list of entries")
        if not 0 < each[2] < 10**18:
            raise BadRequest("not a version of an entry")
    return [
        SelectedEntry(each[0], each[1], each[2], _read_time(each[3]) if each[3:] else None)
        for each in written
    ]


def _read_skipped(text: str) -> list[list[str]]:
    skipped = _list(text, _MOST_LISTED)
    if any(
        not isinstance(each, list) or [type(p) for p in each] != [str, str, str] for each in skipped
    ):
        raise BadRequest("not a list of skipped entries")
    return skipped


def _list(text: str, most: int) -> list[Any]:
    try:
        raw = values.read(text)
        values.check(raw)
    except (values.MalformedJSON, values.RefusedJSON) as bad:
        raise BadRequest("not a list of entries") from bad
    if not isinstance(raw.value, list) or len(raw.value) > most:
        raise BadRequest("not a list of entries")
    return raw.value


def _read_time(text: object) -> datetime | None:
    if not text:
        return None
    moment = moments.read(text)
    if moment is None:
        raise BadRequest("not a timestamp")
    return moment


def _ttl(post: QueryDict) -> int:
    ttl = read_whole(post.get("ttl", "").strip(), least=1, most=_MOST_TTL)
    if ttl is None:
        raise BadRequest("the lifetime must be a whole number of seconds, at least 1")
    return ttl


def _return_url(post: QueryDict) -> str:
    """The URL of the list that the user came from. Any other URL is replaced by the unfiltered
    list."""
    url = post.get("back", "")
    home = reverse("web:entry-list")
    return url if url == home or url.startswith(home + "?") else home


def _count(number: int) -> str:
    return f"{number:,} {'entry' if number == 1 else 'entries'}"


urlpatterns = [
    path("entries/bulk", entry_bulk, name="entry-bulk"),
    path("entries/bulk/undo", entry_bulk_undo, name="entry-bulk-undo"),
]
