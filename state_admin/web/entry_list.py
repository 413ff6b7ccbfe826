"""The state browser: namespaces and scope kinds as a tree, entries as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta

from django.http import HttpResponse, QueryDict
from django.urls import path, reverse
from django.views.decorators.http import require_safe

from state_admin.contract.entries import EntryRow
from state_admin.domain import values
from state_admin.domain.access import Actor, Role
from state_admin.domain.scopes import ScopeKind, scope_kind
from state_admin.domain.search import Match
from state_admin.models import Entry, Namespace, ViewPage
from state_admin.models.browsing import EntryFilter, EntryLine, entry_page, scope_counts, window_end
from state_admin.services.errors import Invalid, NotFound, NotRegistered
from state_admin.services.namespaces import find_definition
from state_admin.services.search import search_entries

from . import snippets
from .actors import page
from .addresses import with_query
from .htmx import Request, render
from .lists import list_paths
from .paging import read_number
from .saved_views import views_of

PAGE = 50
COUNTED = 1000
_TREE = 200
# Values that a search keeps in memory at once, and how many entries it finds per request at most.
_HELD = 100
_MOST_FOUND = 1_000
# Keys below the selected scope in the tree.
_LEAVES = 20
# How many entries a page examines for a filter without an index (recent changes, for example), and
# how many a request examines that handles all matching entries.
_WINDOW = 5_000
_LONG_WINDOW = 100_000
_SINCE = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(days=7)}
_SHOW = ("invalid", "orphans", "deleted")
# A bulk action: its name, its label in the list, and its verb.
_ACTIONS = [
    ("delete", "delete", "Delete"),
    ("tag", "tag", "Tag"),
    ("untag", "untag", "Untag"),
    ("expire", "set expiry", "Set expiry of"),
    ("export", "export as JSON lines", "Export"),
]
_OF_DELETED = [("restore", "restore", "Restore")]


@dataclass(frozen=True)
class EntryListFilters:
    """The filters in the query string. `after` is the cursor: the last key of the previous page or,
    with `text`, the id of its last entry, because a search returns the newest entries first."""

    namespace: str = ""
    scope: str = ""
    prefix: str = ""
    since: str = ""
    show: str = ""
    tag: str = ""
    actor: str = ""
    text: str = ""
    after: str = ""

    @property
    def position(self) -> tuple[str, str]:
        namespace, _, key = self.after.partition("/")  # a namespace name contains no slash
        return namespace, key

    @property
    def root(self) -> str:
        return reverse("web:entry-list")

    @property
    def any(self) -> bool:
        return self != EntryListFilters()

    @property
    def sparse(self) -> bool:
        """Whether no index supports the filters."""
        return bool(self.since or self.tag or self.actor) or self.show in ("invalid", "deleted")

    @property
    def narrow(self) -> bool:
        """Whether there are filters beside the namespace; an empty result then does not mean an
        empty namespace."""
        return self != EntryListFilters(namespace=self.namespace)

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

    @property
    def scope_kind(self) -> str:
        return scope_kind(self.line.key).value

    @property
    def chosen(self) -> str:
        """The value of the row's checkbox: the entry, and the version that the page shows."""
        return f"{self.line.version} {self.line.namespace_name}/{self.line.key}"


def read_filters(query: QueryDict) -> EntryListFilters:
    """The filters in a query string; invalid values are ignored."""
    texts = {
        each.name: query.get(each.name, "").replace("\0", "") for each in fields(EntryListFilters)
    }
    if texts["scope"] not in {kind.value for kind in ScopeKind}:
        texts["scope"] = ""
    if texts["since"] not in _SINCE:
        texts["since"] = ""
    if texts["show"] not in _SHOW:
        texts["show"] = ""
    texts["text"] = texts["text"].strip()
    return EntryListFilters(**texts)


@require_safe
@page
def entry_list(request: Request) -> HttpResponse:
    views, default = views_of(request, ViewPage.STATE, in_part=True)
    if default:
        return default
    filters = read_filters(request.GET)
    try:
        rows, next_url, refusal = *find_rows(request.actor, filters), ""
    except Invalid as bad:  # an incomplete query, perhaps still being typed
        rows, next_url, refusal = [], "", bad.detail
    tree = list(
        Namespace.objects.visible_to(request.actor)
        .open()
        .order_by("name")
        .only("name", "unregistered_at")[: _TREE + 1]
    )
    node = next((each for each in tree if each.name == filters.namespace), None)
    if filters.namespace and node is None:
        node = Namespace.objects.visible_to(request.actor).filter(name=filters.namespace).first()
    if filters.namespace and node is None:
        raise NotFound(f"namespace not found: {filters.namespace}")
    scopes = scope_counts(node.pk, COUNTED + 1) if node else {}
    response = render(
        request,
        "entries/list.html",
        {
            **views,
            "filters": filters,
            "rows": rows,
            "pager": {"first": filters.url(after="") if filters.after else "", "next": next_url},
            "window": _WINDOW,
            "refusal": refusal,
            "leaves": _leaves(request.actor, filters),
            "tree": tree[:_TREE],
            "tree_more": len(tree) > _TREE,
            "chosen": node,
            "scopes": [
                (kind.value, f"{COUNTED:,}+" if count > COUNTED else f"{count:,}")
                for kind, count in scopes.items()
                if count
            ],
            "kinds": [kind.value for kind in ScopeKind],
            "sinces": [("hour", "last hour"), ("day", "last day"), ("week", "last 7 days")],
            "shows": [
                ("invalid", "invalid only"),
                ("orphans", "unregistered only"),
                ("deleted", "deleted"),
            ],
            "new_url": reverse("web:entry-new"),
            "actions": _OF_DELETED if filters.show == "deleted" else _ACTIONS,
            "json_url": filters.url("web:entry-list-json"),
            "can_edit": request.actor.may(Role.EDITOR),
            **_empty(filters),
        },
        part="entry-browser",
    )
    if (request.htmx.source or "").startswith("form"):
        # A form submits empty fields too; the address bar gets the same filters without them.
        response["HX-Replace-Url"] = filters.url()
    return response


def _items(request: Request, name: str) -> tuple[list[EntryRow], str]:
    rows, next_url = find_rows(request.actor, read_filters(request.GET), name)
    return [EntryRow.of(row.line, valid=row.valid) for row in rows], next_url


def find_rows(
    actor: Actor, filters: EntryListFilters, name: str = "web:entry-list"
) -> tuple[list[EntryListRow], str]:
    """A page of rows, and the URL of the next page ("" on the last one)."""
    rows, end = _rows(actor, filters, PAGE, _WINDOW)
    return rows, filters.url(name, after=end) if end else ""


def find_all(actor: Actor, filters: EntryListFilters, most: int) -> tuple[list[EntryListRow], str]:
    """Up to `most` rows after `filters.after`, as far as one request searches, and the cursor to
    continue from, "" at the end."""
    return _rows(actor, filters, most, _LONG_WINDOW)


def _rows(
    actor: Actor, filters: EntryListFilters, limit: int, window: int
) -> tuple[list[EntryListRow], str]:
    """The rows of a page, and the cursor of the next page, "" at the end."""
    if filters.text:
        return _searched(actor, filters, limit)
    query = EntryFilter(
        namespace=filters.namespace,
        scope=ScopeKind(filters.scope) if filters.scope else None,
        prefix=filters.prefix,
        since=datetime.now(UTC) - _SINCE[filters.since] if filters.since else None,
        orphans=filters.show == "orphans",
        stale=filters.show == "invalid",
        deleted=filters.show == "deleted",
        tags=(filters.tag,) if filters.tag else (),
        writer=filters.actor,
        after=filters.position,
    )
    lines = entry_page(actor, query, limit=limit + 1, window=window)
    more, lines = len(lines) > limit, lines[:limit]
    place = (lines[-1].namespace_name, lines[-1].key) if more else None
    if query.sparse and not more:
        place = window_end(actor, query, max(window, limit + 1))
    end = "/".join(place) if place else ""
    rows = [EntryListRow(line, _valid(actor, line)) for line in lines]
    if filters.show == "invalid":
        rows = [row for row in rows if not row.valid]
    return rows, end


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
                since=datetime.now(UTC) - _SINCE[filters.since] if filters.since else None,
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


@dataclass(frozen=True)
class KeyPage:
    """The first keys below the selected scope, without the scope's prefix, and the URL of the next
    ones, "" if there are none."""

    keys: list[tuple[str, str]]
    more_url: str


def _leaves(actor: Actor, filters: EntryListFilters) -> KeyPage | None:
    """The keys below the selected scope. None if no namespace and scope are selected."""
    if not (filters.namespace and filters.scope):
        return None
    kind = ScopeKind(filters.scope)
    query = EntryFilter(namespace=filters.namespace, scope=kind)
    lines = entry_page(actor, query, limit=_LEAVES + 1)
    leaves = [(line.key, line.key.removeprefix(f"{kind.value}::")) for line in lines[:_LEAVES]]
    more_url = ""
    if len(lines) > _LEAVES:
        last = lines[_LEAVES - 1]
        filters_of_scope = EntryListFilters(namespace=filters.namespace, scope=filters.scope)
        more_url = filters_of_scope.url(after=f"{last.namespace_name}/{last.key}")
    return KeyPage(leaves, more_url)


def _valid(actor: Actor, line: EntryLine) -> bool:
    if line.value is None or not line.registered:
        return True
    return find_definition(actor, line.namespace_name).validator.accepts(values.load(line.value))


def _empty(filters: EntryListFilters) -> dict[str, str]:
    """The texts and the example commands of an empty list."""
    namespace = filters.namespace or "team_context"
    target = snippets.state_path(namespace, "parent_thread::t1")
    value = '{"value": {"goal": "Ship the feature"}}'
    lines = [snippets.curl("PUT", target, value)]
    if not filters.namespace:
        lines.insert(0, snippets.curl("PUT", f"namespaces/{namespace}", '{"schema": {}}'))
    return {"curl": "\n\n".join(lines), "python": snippets.python("PUT", target, value)}


urlpatterns = [
    path("state", entry_list, name="entry-list"),
    *list_paths("state", "entry-list", _items, without=("value",)),
]
