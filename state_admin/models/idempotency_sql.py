"""The hot statements of idempotency keys."""

from __future__ import annotations

from collections.abc import Sequence

from . import hot

_LOCK = """
SELECT scope, pg_try_advisory_xact_lock(hashtextextended('replay ' || scope, 0))
FROM unnest(%(scopes)b::text[]) AS scope
"""
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
_COLUMNS = ("scope", "workspace_id", "fingerprint", "status", "headers", "body")


def claiming(scopes: Sequence[str]) -> list[hot.Call]:
    """Two statements: try to lock the keys until the end of the transaction, without waiting, and
    find those that were used. `claimed` reads their rows."""
    parameters = {"scopes": list(scopes)}
    return [(_LOCK, parameters), (_LOOK, parameters)]


def claimed(locks: Sequence[hot.Row], used: Sequence[hot.Row]) -> set[str]:
    """The keys that are locked for this transaction and were not used before."""
    return {scope for scope, mine in locks if mine} - {scope for (scope,) in used}


def inserting(rows: Sequence[tuple[str, int | None, str, int, str, bytes]]) -> hot.Call:
    """The statement that stores responses. Each row: scope, workspace, fingerprint, status, headers
    as JSON text, body."""
    return _INSERT, hot.unzip(_COLUMNS, rows)
