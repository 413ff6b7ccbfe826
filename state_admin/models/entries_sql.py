"""The hot statements of one entry: read it; write it. One statement each (architecture, hot paths).

A write compares, stores, records history, change feed and audit in a single round trip. The ORM
would need five statements in a transaction and an object per row; measured, that is four times
the CPU. Everything colder stays on the ORM (entries.py).

`updated_at`, and with it the `at` of the history, is clock_timestamp() in the SET of the statement
that holds the row's lock: so times follow versions. now() is the transaction's start, which may lie
before what others wrote while this one waited. Who writes entries elsewhere does the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from . import hot, idempotency_sql

_LIVE = "NOT e.deleted AND (e.expires_at IS NULL OR e.expires_at > now())"


class EntryRow(NamedTuple):
    """An entry as readers see it. `value` is JSON text: the default where nothing is stored."""

    namespace_id: int
    namespace_schema_version: int
    exists: bool
    value: str
    version: int
    schema_version: int
    created_at: datetime | None
    updated_at: datetime | None
    expires_at: datetime | None
    tags: Sequence[str]
    pinned: bool
    size_bytes: int
    estimated_tokens: int
    actor_kind: str
    actor_name: str


_VIEW = """
    n.id, n.schema_version, e.id IS NOT NULL,
    CASE WHEN e.id IS NULL THEN n.default::text ELSE e.value::text END,
    coalesce(e.version, 0), coalesce(e.schema_version, n.schema_version),
    e.created_at, e.updated_at, e.expires_at, coalesce(e.tags, '{}'), coalesce(e.pinned, false),
    coalesce(e.size_bytes, 0), coalesce(e.estimated_tokens, 0),
    coalesce(e.actor_kind, ''), coalesce(e.actor_name, '')
"""

_READ = f"""
SELECT {_VIEW}
FROM namespaces n
LEFT JOIN entries e ON e.namespace_id = n.id AND e.key = %(key)s AND {_LIVE}
WHERE n.workspace_id = %(workspace)s AND n.name = %(namespace)s AND n.unregistered_at IS NULL
"""


def read_entry(*, workspace_id: int, namespace: str, key: str) -> EntryRow | None:
    """The entry, or the default with version 0. None: the namespace is not registered."""
    row = hot.fetch_one(_READ, {"workspace": workspace_id, "namespace": namespace, "key": key})
    return EntryRow._make(row) if row else None


_READ_MANY = f"""
SELECT want.workspace_id, want.namespace, want.key, {_VIEW}
FROM unnest(%(workspace_id)b::bigint[], %(namespace)b::text[], %(key)b::text[])
    AS want(workspace_id, namespace, key)
JOIN namespaces n ON n.workspace_id = want.workspace_id AND n.name = want.namespace
    AND n.unregistered_at IS NULL
LEFT JOIN entries e ON e.namespace_id = n.id AND e.key = want.key AND {_LIVE}
"""


class Address(NamedTuple):
    """Where an entry is."""

    workspace_id: int
    namespace: str
    key: str


def reading_entries(addresses: Sequence[Address]) -> hot.Call:
    """The statement that reads many entries. `entries_of` reads its rows."""
    return _READ_MANY, hot.unzip(Address._fields, addresses)


def entries_of(rows: Sequence[hot.Row]) -> dict[Address, EntryRow]:
    """The entries by address. Addresses in unregistered namespaces are left out."""
    return {Address._make(row[:3]): EntryRow._make(row[3:]) for row in rows}


_TRACKED = "WHERE (SELECT n.tracked FROM namespaces n WHERE n.id = w.namespace_id)"


def trail(source: str, namespace: str, call: str = "%({})s") -> str:
    """What every write leaves behind: history, change and audit rows for the rows of `source`,
    whose `w` is the entry as written, if its namespace is tracked; `namespace` is the SQL of its name. `call` formats
    the SQL of a fact about the call, such as `actor_id`: a parameter, or a column of `source`."""
    run, reason, request_id = map(call.format, ("run", "reason", "request_id"))
    kind, identity, name = map(call.format, ("actor_kind", "actor_id", "actor_name"))
    workspace, operation = map(call.format, ("workspace", "operation"))
    return f"""
, history AS (
    INSERT INTO entry_revisions (entry_id, version, operation, value, schema_version, size_bytes,
        expires_at, pinned, run, actor_kind, actor_id, actor_name, reason, request_id, at, xid)
    SELECT w.id, w.version, {operation}, w.value, w.schema_version, w.size_bytes,
        w.expires_at, false, {run}, {kind}, {identity}, {name}, {reason}, {request_id}, w.updated_at,
        (SELECT feed_xid())
    FROM {source} {_TRACKED}
), change AS (
    INSERT INTO changes (workspace_id, kind, namespace, key, run, version, actor_name, xid)
    SELECT {workspace}, 'entry.' || {operation}, {namespace}, w.key, {run}, w.version, {name},
        (SELECT feed_clock() FROM (SELECT count(*) FROM w) AS all_are_locked)
    FROM {source} {_TRACKED}
), audited AS (
    INSERT INTO audit (workspace_id, action, namespace, key, run, version,
        actor_kind, actor_id, actor_name, reason, request_id)
    SELECT {workspace}, 'entry.' || {operation}, {namespace}, w.key, {run}, w.version,
        {kind}, {identity}, {name}, {reason}, {request_id}
    FROM {source} {_TRACKED}
)
"""


_TRAIL = trail("w", "%(namespace)s")

_WRITTEN = "id, version, born_version, created_at, updated_at, expires_at, tags, pinned"
_RETURN = f"\nSELECT {_WRITTEN} FROM w\n"
_RETURN_MANY = f"\nSELECT namespace_id, key, {_WRITTEN} FROM w\n"

# The namespace must still be what the value was validated against.
_NAMESPACE = """
WITH n AS (
    SELECT id FROM namespaces
    WHERE id = %(namespace_id)s AND schema_version = %(schema_version)s AND unregistered_at IS NULL
)"""


def _expires(at: str) -> str:
    ttl = "%(ttl)s::double precision * interval '1 second'"
    return f"coalesce(%(expires_at)s::timestamptz, {at} + {ttl})"


# What a write that says nothing of tags and pin, or the same, leaves as it is.
_SAME_REST = """coalesce(e.tags = %(tags)s::text[]::varchar[], true)
            AND coalesce(e.pinned = %(pinned)s::boolean, true)"""

_INTO = """
    INSERT INTO entries AS e (namespace_id, key, value, version, born_version, schema_version,
        deleted, expires_at, tags, pinned, size_bytes, estimated_tokens, actor_kind, actor_name,
        created_at, updated_at)
"""

_OVER = f"""
    ON CONFLICT (namespace_id, key) DO UPDATE SET
        value = excluded.value,
        version = e.version + 1,
        born_version = CASE WHEN {_LIVE} THEN e.born_version ELSE e.version + 1 END,
        created_at = CASE WHEN {_LIVE} THEN e.created_at ELSE clock_timestamp() END,
        schema_version = excluded.schema_version,
        deleted = false,
        expires_at = excluded.expires_at,
        tags = CASE WHEN %(tags)s::text[] IS NULL AND {_LIVE} THEN e.tags ELSE excluded.tags END,
        pinned = CASE WHEN %(pinned)s::boolean IS NULL AND {_LIVE} THEN e.pinned
            ELSE excluded.pinned END,
        size_bytes = excluded.size_bytes,
        estimated_tokens = excluded.estimated_tokens,
        actor_kind = excluded.actor_kind,
        actor_name = excluded.actor_name,
        updated_at = clock_timestamp()
"""

_PUT = (
    _NAMESPACE
    + f"""
, w AS (
{_INTO}    SELECT n.id, %(key)s, %(value)s::json, 1, 1, %(schema_version)s, false, {_expires("n.at")},
        coalesce(%(tags)s::text[], '{{}}'), coalesce(%(pinned)s::boolean, false), %(size)s,
        %(tokens)s, %(actor_kind)s, %(actor_name)s, n.at, n.at
    FROM (SELECT id, clock_timestamp() AS at FROM n) n
{_OVER}    WHERE CASE %(only)s::text
        WHEN 'missing' THEN NOT ({_LIVE})
        WHEN 'changed' THEN NOT ({_LIVE} AND e.value::jsonb = excluded.value::jsonb
            AND {_SAME_REST})
        ELSE true END
    RETURNING e.*
)"""
    + _TRAIL
    + _RETURN
)

_OF_ENTRY = {
    "namespace_id": "bigint", "namespace": "text", "schema_version": "int", "key": "text",
    "value": "text", "size": "int", "tokens": "int", "ttl": "int",
}  # fmt: skip
_OF_CALL = {
    **_OF_ENTRY,
    "operation": "text", "expected": "bigint", "expires_at": "timestamptz", "workspace": "bigint",
    "run": "text", "actor_kind": "text", "actor_id": "text", "actor_name": "text",
    "reason": "text", "request_id": "text", "scope": "text",
}  # fmt: skip


def _rows(columns: Mapping[str, str], condition: str = "") -> str:
    """`x`: what to write, without the rows whose namespace is no longer what they were validated
    against. The parameters are arrays."""
    arrays = ", ".join(f"%({name})b::{kind}[]" for name, kind in columns.items())
    return f"""x AS (
    SELECT x.* FROM unnest({arrays}) AS x({", ".join(columns)})
    JOIN namespaces n ON n.id = x.namespace_id AND n.schema_version = x.schema_version
        AND n.unregistered_at IS NULL
    {condition}
)"""


# The Idempotency-Key is locked for this transaction (try_lock has succeeded for it before), and no
# response is stored for it.
_OWN_SCOPE = f"""WHERE x.scope IS NULL OR {idempotency_sql.TRY_LOCK.format("x.scope")} AND NOT EXISTS (
        SELECT 1 FROM idempotency_records r WHERE r.scope = x.scope)"""
_OWN_TTL = "x.at + x.ttl * interval '1 second'"


def _upsert(chosen: str, *, expires: str, call: str) -> str:
    """`w`: the rows of `x` that `chosen` selects, as they are written. They go in by (namespace, key),
    the order in which every batch takes its locks. `call`: as for `trail`."""
    kind, name = map(call.format, ("actor_kind", "actor_name"))
    return f"""w AS (
    {_INTO}
    SELECT x.namespace_id, x.key, x.value::json, 1, 1, x.schema_version, false,
        {expires}, '{{}}', false, x.size, x.tokens, {kind}, {name}, x.at, x.at
    FROM (SELECT x.*, clock_timestamp() AS at FROM x {chosen}
        ORDER BY x.namespace COLLATE "C", x.key COLLATE "C", x.namespace_id) x
    {_OVER}
    RETURNING e.*
)"""


# Many plain writes of one batch. The columns come as binary arrays: as text, or as one JSON text,
# quoting costs more than the rows.
_PUT_MANY = (
    f"\nWITH {_rows(_OF_ENTRY)}, "
    + _upsert(
        "WHERE (SELECT count(*) FROM x) = cardinality(%(key)b::text[])",
        expires=_OWN_TTL,
        call="%({})s",
    )
    # Not a join: the trail comes in the order of the rows.
    + trail("w", "(SELECT n.name FROM namespaces n WHERE n.id = w.namespace_id)")
    + _RETURN_MANY
)


def _joined(chosen: str, held: str = "") -> str:
    """Plain writes and writes at a version, of many calls (JoinedPut)."""
    expires = f"coalesce(x.expires_at, {_OWN_TTL})"
    written = "w JOIN x ON x.namespace_id = w.namespace_id AND x.key = w.key"
    return (
        f"\nWITH {_rows(_OF_CALL, _OWN_SCOPE)}{held}, {_upsert(chosen, expires=expires, call='x.{}')}"
        + trail(written, "x.namespace", "x.{}")
        + _RETURN_MANY
    )


# Entries that exist. One that another transaction has locked is skipped, so no call delays the others
# and the locks need no order. A locked row cannot change, so its version is compared before the write.
_PUT_EXISTING = _joined(
    """JOIN held h ON h.namespace_id = x.namespace_id AND h.key = x.key
            AND (x.expected IS NULL OR h.live AND h.version = x.expected)""",
    held=f""", held AS MATERIALIZED (
    SELECT e.namespace_id, e.key, e.version, {_LIVE} AS live
    FROM x JOIN entries e ON e.namespace_id = x.namespace_id AND e.key = x.key
    FOR NO KEY UPDATE OF e SKIP LOCKED
)""",
)
# Entries that do not exist. Two transactions that insert the same one wait for each other. No deadlock
# is possible, because all batches insert in this order and this one starts without any locks.
_PUT_ABSENT = _joined(
    """WHERE x.expected IS NULL AND NOT EXISTS (
        SELECT 1 FROM entries e WHERE e.namespace_id = x.namespace_id AND e.key = x.key)"""
)

# An UPDATE and not the upsert: INSERT … ON CONFLICT … WHERE would insert a missing row.
# `::text` first: PostgreSQL reads WHERE before SET, and would type the parameter as jsonb by its
# use there; the value stored would then be jsonb's spelling, not what was written.
_REPLACE = (
    _NAMESPACE
    + f"""
, w AS (
    UPDATE entries e SET
        value = %(value)s::text::json,
        version = e.version + 1,
        schema_version = %(schema_version)s,
        expires_at = {_expires("clock_timestamp()")},
        tags = coalesce(%(tags)s::text[], e.tags),
        pinned = coalesce(%(pinned)s::boolean, e.pinned),
        size_bytes = %(size)s,
        estimated_tokens = %(tokens)s,
        actor_kind = %(actor_kind)s,
        actor_name = %(actor_name)s,
        updated_at = clock_timestamp()
    FROM n
    WHERE e.namespace_id = n.id AND e.key = %(key)s AND e.version = %(expected)s AND {_LIVE}
        AND NOT (%(only)s::text = 'changed' AND e.value::jsonb = %(value)s::text::jsonb
            AND {_SAME_REST})
    RETURNING e.*
)"""
    + _TRAIL
    + _RETURN
)

_DELETABLE = """e.namespace_id = %(namespace_id)s AND e.key = %(key)s AND NOT e.deleted
        AND coalesce(e.expires_at <= now(), false) = %(expired)s
        AND (%(expected)s::bigint IS NULL OR e.version = %(expected)s)
        AND (%(orphans)s OR EXISTS (
            SELECT 1 FROM namespaces n
            WHERE n.id = e.namespace_id AND n.unregistered_at IS NULL))"""
_DELETE = (
    f"""
WITH w AS (
    UPDATE entries e SET
        value = NULL, version = e.version + 1, deleted = true, expires_at = NULL, size_bytes = 0,
        estimated_tokens = 0, actor_kind = %(actor_kind)s, actor_name = %(actor_name)s,
        updated_at = clock_timestamp()
    WHERE {_DELETABLE}
    RETURNING e.*
)"""
    + _TRAIL
    + _RETURN
)
# In an untracked namespace nothing remains.
_REMOVE = f"""
DELETE FROM entries e WHERE {_DELETABLE}
RETURNING e.id, e.version + 1, {_WRITTEN.removeprefix("id, version, ")}
"""


class WrittenEntry(NamedTuple):
    """What a write made."""

    entry_id: int
    version: int
    born_version: int
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None
    tags: Sequence[str]
    pinned: bool

    @property
    def created(self) -> bool:
        return self.version == self.born_version


def put_entry(parameters: Mapping[str, Any]) -> WrittenEntry | None:
    """Insert or replace. None: the condition `only` (`missing`, `changed`) was not met, or the
    namespace is no longer what `schema_version` says."""
    row = hot.fetch_one(_PUT, parameters)
    return WrittenEntry._make(row) if row else None


# Parameters of a write that changes neither tags nor pin.
_PLAIN = {"tags": None, "pinned": None}


class NewEntry(NamedTuple):
    """One of many to write; `schema_version` is what the value was validated against."""

    namespace_id: int
    namespace: str
    schema_version: int
    key: str
    value: str
    size: int
    tokens: int
    ttl: int | None


def put_entries(
    parameters: Mapping[str, Any], entries: Sequence[NewEntry]
) -> dict[tuple[int, str], WrittenEntry]:
    """Insert or replace one or many, by (namespace id, key): all, or none, when the namespace of
    one is no longer what its `schema_version` says."""
    columns = {**_PLAIN, **parameters, **hot.unzip(NewEntry._fields, entries)}
    return written_by_address(hot.fetch_all(_PUT_MANY, columns))


def written_by_address(rows: Sequence[hot.Row]) -> dict[tuple[int, str], WrittenEntry]:
    """What a statement about many entries wrote, by (namespace id, key)."""
    return {(row[0], row[1]): WrittenEntry._make(row[2:]) for row in rows}


class JoinedPut(NamedTuple):
    """The write of one call. `expected`: the version that the entry must have, None for any. `scope`:
    of its Idempotency-Key, if it has one (idempotency_sql.locking). `expires_at` wins over the time to live. `stamp`: the facts about the call, such as its actor and
    reason (journal.parameters)."""

    entry: NewEntry
    operation: str
    expected: int | None
    expires_at: datetime | None
    stamp: Mapping[str, Any]
    scope: str | None = None


def putting_existing(puts: Sequence[JoinedPut]) -> hot.Call:
    """The statement that replaces entries. It skips entries that do not exist, are locked or have
    another version than expected, those whose namespace no longer has `schema_version`, and those
    whose Idempotency-Key is locked elsewhere or was used. The addresses must be distinct. `written_by_address` reads its rows."""
    return _PUT_EXISTING, _columns(puts)


def putting_absent(puts: Sequence[JoinedPut]) -> hot.Call:
    """The statement that creates the entries that do not exist and expect no version; otherwise as
    putting_existing."""
    return _PUT_ABSENT, _columns(puts)


def _columns(puts: Sequence[JoinedPut]) -> dict[str, Any]:
    rows = [
        (*put.entry, put.operation, put.expected, put.expires_at, put.scope, *put.stamp.values())
        for put in puts
    ]
    names = (*NewEntry._fields, "operation", "expected", "expires_at", "scope", *puts[0].stamp)
    return {**_PLAIN, **hot.unzip(names, rows)}


def replace_entry(parameters: Mapping[str, Any]) -> WrittenEntry | None:
    """Replace a live entry at version `expected`. None as for put_entry, or another version."""
    row = hot.fetch_one(_REPLACE, parameters)
    return WrittenEntry._make(row) if row else None


def delete_entry(parameters: Mapping[str, Any]) -> WrittenEntry | None:
    """Delete an entry: a live one, or with `expired` only one whose time is over; at version
    `expected` unless that is None; in an unregistered namespace only with `orphans`. None: nothing
    matched. `tracked`: whether the namespace is tracked."""
    row = hot.fetch_one(_DELETE if parameters["tracked"] else _REMOVE, parameters)
    return WrittenEntry._make(row) if row else None
