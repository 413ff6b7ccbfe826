"""Pages of entries: of one namespace, or of all that the actor may see.

Whether a value is valid is not stored. A page that needs it reads at most MOST_OPENED values, so it
may have fewer items than requested; the next page continues there. The same applies to filters
without an index: a page examines a limited number of entries.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from state_admin.domain.access import Actor
from state_admin.domain.scopes import ScopeKind
from state_admin.models import Entry, creation_times
from state_admin.models.browsing import EntryFilter, entry_addresses, window_end
from state_admin.models.entries import EntryQuerySet

from .batching import split_by_size
from .entry_views import is_valid
from .namespaces import Definition, define, find_definition

MOST_OPENED = 2000
_MOST_VALUES_PER_QUERY = 200
# What a page of a namespace examines, deleted entries included, if a filter has no index.
MOST_EXAMINED = 10_000


@dataclass(frozen=True)
class ListFilters:
    """Which live entries are listed. `created_after` is inclusive, `created_before` exclusive.
    `tags`: entries with all of them. `valid`: entries whose value the current schema accepts, or
    refuses."""

    prefix: str = ""
    scope_kind: ScopeKind | None = None
    updated_since: datetime | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    tags: Sequence[str] = ()
    valid: bool | None = None

    @property
    def sparse(self) -> bool:
        """Whether a filter has no index. Times have one; keys of the scope kind `custom` are no range."""
        return bool(self.tags) or self.custom or self.valid is not None

    @property
    def custom(self) -> bool:
        return self.scope_kind is ScopeKind.CUSTOM


@dataclass(frozen=True)
class EntryPage:
    """Entries, each with whether the current schema accepts it. `after`: where the next page starts
    (a key, or namespace/key in a list of all namespaces); None on the last one."""

    rows: Sequence[tuple[Entry, bool]]
    after: str | None


def list_namespace(
    *,
    actor: Actor,
    namespace: str,
    filters: ListFilters,
    last_first: bool = False,
    before: str = "",
    limit: int = 50,
    after: str | None = None,
) -> EntryPage:
    """Up to `limit` entries of a namespace, by key, with keys below `before`. If a filter has no
    index, examines MOST_EXAMINED entries, so a page may have fewer items, or none. Raises
    NotRegistered."""
    definition = find_definition(actor, namespace, fresh=True)
    rows = Entry.objects.filter(namespace_id=definition.id)
    rows = rows.order_by("-key" if last_first else "key")
    if filters.prefix:
        rows = rows.filter(key__startswith=filters.prefix)
    if before:
        rows = rows.filter(key__lt=before)
    if filters.scope_kind and not filters.custom:
        rows = rows.in_scope(filters.scope_kind)
    end = _nth_key(rows, last_first, after, MOST_EXAMINED) if filters.sparse else None
    if end is not None:
        rows = rows.filter(key__gte=end) if last_first else rows.filter(key__lte=end)
    rows = rows.live().select_related("namespace")
    if filters.custom:
        rows = rows.in_scope(ScopeKind.CUSTOM)
    if filters.updated_since:
        rows = rows.filter(updated_at__gte=filters.updated_since)
    rows = creation_times.between(rows, "created_at", filters.created_after, filters.created_before)
    if filters.tags:
        rows = rows.filter(tags__contains=list(filters.tags))
    if filters.valid is not None:
        page = _filter_by_validity(rows, definition, filters.valid, last_first, limit, after)
        return page if page.after is not None else EntryPage(page.rows, end)
    fetched = list(_rows_after(rows, last_first, after)[: limit + 1])
    judged = [(row, is_valid(row, definition)) for row in fetched[:limit]]
    return EntryPage(judged, judged[-1][0].key if len(fetched) > limit else end)


def list_entries(
    *,
    actor: Actor,
    filters: ListFilters,
    plugin: str = "",
    limit: int = 50,
    after: str | None = None,
) -> EntryPage:
    """Up to `limit` entries of all namespaces that the actor may see, or of those of a plugin, by
    namespace and key. Unregistered namespaces are included.

    Examines MOST_OPENED entries, including deleted ones, so a page may have fewer items, or none.
    """
    namespace, _, key = (after or "").partition("/")
    chosen = EntryFilter(
        scope=filters.scope_kind,
        prefix=filters.prefix,
        unjudged=filters.valid is False,
        since=filters.updated_since,
        created_after=filters.created_after,
        created_before=filters.created_before,
        tags=filters.tags,
        plugin=plugin,
        after=(namespace, key),
    )
    most = limit + 1 if filters.valid is None else MOST_OPENED
    places = entry_addresses(actor, chosen, limit=most, window=MOST_OPENED)
    judged: list[tuple[Entry, bool]] = []
    for row in _open(Entry.objects.all(), [(place.id, place.size_bytes) for place in places]):
        valid = is_valid(row, define(row.namespace))
        if filters.valid in (None, valid):
            if len(judged) == limit:
                last = judged[-1][0]
                return EntryPage(judged, f"{last.namespace.name}/{last.key}")
            judged.append((row, valid))
    if len(places) == most:
        return EntryPage(judged, f"{places[-1].namespace}/{places[-1].key}")
    end = window_end(actor, chosen, MOST_OPENED)
    return EntryPage(judged, "/".join(end) if end else None)


def _filter_by_validity(
    rows: EntryQuerySet,
    definition: Definition,
    valid: bool,
    last_first: bool,
    limit: int,
    after: str | None,
) -> EntryPage:
    """The entries of `rows` that are valid, or invalid. Only a value that was written under another
    schema version can be invalid."""
    if not valid:
        rows = rows.exclude(schema_version=definition.schema_version)
    judged: list[tuple[Entry, bool]] = []
    opened, size = 0, limit + 1
    while True:
        behind = _rows_after(rows, last_first, after).values_list("id", "size_bytes", "key")
        places = list(behind[:size])
        for row in _open(rows, [place[:2] for place in places]):
            if is_valid(row, definition) is valid:
                if len(judged) == limit:
                    return EntryPage(judged, judged[-1][0].key)
                judged.append((row, valid))
        if len(places) < size:
            return EntryPage(judged, None)
        after = places[-1][2]
        opened += size
        if opened >= MOST_OPENED:
            return EntryPage(judged, after)
        size = min(size * 4, MOST_OPENED - opened)


def _rows_after(rows: EntryQuerySet, last_first: bool, after: str | None) -> EntryQuerySet:
    if after is None:
        return rows
    return rows.filter(key__lt=after) if last_first else rows.filter(key__gt=after)


def _nth_key(rows: EntryQuerySet, last_first: bool, after: str | None, number: int) -> str | None:
    """The key of the row at position `number` after `after`; None if there are fewer."""
    keys = _rows_after(rows, last_first, after).values_list("key", flat=True)
    return next(iter(keys[number - 1 : number]), None)


def _open(rows: EntryQuerySet, sized: Sequence[tuple[int, int]]) -> Iterator[Entry]:
    """The rows with these (ids, bytes) that still satisfy the conditions of `rows`, in that
    order."""
    for ids in split_by_size(sized, _MOST_VALUES_PER_QUERY):
        held = {row.pk: row for row in rows.select_related("namespace").filter(pk__in=ids)}
        yield from (held[each] for each in ids if each in held)
