"""The search index, a table beside the entries: the words and facts of each entry (ADR 6).

An index on the entries themselves would prevent HOT updates. A follower of the change feed fills
this table, and a search reads the entries that the follower has not indexed yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from heapq import merge
from typing import NamedTuple

from django.conf import settings
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVectorField
from django.db import connection, models
from django.db.models import F
from django.db.models.expressions import RawSQL

from . import database, hot
from .entries import Entry, EntryQuerySet
from .workspaces import Workspace

# The format of documents (domain/search.py, `lexemes`). Format 2 added names, numbers, booleans and
# null; format 3 added the words of keys. An index of another format is built again. Each document
# contains FORMAT_LEXEME, because during an upgrade a worker of an older version may still write
# documents of its format.
FORMAT = 3
FORMAT_LEXEME = "~3"
# The condition of a partial index (migration 0008).
_OUTDATED = "NOT terms @@ '''~3'''::tsquery"


class SearchDocument(models.Model):
    """The words and facts of one entry (domain/search.py), as of `version`.

    Without a foreign key in the database, which would lock rows of the hot table. Code that removes
    an entry also removes its document, and searches join the entries in any case.
    """

    entry = models.OneToOneField(
        Entry,
        primary_key=True,
        on_delete=models.CASCADE,
        db_constraint=False,
        related_name="document",
    )
    version = models.BigIntegerField()
    terms = SearchVectorField()

    class Meta:
        db_table = "search_documents"
        indexes = [
            # Every search.
            GinIndex(fields=["terms"], name="search_documents_terms"),
        ]


class SearchPosition(models.Model):
    """The position in the change feed up to which a workspace is indexed."""

    workspace = models.OneToOneField(Workspace, primary_key=True, on_delete=models.CASCADE)
    xid = models.BigIntegerField()
    change_id = models.BigIntegerField()
    # The database's time at which everything up to the position was indexed.
    at = models.DateTimeField()
    # While the index is built: entries up to this id are indexed. NULL: all.
    filled_to = models.BigIntegerField(null=True)
    format = models.SmallIntegerField(db_default=1)

    class Meta:
        db_table = "search_positions"


class IndexCoverage(NamedTuple):
    """What the index of a workspace covers: entries up to `filled_to` (None: all), except those
    with a change after (xid, change_id)."""

    xid: int
    change_id: int
    filled_to: int | None


_REACH = """
SELECT xid, change_id, filled_to FROM search_positions
WHERE workspace_id = %(workspace)s AND at > now() - %(retention)s::interval AND format = %(format)s
"""

# The position's time is updated once a minute for an idle feed too, so that the index does not
# appear stale. Only the newest change is compared: for any later one, PostgreSQL would expect to find one
# at once, and read the whole table when there is none.
_BEHIND = f"""
SELECT EXISTS (
    SELECT 1 FROM workspaces w
    LEFT JOIN search_positions p ON p.workspace_id = w.id
    WHERE w.frozen_at IS NULL AND (
        p.workspace_id IS NULL OR p.filled_to IS NOT NULL OR p.at < now() - interval '1 minute'
        OR p.format <> %(format)s
        OR EXISTS (
            SELECT 1 FROM (
                SELECT c.xid, c.id FROM changes c WHERE c.workspace_id = w.id
                ORDER BY c.xid DESC, c.id DESC LIMIT 1
            ) newest
            WHERE (newest.xid, newest.id) > (p.xid::text::xid8, p.change_id)
        ))
) OR EXISTS (SELECT 1 FROM search_documents WHERE {_OUTDATED})
"""

_LAST = 2**63 - 1

# Changes older than this may be purged: an index that is further behind cannot catch up.
STALE: timedelta = settings.CHANGE_RETENTION


def read_coverage(workspace_id: int) -> IndexCoverage:
    """What the index covers. Call it before reading candidates: documents indexed later then only
    overlap with the entries that are read directly."""
    parameters = {"workspace": workspace_id, "retention": STALE, "format": FORMAT}
    row = hot.fetch_one(_REACH, parameters)
    return IndexCoverage._make(row) if row else IndexCoverage(0, 0, 0)


def is_behind() -> bool:
    """Whether there are changes in any workspace that are not indexed yet."""
    return bool(hot.fetch_row(_BEHIND, {"format": FORMAT})[0])


# PostgreSQL cannot know how rare a word is, and would read ten million rows backwards for one that
# is in a single row, or sort a million for a common one. So the newest documents are read first,
# which is enough for common words; only then the index is used.
_WALKED = 10_000
# They are read in order, so that the walk ends with the last document that the page needs.
_NEWEST = f"""
SELECT found.* FROM (
    SELECT entry_id, terms FROM search_documents WHERE entry_id < %s
    ORDER BY entry_id DESC LIMIT {_WALKED}
) newest CROSS JOIN LATERAL ({{rows}}) found
WHERE newest.terms @@ %s::tsquery
ORDER BY newest.entry_id DESC LIMIT %s
"""
_INDEXED = """
WITH found AS MATERIALIZED (
    SELECT entry_id FROM search_documents WHERE terms @@ %s::tsquery AND entry_id < %s
)
SELECT entry_id FROM found
"""

_PENDING = """
SELECT e.id FROM changes c
JOIN namespaces n ON n.workspace_id = c.workspace_id AND n.name = c.namespace
JOIN entries e ON e.namespace_id = n.id AND e.key = c.key
WHERE c.workspace_id = %s AND (c.xid, c.id) > (%s::text::xid8, %s) AND c.kind LIKE 'entry.%%'
"""


_COVERED_OUTDATED = f"SELECT entry_id FROM search_documents WHERE {_OUTDATED} AND entry_id <= %s"
_OUTDATED_OF = f"""
SELECT d.entry_id FROM search_documents d
JOIN entries e ON e.id = d.entry_id JOIN namespaces n ON n.id = e.namespace_id
WHERE {_OUTDATED} AND n.workspace_id = %(workspace)s
LIMIT %(limit)s
"""


def find_outdated(workspace_id: int, limit: int) -> list[int]:
    """The ids of up to `limit` entries whose documents have an older format."""
    rows = hot.fetch_all(_OUTDATED_OF, {"workspace": workspace_id, "limit": limit})
    return [row[0] for row in rows]


def find_candidates(
    rows: EntryQuerySet,
    workspace_id: int,
    reach: IndexCoverage,
    query: str,
    *,
    before: int | None,
    limit: int,
) -> Sequence[tuple[int, int]]:
    """Up to `limit` of `rows` that may match `query` (a tsquery), newest first: (id, bytes). Those
    that the index finds, and those that it does not cover yet."""
    end = _LAST if before is None else before
    # `+ 0` keeps the planner from reading all entries in this order for a few candidates.
    rows = rows.filter(id__lt=end)
    newest = rows.order_by((F("id") + 0).desc()).values_list("id", "size_bytes")
    sources = []
    # RawSQL, because no lookup supports @@ or compares rows; external input is passed as
    # parameters.
    if reach.filled_to != 0:
        indexed = _find_newest(rows, query, end, limit)
        if len(indexed) < limit:
            indexed = list(newest.filter(id__in=RawSQL(_INDEXED, [query, end]))[:limit])
        changed = [workspace_id, str(reach.xid), reach.change_id]
        pending = newest.filter(id__in=RawSQL(_PENDING, changed))
        covered = [_LAST if reach.filled_to is None else reach.filled_to]
        outdated = newest.filter(id__in=RawSQL(_COVERED_OUTDATED, covered))
        behind = pending[:limit].union(outdated[:limit], all=True)
        sources += [indexed, sorted(behind, reverse=True)]
    if reach.filled_to is not None:
        unfilled = rows.filter(id__gt=reach.filled_to).order_by("-id")
        sources.append(list(unfilled.values_list("id", "size_bytes")[:limit]))
    unique: list[tuple[int, int]] = []
    for each in merge(*sources, reverse=True):
        if not unique or unique[-1][0] != each[0]:
            unique.append(each)
    return unique[:limit]


def _find_newest(rows: EntryQuerySet, query: str, end: int, limit: int) -> list[tuple[int, int]]:
    each = rows.filter(id=RawSQL("newest.entry_id", [])).values_list("id", "size_bytes")
    sql, parameters = each.query.sql_with_params()
    with connection.cursor() as cursor:
        cursor.execute(_NEWEST.format(rows=sql), [end, *parameters, query, limit])
        found: list[tuple[int, int]] = cursor.fetchall()
    return found


# The expressions are valid for ASCII text without \\u; other text is always parsed. A key has no
# escapes.
_SPELLS = """(
    lower((entries.key || E'\\n' || entries.value::text) COLLATE "C") ~ ALL (%s)
    OR octet_length(entries.key) <> length(entries.key)
    OR octet_length(entries.value::text) <> length(entries.value::text)
    OR strpos(entries.value::text, '\\u') > 0
)"""


def filter_by_patterns(rows: EntryQuerySet, patterns: Sequence[str]) -> EntryQuerySet:
    """`rows` without those whose key and value cannot contain a word (domain/search.py,
    `build_patterns`)."""
    if not patterns:
        return rows
    return rows.filter(RawSQL(_SPELLS, [list(patterns)], models.BooleanField()))


_STORE = """
INSERT INTO search_documents AS d (entry_id, version, terms)
SELECT x.id, x.version, array_to_tsvector(x.terms)
FROM json_to_recordset(%(rows)s::json) AS x(id bigint, version bigint, terms text[])
ON CONFLICT (entry_id) DO UPDATE SET version = excluded.version, terms = excluded.terms
WHERE d.version <> excluded.version OR d.terms <> excluded.terms
RETURNING 1
"""


def store_documents(rows: str) -> int:
    """Insert or replace documents: a JSON list of {id, version, terms}."""
    return len(hot.fetch_all(_STORE, {"rows": rows}))


def lock_documents(workspace_id: int) -> None:
    """Block the indexer until the end of the transaction, so that it cannot store again what it
    read before a redaction or an erasure."""
    database.lock("search documents", workspace_id)
