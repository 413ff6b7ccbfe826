"""The hot statements of entries: reads and writes, one statement each.

A write checks its precondition, stores the value, and records history, change and audit row in one
round trip. The ORM would need five statements in a transaction and an object per row: four times
the CPU time, as measured. Other queries use the ORM (entries.py).

`updated_at`, and with it the `at` of the history, is clock_timestamp() in the SET of the statement
that holds the row's lock, so that times increase with versions. now() is the start of the
transaction, which may be before writes of others for whose locks this one waited. All other
statements that write entries do the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from psycopg.types.numeric import Int8

from . import hot, idempotency_sql

LIVE = "NOT e.deleted AND (e.expires_at IS NULL OR e.expires_at > now())"


class EntryRow(NamedTuple):
    """An entry as readers see it. `value` is JSON text; the default if the entry does not exist."""

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


# The bytes of the values that one statement reads at most. Each copy of a response has their size.
MOST_READ: Final = 32 << 20


class ValuesTooLarge(Exception):
    """The values of the entries have more than MOST_READ bytes."""


_VALUE = "CASE WHEN e.id IS NULL THEN n.default::text ELSE e.value::text END"
_SIZE = "CASE WHEN e.id IS NULL THEN length(n.default::text) ELSE e.size_bytes END"


def _view(value: str = _VALUE) -> str:
    """The columns of an EntryRow."""
    return f"""
    n.id, n.schema_version, e.id IS NOT NULL, {value},
    coalesce(e.version, 0), coalesce(e.schema_version, n.schema_version),
    e.created_at, e.updated_at, e.expires_at, coalesce(e.tags, '{{}}'), coalesce(e.pinned, false),
    coalesce(e.size_bytes, 0), coalesce(e.estimated_tokens, 0),
    coalesce(e.actor_kind, ''), coalesce(e.actor_name, '')
"""


_READ_ONE = f"""
SELECT n.workspace_id, n.name, %(key)s::text, {_view()}
FROM namespaces n
LEFT JOIN entries e ON e.namespace_id = n.id AND e.key = %(key)s AND {LIVE}
WHERE n.workspace_id = %(workspace_id)s AND n.name = %(namespace)s AND n.unregistered_at IS NULL
"""
_READ_MANY = f"""
SELECT want.workspace_id, want.namespace, want.key,
    {_view(f"CASE WHEN sum({_SIZE}) OVER () <= %(most)s THEN {_VALUE} END")}
FROM unnest(%(workspace_id)b::bigint[], %(namespace)b::text[], %(key)b::text[])
    AS want(workspace_id, namespace, key)
JOIN namespaces n ON n.workspace_id = want.workspace_id AND n.name = want.namespace
    AND n.unregistered_at IS NULL
LEFT JOIN entries e ON e.namespace_id = n.id AND e.key = want.key AND {LIVE}
"""


class Address(NamedTuple):
    workspace_id: int
    namespace: str
    key: str


def read_entry(address: Address) -> EntryRow | None:
    """Return the entry, or the default with version 0. None: the namespace is not registered."""
    return entries_of(hot.fetch_all(*reading_entries([address]))).get(address)


def reading_entries(addresses: Sequence[Address]) -> hot.Call:
    """The statement that reads entries. `entries_of` reads its rows."""
    if len(addresses) == 1:
        return _READ_ONE, _of_one_type(addresses[0]._asdict())
    return _READ_MANY, {"most": MOST_READ, **hot.unzip(Address._fields, addresses)}


def entries_of(rows: Sequence[hot.Row]) -> dict[Address, EntryRow]:
    """The entries by address. Addresses in unregistered namespaces are left out. Raises
    ValuesTooLarge."""
    entries = {Address._make(row[:3]): EntryRow._make(row[3:]) for row in rows}
    if any(entry.value is None for entry in entries.values()):
        raise ValuesTooLarge
    return entries


_TRACKED = "(SELECT n.tracked FROM namespaces n WHERE n.id = w.namespace_id)"


# The `detail` of an audit row.
NO_DETAIL: Final = "'{}'::jsonb"


def trail(
    source: str,
    namespace: str,
    call: str = "%({})s",
    tracked: str = _TRACKED,
    detail: str = NO_DETAIL,
) -> str:
    """Return the SQL that inserts history, change and audit rows for the written entries in
    `source` (alias `w`) whose namespaces are tracked.

    `namespace`, `tracked` and `detail` are SQL expressions for the namespace's name, whether it is
    tracked, and the detail of the audit row. `call` formats the SQL for an attribute of the call, such as `actor_id`: a parameter,
    or a column of `source`.
    """
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
        actor_kind, actor_id, actor_name, reason, request_id, detail)
    SELECT {workspace}, 'entry.' || {operation}, {namespace}, w.key, {run}, w.version,
        {kind}, {identity}, {name}, {reason}, {request_id}, {detail}
    FROM {source} WHERE {tracked}
)
"""


_TRAIL = trail("w", "%(namespace)s")

_WRITTEN = "id, version, born_version, created_at, updated_at, expires_at, tags, pinned"
_RETURN = f"\nSELECT {_WRITTEN} FROM w\n"
_RETURN_MANY = f"\nSELECT namespace_id, key, {_WRITTEN} FROM w\n"

# The namespace must still have the schema version that the value was validated against.
_NAMESPACE = """
WITH n AS (
    SELECT id FROM namespaces
    WHERE id = %(namespace_id)s AND schema_version = %(schema_version)s AND unregistered_at IS NULL
)"""


def _expires(at: str) -> str:
    ttl = "%(ttl)s::double precision * interval '1 second'"
    return f"coalesce(%(expires_at)s::timestamptz, {at} + {ttl})"


# The condition that a write does not change tags and pin.
_SAME_REST = """coalesce(e.tags = %(tags)s::text[]::varchar[], true)
            AND coalesce(e.pinned = %(pinned)s::boolean, true)"""

_INTO = """
    INSERT INTO entries AS e (namespace_id, key, value, version, born_version, schema_version,
        deleted, expires_at, tags, pinned, size_bytes, estimated_tokens, actor_kind, actor_name,
        created_at, updated_at)
"""


def _replacing(new: str) -> str:
    """Return the SET list of a write of `new` to an existing entry."""
    return f"""
        value = {new}.value,
        version = e.version + 1,
        born_version = CASE WHEN {LIVE} THEN e.born_version ELSE e.version + 1 END,
        created_at = CASE WHEN {LIVE} THEN e.created_at ELSE clock_timestamp() END,
        schema_version = {new}.schema_version,
        deleted = false,
        expires_at = {new}.expires_at,
        tags = CASE WHEN %(tags)s::text[] IS NULL AND {LIVE} THEN e.tags ELSE {new}.tags END,
        pinned = CASE WHEN %(pinned)s::boolean IS NULL AND {LIVE} THEN e.pinned
            ELSE {new}.pinned END,
        size_bytes = {new}.size_bytes,
        estimated_tokens = {new}.estimated_tokens,
        actor_kind = {new}.actor_kind,
        actor_name = {new}.actor_name,
        updated_at = clock_timestamp()
"""


_OVER = f"""
    ON CONFLICT (namespace_id, key) DO UPDATE SET {_replacing("excluded")}"""

_PUT = f"""{_NAMESPACE}, w AS (
{_INTO}    SELECT n.id, %(key)s, %(value)s::json, 1, 1, %(schema_version)s, false, {_expires("n.at")},
        coalesce(%(tags)s::text[], '{{}}'), coalesce(%(pinned)s::boolean, false), %(size)s,
        %(tokens)s, %(actor_kind)s, %(actor_name)s, n.at, n.at
    FROM (SELECT id, clock_timestamp() AS at FROM n) n
{_OVER}    WHERE CASE %(only)s::text
        WHEN 'missing' THEN NOT ({LIVE})
        WHEN 'changed' THEN NOT ({LIVE} AND e.value::jsonb = excluded.value::jsonb
            AND {_SAME_REST})
        ELSE true END
    RETURNING e.*
){_TRAIL}{_RETURN}"""

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
    """Return the SQL of a table of the array parameters `columns`."""
    arrays = ", ".join(f"%({column})b::{kind}[]" for column, kind in columns.items())
    return f"unnest({arrays}) AS {name}({', '.join(columns)})"


def _rows(columns: Mapping[str, str], more: str = "", of_call: str = "") -> str:
    """Return the CTE `x`: the rows to write, without those whose namespace no longer has the schema
    version that they were validated against. `more` joins attributes of the call, `of_call`."""
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
    """Return the CTE `w`, which writes the rows of `chosen` (alias `x`) and returns them. They are
    written by (namespace, key), the lock order of all batches. `call`: as for `trail`."""
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


# Many plain writes of one batch. The columns are binary arrays: with text, or one JSON text,
# quoting would cost more than writing the rows.
_PUT_MANY = (
    f"\nWITH {_rows(_OF_ENTRY)}, "
    + _upsert(
        "x WHERE (SELECT count(*) FROM x) = cardinality(%(key)b::text[])",
        expires=_OWN_TTL,
        call="%({})s",
    )
    # Not a join, so that the log rows are inserted in the order of the rows.
    + trail("w", "(SELECT n.name FROM namespaces n WHERE n.id = w.namespace_id)")
    + _RETURN_MANY
)


# The columns of the log rows that an entry does not have.
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
# Log rows are inserted in the order of all batches.
_IN_ORDER = 'ORDER BY namespace COLLATE "C", w.key COLLATE "C", w.namespace_id'
_JOINED_TRAIL = trail("written w", "w.namespace", "w.{}", tracked="w.tracked")
# All entries of a call are written, or none.
_COMPLETE = "count(*) OVER (PARTITION BY x.place) = x.size_of_call AS complete"


# Entries that exist. Entries that another transaction has locked are skipped, so no call delays the
# others and the locks need no order. A locked row cannot change, so its version is compared before
# the write.
_PUT_EXISTING = f"""{_JOINED}, held AS MATERIALIZED (
    SELECT x.*, e.id, e.version, {LIVE} AS live
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
){_JOINED_TRAIL}{_RETURN_MANY}"""
# What _PUT_EXISTING does for a single entry. Without arrays to read and several calls to keep apart, it
# takes half of the time, and most writes are alone.
_PUT_ONE_EXISTING = f"""
WITH w AS (
    UPDATE entries e SET {_replacing("x")}
    FROM (
        SELECT e.id, n.tracked, %(value)s::text::json AS value, n.schema_version,
            {_expires("clock_timestamp()")} AS expires_at, '{{}}'::varchar[] AS tags,
            false AS pinned, %(size)s::bigint AS size_bytes, %(tokens)s::bigint AS estimated_tokens,
            %(actor_kind)s::text AS actor_kind, %(actor_name)s::text AS actor_name
        FROM entries e
        JOIN namespaces n ON n.id = e.namespace_id AND n.schema_version = %(schema_version)s
            AND n.unregistered_at IS NULL
        WHERE e.namespace_id = %(namespace_id)s AND e.key = %(key)s
        FOR NO KEY UPDATE OF e SKIP LOCKED
    ) x
    WHERE e.id = x.id
        AND (%(expected)s::bigint IS NULL OR {LIVE} AND e.version = %(expected)s::bigint)
    RETURNING e.*, x.tracked
){trail("w", "%(namespace)s", tracked="w.tracked")}{_RETURN_MANY}"""
# Entries that do not exist. Two transactions that insert the same one wait for each other. No
# deadlock is possible, because all batches insert in this order and this one starts without locks.
_CHOSEN = f"""(
        SELECT x.*, {_COMPLETE} FROM x WHERE x.expected IS NULL AND NOT EXISTS (
            SELECT 1 FROM entries e WHERE e.namespace_id = x.namespace_id AND e.key = x.key)
    ) x WHERE x.complete"""
_PUT_ABSENT = f"""{_JOINED}, {_upsert(_CHOSEN, expires=_JOINED_EXPIRES, call="x.{}")}, written AS (
    SELECT w.*, {_OF_TRAIL} FROM w
    JOIN x ON x.namespace_id = w.namespace_id AND x.key = w.key {_IN_ORDER}
){_JOINED_TRAIL}{_RETURN_MANY}"""

# An UPDATE and not an upsert, because INSERT … ON CONFLICT … WHERE would insert a missing row.
# `::text` first: PostgreSQL infers parameter types in WHERE before SET, and would infer jsonb; the
# stored value would then have the format of jsonb, and not the original text.
_REPLACE = f"""{_NAMESPACE}, w AS (
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
    WHERE e.namespace_id = n.id AND e.key = %(key)s AND e.version = %(expected)s AND {LIVE}
        AND NOT (%(only)s::text = 'changed' AND e.value::jsonb = %(value)s::text::jsonb
            AND {_SAME_REST})
    RETURNING e.*
){_TRAIL}{_RETURN}"""

_DELETABLE = f"""e.namespace_id = %(namespace_id)s AND e.key = %(key)s AND {LIVE}
        AND (%(expected)s::bigint IS NULL OR e.version = %(expected)s)
        AND EXISTS (
            SELECT 1 FROM namespaces n
            WHERE n.id = e.namespace_id AND n.unregistered_at IS NULL)"""
_DELETE = f"""
WITH w AS (
    UPDATE entries e SET
        value = NULL, version = e.version + 1, deleted = true, expires_at = NULL, size_bytes = 0,
        estimated_tokens = 0, actor_kind = %(actor_kind)s, actor_name = %(actor_name)s,
        updated_at = clock_timestamp()
    WHERE {_DELETABLE}
    RETURNING e.*
){_TRAIL}{_RETURN}"""
# Entries of untracked namespaces are deleted without a row in the history.
_REMOVE = f"""
DELETE FROM entries e WHERE {_DELETABLE}
RETURNING e.id, e.version + 1, {_WRITTEN.removeprefix("id, version, ")}
"""


class WrittenEntry(NamedTuple):
    """An entry after a write."""

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
    """Insert or replace an entry. None: the condition `only` (`missing`, `changed`) was not met, or
    the namespace no longer has `schema_version`."""
    row = hot.fetch_one(_PUT, parameters)
    return WrittenEntry._make(row) if row else None


# Parameters of a write that changes neither tags nor pin.
_PLAIN = {"tags": None, "pinned": None}


class NewEntry(NamedTuple):
    """An entry to write. `schema_version`: the one that the value was validated against."""

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
    """Insert or replace entries. Returns them by (namespace id, key). All or none: nothing is
    written if a namespace no longer has the `schema_version` of its entry."""
    columns = {**_PLAIN, **parameters, **hot.unzip(NewEntry._fields, entries)}
    return written_by_address(hot.fetch_all(_PUT_MANY, columns))


def written_by_address(rows: Sequence[hot.Row]) -> dict[tuple[int, str], WrittenEntry]:
    """Return the written entries of a statement for several, by (namespace id, key)."""
    return {(row[0], row[1]): WrittenEntry._make(row[2:]) for row in rows}


class JoinedEntry(NamedTuple):
    """An entry that a call writes. `expected`: the version that it must have, None for any.
    `expires_at` takes precedence over the time to live."""

    entry: NewEntry
    expected: int | None = None
    expires_at: datetime | None = None


class JoinedPut(NamedTuple):
    """The writes of one call. `stamp`: attributes of the call, such as its actor and reason
    (journal.parameters). `scope`: that of its Idempotency-Key, if any (idempotency_sql.locking)."""

    entries: Sequence[JoinedEntry]
    operation: str
    stamp: Mapping[str, Any]
    scope: str | None = None


def putting_existing(puts: Sequence[JoinedPut]) -> hot.Call:
    """Return the statement that replaces entries. `written_by_address` reads its rows. The
    addresses must be distinct.

    It skips calls with an entry that does not exist, is locked or does not have the expected
    version, or whose namespace no longer has `schema_version`; and calls whose Idempotency-Key is
    locked elsewhere or was used.
    """
    if len(puts) == 1 and len(puts[0].entries) == 1 and puts[0].scope is None:
        return _PUT_ONE_EXISTING, _values(puts[0])
    return _PUT_EXISTING, _columns(puts)


def putting_absent(puts: Sequence[JoinedPut]) -> hot.Call:
    """Return the statement that creates entries. It skips calls with an entry that exists or
    expects a version; otherwise as putting_existing."""
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


def _values(put: JoinedPut) -> dict[str, Any]:
    """The parameters of _PUT_ONE_EXISTING."""
    (each,) = put.entries
    return _of_one_type(
        {
            **each.entry._asdict(), "expected": each.expected, "expires_at": each.expires_at,
            "operation": put.operation, **put.stamp, **_PLAIN,
        }
    )  # fmt: skip


def _of_one_type(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters with integers that are all sent as bigint. psycopg would choose a type by the
    value, and each combination of types is another prepared statement."""
    return {name: Int8(each) if type(each) is int else each for name, each in parameters.items()}


def replace_entry(parameters: Mapping[str, Any]) -> WrittenEntry | None:
    """Replace a live entry that has the version `expected`. None as for put_entry, or if it has
    another version."""
    row = hot.fetch_one(_REPLACE, parameters)
    return WrittenEntry._make(row) if row else None


def delete_entry(parameters: Mapping[str, Any]) -> WrittenEntry | None:
    """Delete a live entry of a registered namespace. `expected`: only if it has this version; None:
    any. `tracked`: whether the namespace is tracked. None: no entry matched."""
    row = hot.fetch_one(_DELETE if parameters["tracked"] else _REMOVE, parameters)
    return WrittenEntry._make(row) if row else None
