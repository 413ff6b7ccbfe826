"""One entry: its value now or in the past, its history, and the difference of two versions."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from django.db.models import Q
from django.http import HttpResponse
from django.urls import reverse

from state_admin.contract.entries import EntryVersion
from state_admin.domain import config, diffs, values
from state_admin.domain.access import Actor, Role
from state_admin.domain.numbers import read_whole
from state_admin.domain.scopes import scope_kind
from state_admin.models import EntryRevision, Namespace, Operation
from state_admin.services.access import read_namespace_access
from state_admin.services.blame import blame_entry
from state_admin.services.entries import check_address
from state_admin.services.entry_views import EntryView, read_entry, read_unregistered
from state_admin.services.errors import BadRequest, NotFound, NotRegistered
from state_admin.services.namespaces import find_definition

from . import paging, path_history, side_by_side, snippets
from .addresses import entry_action_url, entry_url, with_query
from .blame_lines import MOST_LINES, annotate
from .drafts import refusal_of
from .entry_address import entry_page, entry_paths, read_requested_entry
from .htmx import Request, render, target_id, wants_part
from .lists import list_paths

# The pane of the state browser, which shows the entry in short.
PANE = "entry-pane"
# The id of the element with the differences of two versions, which may load after the page.
CHANGES = "changes"
HISTORY_PAGE = 50
RECENT = 8
# How many tokens with access to the entry are listed by name.
_MOST_LISTED = 8
# A longer value (characters) is shown in part, and compared on request only.
BIG = 100_000
# Of a longer value, the history of a path is fetched after the page has loaded.
LONG = 20_000
# If two versions together have more characters than this, they are compared after the page has loaded.
COMPARED_LATER = 1_000_000
# With more versions than this, blame is fetched after the page has loaded.
BLAMED = 200
_TABS = {
    "value": "Value",
    "text": "Text",
    "history": "History",
    "blame": "Blame",
    "code": "Code",
}


@dataclass(frozen=True)
class EntryPage:
    """An entry and what the page of it depends on. `past`: the number of the requested old version,
    else 0. `entry`: that version, else the current one. `recent`: its last versions, newest first,
    without values."""

    request: Request
    now: EntryView
    entry: EntryView
    past: int
    registered: bool
    recent: Sequence[EntryRevision]
    tab: str

    @property
    def newest(self) -> int:
        return self.recent[0].version if self.recent else 0

    @property
    def kind(self) -> config.Kind | None:
        return config.kind_of(self.now.namespace)

    @property
    def is_big(self) -> bool:
        return len(self.entry.value) > BIG

    @property
    def can_write(self) -> bool:
        return self.request.actor.may(Role.EDITOR) and self.registered and self.kind is None

    @property
    def can_restore(self) -> bool:
        return self.can_write or (self.kind is not None and self.request.actor.may(Role.ADMIN))

    @property
    def deleted(self) -> int:
        """The version that deleted the entry, if the one before is stored and can be restored."""
        if not self.can_write or self.now.exists or len(self.recent) < 2:
            return 0
        last, before = self.recent[:2]
        deletes = last.operation == Operation.DELETE and before.version == last.version - 1
        return last.version if deletes else 0


@entry_page(replica=True)
def entry_detail(request: Request, namespace: str, key: str) -> HttpResponse:
    page = _read_page(request, namespace, key)
    entry, now, past, kind = page.entry, page.now, page.past, page.kind
    change = _change(request, entry, page.recent)
    if wants_part(request) and target_id(request) == CHANGES and change["diff"] is not None:
        return render(request, "entries/_changes.html", change)
    context = {
        "entry": entry,
        "now": now,
        "registered": page.registered,
        "past": past,
        "newest": page.newest,
        "tab": page.tab,
        "tabs": _tabs(namespace, key, past),
        "pieces_url": entry_action_url("tree", namespace, key, version=past or None),
        "recent": page.recent[:RECENT],
        "more_history": len(page.recent) > RECENT,
        "bars": _bars(page.recent),
        "bars_width": 10 * len(page.recent),
        "scope": scope_kind(key).value,
        "version_label": f"v{past or now.version}",
        "dotted": key in (".", ".."),
        "list_url": reverse("web:entry-list"),
        "can_edit": page.can_write,
        "can_restore": past and entry.exists and page.can_restore,
        "deleted": page.deleted,
        "record_url": reverse("web:config-detail", args=[kind, key]) if kind and now.exists else "",
        "big": page.is_big,
        **_reach(request.actor, namespace, key),
        **change,
        **_TAB_CONTEXTS[page.tab](page),
    }
    if page.registered and not past and not entry.valid and not page.is_big:
        refusal = refusal_of(find_definition(request.actor, namespace), entry.value)
        context["faults"] = refusal.data.get("errors", []) if refusal else []
    part = PANE if target_id(request) == PANE else "entry"
    return render(request, "entries/detail.html", context, part=part)


def _read_page(request: Request, namespace: str, key: str) -> EntryPage:
    address: dict[str, Any] = {"actor": request.actor, "namespace": namespace, "key": key}
    registered = True
    try:
        now = read_entry(**address)
    except NotRegistered:
        registered = False
        now = read_unregistered(**address)
    recent = list(_revisions(request.actor, namespace, key)[: RECENT + 1])
    if not now.exists and not recent and not registered:
        raise NotRegistered(namespace)
    entry, past = read_requested_entry(request, now) if registered else (now, 0)
    tab = request.GET.get("tab", "value")
    return EntryPage(
        request, now, entry, past, registered, recent, tab if tab in _TABS else "value"
    )


def _value_context(page: EntryPage) -> dict[str, Any]:
    return {"value": values.load(page.entry.value)}


def _history_context(page: EntryPage) -> dict[str, Any]:
    """The versions, or with a path those that changed its value."""
    request, now = page.request, page.now
    address = now.namespace, now.key
    path = request.GET.get("path", "")
    if not path or not page.registered:
        current = now.version if page.can_restore else None
        return _whole_history(request, *address, _before(request), current)
    if len(page.entry.value) > LONG and "whole" not in request.GET:
        since = paging.whole_number(request, "since")
        url = entry_url(*address, tab="history", path=path, since=since, whole="yes")
        return {"path_url": url}
    return path_history.read_page(
        request, *address, path, current=now.version, can_restore=page.can_restore
    )


def _blame_context(page: EntryPage) -> dict[str, Any]:
    if not page.registered:
        return {}
    address = {"namespace": page.now.namespace, "key": page.now.key}
    slow = page.is_big or page.newest > BLAMED
    start = read_whole(page.request.GET.get("start", "")) or 0
    if slow and "whole" not in page.request.GET:
        return {"blame_url": entry_url(**address, tab="blame", start=start, whole="yes")}
    blamed = blame_entry(actor=page.request.actor, **address)
    if not blamed:
        return {}
    value = values.load(page.now.value)
    lines, more = annotate(value, blamed, start)
    if not lines:  # the value has become shorter
        start = 0
        lines, more = annotate(value, blamed)
    first = entry_url(**address, tab="blame")
    following = entry_url(**address, tab="blame", start=start + MOST_LINES)
    pager = {"first": first if start else "", "next": following if more else ""}
    return {"blame": lines, "pager": pager}


def _reach(actor: Actor, namespace: str, key: str) -> dict[str, Any]:
    """Who may read the entry. Only admins get the list: the page of tokens is theirs."""
    if not actor.may(Role.ADMIN):
        return {}
    reach = read_namespace_access(actor=actor, namespace=namespace)
    place = {"namespace": namespace, "key": key}
    page = reverse("web:access")
    return {
        "reach": reach,
        "reach_members": [(role.value, count) for role, count in reach.members.items()],
        "reach_tokens": [
            (token, with_query(page, token_id=token.pk, **place))
            for token in reach.tokens[:_MOST_LISTED]
        ],
        "reach_more": max(0, len(reach.tokens) - _MOST_LISTED),
        "access_url": with_query(page, **place),
    }


def _revisions(actor: Actor, namespace: str, key: str) -> Any:
    """The history without values, newest first."""
    history = EntryRevision.objects.of_entry(actor, namespace, key)
    return history.defer("value").order_by("-version")


def _change(request: Request, entry: EntryView, recent: Sequence[EntryRevision]) -> dict[str, Any]:
    """The differences on the page: of the two requested versions, else of the shown version and the
    previous one. Large versions are not compared here: the page loads `diff_url` afterwards if the
    versions were requested, else it links to `compare_url`."""
    text = request.GET.get("diff", "")
    if not text and request.GET.get("old"):
        text = f"{request.GET['old']}..{request.GET.get('new', '')}"
    if text:
        old, new = _pair(text)
    else:
        new = entry.version or (recent[0].version if recent else 0)
        old = new - 1
        tab = request.GET.get("tab", "value")
        if old < 1 or tab in set(_TABS) - {"value"}:
            return {"diff": None}
        if len(entry.value) > BIG:
            url = entry_url(entry.namespace, entry.key, tab="history", diff=f"{old}..{new}")
            return {"diff": None, "compare_url": url}
    kept = dict(
        EntryRevision.objects.visible_to(request.actor)
        .of_key(entry.namespace, entry.key)
        .filter(version__in=[old, new])
        .values_list("version", "value")
    )
    if missing := [version for version in (old, new) if version not in kept]:
        if text:
            raise NotFound(f"version {missing[0]} not found: {entry.namespace}/{entry.key}")
        return {"diff": None}
    # A deleted version has no value; the difference treats it as null.
    old_text, new_text = (kept[version] or "null" for version in (old, new))
    change: dict[str, Any] = {"diff_old": old, "diff_new": new, "show_diff": bool(text)}
    compared = request, entry.namespace, entry.key, f"{old}..{new}"
    if len(old_text) + len(new_text) > COMPARED_LATER and "whole" not in request.GET:
        change |= {"diff": None, "compare_url": _compare_url(*compared)}
        return {**change, "diff_url": _compare_url(*compared, whole="yes")} if text else change
    before, after = values.load(old_text), values.load(new_text)
    sides = bool(text) and request.GET.get("view") == "sides"
    change["other_view_url"] = _compare_url(*compared, view="" if sides else "sides")
    if sides:
        rows, more = side_by_side.compare(before, after)
        return {**change, "diff": [], "sides": rows, "more_sides": more}
    return {**change, "diff": diffs.rows(before, after)}


def _pair(text: str) -> tuple[int, int]:
    old, new = map(read_whole, text.partition("..")[::2])
    if old is None or new is None:
        raise BadRequest("diff must be two versions, such as 3..5")
    return old, new


def _before(request: Request) -> int:
    return read_whole(request.GET.get("before", "")) or 0


def _whole_history(
    request: Request, namespace: str, key: str, before: int, current: int | None
) -> dict[str, Any]:
    """A page of the history. `history`: each revision, the stored version before it (or None), the URL that
    compares the two (or ""), and the URL that restores it (or ""). `current`: the version that a restore
    would not change, None if the actor cannot restore."""

    def url(place: int) -> str:
        return entry_url(namespace, key, tab="history", before=place)

    rows = _revisions(request.actor, namespace, key).annotate(has_value=Q(value__isnull=False))
    # One more than a page, which is the version before the last one.
    stored = list(_older(rows, before)[: HISTORY_PAGE + 1])
    revisions, next_url = paging.cut(stored, HISTORY_PAGE, lambda last: url(last.version))
    versions = [revision.version for revision in stored[1:]]
    history = []
    for revision, earlier in zip_longest(revisions, versions[: len(revisions)]):
        version = revision.version
        restorable = current not in (None, version) and revision.has_value
        history.append(
            (
                revision,
                earlier,
                _compare_url(request, namespace, key, f"{earlier}..{version}") if earlier else "",
                entry_action_url("restore", namespace, key, version=version) if restorable else "",
            )
        )
    return {
        "history": history,
        "before": before,
        "json_url": entry_action_url("history", namespace, f"{key}.json"),
        "pager": {"first": url(0) if before else "", "next": next_url},
    }


def _compare_url(request: Request, namespace: str, key: str, pair: str, **changes: str) -> str:
    """The comparison of two versions above the current page of the history, in the current view."""
    query: dict[str, str | int | None] = {
        "view": request.GET.get("view", ""),
        "before": _before(request),
        **changes,
    }
    return entry_url(namespace, key, tab="history", diff=pair, **query)


def _older(rows: Any, before: int) -> Any:
    return rows.filter(version__lt=before) if before else rows


def _items(request: Request, name: str, namespace: str, key: str) -> tuple[list[EntryVersion], str]:
    check_address(namespace, key)
    if not Namespace.objects.visible_to(request.actor).filter(name=namespace).exists():
        raise NotRegistered(namespace)
    kind = name.rpartition("-")[2]
    found = _older(_revisions(request.actor, namespace, key), _before(request))
    found = found.annotate(has_value=Q(value__isnull=False))
    rows, next_url = paging.cut(
        found,
        HISTORY_PAGE,
        lambda last: entry_action_url("history", namespace, f"{key}.{kind}", before=last.version),
    )
    return [EntryVersion.of(row, exists=row.has_value) for row in rows], next_url


def _tabs(namespace: str, key: str, past: int) -> list[tuple[str, str, str]]:
    return [
        (
            tab,
            label,
            entry_url(
                namespace,
                key,
                tab="" if tab == "value" else tab,
                version=past if tab in ("value", "text") else None,
            ),
        )
        for tab, label in _TABS.items()
    ]


def _bars(recent: Sequence[EntryRevision]) -> list[tuple[int, float, float]]:
    """The sizes of the last versions, oldest first, as x, y and height of a bar in a chart 10 units wide
    per version and 30 high."""
    rows = list(reversed(recent))
    largest = max((row.size_bytes for row in rows), default=0)
    if len(rows) < 2 or not largest:
        return []
    heights = [max(2.0, round(30 * row.size_bytes / largest, 1)) for row in rows]
    return [(10 * index, 30 - height, height) for index, height in enumerate(heights)]


def _snippets(now: EntryView) -> list[tuple[str, str]]:
    target = snippets.state_path(now.namespace, now.key)
    value = now.value if len(now.value) <= 2000 else "null"
    body = f'{{"value": {value}}}'
    match = f'If-Match: "{now.version}"' if now.exists else "If-None-Match: *"
    address = f"{json.dumps(now.namespace)}, {json.dumps(now.key)}"
    names = f"{now.namespace!r}, {now.key!r}"
    version = now.version if now.exists else 0
    return [
        ("Read with curl", snippets.curl("GET", target)),
        ("Write with curl if unchanged", snippets.curl("PUT", target, body, match)),
        ("Read with Python", snippets.python(f"print(state.get({names}))")),
        (
            "Write with Python if unchanged",
            snippets.python(
                f"print(state.put({names}, {snippets.literal(value)}, if_version={version}))"
            ),
        ),
        ("Read with TypeScript", snippets.typescript(f"get({address})")),
        (
            "Write with TypeScript if unchanged",
            snippets.typescript(f"put({address}, {value}, {{ if_version: {version} }})"),
        ),
    ]


# What only the content of each tab needs.
_TAB_CONTEXTS: dict[str, Callable[[EntryPage], dict[str, Any]]] = {
    "value": _value_context,
    "text": _value_context,
    "history": _history_context,
    "blame": _blame_context,
    "code": lambda page: {"snippets": _snippets(page.now)},
}


urlpatterns = [
    *entry_paths("state", entry_detail, "entry-detail"),
    *list_paths(
        "entry/history/<str:namespace>/<path:key>", "entry-history", _items, without=("value",)
    ),
]
