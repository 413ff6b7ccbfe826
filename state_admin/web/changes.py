"""The page of changes: the change feed as a list, as far back as it is retained. Programs read
/api/v1/changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import groupby
from typing import Any

from django.conf import settings
from django.http import HttpResponse
from django.urls import path, reverse

from state_admin.domain import config, values
from state_admin.domain.access import Actor, Role
from state_admin.domain.changes import kinds_matching
from state_admin.domain.numbers import read_whole
from state_admin.models import AuditRow, feed_sql
from state_admin.models import Change as ChangeModel
from state_admin.models.entry_changes_sql import read_entry_changes
from state_admin.models.feed_sql import FeedFilter, FeedRow, Position
from state_admin.services.errors import BadRequest
from state_admin.streams import events

from . import paging, snippets
from .actors import page
from .addresses import entry_url, namespace_url, run_url, thread_url, with_query
from .htmx import Request, render_list
from .lists import table_paths
from .state_changes import StateLine, lines_of
from .tables import COUNTED, Field, Orders, Table, format_row_count

PAGE = 50
# Differences of a value that the line of a change shows.
_LINES = 2
_REVERTIBLE = {"entry.put", "entry.patch", "entry.delete", "entry.restore", "entry.import"}
# How many changes one page searches for changes that match its filters.
WINDOW = 20_000

VERBS = {
    "entry.put": "wrote",
    "entry.patch": "patched",
    "entry.delete": "deleted",
    "entry.restore": "restored",
    "entry.expire": "expired",
    "entry.import": "imported",
    "entry.redact": "redacted",
    "entry.pin": "pinned a version of",
    "namespace.register": "registered namespace",
    "namespace.change": "changed namespace",
    "namespace.unregister": "unregistered namespace",
    "thread.create": "created thread",
    "thread.delete": "deleted thread",
    "thread.change": "changed thread",
    "thread.fork": "forked thread",
    "thread.import": "imported the state of thread",
    "thread.interrupt": "interrupted thread",
    "thread.uninstall": "removed the keys of a plugin from thread",
    "message.append": "added messages to thread",
    "thread.mark": "marked a revision of thread",
    "thread.restore": "restored thread",
    "run.start": "started run",
    "run.created": "changed run",
    "run.running": "continued run",
    "run.waiting": "paused run",
    "run.commit": "committed a step of run",
    "run.done": "ended run",
    "run.stuck": "detected stuck run",
    "run.lease": "took over run",
    "run.release": "released run",
    "run.renew": "renewed the lease of run",
    "run.change": "changed run",
    "run.tool_calls": "changed the tool calls of run",
    "run.resume": "resumed run",
    "ticket.open": "requested a decision in run",
    "ticket.resume": "decided a ticket of run",
    "ticket.cancel": "cancelled a ticket of run",
    "dispatch.enqueue": "enqueued a dispatch for thread",
    "dispatch.claim": "claimed a dispatch of thread",
    "dispatch.ack": "acknowledged a dispatch of thread",
    "dispatch.nack": "returned a dispatch of thread",
    "dispatch.extend": "extended the lease of a dispatch of thread",
    "dispatch.expire": "requeued an expired dispatch of thread",
    "dispatch.cancel": "cancelled a dispatch of thread",
    "dispatch.clear": "cleared dead letters of thread",
    "dispatch.replay": "replayed a dispatch of thread",
    "mailbox.ready": "made a dispatch available for thread",
    "compaction.request": "requested a compaction of thread",
    "compaction.apply": "compacted thread",
    "compaction.cancel": "cancelled a compaction of thread",
    "compaction.undo": "undid a compaction of thread",
    "compaction.remove": "removed old versions or snapshots of",
    "compaction_policy.put": "set a compaction policy",
    "revert.request": "requested a revert of",
    "revert.apply": "reverted entries of",
    "revert.finish": "ended a revert of",
    "revert.cancel": "cancelled a revert of",
    "state_key.register": "registered state key",
    "state_key.change": "changed state key",
    "state_key.unregister": "unregistered state key",
    "plugin.install": "installed plugin",
    "plugin.uninstall": "uninstalled plugin",
    "token.create": "created token",
    "token.change": "changed token",
    "token.rotate": "rotated token",
    "member.add": "added member",
    "member.set": "set the role of",
    "workspace.create": "created workspace",
    "member.role": "changed the role of",
    "member.remove": "removed member",
    "member.link": "created a login link for",
    "session.start": "signed in as",
    "session.end": "ended sessions of",
    "password.set": "set the password of",
    "identity.link": "linked single sign-on of",
    "identity.unlink": "unlinked single sign-on of",
    "totp.enrol": "turned on the authenticator of",
    "totp.remove": "turned off the authenticator of",
    "totp.reset": "reset the authenticator of",
    "totp.codes": "created new recovery codes for",
    "totp.rotate": "re-encrypted the authenticator secret of",
    "token.revoke": "revoked token",
    "saved_view.put": "saved view",
    "saved_view.delete": "deleted shared view",
    "webhook.create": "created webhook",
    "webhook.change": "changed webhook",
    "webhook.pause": "paused webhook",
    "webhook.resume": "resumed webhook",
    "webhook.rotate": "rotated the secret of webhook",
    "webhook.test": "sent a test event to webhook",
    "webhook.replay": "replayed deliveries of webhook",
    "webhook.disable": "disabled webhook",
    "webhook.delete": "deleted webhook",
    "config.rotate": "re-encrypted the config secrets",
    "erase": "erased",
    "workspace.change": "changed workspace",
    "workspace.delete": "deleted workspace",
    "workspace.quota": "set the quotas of workspace",
    "workspace.import": "imported workspace",
    "workspace.freeze": "stopped writes to the workspace",
    "workspace.unfreeze": "permitted writes to the workspace",
    "workspace.move": "moved the workspace to another cell",
    "workspace.receive": "received the workspace from another cell",
}


ChangeRow = FeedRow | ChangeModel


@dataclass(frozen=True)
class ChangeSentence:
    """A change as a sentence: who did what to which resource, and the URL of its page."""

    who: str
    verb: str
    subject: str
    url: str
    version: int
    at: datetime
    kind: str
    links: list[tuple[str, str, str]] = field(default_factory=list)  # noun, name, URL
    # The first differences of the value, and whether there are more.
    lines: Sequence[StateLine] = ()
    more: bool = False


@dataclass(frozen=True)
class ChangeGroup:
    """Changes of one transaction, which follow one another in the list. `cut`: another page may have
    more of them."""

    first: ChangeSentence
    others: Sequence[ChangeSentence]
    cut: bool
    # One of the versions of entries that it wrote, by which its request can be reverted, as JSON:
    # [namespace, key, version]; "" if there is none.
    written_version: str = ""


def describe_changes(actor: Actor, rows: Sequence[ChangeRow]) -> list[ChangeSentence]:
    """The sentences of changes, with what they changed in entries."""
    sentences = [describe_change(row, row.kind, row.actor_name) for row in rows]
    return add_differences(actor, rows, sentences)


def add_differences(
    actor: Actor, rows: Sequence[ChangeRow | AuditRow], sentences: Sequence[ChangeSentence]
) -> list[ChangeSentence]:
    """The sentences of `rows` with the first differences of the entries they wrote, in one query. The
    config registry is left out: its pages show its values with markers in place of secrets."""
    addresses = [
        (row.namespace, row.key, row.version)
        if sentence.kind.startswith("entry.") and sentence.kind != "entry.pin"
        else None
        for row, sentence in zip(rows, sentences, strict=True)
    ]
    readable = {
        each
        for each in addresses
        if each and each[1] and each[2]
        if actor.sees_namespace(each[0]) and not config.kind_of(each[0])
    }
    found = read_entry_changes(actor.workspace_id, sorted(readable))
    described = []
    for address, sentence in zip(addresses, sentences, strict=True):
        if address in found:
            lines = [
                replace(line, name=line.name.removeprefix("/") or "value")
                for line in lines_of(found[address])
            ]
            sentence = replace(sentence, lines=lines[:_LINES], more=len(lines) > _LINES)
        described.append(sentence)
    return described


def _group(
    rows: Sequence[FeedRow], sentences: Sequence[ChangeSentence], *, newer: bool, older: bool
) -> list[ChangeGroup]:
    """The rows grouped by transaction. `newer` and `older`: whether there are rows before the first
    and after the last one."""
    groups = []
    for xid, pairs in groupby(zip(rows, sentences, strict=True), key=lambda pair: pair[0].xid):
        members, (first, *others) = zip(*pairs, strict=True)
        version = next(filter(None, map(_written_version, members)), "")
        cut = (newer and xid == rows[0].xid) or (older and xid == rows[-1].xid)
        groups.append(ChangeGroup(first, others, cut, version))
    return groups


def _written_version(row: FeedRow) -> str:
    if row.kind not in _REVERTIBLE or not row.key or config.kind_of(row.namespace):
        return ""
    return values.dump([row.namespace, row.key, row.version])


def describe_change(row: ChangeRow | AuditRow, kind: str, who: str) -> ChangeSentence:
    noun = kind.partition(".")[0]
    links = []
    if row.namespace and row.key:
        subject = f"{row.namespace}/{row.key}"
        url = entry_url(row.namespace, row.key, version=row.version)
    elif row.namespace:
        subject, url = row.namespace, namespace_url(row.namespace)
    elif row.run:
        subject, url = row.run, run_url(row.run)
    elif row.thread:
        subject, url = row.thread, thread_url(row.thread)
    elif noun == "revert":
        subject, url = row.key, with_query(reverse("web:revert-list"), request=row.key)
    else:
        subject, url = row.key, ""
    if row.thread and subject != row.thread:
        links.append(("thread", row.thread, thread_url(row.thread)))
    if row.run and subject != row.run:
        links.append(("run", row.run, run_url(row.run)))
    version = row.version
    if kind == "message.append" and version:  # this version is a number of messages
        last = thread_url(row.thread, message=version)
        links.append(("message", str(version), f"{last}#m{version}"))
        version = 0
    elif row.thread and version and not row.namespace:
        state = thread_url(row.thread, tab="state", at=version)
        links.append(("revision", str(version), state))
    gone = kind.endswith("delete") and noun != "entry"
    phrase = VERBS.get(kind) or kind.replace(".", " ").replace("_", " ")
    return ChangeSentence(
        who, phrase, subject, "" if gone else url, version, row.at, kind, [] if gone else links
    )


_TABLE = Table(
    "web:change-list",
    (Orders("Change"),),
    search=Field(
        "kind",
        "Kind",
        placeholder="Kind, for example entry or entry.put",
        suggestions=[*sorted({kind.partition(".")[0] for kind in VERBS}), *sorted(VERBS)],
    ),
    menu=(
        Field("namespace", "Namespace"),
        Field("prefix", "Key begins with"),
        Field("thread", "Thread"),
        Field("run", "Run"),
        Field("actor", "Actor"),
    ),
    address=(Field("key", "Key"),),
    cursor="before",
)


def live_prefix(kind: str) -> str:
    """The filter of kinds in the form that live.js expects: a kind, or a prefix that ends with a dot."""
    return f"{kind}." if kind and "." not in kind else kind


@page(replica=True)
def change_list(request: Request) -> HttpResponse:
    filters, rows, table = _TABLE.load(request, _find)
    newer, older = bool(table["pager"]["first"]), bool(table["pager"]["next"])
    sentences = describe_changes(request.actor, rows)
    context = {
        **table,
        "filters": filters,
        "live": live_prefix(filters["kind"]),
        "groups": _group(rows, sentences, newer=newer, older=older),
        "can_revert": request.actor.may(Role.EDITOR),
        "count": _count(request.actor, len(rows), table),
        "window": WINDOW,
        "days": settings.CHANGE_RETENTION.days,
        "curl": snippets.curl("GET", "changes/stream"),
        "python": snippets.python(
            "with state.watch() as changes:", "    for change in changes:", "        print(change)"
        ),
    }
    return render_list(request, "changes/list.html", context, part="change-table")


def _find(request: Request, filters: dict[str, str], name: str) -> tuple[list[FeedRow], str]:
    names = ("namespace", "key", "prefix", "thread", "run")
    rows, end = feed_sql.read_back(
        request.actor.workspace_id,
        before=_read_position(paging.cursor(request, "before")),
        filters=FeedFilter(
            **{each: filters[each] for each in names}, kinds=_kinds(filters["kind"])
        ),
        actor_name=filters["actor"],
        limit=PAGE,
        window=WINDOW,
    )
    place = f"{end.xid}-{end.id}" if end else ""
    return rows, with_query(reverse(name), **filters, before=place) if place else ""


def _kinds(kind: str) -> tuple[str, ...]:
    """The kinds to search: a noun means all its kinds. An unknown kind matches nothing."""
    if not kind:
        return ()
    return kinds_matching(kind) or kinds_matching(f"{kind}.*") or (kind,)


def _read_position(text: str) -> Position:
    if not text:
        return feed_sql.LATEST
    match [read_whole(part) for part in text.split("-")]:
        case [int(xid), int(seq)]:
            return Position(xid, seq)
    raise BadRequest("before must be a position from this page")


def _count(actor: Actor, found: int, table: dict[str, Any]) -> str:
    """The number of changes, counted up to a limit; "" if they must be searched for matches."""
    if any(table["pager"].values()):
        if table["filtered"]:
            return ""
        found = feed_sql.count_changes(actor.workspace_id, COUNTED + 1)
    return format_row_count(found, "change,changes") if found else ""


urlpatterns = [
    path("changes", change_list, name="change-list"),
    *table_paths("changes", _TABLE, _find, events.show),
]
