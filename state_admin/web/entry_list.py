"""The state browser: namespaces and scope kinds as a tree, entries as a table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from django.http import HttpResponseBase, HttpResponseRedirect, QueryDict
from django.urls import path, reverse

from state_admin.contract.entries import EntryRow
from state_admin.domain import config, values
from state_admin.domain.access import Actor, Role
from state_admin.domain.scopes import ScopeKind, scope_kind
from state_admin.domain.search import Match, star_words
from state_admin.domain.values import JSON
from state_admin.models import Entry, Namespace, ViewPage
from state_admin.models.browsing import (
    EntryFilter,
    EntryLine,
    EntryText,
    entry_count,
    entry_page,
    entry_texts,
    scope_counts,
    window_end,
)
from state_admin.services.errors import BadRequest, Invalid, NotRegistered
from state_admin.services.namespaces import find_definition, find_namespace
from state_admin.services.search import search_entries

from . import snippets
from .actors import page
from .addresses import entry_url, with_query
from .entry_columns import FACTS, columns_of_schema, columns_of_values, default_columns, members_of
from .entry_orders import find_sorted, headings_of, is_sort, refuse_sort
from .htmx import Request, render, render_list, target_id, wants_part
from .lists import list_paths
from .paging import last_text, next_continuation, read_number
from .periods import end_of, period_fields, read_period, start_of
from .saved_views import views_of
from .tables import (
    COUNTED,
    Column,
    Columns,
    Field,
    chips_of,
    choices_of,
    choose_columns,
    format_row_count,
    is_plain,
    read_columns,
)

PAGE = 50
_TREE = 200
# Values that a search keeps in memory at once, and how many entries it finds per request at most.
_HELD = 100
_MOST_FOUND = 1_000
# Entries that are read to count those that a search finds, or that are invalid.
_MOST_COUNTED = 100
# Keys below the selected scope in the tree.
_LEAVES = 20
# How many entries a page examines for a filter without an index (recent changes, for example), and
# how many a request examines that handles all matching entries.
_WINDOW = 5_000
_LONG_WINDOW = 100_000
SHOWS = {"invalid": "invalid only", "orphans": "unregistered only", "deleted": "deleted"}
# Bulk actions: name and label.
_ACTIONS = [
    ("patch", "Edit…"),
    ("tag", "Tag…"),
    ("untag", "Untag…"),
    ("expire", "Set expiry…"),
    ("export", "Export…"),
    ("delete", "Delete…"),
]
_OF_NO_VALUE = {column.id for column in FACTS} - {"value"}
_OF_DELETED = [("restore", "Restore…")]


@dataclass(frozen=True)
class EntryListFilters:
    """The filters in the query string. `after` is the cursor: the last key of the previous page, with
    `sort` also its value (see entry_orders) or, with `text`, the id of its last entry, because a search
    returns the newest entries first."""

    namespace: str = ""
    scope: str = ""
    prefix: str = ""
    since: str = ""
    until: str = ""
    show: str = ""
    tag: str = ""
    actor: str = ""
    text: str = ""
    columns: str = ""
    sort: str = ""
    after: str = ""

    @property
    def position(self) -> tuple[str, str]:
        namespace, _, key = self.after.partition("/")  # a namespace name contains no slash
        return namespace, key

    @property
    def home(self) -> str:
        """The URL without filters, with the namespace, the columns and the order."""
        return EntryListFilters(self.namespace, columns=self.columns, sort=self.sort).url()

    @property
    def default_columns_url(self) -> str:
        return self.url(columns="")

    @property
    def narrow(self) -> bool:
        """Whether there are filters beside the namespace; an empty result then does not mean an
        empty namespace."""
        return replace(self, namespace="", columns="", sort="") != EntryListFilters()

    @property
    def hidden_fields(self) -> list[tuple[str, str]]:
        """The fields with which a form keeps the filters, and not the columns."""
        return [(name, text) for name, text in vars(self).items() if text and name != "columns"]

    def menu(self) -> list[Field]:
        """The filters that the search field does not show."""
        return [
            Field("prefix", "Key begins with", self.prefix, placeholder="thread::"),
            Field("scope", "Scope", self.scope, choices_of(kind.value for kind in ScopeKind)),
            Field("show", "Show", self.show, SHOWS, "all"),
            *period_fields("Changed", self.since, self.until),
            Field("tag", "Tag", self.tag),
            Field("actor", "Written by", self.actor),
        ]

    def url(self, name: str = "web:entry-list", **changes: str) -> str:
        query = replace(self, **changes)
        return with_query(reverse(name), **vars(query))


@dataclass(frozen=True)
class EntryListRow:
    """A row of the table. `valid` is False if the value does not match the current schema.
    `matches` are the places where a search found its words."""

    line: EntryLine
    valid: bool
    matches: Sequence[Match] = ()
    text: EntryText | None = None
    members: Mapping[str, JSON] | None = field(default_factory=dict)

    @property
    def editable(self) -> bool:
        """Whether members of the value can be edited in the table: those of an object that the list has
        read completely."""
        return (
            bool(self.text and self.text.whole and self.text.text)
            and isinstance(self.members, Mapping)
            and self.line.registered
            and config.kind_of(self.line.namespace_name) is None
            and str(self.text and self.text.text).lstrip().startswith("{")
        )

    @property
    def has_state(self) -> bool:
        return self.line.pinned or not (self.line.registered and self.valid)

    @property
    def scope_kind(self) -> str:
        return scope_kind(self.line.key).value

    @property
    def chosen(self) -> str:
        """The value of the row's checkbox: the entry, and the version that the page shows."""
        return f"{self.line.version} {self.line.namespace_name}/{self.line.key}"


def read_filters(query: QueryDict) -> EntryListFilters:
    """The filters in a query string. Invalid scopes and values of `show` are ignored. BadRequest for
    malformed times."""
    texts = {each.name: last_text(query, each.name) for each in fields(EntryListFilters)}
    texts["columns"] = read_columns(query)
    if texts["scope"] not in {kind.value for kind in ScopeKind}:
        texts["scope"] = ""
    if texts["show"] not in SHOWS:
        texts["show"] = ""
    texts["text"] = texts["text"].strip()
    if texts["text"] or not is_sort(texts["sort"]):  # a search has its own order
        texts["sort"] = ""
    texts["since"], texts["until"] = read_period(query)
    return EntryListFilters(**texts)


@page(replica=True)
def entry_list(request: Request) -> HttpResponseBase:
    views, default = views_of(request, ViewPage.STATE, in_part=True)
    if default:
        return default
    filters = read_filters(request.GET)
    plain = is_plain(request.GET) and "from" not in request.GET
    if not wants_part(request) and not plain:
        url = filters.url()
        return HttpResponseRedirect(url if "?" in url else views["views_all_url"])
    requested = filters
    if unsorted := _refuse_sort(request.actor, filters):
        filters = replace(filters, sort="", after="")
    try:
        rows, end, refusal = *_rows(request.actor, filters, PAGE, _WINDOW), ""
    except Invalid as bad:  # an incomplete query, perhaps still being typed
        rows, end, refusal = [], "", bad.detail
    pager = {
        "first": filters.url(after="") if filters.after else "",
        "next": filters.url(after=end) if end else "",
    }
    continues = wants_part(request) and target_id(request) == "entry-progress"
    progress = {}
    if filters.text and end and not rows:
        progress = _progress(request, end)
        if continues:
            context = {"filters": filters, "pager": pager, **progress}
            return render(request, "entries/list.html", context, part="entry-progress")
    tree = list(
        Namespace.objects.visible_to(request.actor)
        .open()
        .order_by("name")
        .only("name", "unregistered_at")[: _TREE + 1]
    )
    node = next((each for each in tree if each.name == filters.namespace), None)
    if filters.namespace and node is None:
        node = find_namespace(request.actor, filters.namespace)
    scopes = scope_counts(node.pk, COUNTED + 1) if node else {}
    rows = read_values(rows)
    columns = list_columns(request.actor, filters, node, rows)
    headings = headings_of(
        columns.visible,
        filters.sort,
        None
        if filters.text or not filters.namespace
        else lambda sort: filters.url(sort=sort, after=""),
        searched=bool(filters.text),
    )
    leaves, more_leaves_url = _leaves(request.actor, filters)
    menu = filters.menu()
    inside = star_words(filters.text)
    root = reverse("web:entry-list")  # the tree has 200 links: the URL is reversed once
    kept = {"show": filters.show, "since": filters.since, "sort": filters.sort}
    response = render_list(
        request,
        "entries/list.html",
        {
            **views,
            **progress,
            "filters": filters,
            "root": root,
            "rows": rows,
            "grouped": _is_grouped(filters, rows),
            "columns": columns,
            "key_heading": headings[0],
            "headings": zip(columns.visible, headings[1:], strict=True),
            "unsorted": unsorted,
            # Beside the columns: the checkbox, the key, and the value of narrow windows.
            "width": len(columns.visible) + 3,
            "count": _count(request.actor, filters, len(rows), more=bool(end)),
            "menu": menu,
            "chips": chips_of(menu, lambda name: filters.url(**{name: "", "after": ""})),
            "open_url": _open_url(request.GET.get("open", "")),
            "pager": pager,
            "window": _WINDOW,
            "refusal": refusal,
            "inside_url": filters.url(text=inside, after="") if inside != filters.text else "",
            "leaves": leaves,
            "more_leaves_url": more_leaves_url,
            "tree": [
                (each, with_query(root, namespace=each.name, **kept)) for each in tree[:_TREE]
            ],
            "tree_more": len(tree) > _TREE,
            "chosen": node,
            "scopes": [
                (kind.value, f"{COUNTED:,}+" if count > COUNTED else f"{count:,}")
                for kind, count in scopes.items()
                if count
            ],
            "new_url": reverse("web:entry-new"),
            "moment_url": reverse("web:revert-new"),
            "actions": _OF_DELETED if filters.show == "deleted" else _ACTIONS,
            "json_url": filters.url("web:entry-list-json", columns=""),
            "can_edit": request.actor.may(Role.EDITOR),
            **_empty(filters),
        },
        part="entry-browser",
        url=requested.url(),
    )
    if continues:  # the search found something, or has ended
        response["HX-Retarget"], response["HX-Reswap"] = "#entry-browser", "outerHTML"
    return response


def _progress(request: Request, end: str) -> dict[str, Any]:
    """How far a search without a match has come: to the entry `end`, whose id is the cursor."""
    entries = Entry.objects.visible_to(request.actor).filter(pk=end)
    return {
        "place": end,
        "reached": entries.values_list("created_at", flat=True).first(),
        "continuation": next_continuation(request),
    }


def _refuse_sort(actor: Actor, filters: EntryListFilters) -> str:
    return refuse_sort(actor, _entry_filter(filters), filters.sort) if filters.sort else ""


def _is_grouped(filters: EntryListFilters, rows: Sequence[EntryListRow]) -> bool:
    """Whether the rows have headings by scope: those of one namespace, which are in the order of their
    keys, and whose keys begin with the scope."""
    scopes = {row.scope_kind for row in rows}
    by_key = not (filters.text or filters.sort)
    return bool(filters.namespace) and by_key and len(scopes) > 1


def _open_url(address: str) -> str:
    """The page of the entry that the pane shows, "" without one."""
    namespace, _, key = address.partition("/")
    if address and not (namespace and key):
        raise BadRequest("open must be a namespace and a key, such as team/global")
    return entry_url(namespace, key) if address else ""


def read_values(rows: Sequence[EntryListRow]) -> list[EntryListRow]:
    """The rows with their values, as far as a list shows them. A value that was written since the row
    was read is left out, so that each row shows one version."""
    texts = entry_texts([row.line.id for row in rows]) if rows else {}
    found = []
    for row in rows:
        text = texts.get(row.line.id)
        if text and text.version != row.line.version:
            text = None
        found.append(replace(row, text=text, members=members_of(text)))
    return found


def list_columns(
    actor: Actor, filters: EntryListFilters, node: Namespace | None, rows: Sequence[EntryListRow]
) -> Columns:
    """The columns of the list. Those of members come from the schema of the selected namespace or, if
    it names no scalar properties, from the values on the page."""
    members: list[Column] = []
    if node and not node.unregistered_at:
        members = columns_of_schema(values.load(find_definition(actor, node.name).schema))
    if node and not members:
        members = columns_of_values([row.members for row in rows if row.members])
    deleted = filters.show == "deleted"
    default = default_columns(
        members,
        [row.members for row in rows],
        state=deleted or any(row.has_state for row in rows),
        tags=any(row.line.tags for row in rows),
    )
    if deleted:  # deleted entries have no value
        default = [each for each in default if each in _OF_NO_VALUE]
    return choose_columns(filters.columns, [*members, *FACTS], default, members=True)


def _count(actor: Actor, filters: EntryListFilters, found: int, *, more: bool) -> str:
    """The number of matching entries, counted up to a limit, or as far as a page searches: "22 entries",
    "1,000+ entries". "" if neither says how many there are."""
    if not more and not filters.after:
        return format_row_count(found, "entry,entries")
    if filters.text and not found:  # counting would search the pages before again
        return ""
    if filters.text and found < PAGE and not filters.after:  # the page read as much as it may
        return f"{found:,}+ entries"
    if filters.text or filters.show == "invalid":
        # Each of these is read to count it.
        whole = replace(filters, after="", sort="")
        counted, end = _rows(actor, whole, _MOST_COUNTED, _WINDOW)
        if end:
            return f"{len(counted):,}+ entries" if counted else ""
        return format_row_count(len(counted), "entry,entries")
    query = _entry_filter(filters)._replace(after=("", ""))
    found, all_read = entry_count(actor, query, COUNTED + 1, _WINDOW)
    if all_read or found > COUNTED:
        return format_row_count(found, "entry,entries")
    return f"{found:,}+ entries" if found else ""


def _items(request: Request, name: str) -> tuple[list[EntryRow], str]:
    filters = read_filters(request.GET)
    if unsorted := _refuse_sort(request.actor, filters):
        raise BadRequest(unsorted)
    rows, end = _rows(request.actor, filters, PAGE, _WINDOW)
    next_url = filters.url(name, after=end) if end else ""
    return [EntryRow.of(row.line, valid=row.valid) for row in rows], next_url


def find_all(actor: Actor, filters: EntryListFilters, most: int) -> tuple[list[EntryListRow], str]:
    """Up to `most` rows by key after `filters.after`, as far as one request searches, and the cursor to
    continue from, "" at the end."""
    return _rows(actor, replace(filters, sort=""), most, _LONG_WINDOW)


def _rows(
    actor: Actor, filters: EntryListFilters, limit: int, window: int
) -> tuple[list[EntryListRow], str]:
    """The rows of a page, and the cursor of the next page, "" at the end."""
    if filters.text:
        return _searched(actor, filters, limit)
    query = _entry_filter(filters)
    if filters.sort:
        lines, end = find_sorted(actor, query, filters.sort, filters.after, limit)
    else:
        lines = entry_page(actor, query, limit=limit + 1, window=window)
        more, lines = len(lines) > limit, lines[:limit]
        place = (lines[-1].namespace_name, lines[-1].key) if more else None
        if query.sparse and not more:
            place = window_end(actor, query, max(window, limit + 1))
        end = "/".join(place) if place else ""
    rows = [EntryListRow(line, is_valid(actor, line)) for line in lines]
    if filters.show == "invalid":
        rows = [row for row in rows if not row.valid]
    return rows, end


def _entry_filter(filters: EntryListFilters) -> EntryFilter:
    return EntryFilter(
        namespace=filters.namespace,
        scope=ScopeKind(filters.scope) if filters.scope else None,
        prefix=filters.prefix,
        since=start_of(filters.since),
        until=end_of(filters.until),
        orphans=filters.show == "orphans",
        stale=filters.show == "invalid",
        deleted=filters.show == "deleted",
        tags=(filters.tag,) if filters.tag else (),
        writer=filters.actor,
        after=("", "") if filters.sort else filters.position,
    )


def _searched(
    actor: Actor, filters: EntryListFilters, limit: int
) -> tuple[list[EntryListRow], str]:
    """The rows of a page for a text search in values, newest entry first, as far as one search
    reads, and the cursor of the next page. Unregistered namespaces are not searched."""
    if filters.show in ("orphans", "deleted"):
        return [], ""
    rows: list[EntryListRow] = []
    after, limit = read_number("after", filters.after), min(limit, _MOST_FOUND)
    while True:
        size = min(_HELD, limit - len(rows))
        try:
            results = search_entries(
                actor=actor,
                text=filters.text,
                namespace=filters.namespace,
                prefix=filters.prefix,
                scope_kind=ScopeKind(filters.scope) if filters.scope else None,
                since=start_of(filters.since),
                until=end_of(filters.until),
                tag=filters.tag,
                writer=filters.actor,
                limit=size,
                after=after,
            )
        except NotRegistered:
            return [], ""
        rows += [EntryListRow(_line(hit.entry), hit.valid, hit.matches) for hit in results.hits]
        after = results.after
        # A short result means that the search has read as much as one search may.
        if after is None or len(results.hits) < size or len(rows) == limit:
            break
    if filters.show == "invalid":
        rows = [row for row in rows if not row.valid]
    return rows, str(after or "")


def _line(entry: Entry) -> EntryLine:
    """The row without its value: a search has already validated it, and many values may be
    large."""
    return EntryLine._make(getattr(entry, name) for name in EntryLine._fields)._replace(value=None)


def _leaves(actor: Actor, filters: EntryListFilters) -> tuple[list[tuple[str, str]], str]:
    """The first keys below the selected scope, each also without the scope's prefix, and the URL of the
    next ones, "" if there are none. No keys if no namespace and scope are selected."""
    if not (filters.namespace and filters.scope):
        return [], ""
    kind = ScopeKind(filters.scope)
    query = EntryFilter(namespace=filters.namespace, scope=kind)
    lines = entry_page(actor, query, limit=_LEAVES + 1)
    leaves = [(line.key, line.key.removeprefix(f"{kind.value}::")) for line in lines[:_LEAVES]]
    more_url = ""
    if len(lines) > _LEAVES:
        last = lines[_LEAVES - 1]
        filters_of_scope = EntryListFilters(namespace=filters.namespace, scope=filters.scope)
        more_url = filters_of_scope.url(after=f"{last.namespace_name}/{last.key}")
    return leaves, more_url


def is_valid(actor: Actor, line: EntryLine) -> bool:
    if line.value is None or not line.registered:
        return True
    return find_definition(actor, line.namespace_name).validator.accepts(values.load(line.value))


def _empty(filters: EntryListFilters) -> dict[str, str]:
    """The texts and the example commands of an empty list."""
    namespace = filters.namespace or "team_context"
    target = snippets.state_path(namespace, "parent_thread::t1")
    value = {"goal": "Ship the feature"}
    commands = [snippets.curl("PUT", target, json.dumps({"value": value}))]
    statements = [f'print(state.put({namespace!r}, "parent_thread::t1", {value!r}))']
    if not filters.namespace:
        commands.insert(0, snippets.curl("PUT", f"namespaces/{namespace}", '{"schema": {}}'))
        statements.insert(0, f"state.namespaces.register({namespace!r}, schema={{}})")
    return {"curl": "\n\n".join(commands), "python": snippets.python(*statements)}


urlpatterns = [
    path("state", entry_list, name="entry-list"),
    *list_paths("state", "entry-list", _items, without=("value",)),
]
