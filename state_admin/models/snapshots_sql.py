"""The hot statements of a thread: read its state, advance it by one, append to its log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from . import hot


class StateRow(NamedTuple):
    """One key's value at a revision; `value` is JSON text."""

    key: str
    value: str
    scope: str
    persistent: bool
    valid_from: int


_CURRENT = """
SELECT key, value::text, scope, persistent, valid_from FROM state_values
WHERE thread_id = %(thread)s AND valid_to IS NULL
ORDER BY key
"""

# Walks the distinct keys of the thread by the primary key and takes the one row of each that was
# valid: the cost follows the number of keys, not the number of revisions.
_AT_REVISION = """
WITH RECURSIVE names AS (
    (SELECT key FROM state_values WHERE thread_id = %(thread)s ORDER BY key LIMIT 1)
    UNION ALL
    SELECT (
        SELECT s.key FROM state_values s
        WHERE s.thread_id = %(thread)s AND s.key > names.key ORDER BY s.key LIMIT 1
    )
    FROM names WHERE names.key IS NOT NULL
)
SELECT v.key, v.value::text, v.scope, v.persistent, v.valid_from
FROM names
CROSS JOIN LATERAL (
    SELECT * FROM state_values s
    WHERE s.thread_id = %(thread)s AND s.key = names.key AND s.valid_from <= %(revision)s
    ORDER BY s.valid_from DESC LIMIT 1
) v
WHERE names.key IS NOT NULL AND (v.valid_to IS NULL OR v.valid_to > %(revision)s)
ORDER BY v.key
"""


def read_state(*, thread_id: int, revision: int | None = None) -> list[StateRow]:
    """All values of a thread, by key; now, or as of a revision that is kept."""
    if revision is None:
        rows = hot.fetch_all(_CURRENT, {"thread": thread_id})
    else:
        rows = hot.fetch_all(_AT_REVISION, {"thread": thread_id, "revision": revision})
    return [StateRow._make(row) for row in rows]


_SLOTS = """
SELECT n.name, k.reducer, k.merge = 'commutative', k.scope, k.persistent, k.default::text,
    k.schema::text, v.value::text, v.valid_from
FROM unnest(%(names)s::text[]) AS n(name)
LEFT JOIN state_keys k ON k.workspace_id = %(workspace)s AND k.name = n.name
LEFT JOIN state_values v ON v.thread_id = %(thread)s AND v.key = n.name AND v.valid_to IS NULL
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
    held_from: int | None


def read_slots(*, workspace_id: int, thread_id: int, names: Sequence[str]) -> list[SlotRow]:
    """The keys that a commit touches, registered or not, with what they hold now."""
    parameters = {"workspace": workspace_id, "thread": thread_id, "names": list(names)}
    return [SlotRow._make(row) for row in hot.fetch_all(_SLOTS, parameters)]


# Messages go in behind the log's end, whose length `t` has just counted them into. A repeated id
# is left out here and missed by the caller, who rolls back.
_INSERT_MESSAGES = """
inserted AS (
    INSERT INTO messages (thread_id, seq, public_id, role, visibility, body, opens, answers,
        estimated_tokens, run_id)
    SELECT t.id, t.message_count - %(new_messages)s + m.place, m.public_id, m.role, m.visibility,
        m.body::json, m.opens::jsonb, m.answers, m.tokens, %(run)s::bigint
    FROM t, unnest(%(ids)s::text[], %(roles)s::text[], %(visibilities)s::text[],
        %(bodies)s::text[], %(opens)s::text[], %(answers)s::text[], %(tokens)s::int[])
        WITH ORDINALITY AS m(public_id, role, visibility, body, opens, answers, tokens, place)
    ON CONFLICT (thread_id, public_id) DO NOTHING
    RETURNING id
)"""

# A reported read of a version that is not there yet is left out and missed by the caller, as a
# repeated message id is. What stands there is taken in the snapshot that the revision keeps.
# `made` waits for `closed` by reading its count: a key has at most one current value
# (state_values_current), so the old one must be closed before the new one comes.
_ADVANCE = f"""
WITH t AS (
    UPDATE threads SET
        revision = revision + 1,
        message_count = message_count + %(new_messages)s,
        context_tokens = context_tokens + %(new_tokens)s,
        updated_at = now()
    WHERE id = %(thread)s
    RETURNING id, revision, message_count, context_tokens
), closed AS (
    UPDATE state_values s SET valid_to = t.revision
    FROM t
    WHERE s.thread_id = t.id AND s.key = ANY(%(touched)s::text[]) AND s.valid_to IS NULL
    RETURNING s.key
), made AS (
    INSERT INTO state_values (thread_id, key, valid_from, value, scope, persistent)
    SELECT t.id, v.key, t.revision, v.value::json, v.scope, v.persistent
    FROM t, (SELECT count(*) FROM closed) AS closing,
        unnest(%(keys)s::text[], %(values)s::text[], %(scopes)s::text[], %(persistent)s::bool[])
            AS v(key, value, scope, persistent)
), {_INSERT_MESSAGES}
, ran AS (
    UPDATE runs r SET
        last_revision = t.revision,
        updated_at = now(),
        flagged_at = NULL,
        lease_expires_at = CASE WHEN r.status IN ('created', 'running')
            THEN now() + r.lease_seconds * interval '1 second' ELSE r.lease_expires_at END,
        revision_count = r.revision_count + 1
    FROM t WHERE r.id = %(run)s
    RETURNING r.id, r.revision_count, r.lease_expires_at, r.updated_at
), reading AS (
    INSERT INTO run_reads (workspace_id, thread_id, run_id, revision, step, namespace, key,
        version, held)
    SELECT %(workspace)s, t.id, ran.id, t.revision, ran.revision_count, n.name, x.key, x.version,
        CASE WHEN NOT e.deleted AND (e.expires_at IS NULL OR e.expires_at > statement_timestamp())
            THEN e.version ELSE 0 END
    FROM t, ran, unnest(%(read_namespaces)s::text[], %(read_keys)s::text[],
        %(read_versions)s::bigint[]) AS x(namespace, key, version)
    JOIN namespaces n ON n.workspace_id = %(workspace)s AND n.name = x.namespace
        AND n.unregistered_at IS NULL
    LEFT JOIN entries e ON e.namespace_id = n.id AND e.key = x.key
    WHERE x.version <= coalesce(e.version, 0)
    RETURNING 1
), kept AS (
    INSERT INTO revisions (thread_id, number, kind, run_id, step, touched, message_count, label,
        actor_kind, actor_id, actor_name, reason, request_id)
    SELECT t.id, t.revision, %(kind)s, %(run)s, (SELECT revision_count FROM ran),
        %(touched)s::text[], t.message_count, %(label)s,
        %(actor_kind)s, %(actor_id)s, %(actor_name)s, %(reason)s, %(request_id)s
    FROM t
), changed AS (
    INSERT INTO changes (workspace_id, kind, thread, run, version, actor_name)
    SELECT %(workspace)s, %(action)s, %(thread_id)s, %(run_id)s, t.revision, %(actor_name)s FROM t
), audited AS (
    INSERT INTO audit (workspace_id, action, thread, run, version,
        actor_kind, actor_id, actor_name, reason, request_id)
    SELECT %(workspace)s, %(action)s, %(thread_id)s, %(run_id)s, t.revision,
        %(actor_kind)s, %(actor_id)s, %(actor_name)s, %(reason)s, %(request_id)s
    FROM t
)
SELECT t.revision, t.message_count, t.context_tokens, (SELECT count(*) FROM inserted),
    (SELECT count(*) FROM reading), ran.lease_expires_at, ran.updated_at
FROM t LEFT JOIN ran ON true
"""

_APPEND = f"""
WITH t AS (
    UPDATE threads SET
        message_count = message_count + %(new_messages)s,
        context_tokens = context_tokens + %(new_tokens)s,
        updated_at = now()
    WHERE id = %(thread)s
    RETURNING id, revision, message_count, context_tokens
), {_INSERT_MESSAGES}
, changed AS (
    INSERT INTO changes (workspace_id, kind, thread, version, actor_name)
    SELECT %(workspace)s, 'message.append', %(thread_id)s, t.message_count, %(actor_name)s FROM t
), audited AS (
    INSERT INTO audit (workspace_id, action, thread, version, detail,
        actor_kind, actor_id, actor_name, reason, request_id)
    SELECT %(workspace)s, 'message.append', %(thread_id)s, t.message_count,
        jsonb_build_object('messages', %(new_messages)s::int),
        %(actor_kind)s, %(actor_id)s, %(actor_name)s, %(reason)s, %(request_id)s
    FROM t
)
SELECT revision, message_count, context_tokens, (SELECT count(*) FROM inserted) FROM t
"""


class Advanced(NamedTuple):
    """A thread, and its run if one was named, as they are now."""

    revision: int
    message_count: int
    context_tokens: int
    inserted: int
    reads: int = 0
    lease_expires_at: datetime | None = None
    run_updated_at: datetime | None = None


def advance(parameters: Mapping[str, Any]) -> Advanced:
    """Make the next revision of a thread whose row the caller has locked."""
    return _moved(_ADVANCE, parameters)


def append(parameters: Mapping[str, Any]) -> Advanced:
    """Append messages to the log of a thread whose row the caller has locked."""
    return _moved(_APPEND, parameters)


def _moved(statement: str, parameters: Mapping[str, Any]) -> Advanced:
    row = hot.fetch_one(statement, parameters)
    if row is None:
        raise LookupError("the thread is gone although its row was locked")
    return Advanced(*row)
