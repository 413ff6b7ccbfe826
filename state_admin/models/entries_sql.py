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


_TRACKED = "(SELECT n.tracked FROM namespaces n WHERE n.id = w.namespace_id)"


def trail(source: str, namespace: str, call: str = "%({})s", tracked: str = _TRACKED) -> str:
    """What every write leaves behind: history, change and audit rows for the rows of `source`,
    whose `w` is the entry as written, if its namespace is tracked; `namespace` is the SQL of its name,
    `tracked` that of whether it is tracked. `call` formats the SQL of a fact about the call, such as
    `actor_id`: a parameter, or a column of `source`."""
    run, reason, request_id = map(call.format, ("run", "reason", "request_id"))
    trace = call.format("traceparent")
    kind, identity, name = map(call.format, ("actor_kind", "actor_id", "actor_name"))
    workspace, operation = map(call.format, ("workspace", "operation"))
    return f"""
, history AS (
    INSERT INTO entry_revisions (entry_id, version, operation, value, schema_version, size_bytes,
        expires_at, pinned, run, actor_kind, actor_id, actor_name, reason, request_id, at, xid)
    SELECT w.id, w.version, {operation}, w.value, w.schema_version, w.size_bytes,
        w.expires_at, false, {run}, {kind}, {identity}, {name}, {reason}, {request_id}, w.updated_at,
        (SELECT feed_xid())
    FROM {source} WHERE {tracked}
), change AS (
    INSERT INTO changes (workspace_id, kind, namespace, key, run, version, actor_name, traceparent,
        xid)
    SELECT {workspace}, 'entry.' || {operation}, {namespace}, w.key, {run}, w.version, {name}, {trace},
        (SELECT feed_clock() FROM (SELECT count(*) FROM w) AS all_are_locked)
    FROM {source} WHERE {tracked}
), audited AS (
    INSERT INTO audit (workspace_id, action, namespace, key, run, version,
        actor_kind, actor_id, actor_name, reason, request_id)
    SELECT {workspace}, 'entry.' || {operation}, {namespace}, w.key, {run}, w.version,
        {kind}, {identity}, {name}, {reason}, {request_id}
    FROM {source} WHERE {tracked}
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


def _replacing(new: str) -> str:
    """The columns that a write of `new` sets in an entry that exists."""
    return f"""
        value = {new}.value,
        version = e.version + 1,
        born_version = CASE WHEN {_LIVE} THEN e.born_version ELSE e.version + 1 END,
        created_at = CASE WHEN {_LIVE} THEN e.created_at ELSE clock_timestamp() END,
        schema_version = {new}.schema_version,
        deleted = false,
        expires_at = {new}.expires_at,
        tags = CASE WHEN %(tags)s::text[] IS NULL AND {_LIVE} THEN e.tags ELSE {new}.tags END,
        pinned = CASE WHEN %(pinned)s::boolean IS NULL AND {_LIVE} THEN e.pinned
            ELSE {new}.pinned END,
        size_bytes = {new}.size_bytes,
        estimated_tokens = {new}.estimated_tokens,
        actor_kind = {new}.actor_kind,
        actor_name = {new}.actor_name,
        updated_at = clock_timestamp()
"""


_OVER = f"""
    ON CONFLICT (namespace_id, key) DO UPDATE SET {_replacing("excluded")}"""

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
_OF_JOINED = {**_OF_ENTRY, "place": "int", "expected": "bigint", "expires_at": "timestamptz"}
_OF_CALL = {
    "call": "int", "size_of_call": "int", "operation": "text", "workspace": "bigint",
    "run": "text", "actor_kind": "text", "actor_id": "text", "actor_name": "text",
    "reason": "text", "request_id": "text", "traceparent": "text", "scope": "text",
}  # fmt: skip


def _table(columns: Mapping[str, str], name: str) -> str:
    """The parameters `columns`, which are arrays, as a table."""
    arrays = ", ".join(f"%({column})b::{kind}[]" for column, kind in columns.items())
    return f"unnest({arrays}) AS {name}({', '.join(columns)})"


def _rows(columns: Mapping[str, str], more: str = "", of_call: str = "") -> str:
    """`x`: what to write, without the rows whose namespace is no longer what they were validated
    against. `more` joins facts about the call of a row, `of_call`."""
    return f"""x AS (
    SELECT x.*{of_call} FROM {_table(columns, "x")}
    JOIN namespaces n ON n.id = x.namespace_id AND n.schema_version = x.schema_version
        AND n.unregistered_at IS NULL
    {more}
)"""


# The Idempotency-Key is locked for this transaction (try_lock has succeeded for it before), and no
# response is stored for it.
_OWN_SCOPE = f"""JOIN (
        SELECT * FROM {_table(_OF_CALL, "c")}
        WHERE c.scope IS NULL OR {idempotency_sql.TRY_LOCK.format("c.scope")} AND NOT EXISTS (
            SELECT 1 FROM idempotency_records r WHERE r.scope = c.scope)
    ) c ON c.call = x.place"""
_OWN_TTL = "x.at + x.ttl * interval '1 second'"


def _upsert(chosen: str, *, expires: str, call: str) -> str:
    """`w`: the rows of `chosen`, an `x`, as they are written. They go in by (namespace, key),
    the order in which every batch takes its locks. `call`: as for `trail`."""
    kind, name = map(call.format, ("actor_kind", "actor_name"))
    return f"""w AS (
    {_INTO}
    SELECT x.namespace_id, x.key, x.value::json, 1, 1, x.schema_version, false,
        {expires}, '{{}}', false, x.size, x.tokens, {kind}, {name}, x.at, x.at
    FROM (SELECT x.*, clock_timestamp() AS at FROM {chosen}
        ORDER BY x.namespace COLLATE "C", x.key COLLATE "C", x.namespace_id) x
    {_OVER}
    RETURNING e.*
)"""


# Many plain writes of one batch. The columns come as binary arrays: as text, or as one JSON text,
# quoting costs more than the rows.
_PUT_MANY = (
    f"\nWITH {_rows(_OF_ENTRY)}, "
    + _upsert(
        "x WHERE (SELECT count(*) FROM x) = cardinality(%(key)b::text[])",
        expires=_OWN_TTL,
        call="%({})s",
    )
    # Not a join: the trail comes in the order of the rows.
    + trail("w", "(SELECT n.name FROM namespaces n WHERE n.id = w.namespace_id)")
    + _RETURN_MANY
)


# What an entry does not have itself.
_OF_TRAIL = ", ".join(
    f"x.{name}"
    for name in (
        "namespace", "tracked", "operation", "workspace", "run", "actor_id", "reason", "request_id",
        "traceparent",
    )
)  # fmt: skip
# Plain writes and writes at a version, of many calls (JoinedPut).
_JOINED = f"\nWITH {_rows(_OF_JOINED, _OWN_SCOPE, ', n.tracked, c.*')}"
_JOINED_EXPIRES = f"coalesce(x.expires_at, {_OWN_TTL})"
# The trail is in the order of a batch.
_IN_ORDER = 'ORDER BY namespace COLLATE "C", w.key COLLATE "C", w.namespace_id'
_JOINED_TRAIL = trail("written w", "w.namespace", "w.{}", tracked="w.tracked")
# All entries of a call are written, or none.
_COMPLETE = "count(*) OVER (PARTITION BY x.place) = x.size_of_call AS complete"


# Entries that exist. One that another transaction has locked is skipped, so no call delays the others
# and the locks need no order. A locked row cannot change, so its version is compared before the write.
_PUT_EXISTING = (
    f"""{_JOINED}, held AS MATERIALIZED (
    SELECT x.*, e.id, e.version, {_LIVE} AS live
    FROM x JOIN entries e ON e.namespace_id = x.namespace_id AND e.key = x.key
    FOR NO KEY UPDATE OF e SKIP LOCKED
), new AS (
    SELECT x.id, x.value::json AS value, x.schema_version, {_JOINED_EXPIRES} AS expires_at,
        '{{}}'::varchar[] AS tags, false AS pinned, x.size AS size_bytes,
        x.tokens AS estimated_tokens, x.actor_kind, x.actor_name, {_OF_TRAIL}, {_COMPLETE}
    FROM (SELECT x.*, clock_timestamp() AS at FROM held x
        WHERE x.expected IS NULL OR x.live AND x.version = x.expected) x
), w AS (
    UPDATE entries e SET {_replacing("x")}
    FROM new x WHERE e.id = x.id AND x.complete
    RETURNING e.*, {_OF_TRAIL}
), written AS (
    SELECT w.* FROM w {_IN_ORDER}
)"""
    + _JOINED_TRAIL
    + _RETURN_MANY
)
# Entries that do not exist. Two transactions that insert the same one wait for each other. No deadlock
# is possible, because all batches insert in this order and this one starts without any locks.
_CHOSEN = f"""(
        SELECT x.*, {_COMPLETE} FROM x WHERE x.expected IS NULL AND NOT EXISTS (
            SELECT 1 FROM entries e WHERE e.namespace_id = x.namespace_id AND e.key = x.key)
    ) x WHERE x.complete"""
_PUT_ABSENT = (
    f"""{_JOINED}, {_upsert(_CHOSEN, expires=_JOINED_EXPIRES, call="x.{}")}, written AS (
    SELECT w.*, {_OF_TRAIL} FROM w
    JOIN x ON x.namespace_id = w.namespace_id AND x.key = w.key {_IN_ORDER}
)"""
    + _JOINED_TRAIL
    + _RETURN_MANY
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


class JoinedEntry(NamedTuple):
    """An entry that a call writes. `expected`: the version that it must have, None for any. `expires_at`
    wins over the time to live."""

    entry: NewEntry
    expected: int | None = None
    expires_at: datetime | None = None


class JoinedPut(NamedTuple):
    """The writes of one call. `stamp`: the facts about the call, such as its actor and reason
    (journal.parameters). `scope`: of its Idempotency-Key, if it has one (idempotency_sql.locking)."""

    entries: Sequence[JoinedEntry]
    operation: str
    stamp: Mapping[str, Any]
    scope: str | None = None


def putting_existing(puts: Sequence[JoinedPut]) -> hot.Call:
    """The statement that replaces entries. It skips calls with an entry that does not exist, is locked
    or has another version than expected, or whose namespace no longer has `schema_version`, and calls
    whose Idempotency-Key is locked elsewhere or was used. The addresses must be distinct. `written_by_address` reads its rows."""
    return _PUT_EXISTING, _columns(puts)


def putting_absent(puts: Sequence[JoinedPut]) -> hot.Call:
    """The statement that creates entries. It skips calls with an entry that exists or expects a version;
    otherwise as putting_existing."""
    return _PUT_ABSENT, _columns(puts)


def _columns(puts: Sequence[JoinedPut]) -> dict[str, Any]:
    rows = [
        (*each.entry, place, each.expected, each.expires_at)
        for place, put in enumerate(puts)
        for each in put.entries
    ]
    calls = [
        (place, len(put.entries), put.operation, put.scope, *put.stamp.values())
        for place, put in enumerate(puts)
    ]
    names = ("call", "size_of_call", "operation", "scope", *puts[0].stamp)
    return {**_PLAIN, **hot.unzip(tuple(_OF_JOINED), rows), **hot.unzip(names, calls)}


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
