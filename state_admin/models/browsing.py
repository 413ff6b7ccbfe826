"""Lists of entries over namespaces for pages, and counts with an upper bound.

Hand-written SQL, so that a page costs the same with ten million entries: it walks the unique index
(namespace, key) from the cursor, namespace by namespace, and stops. The ORM can only sort the whole
join.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from state_admin.domain import config
from state_admin.domain.access import Actor
from state_admin.domain.scopes import ScopeKind

from . import hot
from .entries import SCOPE_KEYS, SCOPE_PREFIXES
from .entries_sql import LIVE
from .visibility import glob_regex

# Sorts after every key with a given prefix, in the byte order of the key's collation.
_LAST = "\U0010ffff"


class EntryLine(NamedTuple):
    """A row of the state browser, with the field names of an Entry. `value` is JSON text if the entry
    was written under another schema version, else None: only such a value may be invalid."""

    id: int
    namespace_name: str
    registered: bool
    key: str
    version: int
    schema_version: int
    value: str | None
    size_bytes: int
    estimated_tokens: int
    tags: Sequence[str]
    pinned: bool
    actor_kind: str
    actor_name: str
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None


class NamespaceSize(NamedTuple):
    """The size of a namespace, as far as it was counted. `stale`: entries written under another
    schema version than the current one, which may be invalid."""

    entries: int
    size_bytes: int
    stale: int


class EntryText(NamedTuple):
    """The value of an entry as a list shows it: the JSON text, only its beginning if not `whole`, and
    None if the value is too large to be read for a list."""

    version: int
    text: str | None
    whole: bool


class EntryAddress(NamedTuple):
    """The position of an entry in the order of the list, and the size of its value."""

    id: int
    size_bytes: int
    namespace: str
    key: str


_LINE = """e.id, e.namespace, e.registered, e.key, e.version, e.schema_version,
    CASE WHEN e.schema_version <> e.present THEN e.value::text END,
    e.size_bytes, e.estimated_tokens, e.tags, e.pinned, e.actor_kind, e.actor_name,
    e.created_at, e.updated_at, e.expires_at"""

_PLACE = "e.id, e.size_bytes, e.namespace, e.key"

_FOUND = """
SELECT {columns}
FROM (
    SELECT n.name AS namespace, n.unregistered_at IS NULL AS registered,
        n.schema_version AS present, e.*
    {stretch}
) e {joined}
WHERE {conditions}
ORDER BY {order} LIMIT %(limit)s
"""
_BY_KEY = "e.namespace, e.key"

_WINDOW_END = "SELECT n.name, e.key {stretch} OFFSET %(window)s - 1"

# The first `window` entries of each namespace after the cursor. The planner knows this limit: it would
# expect a tenth of the entries of the ranges otherwise, and read all namespaces instead of the first ones.
_ENTRIES = """
    FROM namespaces n
    CROSS JOIN LATERAL (
        SELECT * FROM ({ranges}) e ORDER BY e.key LIMIT %(window)s) e
    WHERE n.workspace_id = %(workspace)s AND n.name >= %(after_namespace)s {namespaces}
    ORDER BY n.name, e.key LIMIT %(window)s
"""

# One range of the unique index, from the cursor on. The limit is a subquery, of which the planner knows no
# value: for a limit near the average number of entries of a namespace it would read and sort all of them.
_RANGE = """
(SELECT * FROM entries e
    WHERE e.namespace_id = n.id {conditions}
        AND e.key > CASE WHEN n.name = %(after_namespace)s THEN %(after_key)s ELSE '' END
    ORDER BY e.key LIMIT (SELECT %(window)s::bigint))
"""


class EntryFilter(NamedTuple):
    """Which entries a list contains, after the position `after`. `orphans`: only those of
    unregistered namespaces, or of those of a `plugin`; `stale`: only those written under another
    schema version than the current one, in namespaces whose schema has changed; `unjudged`: those
    of another schema version in all namespaces, because redacted values were not validated; `tags`:
    only entries with all of them; `deleted`: deleted entries instead of live ones; `restorable`: only those of
    registered namespaces that have a history and are not reserved."""

    namespace: str = ""
    scope: ScopeKind | None = None
    prefix: str = ""
    key: str = ""
    restorable: bool = False
    orphans: bool = False
    stale: bool = False
    unjudged: bool = False
    since: datetime | None = None
    until: datetime | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    tags: Sequence[str] = ()
    writer: str = ""
    plugin: str = ""
    deleted: bool = False
    after: tuple[str, str] = ("", "")

    @property
    def sparse(self) -> bool:
        """Whether there is a condition without an index."""
        return self.conditions != LIVE

    @property
    def conditions(self) -> str:
        """The conditions on an entry, without those of its range."""
        conditions = {
            LIVE: not self.deleted,
            "e.deleted": self.deleted,
            "e.schema_version <> e.present": self.stale or self.unjudged,
            "e.updated_at >= %(since)s": self.since,
            "e.updated_at < %(until)s": self.until,
            "e.created_at >= %(created_after)s": self.created_after,
            "e.created_at < %(created_before)s": self.created_before,
            "e.tags @> %(tags)s::varchar[]": self.tags,
            "e.actor_name = %(writer)s": self.writer,
        }
        return " AND ".join(each for each, applies in conditions.items() if applies)


def entry_page(
    actor: Actor, filters: EntryFilter, *, limit: int, window: int = 0
) -> list[EntryLine]:
    """Up to `limit` entries that match the filters, by namespace and key.

    If a filter has no index (`filters.sparse`), only the first `window` entries are read, which
    bounds the cost; `window_end` returns the position to continue from.
    """
    sparse = filters.sparse
    statement = _FOUND.format(
        columns=_LINE,
        stretch=_stretch(actor, filters, "" if sparse else f" AND {LIVE}"),
        joined="",
        conditions=filters.conditions if sparse else "true",
        order=_BY_KEY,
    )
    parameters = _parameters(actor, filters, max(window, limit) if sparse else limit)
    rows = hot.fetch_all(statement, {**parameters, "limit": limit})
    return [EntryLine._make(row) for row in rows]


# A larger value is read in part. PostgreSQL unpacks a value to return its beginning; the sum, smallest
# values first, bounds how much it unpacks for one list.
_WHOLE_BYTES = 16_384
_MOST_UNPACKED = 4_000_000

# The member of a value by which a list is sorted. OFFSET keeps PostgreSQL from computing it for each use.
_MEMBER = f"""
CROSS JOIN LATERAL (
    SELECT CASE WHEN e.size_bytes <= {_WHOLE_BYTES} AND NOT e.deleted THEN e.value -> %(member)s END AS found
    OFFSET 0
) m
CROSS JOIN LATERAL (
    SELECT CASE json_typeof(m.found) WHEN 'number' THEN 1 WHEN 'string' THEN 2 WHEN 'boolean' THEN 3
            ELSE 4 END AS kind,
        CASE json_typeof(m.found) WHEN 'number' THEN m.found::text::numeric ELSE 0 END AS number,
        CASE WHEN json_typeof(m.found) IN ('string', 'boolean') THEN left(m.found::text, 200)
            ELSE '' END AS text
    OFFSET 0
) member
"""


class Order(NamedTuple):
    """An order of entries by expressions, each with its type and whether it is descending, and then by
    key. `member`: that of the values that the expressions use."""

    expressions: Sequence[tuple[str, str, bool]]
    member: str = ""

    @property
    def sql(self) -> str:
        parts = [f"{each} {'DESC' if down else 'ASC'}" for each, _, down in self.expressions]
        return ", ".join([*parts, "e.key"])

    @property
    def joined(self) -> str:
        return _MEMBER if self.member else ""

    @property
    def after(self) -> str:
        """The condition of the rows after the one with the values `last_0`, … and the key `last_key`."""
        condition = "e.key > %(last_key)s"
        for index, (each, kind, down) in reversed(list(enumerate(self.expressions))):
            value = f"%(last_{index})s::{kind}"
            sign = "<" if down else ">"
            condition = f"({each} {sign} {value} OR {each} = {value} AND {condition})"
        return condition


def by_column(column: str, kind: str, *, descending: bool) -> Order:
    return Order([(f"e.{column}", kind, descending)])


def by_member(name: str, *, descending: bool) -> Order:
    """Numbers, then strings, then booleans, each in the order; then the entries without such a member,
    deleted ones, and those whose value is too large to be read for a list."""
    return Order(
        [
            ("member.kind", "int", False),
            ("member.number", "numeric", descending),
            ('member.text COLLATE "C"', "text", descending),
        ],
        name,
    )


def sorted_page(
    actor: Actor,
    filters: EntryFilter,
    *,
    order: Order,
    last: Sequence[str],
    limit: int,
    window: int,
) -> list[EntryLine]:
    """Up to `limit` entries of the filters' namespace in an order, after the row with the values and the
    key `last`, which is empty for the first page. No index has this order: the entries of the ranges of
    the filters, at most `window` (see window_end), are read and sorted for each page."""
    statement = _FOUND.format(
        columns=_LINE,
        stretch=_stretch(actor, filters, ""),
        joined=order.joined,
        conditions=f"{filters.conditions} AND {order.after}" if last else filters.conditions,
        order=order.sql,
    )
    parameters = {**_parameters(actor, filters, window), "member": order.member, "limit": limit}
    if last:
        *sorted_values, parameters["last_key"] = last
        parameters |= {f"last_{index}": value for index, value in enumerate(sorted_values)}
    return [EntryLine._make(row) for row in hot.fetch_all(statement, parameters)]


def values_in_order(order: Order, entry_id: int) -> list[str]:
    """The values of an entry that decide its place in an order, for `last` of `sorted_page`."""
    columns = ", ".join(f"({each})::text" for each, *_ in order.expressions)
    statement = f"SELECT {columns} FROM entries e {order.joined} WHERE e.id = %(id)s"
    row = hot.fetch_one(statement, {"member": order.member, "id": entry_id})
    return list(row) if row else []


def entry_addresses(
    actor: Actor, filters: EntryFilter, *, limit: int, window: int
) -> list[EntryAddress]:
    """The addresses of up to `limit` live entries that match the filters, by namespace and key,
    among the first `window` entries, deleted ones included."""
    statement = _FOUND.format(
        columns=_PLACE,
        stretch=_stretch(actor, filters, ""),
        joined="",
        conditions=filters.conditions,
        order=_BY_KEY,
    )
    rows = hot.fetch_all(statement, {**_parameters(actor, filters, window), "limit": limit})
    return [EntryAddress._make(row) for row in rows]


def entry_count(actor: Actor, filters: EntryFilter, most: int, window: int = 0) -> tuple[int, bool]:
    """The number of entries that match the filters, and whether these are all. They are counted up to
    `most` or, if a filter has no index (`filters.sparse`), among the first `window` entries."""
    sparse = filters.sparse
    limit = window if sparse else most
    matches = filters.conditions if sparse else "true"
    stretch = _stretch(actor, filters, "" if sparse else f" AND {LIVE}")
    statement = (
        f"SELECT count(*) FILTER (WHERE {matches}), count(*) FROM "
        f"(SELECT n.schema_version AS present, e.* {stretch}) e"
    )
    found, read = hot.fetch_row(statement, _parameters(actor, filters, limit))
    return int(found), read < limit


_TEXTS = f"""
SELECT id, version, CASE
        WHEN size_bytes <= {_WHOLE_BYTES} THEN value::text
        WHEN sum(size_bytes) OVER (ORDER BY size_bytes, id) <= {_MOST_UNPACKED}
        THEN left(value::text, 2000)
    END, size_bytes <= {_WHOLE_BYTES}
FROM entries WHERE id = ANY(%(ids)b::bigint[]) AND NOT deleted
"""


def entry_texts(ids: Sequence[int]) -> dict[int, EntryText]:
    """The values of entries that the actor may see, by id, as far as a list shows them. Deleted ones
    are left out."""
    return {row[0]: EntryText(*row[1:]) for row in hot.fetch_all(_TEXTS, {"ids": list(ids)})}


def window_end(actor: Actor, filters: EntryFilter, window: int) -> tuple[str, str] | None:
    """The namespace and key at which a window of `window` entries ends, None if fewer are left.
    Deleted entries count, so that only the index is read."""
    statement = _WINDOW_END.format(stretch=_stretch(actor, filters, ""))
    row = hot.fetch_one(statement, _parameters(actor, filters, window))
    return (row[0], row[1]) if row else None


def entries_after(actor: Actor, filters: EntryFilter, window: int) -> hot.Call:
    """The FROM clause (n: namespaces, e: entries) and the rest of a query for the first `window` entries of the ranges of the
    filters, deleted ones included; and its parameters."""
    return _stretch(actor, filters, ""), _parameters(actor, filters, window)


def _stretch(actor: Actor, filters: EntryFilter, conditions: str) -> str:
    namespaces = {
        " AND n.name = %(namespace)s": filters.namespace,
        " AND n.name ~ %(globs)s": actor.namespaces,
        " AND n.plugin = %(plugin)s": filters.plugin,
        " AND n.unregistered_at IS NULL AND n.tracked"
        " AND n.name <> ALL(%(reserved)s::text[])": filters.restorable,
        " AND n.unregistered_at IS NOT NULL": filters.orphans,
        # A schema that never changed has no entries of an earlier version.
        " AND n.schema_version > 1": filters.stale,
    }
    if filters.prefix:
        conditions += " AND e.key >= %(prefix)s AND e.key < %(prefix_end)s"
    if filters.key:
        conditions += " AND e.key = %(key)s"
    ranges = [f" AND {each}" for each in _ranges(filters.scope)] if filters.scope else [""]
    return _ENTRIES.format(
        ranges=" UNION ALL ".join(_RANGE.format(conditions=conditions + each) for each in ranges),
        namespaces="".join(each for each, applies in namespaces.items() if applies),
    )


def _parameters(actor: Actor, filters: EntryFilter, window: int) -> dict[str, Any]:
    return {
        **filters._asdict(),
        "tags": list(filters.tags),
        "workspace": actor.workspace_id,
        "globs": glob_regex(actor.namespaces),
        "prefix_end": filters.prefix + _LAST,
        "reserved": list(config.NAMESPACES),
        "after_namespace": filters.after[0],
        "after_key": filters.after[1],
        "window": window,
    }


def _ranges(kind: ScopeKind) -> list[str]:
    """The conditions on `key` for a scope kind; each is one range of the index."""
    if kind in SCOPE_KEYS:
        return [f"e.key = '{SCOPE_KEYS[kind]}'"]
    if kind in SCOPE_PREFIXES:
        prefix = SCOPE_PREFIXES[kind]
        return [f"e.key > '{prefix}' AND e.key < '{prefix}{_LAST}'"]
    taken = sorted(
        [(key, f"e.key > '{key}'", f"e.key < '{key}'") for key in SCOPE_KEYS.values()]
        + [
            (prefix, f"e.key >= '{prefix}{_LAST}'", f"e.key <= '{prefix}'")
            for prefix in SCOPE_PREFIXES.values()
        ]
    )
    behind = ["true", *(condition for _, condition, _ in taken)]
    before = [*(condition for _, _, condition in taken), "true"]
    return [f"{low} AND {high}" for low, high in zip(behind, before, strict=True)]


def scope_counts(namespace_id: int, most: int) -> dict[ScopeKind, int]:
    """The number of live entries of each scope kind in a namespace, each counted up to `most`.

    ORDER BY, here and below, keeps the planner on the index: with a LIMIT alone it expects to find
    enough rows early in a scan of the whole table.
    """
    parts = []
    for kind in ScopeKind:
        counts = [
            f"(SELECT count(*) FROM (SELECT 1 FROM entries e WHERE e.namespace_id = %(namespace)s"
            f" AND {LIVE} AND {condition} ORDER BY e.key LIMIT %(most)s) counted)"
            for condition in _ranges(kind)
        ]
        parts.append(" + ".join(counts))
    row = hot.fetch_row("SELECT " + ", ".join(parts), {"namespace": namespace_id, "most": most})
    return dict(zip(ScopeKind, row, strict=True))


_SIZES = f"""
SELECT n.id, held.entries, held.size_bytes, held.stale
FROM namespaces n
CROSS JOIN LATERAL (
    SELECT count(*) AS entries, coalesce(sum(e.size_bytes), 0)::bigint AS size_bytes,
        count(*) FILTER (WHERE e.schema_version <> n.schema_version) AS stale
    FROM (SELECT * FROM entries e WHERE e.namespace_id = n.id AND {LIVE}
        ORDER BY e.key LIMIT (SELECT %(most)s::bigint)) e
) held
WHERE n.id = ANY(%(ids)s::bigint[])
"""


def namespace_sizes(namespace_ids: Sequence[int], most: int) -> dict[int, NamespaceSize]:
    """Entries and bytes of namespaces, each counted up to `most` entries."""
    rows = hot.fetch_all(_SIZES, {"ids": list(namespace_ids), "most": most})
    return {row[0]: NamespaceSize(*row[1:]) for row in rows}


_ESTIMATES = """
SELECT v.id, (v.share * greatest(c.reltuples, 0))::bigint
FROM pg_stats s
JOIN pg_class c ON c.oid = 'entries'::regclass
CROSS JOIN LATERAL unnest(s.most_common_vals::text::bigint[], s.most_common_freqs)
    AS v(id, share)
WHERE s.schemaname = current_schema() AND s.tablename = 'entries'
    AND s.attname = 'namespace_id' AND v.id = ANY(%(ids)s::bigint[])
"""


def estimated_entries(namespace_ids: Sequence[int]) -> dict[int, int]:
    """The approximate number of entries of large namespaces, from PostgreSQL's statistics. Contains
    only the largest namespaces, and none if the database has no statistics."""
    rows = hot.fetch_all(_ESTIMATES, {"ids": list(namespace_ids)})
    return {row[0]: row[1] for row in rows}
