"""The hot statements of idempotency keys."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from . import hot

# Whether the transaction holds the lock of a scope, now or from before.
TRY_LOCK = "pg_try_advisory_xact_lock(hashtextextended('replay ' || {}, 0))"
_LOCK = f"SELECT scope, {TRY_LOCK.format('scope')} FROM unnest(%(scopes)b::text[]) AS scope"
# A statement of its own after the lock, so that it sees what the previous holder committed.
_LOOK = "SELECT scope FROM idempotency_records WHERE scope = ANY(%(scopes)b::text[])"

# What the transaction sees from its first statement on, for `_UNSEEN`.
_BEGIN = "SELECT set_config('commonhold.began', pg_current_snapshot()::text, true)"

_INSERT = """
INSERT INTO idempotency_records (scope, workspace_id, fingerprint, status, headers, body)
SELECT scope, workspace_id, fingerprint, status, headers::jsonb, body
FROM unnest(%(scope)b::text[], %(workspace_id)b::bigint[], %(fingerprint)b::text[],
    %(status)b::int[], %(headers)b::text[], %(body)b::bytea[])
    AS x(scope, workspace_id, fingerprint, status, headers, body)
RETURNING scope
"""
# A response is stored under the shared lock of its workspace, and the responses are expired under
# the exclusive one: the expiry then finds the response, or `_UNSEEN` the expiry.
_LOCK_NAME = "hashtext('stored responses'), %(workspace)s::int"
_SHARE = f"SELECT pg_advisory_xact_lock_shared({_LOCK_NAME})"
_EXCLUDE = f"SELECT pg_advisory_xact_lock({_LOCK_NAME})"
# The last expiry of a workspace, with its transaction in place of a fingerprint.
_MARK = """
INSERT INTO idempotency_records (scope, fingerprint, status, headers, body)
VALUES ('expired ' || %(workspace)s::bigint, pg_current_xact_id()::text, 0, '{}', '')
ON CONFLICT (scope) DO UPDATE
SET fingerprint = excluded.fingerprint, created_at = excluded.created_at
RETURNING scope
"""
# Whether the responses of a workspace were expired by a transaction that this one may not have seen
# from its first statement on. After a restore of the database, the mark may be that of a later
# transaction than the current ones.
_UNSEEN = """
WITH mark AS MATERIALIZED (  -- the fingerprints of all others are no numbers
    SELECT fingerprint FROM idempotency_records WHERE scope = 'expired ' || %(workspace)s::bigint
)
SELECT EXISTS (
    SELECT 1 FROM (SELECT fingerprint::xid8 AS number FROM mark) expiry
    WHERE number < pg_snapshot_xmax(pg_current_snapshot())
        AND number <> pg_current_xact_id()
        AND NOT pg_visible_in_snapshot(
            number, current_setting('commonhold.began')::pg_snapshot)
)
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


def beginning() -> hot.Call:
    """The statement with which a transaction begins that uses `storing`."""
    return _BEGIN, {}


def storing(workspace_id: int, insertion: hot.Call) -> list[hot.Call]:
    """Three statements: the second is `insertion`, of responses of a workspace. The third returns
    whether they must be expired, because they may have been read before a concurrent expiry."""
    of_workspace = {"workspace": workspace_id}
    return [(_SHARE, of_workspace), insertion, (_UNSEEN, of_workspace)]


def expiring(workspace_id: int) -> list[hot.Call]:
    """The statements before the responses of a workspace are expired."""
    of_workspace = {"workspace": workspace_id}
    return [(_EXCLUDE, of_workspace), (_MARK, of_workspace)]


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
