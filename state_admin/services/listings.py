"""Pages of entries: of one namespace, or of all that the actor may see.

Whether a value is valid is not stored. A page that needs it reads at most MOST_OPENED values, so it
may have fewer items than requested; the next page continues there. The same applies to filters
without an index: a page examines a limited number of entries. A page with values ends before they
exceed MOST_BYTES. Other pages read only values that were written under another schema version.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from operator import attrgetter

from state_admin.domain.access import Actor
from state_admin.domain.scopes import ScopeKind
from state_admin.models import Entry, creation_times
from state_admin.models.browsing import EntryFilter, entry_addresses, window_end
from state_admin.models.entries import EntryQuerySet
from state_admin.models.large_columns import without_large

from .batching import MOST_BYTES, split_by_size
from .entry_views import is_valid
from .namespaces import find_registered

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
        """Whether a filter has no index. Times have one; keys of the scope kind `custom` are not a
        range."""
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
    with_values: bool = False,
    last_first: bool = False,
    before: str = "",
    limit: int = 50,
    after: str | None = None,
) -> EntryPage:
    """Up to `limit` entries of a namespace, by key, with keys below `before`. If a filter has no
    index, examines MOST_EXAMINED entries, so a page may have fewer items, or none. Raises
    NotRegistered."""
    registered = find_registered(actor, namespace)
    rows: EntryQuerySet = registered.entries.all()  # which refer to it, without a join
    order = _Order("key", last_first)
    if filters.prefix:
        rows = rows.filter(key__startswith=filters.prefix)
    if before:
        rows = rows.filter(key__lt=before)
    if filters.scope_kind and not filters.custom:
        rows = rows.in_scope(filters.scope_kind)
    end = order.nth(rows, after, MOST_EXAMINED) if filters.sparse else None
    if end is not None:
        rows = rows.filter(key__gte=end) if last_first else rows.filter(key__lte=end)
    rows = rows.live()
    if filters.custom:
        rows = rows.in_scope(ScopeKind.CUSTOM)
    if filters.updated_since:
        rows = rows.filter(updated_at__gte=filters.updated_since)
    rows = creation_times.between(rows, "created_at", filters.created_after, filters.created_before)
    if filters.tags:
        rows = rows.filter(tags__contains=list(filters.tags))
    # Only a value that was written under another schema version can be invalid.
    if filters.valid is False:
        rows = rows.exclude(schema_version=registered.schema_version)
    page = _Page(limit, with_values, filters.valid)
    after = _fill(page, rows, order, after)
    return EntryPage(page.rows, end if after is None else after)


def list_key(
    *,
    actor: Actor,
    key: str,
    created_after: datetime | None = None,
    created_before: datetime | None = None,
    with_values: bool = False,
    last_first: bool = False,
    limit: int = 50,
    after: str | None = None,
) -> EntryPage:
    """Up to `limit` entries with this key, by namespace. Unregistered namespaces are included."""
    rows = Entry.objects.visible_to(actor).live().filter(key=key).select_related("namespace")
    rows = creation_times.between(rows, "created_at", created_after, created_before)
    page = _Page(limit, with_values)
    after = _fill(page, rows, _Order("namespace__name", last_first), after)
    return EntryPage(page.rows, after)


def list_entries(
    *,
    actor: Actor,
    filters: ListFilters,
    plugin: str = "",
    with_values: bool = False,
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
    page = _Page(limit, with_values, filters.valid)
    rows = Entry.objects.select_related("namespace")
    if page.opens_values:
        full = not page.add_all(_open(rows, [(place.id, place.size_bytes) for place in places]))
    else:
        found = without_large(rows).in_bulk([place.id for place in places])
        full = not page.judge_all([found[p.id] for p in places if p.id in found])
    if full:
        last = page.rows[-1][0]
        return EntryPage(page.rows, f"{last.namespace.name}/{last.key}")
    if len(places) == most:
        return EntryPage(page.rows, f"{places[-1].namespace}/{places[-1].key}")
    end = window_end(actor, chosen, MOST_OPENED)
    return EntryPage(page.rows, "/".join(end) if end else None)


@dataclass(frozen=True)
class _Order:
    """The order of a list: by the unique column `by`."""

    by: str
    last_first: bool

    def after(self, rows: EntryQuerySet, after: str | None) -> EntryQuerySet:
        if after is not None:
            rows = rows.filter(**{f"{self.by}__{'lt' if self.last_first else 'gt'}": after})
        return rows.order_by(f"-{self.by}" if self.last_first else self.by)

    def nth(self, rows: EntryQuerySet, after: str | None, number: int) -> str | None:
        """The position of row `number` after `after`; None if there are fewer."""
        positions = self.after(rows, after).values_list(self.by, flat=True)
        return next(iter(positions[number - 1 : number]), None)

    def position(self, row: Entry) -> str:
        position: str = attrgetter(self.by.replace("__", "."))(row)
        return position


@dataclass
class _Page:
    """The entries of a page, with their values or without. `valid`: which ones are listed."""

    limit: int
    with_values: bool
    valid: bool | None = None
    rows: list[tuple[Entry, bool]] = field(default_factory=list)
    _bytes: int = 0

    @property
    def opens_values(self) -> bool:
        """Whether all rows are read with their values."""
        return self.with_values or self.valid is not None

    def judge_all(self, rows: Sequence[Entry]) -> bool:
        """Add rows that were read without their values. False: the rest does not fit."""
        kept = rows[: self.limit]
        outdated = [
            (row.pk, row.size_bytes)
            for row in kept
            if row.schema_version != row.namespace.schema_version
        ]
        opened = _open(Entry.objects.select_related("namespace"), outdated)
        valid = {row.pk: is_valid(row) for row in opened}
        self.rows += [(row, valid.get(row.pk, True)) for row in kept]
        return len(kept) == len(rows)

    def add_all(self, rows: Iterator[Entry]) -> bool:
        """Add rows that were read with their values. False: the rest does not fit."""
        for row in rows:
            valid = is_valid(row)
            if self.valid in (None, valid) and not self._add(row, valid):
                return False
        return True

    def _add(self, row: Entry, valid: bool) -> bool:
        size = row.size_bytes if self.with_values else 0
        if len(self.rows) == self.limit or (self.rows and self._bytes + size > MOST_BYTES):
            return False
        if not self.with_values:
            del row.value  # a deferred column again, so that the page does not keep it in memory
        self._bytes += size
        self.rows.append((row, valid))
        return True


def _fill(
    page: _Page,
    rows: EntryQuerySet,
    order: _Order,
    after: str | None,
) -> str | None:
    """Add the rows after `after` to the page. Returns where the next page starts, if any."""
    if not page.opens_values:
        fetched = list(without_large(order.after(rows, after))[: page.limit + 1])
        full = not page.judge_all(fetched)
        return order.position(page.rows[-1][0]) if full else None
    opened, size = 0, page.limit + 1
    while True:
        behind = order.after(rows, after).values_list("id", "size_bytes", order.by)
        places = list(behind[:size])
        if not page.add_all(_open(rows, [place[:2] for place in places])):
            return order.position(page.rows[-1][0])
        if len(places) < size:
            return None
        after = places[-1][2]
        opened += size
        if opened >= MOST_OPENED:
            return after
        size = min(size * 4, MOST_OPENED - opened)


def _open(rows: EntryQuerySet, sized: Sequence[tuple[int, int]]) -> Iterator[Entry]:
    """The rows with these (ids, bytes) that still satisfy the conditions of `rows`, in that
    order."""
    for ids in split_by_size(sized, _MOST_VALUES_PER_QUERY):
        held = {row.pk: row for row in rows.filter(pk__in=ids)}
        yield from (held[each] for each in ids if each in held)
