"""The invariants between tables, and streams of the digests of every snapshot and version.

For a verifier: reads whole tables by server-side cursors, with constant memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from django.db import connection

from . import hot

_CHUNK = 2000

_THREAD = "w.slug || '/' || t.public_id"
_ENTRY = "w.slug || '/' || n.name || '/' || e.key"
# Not the deleted ones, whose rows a sweep removes in any order.
_WORKSPACES = "JOIN workspaces w ON w.deleted_slug = '' AND w.id ="
_THREADS = f"JOIN threads t ON t.id = x.thread_id {_WORKSPACES} t.workspace_id"
_ENTRIES = f"""JOIN entries e ON e.id = x.entry_id JOIN namespaces n ON n.id = e.namespace_id
    {_WORKSPACES} n.workspace_id"""
# An erasure removes names from the logs, also names of things that were not erased.
_NOTHING_ERASED = (
    "n.workspace_id NOT IN (SELECT DISTINCT z.workspace_id FROM audit z WHERE z.action = 'erase')"
)
_ANY_TIME = "true"
_KEPT_BY_THE_FEED = "x.at > now() - %(changes_kept)s"


def _revisions_without(trail: str, verb: str, when: str, *, since: str) -> str:
    """Return the query for revisions that a log does not contain. `since`: the condition that a row
    of the log belongs to the thread that currently has the name.

    Revisions and log are combined by UNION ALL and sorted by their common columns: one pass over
    each, regardless of the planner's estimates. A join might read the log once per revision.
    """
    return f"""
        SELECT w.slug || '/' || p.thread || ' @' || p.version FROM (
            SELECT n.workspace_id, n.public_id AS thread, x.number AS version,
                n.created_at AS born, NULL::timestamptz AS noted
            FROM revisions x JOIN threads n ON n.id = x.thread_id
            WHERE {when} AND {_NOTHING_ERASED}
            UNION ALL
            SELECT workspace_id, thread, version, NULL, at FROM {trail}
            WHERE thread <> '' AND version > 0 AND {verb} <> 'message.append'
        ) p {_WORKSPACES} p.workspace_id
        GROUP BY w.id, p.thread, p.version
        HAVING count(p.born) > 0 AND (max(p.noted) >= {since}) IS NOT TRUE
    """


def _versions_without(trail: str, when: str) -> str:
    """Return the query for versions of entries that a log does not contain, in the same way."""
    return f"""
        SELECT w.slug || '/' || p.namespace || '/' || p.key || ' v' || p.version FROM (
            SELECT n.workspace_id, n.name AS namespace, e.key, x.version, true AS held
            FROM entry_revisions x JOIN entries e ON e.id = x.entry_id
            JOIN namespaces n ON n.id = e.namespace_id
            WHERE {when} AND {_NOTHING_ERASED}
            UNION ALL
            SELECT workspace_id, namespace, key, version, false FROM {trail}
            WHERE namespace <> '' AND version > 0
        ) p {_WORKSPACES} p.workspace_id
        GROUP BY w.id, p.namespace, p.key, p.version
        HAVING bool_and(p.held)
    """


# Each query returns the places that violate the invariant: a column of text.
CHECKS: Final[Mapping[str, str]] = {
    "a state value's range of revisions is empty or ends after the newest revision": f"""
        SELECT {_THREAD} || ' ' || x.key || ' @' || x.valid_from FROM state_values x {_THREADS}
        WHERE x.valid_from < 1 OR x.valid_from > t.revision
            OR x.valid_to <= x.valid_from OR x.valid_to > t.revision
    """,
    "two state values of a key are valid at the same revision": f"""
        SELECT {_THREAD} || ' ' || x.key || ' @' || x.valid_from FROM (
            SELECT thread_id, key, valid_from,
                lag(coalesce(valid_to, 9223372036854775807))
                    OVER (PARTITION BY thread_id, key ORDER BY valid_from) AS before
            FROM state_values
        ) x {_THREADS} WHERE x.before > x.valid_from
    """,
    "a state value begins or ends at a revision that did not touch its key": f"""
        SELECT {_THREAD} || ' ' || x.key || ' @' || x.valid_from FROM state_values x {_THREADS}
        WHERE NOT EXISTS (
            SELECT FROM revisions r WHERE r.thread_id = x.thread_id AND r.number = x.valid_from
                AND x.key = ANY(r.touched)
        ) OR x.valid_to IS NOT NULL AND NOT EXISTS (
            SELECT FROM revisions r WHERE r.thread_id = x.thread_id AND r.number = x.valid_to
                AND x.key = ANY(r.touched)
        )
    """,
    "a retained revision touched a key but has an older value of it": f"""
        SELECT {_THREAD} || ' ' || k.key || ' @' || x.number FROM revisions x {_THREADS}
        CROSS JOIN unnest(x.touched) k(key)
        JOIN LATERAL (
            SELECT valid_from, valid_to FROM state_values s
            WHERE s.thread_id = x.thread_id AND s.key = k.key AND s.valid_from <= x.number
            ORDER BY s.valid_from DESC LIMIT 1
        ) v ON v.valid_from < x.number AND (v.valid_to IS NULL OR v.valid_to > x.number)
        WHERE NOT x.dropped
    """,
    "the revisions of a thread have a gap, or the newest is not the thread's revision": f"""
        SELECT {_THREAD} FROM threads t {_WORKSPACES} t.workspace_id
        CROSS JOIN LATERAL (
            SELECT count(*) AS rows, coalesce(max(number), 0) AS newest FROM revisions r
            WHERE r.thread_id = t.id
        ) r WHERE (r.rows, r.newest) <> (t.revision, t.revision)
    """,
    "a revision was removed that must be retained": f"""
        SELECT {_THREAD} || ' @' || x.number FROM revisions x {_THREADS}
        LEFT JOIN runs ON runs.id = x.run_id
        WHERE x.dropped AND (x.pinned OR x.label <> '' OR x.number = t.revision
            OR x.number = runs.last_revision)
    """,
    "a run does not end with its last revision": f"""
        SELECT {_THREAD} || ' ' || x.public_id FROM runs x {_THREADS}
        WHERE x.last_revision <> (
            SELECT max(r.number) FROM revisions r
            WHERE r.thread_id = x.thread_id AND r.run_id = x.id
        )
    """,
    "the messages of a thread have a gap, or do not match its message count": f"""
        SELECT {_THREAD} FROM threads t {_WORKSPACES} t.workspace_id
        CROSS JOIN LATERAL (
            SELECT count(*) AS rows, coalesce(max(seq), 0) AS newest FROM messages m
            WHERE m.thread_id = t.id
        ) m WHERE (m.rows, m.newest) <> (t.message_count, t.message_count)
    """,
    "an entry differs from its newest version": f"""
        SELECT {_ENTRY} FROM entries e JOIN namespaces n ON n.id = e.namespace_id
        {_WORKSPACES} n.workspace_id
        LEFT JOIN entry_revisions x ON x.entry_id = e.id AND x.version = e.version
        WHERE n.tracked AND (x.version IS NULL OR x.value::text IS DISTINCT FROM e.value::text
            OR e.deleted <> (e.value IS NULL)
            OR EXISTS (SELECT FROM entry_revisions r WHERE r.entry_id = e.id
                AND r.version > e.version))
    """,
    "versions are missing that no history compaction removed": f"""
        SELECT {_ENTRY} || ' v' || x.version FROM (
            SELECT entry_id, version, coalesce(
                lag(version) OVER (PARTITION BY entry_id ORDER BY version), 0) AS before
            FROM entry_revisions
        ) x {_ENTRIES}
        WHERE x.version <> x.before + 1 AND NOT EXISTS (
            SELECT FROM compactions c WHERE c.namespace_id = n.id AND c.kind = 'history')
    """,
    "a revision has no audit row": _revisions_without(
        "audit", "action", _ANY_TIME, since="max(p.born)"
    ),
    "a version has no audit row": _versions_without("audit", _ANY_TIME),
    "a revision is not in the change feed": _revisions_without(
        "changes", "kind", _KEPT_BY_THE_FEED, since="'-infinity'"
    ),
    "a version is not in the change feed": _versions_without("changes", _KEPT_BY_THE_FEED),
}

# A value is added to the state at one revision and removed at another; both rows sort before the
# revision itself. 1: added. -1: removed. 2: a revision. 3: a dropped one.
_STATES: Final = """
WITH held AS NOT MATERIALIZED (
    SELECT thread_id, valid_from, valid_to, sha256(convert_to(
        concat_ws(chr(1), key, scope, persistent, value::text), 'UTF8')) AS digest
    FROM state_values {condition}
)
SELECT thread_id, at, what, digest FROM (
    SELECT thread_id, valid_from AS at, 1 AS what, digest FROM held
    UNION ALL
    SELECT thread_id, valid_to, -1, digest FROM held WHERE valid_to IS NOT NULL
    UNION ALL
    SELECT thread_id, number, CASE WHEN dropped THEN 3 ELSE 2 END, NULL FROM revisions {condition}
) events ORDER BY thread_id, at, what
"""

_VERSIONS: Final = """
SELECT entry_id, version, encode(sha256(convert_to(concat_ws(chr(1),
    operation, coalesce(value::text, chr(2)), schema_version, extract(epoch FROM expires_at)), 'UTF8')), 'hex')
FROM entry_revisions {condition} ORDER BY entry_id, version
"""
STATES, VERSIONS = _STATES.format(condition=""), _VERSIONS.format(condition="")
# Of the workspace with the number in the parameter.
STATES_OF_WORKSPACE: Final = _STATES.format(
    condition="WHERE thread_id IN (SELECT id FROM threads WHERE workspace_id = %(workspace)s)"
)
VERSIONS_OF_WORKSPACE: Final = _VERSIONS.format(
    condition="""WHERE entry_id IN (SELECT e.id FROM entries e
    JOIN namespaces n ON n.id = e.namespace_id WHERE n.workspace_id = %(workspace)s)"""
)

_NAME = {
    "state": f"""
        SELECT {_THREAD}, false FROM threads t {_WORKSPACES} t.workspace_id
        WHERE t.id = %(owner)s AND %(number)s::bigint IS NOT NULL
    """,
    "entry": f"""
        SELECT {_ENTRY}, x.redacted_at IS NOT NULL OR x.version IS NULL AND EXISTS (
            SELECT FROM compactions c WHERE c.namespace_id = n.id AND c.kind = 'history')
        FROM entries e JOIN namespaces n ON n.id = e.namespace_id
        {_WORKSPACES} n.workspace_id
        LEFT JOIN entry_revisions x ON x.entry_id = e.id AND x.version = %(number)s
        WHERE e.id = %(owner)s
    """,
}


def freeze() -> None:
    """Make the current transaction read one snapshot, without timeouts."""
    with connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        cursor.execute("SET LOCAL statement_timeout = 0")
        cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")


def read_to_the_end() -> None:
    """Tell the planner that cursors of this transaction are read to the end."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL cursor_tuple_fraction = 1")


def stream(statement: str, parameters: Mapping[str, Any]) -> Iterator[hot.Row]:
    """The rows, fetched in chunks. Requires a transaction."""
    with connection.chunked_cursor() as cursor:
        cursor.execute(statement, parameters)
        while rows := cursor.fetchmany(_CHUNK):
            yield from rows


def find_owner(kind: str, owner: int, number: int) -> tuple[str, bool] | None:
    """The name of the thread or entry, and whether its version may have been changed or removed: by
    a redaction, or by history compaction of its namespace. None if it does not exist."""
    row = hot.fetch_one(_NAME[kind], {"owner": owner, "number": number})
    return (row[0], row[1]) if row else None
