"""The rows that an erasure removes, table by table: first counted, then deleted.

A table that refers to threads, runs, messages or entries and is not listed here makes an erasure
fail at its foreign key; a test checks the list.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from . import database, hot


class Scope(NamedTuple):
    """What an erasure removes: row ids, and the names under which logs mention them."""

    workspace: int
    threads: Sequence[int]
    entries: Sequence[int]
    thread_names: Sequence[str]
    run_names: Sequence[str]
    keys: Sequence[str]


_RUNS = "SELECT id FROM runs WHERE thread_id = ANY(%(threads)s::bigint[])"
# A key is that of an entry only together with a namespace: tokens, members and others use it too.
_REFERS_TO_SCOPE = """
    x.workspace_id = %(workspace)s AND (
        x.thread = ANY(%(thread_names)s::text[])
        OR (x.namespace <> '' AND x.key = ANY(%(keys)s::text[])))
"""
# Writes of the runs to entries. Most are about entries that remain: they lose the name of the run only.
_WRITTEN = "x.workspace_id = %(workspace)s AND x.run = ANY(%(run_names)s::text[])"
_HOOKS = "x.webhook_id IN (SELECT id FROM webhooks WHERE workspace_id = %(workspace)s)"
_TOLD = f"""
    {_HOOKS} AND (
        x.body::json #>> '{{data,thread_id}}' = ANY(%(thread_names)s::text[])
        OR (x.body::json #>> '{{data,namespace}}' <> ''
            AND x.body::json #>> '{{data,key}}' = ANY(%(keys)s::text[])))
"""

# Table and condition, in an order that the foreign keys allow.
DELETED: Final[Mapping[str, str]] = {
    "run_reads": """x.workspace_id = %(workspace)s AND (
        x.thread_id = ANY(%(threads)s::bigint[]) OR x.key = ANY(%(keys)s::text[]))""",
    "tickets": f"x.run_id IN ({_RUNS})",
    "mailboxes": "x.thread_id = ANY(%(threads)s::bigint[])",
    "dispatches": "x.thread_id = ANY(%(threads)s::bigint[])",
    "compactions": "x.thread_id = ANY(%(threads)s::bigint[])",
    "state_values": "x.thread_id = ANY(%(threads)s::bigint[])",
    "revisions": "x.thread_id = ANY(%(threads)s::bigint[])",
    "messages": "x.thread_id = ANY(%(threads)s::bigint[])",
    "runs": "x.thread_id = ANY(%(threads)s::bigint[])",
    "storage_samples": "x.thread_id = ANY(%(threads)s::bigint[])",
    "threads": "x.id = ANY(%(threads)s::bigint[])",
    "search_documents": "x.entry_id = ANY(%(entries)s::bigint[])",
    "config_secrets": "x.entry_id = ANY(%(entries)s::bigint[])",
    "entry_revisions": "x.entry_id = ANY(%(entries)s::bigint[])",
    "entries": "x.id = ANY(%(entries)s::bigint[])",
    "revert_entries": "x.workspace_id = %(workspace)s AND x.key = ANY(%(keys)s::text[])",
    "presences": """x.workspace_id = %(workspace)s AND (x.key = ANY(%(keys)s::text[])
        OR (x.namespace = 'policies/thread' AND x.key = ANY(%(thread_names)s::text[])))""",
    "webhook_deliveries": _TOLD,
    "changes": _REFERS_TO_SCOPE,
}

# The audit log keeps that something happened, when and by whom; not to what.
_SCRUB = f"""
WITH gone AS (
    UPDATE audit x SET
        thread = CASE WHEN thread = '' THEN '' ELSE %(mark)s END,
        key = CASE WHEN key = '' THEN '' ELSE %(mark)s END,
        reason = '', detail = '{{}}'
    WHERE {_REFERS_TO_SCOPE} RETURNING 1
)
SELECT count(*) FROM gone
"""

# Filters of reverts to a moment. They are replaced and not removed: without its filter, an unfinished revert
# would revert other entries.
_SCRUB_REVERTS = """
UPDATE reverts x SET filters = x.filters
    || CASE WHEN x.filters ->> 'key' = ANY(%(keys)s::text[])
        THEN jsonb_build_object('key', %(mark)s::text) ELSE '{}' END
    || CASE WHEN x.filters ->> 'prefix' = ANY(%(keys)s::text[])
        THEN jsonb_build_object('prefix', %(mark)s::text) ELSE '{}' END
WHERE x.workspace_id = %(workspace)s
    AND (x.filters ->> 'key' = ANY(%(keys)s::text[]) OR x.filters ->> 'prefix' = ANY(%(keys)s::text[]))
RETURNING 1
"""

# Replaces an erased key in the position of a paused revert by the nearest smaller key of its entries. Those
# between the two are already reverted, or did not match and are examined again.
_MOVE_REVERTS = """
UPDATE reverts x SET progress = jsonb_set(x.progress, ARRAY[%(step)s::text, '1'], to_jsonb(coalesce((
    SELECT max(e.key) FROM revert_entries e
    WHERE e.revert_id = x.id AND e.namespace = x.progress #>> ARRAY[%(step)s::text, '0']
        AND e.key < x.progress #>> ARRAY[%(step)s::text, '1']
), '')))
WHERE x.workspace_id = %(workspace)s
    AND x.progress #>> ARRAY[%(step)s::text, '1'] = ANY(%(keys)s::text[])
RETURNING 1
"""

# The same for a paused history compaction, with the nearest smaller key of the namespace.
_MOVE_COMPACTIONS = """
UPDATE compactions x SET progress = jsonb_set(x.progress, '{after}', to_jsonb(coalesce((
    SELECT max(e.key) FROM entries e
    WHERE e.namespace_id = x.namespace_id AND e.key < x.progress ->> 'after'
), '')))
WHERE x.workspace_id = %(workspace)s AND x.kind = 'history'
    AND x.progress ->> 'after' = ANY(%(keys)s::text[])
RETURNING 1
"""

# Columns of remaining rows that refer to removed ones.
_LET_GO = (
    """
UPDATE threads SET parent_id = NULL, version = version + 1,
    created_from = jsonb_set(created_from::jsonb, '{parent_thread_id}', 'null', false)::json
WHERE parent_id = ANY(%(threads)s::bigint[]) RETURNING 1
""",
    """
UPDATE threads SET forked_from = NULL,
    created_from = jsonb_set(created_from::jsonb, '{forked_from}', 'null', false)::json
WHERE workspace_id = %(workspace)s AND forked_from ->> 'thread_id' = ANY(%(thread_names)s::text[])
RETURNING 1
""",
    """
UPDATE runs SET parent_run_id = '',
    created_from = jsonb_set(created_from::jsonb, '{parent_run_id}', '""', false)::json
WHERE workspace_id = %(workspace)s AND parent_run_id = ANY(%(run_names)s::text[]) RETURNING 1
""",
    """
UPDATE runs SET parent_thread_id = '',
    created_from = jsonb_set(created_from::jsonb, '{parent_thread_id}', '""', false)::json
WHERE workspace_id = %(workspace)s AND parent_thread_id = ANY(%(thread_names)s::text[]) RETURNING 1
""",
    """
UPDATE reverts SET run = ''
WHERE workspace_id = %(workspace)s AND run = ANY(%(run_names)s::text[]) RETURNING 1
""",
    # The audit log lists the writes of a run; the history has no index for them.
    f"""
WITH written AS (
    UPDATE audit x SET run = '' WHERE {_WRITTEN}
    RETURNING x.workspace_id, x.namespace, x.key, x.version
)
UPDATE entry_revisions r SET run = '' FROM written w
JOIN namespaces n ON n.workspace_id = w.workspace_id AND n.name = w.namespace
JOIN entries e ON e.namespace_id = n.id AND e.key = w.key
WHERE r.entry_id = e.id AND r.version = w.version RETURNING 1
""",
    f"UPDATE changes x SET run = '' WHERE {_WRITTEN} RETURNING 1",
    f"""
UPDATE webhook_deliveries x SET body = jsonb_set(body::jsonb, '{{data,run_id}}', 'null')::text
WHERE {_HOOKS} AND body::json #>> '{{data,run_id}}' = ANY(%(run_names)s::text[]) RETURNING 1
""",
)


def lock_erasure(workspace_id: int, *, shared: bool = False) -> None:
    """Hold the erasure lock of a workspace until the transaction ends: an erasure exclusively, and jobs that
    copy keys or ids from other rows `shared`, because an erasure could miss the copies. Must be called
    before the first row lock."""
    database.lock("erasure", workspace_id, shared=shared)


def count(scope: Scope) -> dict[str, int]:
    """The number of rows that an erasure would remove, by table, and of audit rows it would
    redact."""
    found = {
        table: _number(f"SELECT count(*) FROM {table} x WHERE {condition}", scope._asdict())
        for table, condition in DELETED.items()
    }
    return found | {
        "audit": _number(f"SELECT count(*) FROM audit x WHERE {_REFERS_TO_SCOPE}", scope._asdict())
    }


def erase(scope: Scope, mark: str) -> dict[str, int]:
    """Remove the rows; returns what `count` would have. `mark` replaces names in the audit log."""
    for statement in _LET_GO if scope.threads else ():
        hot.fetch_all(statement, scope._asdict())
    hot.fetch_all(_SCRUB_REVERTS, {**scope._asdict(), "mark": mark})
    gone = {table: _delete(table, scope._asdict()) for table in DELETED}
    for step in ("examined", "after"):
        hot.fetch_all(_MOVE_REVERTS, {**scope._asdict(), "step": step})
    hot.fetch_all(_MOVE_COMPACTIONS, scope._asdict())
    return gone | {"audit": _number(_SCRUB, {**scope._asdict(), "mark": mark})}


def delete_threads(workspace_id: int, threads: Sequence[int]) -> None:
    """Remove threads and all rows that belong to them, table by table. The caller has locked
    them."""
    scope = Scope(workspace_id, list(threads), entries=[], thread_names=[], run_names=[], keys=[])
    for table, condition in DELETED.items():
        if "%(threads)s" in condition:
            _delete(table, scope._asdict())


def _delete(table: str, parameters: Mapping[str, Any]) -> int:
    return _number(
        f"WITH gone AS (DELETE FROM {table} x WHERE {DELETED[table]} RETURNING 1)"
        " SELECT count(*) FROM gone",
        parameters,
    )


def _number(statement: str, parameters: Mapping[str, Any]) -> int:
    return int(hot.fetch_row(statement, parameters)[0])
