"""The hot statements of idempotency keys."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from . import hot

# Whether the transaction holds the lock of a scope, now or from before.
TRY_LOCK = "pg_try_advisory_xact_lock(hashtextextended('replay ' || {}, 0))"
_LOCK = f"SELECT scope, {TRY_LOCK.format('scope')} FROM unnest(%(scopes)b::text[]) AS scope"
# A statement of its own after the lock, so that it sees what the previous holder committed.
_LOOK = "SELECT scope FROM idempotency_records WHERE scope = ANY(%(scopes)b::text[])"

_INSERT = """
INSERT INTO idempotency_records (scope, workspace_id, fingerprint, status, headers, body)
SELECT scope, workspace_id, fingerprint, status, headers::jsonb, body
FROM unnest(%(scope)b::text[], %(workspace_id)b::bigint[], %(fingerprint)b::text[],
    %(status)b::int[], %(headers)b::text[], %(body)b::bytea[])
    AS x(scope, workspace_id, fingerprint, status, headers, body)
RETURNING scope
"""
# Writes nothing but WAL: the commit waits until the standbys have this and all that was before it.
_CONFIRM = """
SELECT pg_logical_emit_message(true, 'commonhold', '')::text
WHERE current_setting('synchronous_standby_names') <> ''
"""
_COLUMNS = ("scope", "workspace_id", "fingerprint", "status", "headers", "body")


def claiming(scopes: Sequence[str]) -> list[hot.Call]:
    """Two statements: `locking`, then one that finds the keys that were used. `claimed` reads their
    rows."""
    return [locking(scopes), (_LOOK, {"scopes": list(scopes)})]


def locking(scopes: Iterable[str]) -> hot.Call:
    """The statement that tries to lock keys until the transaction ends, without waiting."""
    return _LOCK, {"scopes": list(scopes)}


def claimed(locks: Sequence[hot.Row], used: Sequence[hot.Row]) -> set[str]:
    """The keys that are locked for this transaction and were not used before."""
    return {scope for scope, mine in locks if mine} - {scope for (scope,) in used}


def inserting(rows: Sequence[tuple[str, int | None, str, int, str, bytes]]) -> hot.Call:
    """The statement that stores responses. Each row: scope, workspace, fingerprint, status, headers
    as JSON text, body."""
    return _INSERT, hot.unzip(_COLUMNS, rows)


def confirming() -> hot.Call:
    """The statement that makes the transaction wait for synchronous standbys, as a write does: a repeat
    is not answered before the change it repeats is safe."""
    return _CONFIRM, {}
