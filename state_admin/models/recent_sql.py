"""Finds entries and threads by any part of their keys, values, ids and titles, among the most recent rows.

No index finds the middle of a word, so each statement reads a limited number of rows of one workspace,
in the order of an index, and compares these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from state_admin.domain.access import Actor

from . import hot
from .visibility import glob_regex

# What is compared: the newest changes, the first keys by namespace and key, and the newest threads.
CHANGES = 2_000
# The newest changes whose entries are compared by value, and the size up to which a value is (bytes, as stored).
VALUES = 500
LARGEST_VALUE = 4_000
KEYS = 5_000
THREADS = 5_000
# The matching keys of which the entries are read: some may be deleted.
CANDIDATES = 100


def excerpt(text: str, before: int, length: int) -> str:
    """SQL of an excerpt of `text`, from `before` characters before the parameter `word` on, with an
    ellipsis where it is cut."""
    start = f"greatest(strpos(lower({text}), %(word)s) - {before}, 1)"
    return (
        f"repeat('…', ({start} > 1)::int) || substr({text}, {start}, {length})"
        f" || repeat('…', (length({text}) >= {start} + {length})::int)"
    )


_CHANGED = f"""
SELECT %(columns)s, row_number() OVER (ORDER BY xid DESC, id DESC) AS place
FROM changes WHERE workspace_id = %%(workspace)s
ORDER BY xid DESC, id DESC LIMIT {CHANGES}
"""

# Only the unique index is read. The namespaces are sorted before their keys are read: if the planner sorted the
# keys, a plan for any parameters (generic) would read the keys of all namespaces. The limit of each namespace is a subquery
# as in browsing.py.
_FIRST_KEYS = f"""
SELECT n.id, n.name, k.key FROM (
    SELECT id, name FROM namespaces WHERE workspace_id = %(workspace)s AND name ~ %(globs)s
        AND (%(namespace)s = '' OR name = %(namespace)s)
    ORDER BY name
) n CROSS JOIN LATERAL (
    SELECT key FROM entries WHERE namespace_id = n.id ORDER BY key LIMIT (SELECT {KEYS}::bigint)
) k
LIMIT {KEYS}
"""

_ENTRIES = f"""
SELECT n.name, e.key FROM (
    SELECT id, name, key, min(place) AS place FROM (
        SELECT n.id, n.name, c.key, c.place FROM (
            {_CHANGED % {"columns": "namespace, key, kind"}}
        ) c
        JOIN namespaces n ON n.workspace_id = %(workspace)s AND n.name = c.namespace
        WHERE c.kind LIKE 'entry.%%' AND lower(c.key) LIKE ALL (%(patterns)b::text[])
            AND n.name ~ %(globs)s AND (%(namespace)s = '' OR n.name = %(namespace)s)
        UNION ALL
        SELECT id, name, key, {CHANGES} + row_number() OVER (ORDER BY name, key) FROM (
            SELECT * FROM ({_FIRST_KEYS}) first
            WHERE lower(key) LIKE ALL (%(patterns)b::text[])
            ORDER BY name, key LIMIT {CANDIDATES}
        ) matching
    ) candidates
    GROUP BY id, name, key ORDER BY min(place) LIMIT {CANDIDATES}
) n
JOIN entries e ON e.namespace_id = n.id AND e.key = n.key
    AND NOT e.deleted AND (e.expires_at IS NULL OR e.expires_at > now())
ORDER BY n.place LIMIT %(limit)s
"""

_VALUES = f"""
SELECT n.name, e.key, {excerpt("x.text", 40, 120)}
FROM (
    SELECT namespace, key, min(place) AS place FROM ({_CHANGED % {"columns": "namespace, key, kind"}}) c
    WHERE place <= {VALUES} AND kind LIKE 'entry.%%' GROUP BY namespace, key
) c
JOIN namespaces n ON n.workspace_id = %(workspace)s AND n.name = c.namespace AND n.name ~ %(globs)s
JOIN entries e ON e.namespace_id = n.id AND e.key = c.key
    AND NOT e.deleted AND (e.expires_at IS NULL OR e.expires_at > now())
CROSS JOIN LATERAL (
    SELECT CASE WHEN pg_column_size(e.value) <= {LARGEST_VALUE} THEN e.value::text ELSE '' END AS text
) x
WHERE lower(x.text) LIKE ALL (%(patterns)b::text[])
ORDER BY c.place LIMIT %(limit)s
"""

_THREADS = f"""
SELECT public_id, title FROM (
    SELECT id, public_id, title FROM threads WHERE workspace_id = %(workspace)s
    ORDER BY id DESC LIMIT {THREADS}
) newest
WHERE lower(title || ' ' || public_id) LIKE ALL (%(patterns)b::text[])
    AND public_id ^@ ANY (%(prefixes)b::text[])
ORDER BY id DESC LIMIT %(limit)s
"""

# The latest changes first, then the newest threads.
_ACTIVE = f"""
WITH changed AS (
    SELECT thread, min(place) AS place
    FROM ({_CHANGED % {"columns": "thread"}}) c WHERE thread <> '' GROUP BY thread
), newest AS (
    SELECT public_id AS thread, {CHANGES} + row_number() OVER (ORDER BY id DESC) AS place
    FROM threads WHERE workspace_id = %(workspace)s ORDER BY id DESC LIMIT %(limit)s
)
SELECT t.id, t.public_id, t.title, t.message_count FROM (
    SELECT thread, min(place) AS place FROM (TABLE changed UNION ALL TABLE newest) each
    WHERE thread ^@ ANY (%(prefixes)b::text[])
    GROUP BY thread ORDER BY min(place) LIMIT %(limit)s
) active
JOIN threads t ON t.workspace_id = %(workspace)s AND t.public_id = active.thread
ORDER BY active.place
"""


class ActiveThread(NamedTuple):
    id: int
    public_id: str
    title: str
    message_count: int


def patterns_of(words: Sequence[str]) -> list[str]:
    """Patterns for LIKE ALL that match lower-case text in which all of `words` occur."""
    escape = str.maketrans({"\\": "\\\\", "%": "\\%", "_": "\\_"})
    return [f"%{word.lower().translate(escape)}%" for word in words]


def find_entries(
    actor: Actor, words: Sequence[str], namespace: str, limit: int
) -> list[tuple[str, str]]:
    """Namespace and key of up to `limit` live entries whose key contains all of `words`, those of
    the latest changes first, then by namespace and key. `namespace`: "" for all."""
    parameters = _parameters(actor, limit)
    parameters |= {"patterns": patterns_of(words), "namespace": namespace}
    return [(row[0], row[1]) for row in hot.fetch_all(_ENTRIES, parameters)]


def find_values(
    actor: Actor, words: Sequence[str], limit: int
) -> list[tuple[tuple[str, str], str]]:
    """Namespace and key of up to `limit` live entries whose value, as JSON, contains all of `words`, those
    of the latest changes first, and the text around the first word."""
    parameters = _parameters(actor, limit)
    parameters |= {"patterns": patterns_of(words), "word": words[0].lower()}
    return [((row[0], row[1]), row[2]) for row in hot.fetch_all(_VALUES, parameters)]


def find_threads(actor: Actor, words: Sequence[str], limit: int) -> list[tuple[str, str]]:
    """Id and title of up to `limit` of the newest threads whose title and id contain all of `words`,
    the newest first."""
    parameters = _parameters(actor, limit) | {"patterns": patterns_of(words)}
    return [(row[0], row[1]) for row in hot.fetch_all(_THREADS, parameters)]


def find_active(actor: Actor, limit: int) -> list[ActiveThread]:
    """Up to `limit` threads: those of the newest changes, then the newest."""
    rows = hot.fetch_all(_ACTIVE, _parameters(actor, limit))
    return [ActiveThread._make(row) for row in rows]


def _parameters(actor: Actor, limit: int) -> dict[str, Any]:
    return {
        "workspace": actor.workspace_id,
        "globs": glob_regex(actor.namespaces or ("*",)),
        "prefixes": list(actor.thread_prefixes or ("",)),
        "limit": limit,
    }
