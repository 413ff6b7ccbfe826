"""The hot statements of a thread: read its state, write its next revision, append messages."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from . import hot
from .large_columns import stored_bytes_of


class StateRow(NamedTuple):
    """One key's value at a revision; `value` is JSON text."""

    key: str
    value: str
    scope: str
    persistent: bool
    valid_from: int


class StateTooLarge(Exception):
    """The values of a thread have more than the requested number of bytes."""


# The sizes are summed before any value is read.
_VALUE = f"CASE WHEN sum({stored_bytes_of('v.value')}) OVER () <= %(most)s THEN v.value::text END"

_CURRENT = f"""
SELECT v.key, {_VALUE}, v.scope, v.persistent, v.valid_from FROM state_values v
WHERE v.thread_id = %(thread)s AND v.valid_to IS NULL
ORDER BY v.key
"""

# Walks the distinct keys of the thread by the primary key and takes the valid row of each: the cost
# depends on the number of keys, not on the number of revisions.
_AT_REVISION = f"""
WITH RECURSIVE names AS (
    (SELECT key FROM state_values WHERE thread_id = %(thread)s ORDER BY key LIMIT 1)
    UNION ALL
    SELECT (
        SELECT s.key FROM state_values s
        WHERE s.thread_id = %(thread)s AND s.key > names.key ORDER BY s.key LIMIT 1
    )
    FROM names WHERE names.key IS NOT NULL
)
SELECT v.key, {_VALUE}, v.scope, v.persistent, v.valid_from
FROM names
CROSS JOIN LATERAL (
    SELECT * FROM state_values s
    WHERE s.thread_id = %(thread)s AND s.key = names.key AND s.valid_from <= %(revision)s
    ORDER BY s.valid_from DESC LIMIT 1
) v
WHERE names.key IS NOT NULL AND (v.valid_to IS NULL OR v.valid_to > %(revision)s)
ORDER BY v.key
"""


def read_state(
    *, thread_id: int, revision: int | None = None, most: int = sys.maxsize
) -> list[StateRow]:
    """All values of a thread, by key: the current ones, or those of a retained revision. Raises
    StateTooLarge if they have more than `most` bytes."""
    parameters = {"thread": thread_id, "most": most}
    if revision is None:
        rows = hot.fetch_all(_CURRENT, parameters)
    else:
        rows = hot.fetch_all(_AT_REVISION, parameters | {"revision": revision})
    if rows and rows[0][1] is None:
        raise StateTooLarge
    return [StateRow._make(row) for row in rows]


_SLOT = """n.name, k.reducer, k.merge = 'commutative', k.scope, k.persistent, k.default::text,
    k.schema::text, v.value::text"""

_SLOTS = f"""
SELECT {_SLOT}
FROM unnest(%(names)s::text[]) AS n(name)
LEFT JOIN state_keys k ON k.workspace_id = %(workspace)s AND k.name = n.name
LEFT JOIN state_values v ON v.thread_id = %(thread)s AND v.key = n.name AND v.valid_to IS NULL
"""

_SLOTS_OF_RUNS = f"""
SELECT n.place, {_SLOT}
FROM unnest(%(place)b::int[], %(workspace)b::bigint[], %(run)b::text[], %(name)b::text[])
    AS n(place, workspace, run, name)
JOIN runs r ON r.workspace_id = n.workspace AND r.public_id = n.run
LEFT JOIN state_keys k ON k.workspace_id = n.workspace AND k.name = n.name
LEFT JOIN state_values v ON v.thread_id = r.thread_id AND v.key = n.name AND v.valid_to IS NULL
"""

_MESSAGES_OF_RUNS = """
SELECT DISTINCT n.place
FROM unnest(%(place)b::int[], %(workspace)b::bigint[], %(run)b::text[], %(name)b::text[])
    AS n(place, workspace, run, name)
JOIN runs r ON r.workspace_id = n.workspace AND r.public_id = n.run
JOIN messages m ON m.thread_id = r.thread_id AND m.public_id = n.name
"""


class SlotRow(NamedTuple):
    """A state key and its current value on a thread. `reducer` None: the key is not registered."""

    name: str
    reducer: str | None
    commutative: bool
    scope: str
    persistent: bool
    default: str
    schema: str
    held: str | None


def read_slots(*, workspace_id: int, thread_id: int, names: Sequence[str]) -> list[SlotRow]:
    """The keys that a commit changes, registered or not, with their current values."""
    parameters = {"workspace": workspace_id, "thread": thread_id, "names": list(names)}
    return [SlotRow._make(row) for row in hot.fetch_all(_SLOTS, parameters)]


def reading_slots(addresses: hot.Addresses, names: Mapping[int, Sequence[str]]) -> hot.Call:
    """The statement that reads the slots of several runs. Its rows: place, then the SlotRow."""
    return _SLOTS_OF_RUNS, _columns_of_names(addresses, names)


def finding_messages(addresses: hot.Addresses, ids: Mapping[int, Sequence[str]]) -> hot.Call:
    """The statement that returns the places whose thread already has a message with one of `ids`."""
    return _MESSAGES_OF_RUNS, _columns_of_names(addresses, ids)


def _columns_of_names(
    addresses: hot.Addresses, names: Mapping[int, Sequence[str]]
) -> dict[str, list[Any]]:
    rows = [(place, *addresses[place], name) for place in names for name in names[place]]
    return hot.unzip(("place", "workspace", "run", "name"), rows)


# Messages are appended: `t.message_count` already includes them. A repeated id is not inserted. The
# caller compares the counts and rolls back; joined commits check the ids in advance.
_INSERT_MESSAGES = """
inserted AS (
    INSERT INTO messages (thread_id, seq, public_id, role, visibility, body, opens, answers,
        estimated_tokens, run_id)
    SELECT t.thread, t.message_count - t.new_messages + m.place, m.public_id, m.role, m.visibility,
        m.body::json, m.opens::jsonb, m.answers, m.tokens, t.run
    FROM t, unnest(%(message_thread)b::bigint[], %(place)b::int[], %(public_id)b::text[],
        %(role)b::text[], %(visibility)b::text[], %(body)b::text[], %(opens)b::text[],
        %(answers)b::text[], %(tokens)b::int[])
        AS m(thread, place, public_id, role, visibility, body, opens, answers, tokens)
    WHERE m.thread = t.thread
    ORDER BY m.thread, m.place
    ON CONFLICT (thread_id, public_id) DO NOTHING
    RETURNING thread_id
)"""

# The fields of the Moves, one array per column, and their threads. `set`: what else of a thread changes.
_MOVES = """
WITH x AS (
    SELECT * FROM unnest(%(thread)b::bigint[], %(thread_id)b::text[], %(run)b::bigint[],
        %(run_id)b::text[], %(kind)b::text[], %(action)b::text[], %(label)b::text[],
        %(new_messages)b::int[], %(new_tokens)b::int[], %(workspace)b::bigint[],
        %(actor_kind)b::text[], %(actor_id)b::text[], %(actor_name)b::text[],
        %(reason)b::text[], %(request_id)b::text[], %(traceparent)b::text[]
    ) AS x(thread, thread_id, run, run_id, kind, action, label, new_messages, new_tokens,
        workspace, actor_kind, actor_id, actor_name, reason, request_id, traceparent)
), t AS (
    UPDATE threads SET {set}
        message_count = message_count + x.new_messages,
        context_tokens = context_tokens + x.new_tokens,
        updated_at = greatest(threads.updated_at, now())
    FROM x WHERE threads.id = x.thread
    RETURNING threads.revision, threads.message_count, threads.context_tokens, x.*
)"""

# A reported read of a version that does not exist yet is not inserted. The caller detects it by the
# count, as it does a repeated message id. `held` is the entry's version in the statement's snapshot.
# `made` waits for `closed` by reading its count: a key has at most one current value
# (state_values_current), so the old one must be closed before the new one is inserted. now() is when
# the transaction began, which may be before the last change.
_ADVANCE = f"""{_MOVES.format(set="revision = revision + 1,")}, w AS (
    SELECT t.revision, w.* FROM t, unnest(%(write_thread)b::bigint[], %(key)b::text[],
        %(value)b::text[], %(scope)b::text[], %(persistent)b::bool[])
        AS w(thread, key, value, scope, persistent)
    WHERE w.thread = t.thread
), closed AS (
    UPDATE state_values s SET valid_to = w.revision
    FROM w
    WHERE s.thread_id = w.thread AND s.key = w.key AND s.valid_to IS NULL
    RETURNING 1
), made AS (
    INSERT INTO state_values (thread_id, key, valid_from, value, scope, persistent)
    SELECT w.thread, w.key, w.revision, w.value::json, w.scope, w.persistent
    FROM w, (SELECT count(*) FROM closed) AS closing
    WHERE w.value IS NOT NULL
), {_INSERT_MESSAGES}
, ran AS (
    UPDATE runs r SET
        last_revision = t.revision,
        updated_at = greatest(r.updated_at, now()),
        flagged_at = NULL,
        lease_expires_at = CASE WHEN r.status IN ('created', 'running')
            THEN now() + r.lease_seconds * interval '1 second' ELSE r.lease_expires_at END,
        revision_count = r.revision_count + 1
    FROM t WHERE r.id = t.run
    RETURNING r.id, r.revision_count, r.lease_expires_at, r.updated_at
), reading AS (
    INSERT INTO run_reads (workspace_id, thread_id, run_id, revision, step, namespace, key,
        version, held)
    SELECT t.workspace, t.thread, ran.id, t.revision, ran.revision_count, n.name, y.key, y.version,
        CASE WHEN NOT e.deleted AND (e.expires_at IS NULL OR e.expires_at > statement_timestamp())
            THEN e.version ELSE 0 END
    FROM t JOIN ran ON ran.id = t.run
    JOIN unnest(%(read_thread)b::bigint[], %(read_namespace)b::text[], %(read_key)b::text[],
        %(read_version)b::bigint[]) AS y(thread, namespace, key, version) ON y.thread = t.thread
    JOIN namespaces n ON n.workspace_id = t.workspace AND n.name = y.namespace
        AND n.unregistered_at IS NULL
    LEFT JOIN entries e ON e.namespace_id = n.id AND e.key = y.key
    WHERE y.version <= coalesce(e.version, 0)
    RETURNING thread_id
), kept AS (
    INSERT INTO revisions (thread_id, number, kind, run_id, step, touched, message_count, label,
        actor_kind, actor_id, actor_name, reason, request_id)
    SELECT t.thread, t.revision, t.kind, t.run,
        (SELECT ran.revision_count FROM ran WHERE ran.id = t.run),
        ARRAY(SELECT w.key FROM w WHERE w.thread = t.thread ORDER BY w.key COLLATE "C"),
        t.message_count, t.label, t.actor_kind, t.actor_id, t.actor_name, t.reason, t.request_id
    FROM t
), changed AS (
    INSERT INTO changes (workspace_id, kind, thread, run, version, actor_name, traceparent)
    SELECT t.workspace, t.action, t.thread_id, t.run_id, t.revision, t.actor_name, t.traceparent
    FROM t
), audited AS (
    INSERT INTO audit (workspace_id, action, thread, run, version,
        actor_kind, actor_id, actor_name, reason, request_id)
    SELECT t.workspace, t.action, t.thread_id, t.run_id, t.revision,
        t.actor_kind, t.actor_id, t.actor_name, t.reason, t.request_id
    FROM t
)
SELECT t.thread, t.revision, t.message_count, t.context_tokens,
    (SELECT count(*) FROM inserted i WHERE i.thread_id = t.thread),
    (SELECT count(*) FROM reading r WHERE r.thread_id = t.thread),
    ran.lease_expires_at, ran.updated_at
FROM t LEFT JOIN ran ON ran.id = t.run
"""

_APPEND = f"""{_MOVES.format(set="")}, {_INSERT_MESSAGES}
, changed AS (
    INSERT INTO changes (workspace_id, kind, thread, version, actor_name, traceparent)
    SELECT t.workspace, t.action, t.thread_id, t.message_count, t.actor_name, t.traceparent FROM t
), audited AS (
    INSERT INTO audit (workspace_id, action, thread, version, detail,
        actor_kind, actor_id, actor_name, reason, request_id)
    SELECT t.workspace, t.action, t.thread_id, t.message_count,
        jsonb_build_object('messages', t.new_messages),
        t.actor_kind, t.actor_id, t.actor_name, t.reason, t.request_id
    FROM t
)
SELECT thread, revision, message_count, context_tokens, (SELECT count(*) FROM inserted) FROM t
"""


class NewMessage(NamedTuple):
    """A message to append. `opens` is JSON text."""

    public_id: str
    role: str
    visibility: str
    body: str
    opens: str
    answers: str | None
    tokens: int


class Move(NamedTuple):
    """What is written to one thread, whose row the caller has locked. `stamp`: workspace, actor,
    reason and request id (services/journal.py). `values`: key, JSON text (None removes the key),
    scope, persistent. `reads`: namespace, key and version of the entries that the run read."""

    thread: int
    thread_id: str
    action: str
    stamp: Mapping[str, Any]
    run: int | None = None
    run_id: str = ""
    kind: str = ""
    label: str = ""
    messages: Sequence[NewMessage] = ()
    values: Sequence[tuple[str, str | None, str, bool]] = ()
    reads: Sequence[tuple[str, str, int]] = ()


class AdvancedThread(NamedTuple):
    """A thread, and its run if there is one, after the write."""

    revision: int
    message_count: int
    context_tokens: int
    inserted: int
    reads: int = 0
    lease_expires_at: datetime | None = None
    run_updated_at: datetime | None = None


def advance(move: Move) -> AdvancedThread:
    """Write the next revision of a thread."""
    return AdvancedThread(*hot.fetch_row(*advancing([move]))[1:])


def advancing(moves: Sequence[Move]) -> hot.Call:
    """The statement that writes the next revision of each thread."""
    return _ADVANCE, _columns(moves)


def append(move: Move) -> AdvancedThread:
    row = hot.fetch_one(_APPEND, _columns([move]))
    if row is None:
        raise LookupError("the thread is gone although its row was locked")
    return AdvancedThread(*row[1:])


_STAMP = (
    "workspace", "actor_kind", "actor_id", "actor_name", "reason", "request_id", "traceparent",
)  # fmt: skip


def _columns(moves: Sequence[Move]) -> dict[str, list[Any]]:
    """The arrays that the statements take."""
    columns: dict[str, list[Any]] = {
        name: [getattr(move, name) for move in moves]
        for name in ("thread", "thread_id", "run", "run_id", "kind", "action", "label")
    }
    columns |= {name: [move.stamp[name] for move in moves] for name in _STAMP}
    columns["new_messages"] = [len(move.messages) for move in moves]
    columns["new_tokens"] = [sum(each.tokens for each in move.messages) for move in moves]
    messages = [
        (move.thread, place, *each)
        for move in moves
        for place, each in enumerate(move.messages, start=1)
    ]
    columns |= hot.unzip(("message_thread", "place", *NewMessage._fields), messages)
    writes = [(move.thread, *each) for move in moves for each in move.values]
    columns |= hot.unzip(("write_thread", "key", "value", "scope", "persistent"), writes)
    reads = [(move.thread, *each) for move in moves for each in move.reads]
    return columns | hot.unzip(("read_thread", "read_namespace", "read_key", "read_version"), reads)
