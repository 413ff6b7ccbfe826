"""The shared state that a run could see when it committed a step
(docs/adr/0009-context-at-a-step.md)."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from state_admin.domain.access import Actor

from . import hot
from .snapshots import Revision
from .visibility import glob_regex

# Revisions older than the column `seen` have only their time.
_VISIBLE = """
    CASE WHEN %(seen)s::text IS NULL THEN r.at <= %(at)s
        ELSE coalesce(pg_visible_in_snapshot(r.xid, %(seen)s::text::pg_snapshot), true) END
"""

# Versions of one entry become visible in order, so a binary search finds the newest visible one:
# [low, high) contains it, or 0 if there is none. History compaction leaves gaps, so each step takes
# the first retained version of the upper half.
_NEWEST_VISIBLE = f"""
    WITH RECURSIVE halves(low, high) AS (
        SELECT 0::bigint, e.version + 1
        UNION ALL
        SELECT CASE WHEN r.seen THEN r.version ELSE h.low END,
            CASE WHEN r.seen THEN h.high ELSE h.middle END
        FROM (SELECT low, high, (low + high) / 2 AS middle FROM halves WHERE high - low > 1) h
        LEFT JOIN LATERAL (
            SELECT r.version, {_VISIBLE} AS seen FROM entry_revisions r
            WHERE r.entry_id = e.id AND r.version >= h.middle AND r.version < h.high
            ORDER BY r.version LIMIT 1
        ) r ON true
    )
    SELECT max(low) AS version FROM halves
"""

# The value is lost if the version after the newest visible one was removed, unless that is the
# newest of all: a removed version may have been visible.
_KNOWN = f"""
SELECT k.namespace, k.key, k.registered, k.version,
    CASE WHEN k.place = 1 OR k.bytes <= %(most)s THEN k.value END AS value,
    k.at, k.actor_name, k.reason, k.run, k.redacted_at, k.lost, k.current,
    k.place > 1 AND k.bytes > %(most)s AS beyond
FROM (
SELECT k.*, row_number() OVER ordered AS place,
    sum(coalesce(octet_length(k.value), 0)) OVER ordered AS bytes
FROM (
SELECT k.* FROM (
    SELECT n.name AS namespace, e.key, n.unregistered_at IS NULL AS registered, v.version,
        CASE WHEN r.expires_at IS NULL OR r.expires_at > %(at)s THEN r.value::text END AS value,
        r.at, r.actor_name, r.reason, r.run, r.redacted_at,
        v.version < e.version AND NOT EXISTS (
            SELECT 1 FROM entry_revisions next
            WHERE next.entry_id = e.id AND next.version = v.version + 1
        ) AS lost,
        CASE WHEN NOT e.deleted AND (e.expires_at IS NULL OR e.expires_at > now())
            THEN e.version ELSE 0 END AS current
    FROM namespaces n
    JOIN entries e ON e.namespace_id = n.id AND e.key = ANY(%(keys)s::text[])
    CROSS JOIN LATERAL ({_NEWEST_VISIBLE}) v
    LEFT JOIN entry_revisions r ON r.entry_id = e.id AND r.version = v.version
    WHERE n.workspace_id = %(workspace)s
        AND (%(namespaces)s::text = '' OR n.name ~ %(namespaces)s)
        AND (n.name, e.key) > (%(after_namespace)s::text, %(after_key)s::text)
) k
WHERE k.value IS NOT NULL OR k.lost
ORDER BY k.namespace, k.key
LIMIT %(limit)s
) k
WINDOW ordered AS (ORDER BY k.namespace, k.key)
) k
ORDER BY k.namespace, k.key
"""


class VisibleVersion(NamedTuple):
    """An entry as it was visible to a revision: `value` is JSON text. `lost`: history compaction
    may have removed the visible version. `current`: the version that exists now; 0 for none."""

    namespace: str
    key: str
    registered: bool
    version: int
    value: str | None
    at: datetime | None
    actor_name: str | None
    reason: str | None
    run: str | None
    redacted_at: datetime | None
    lost: bool
    current: int
    # Not read, because the values before it have too many bytes.
    beyond: bool


def read_visible(
    actor: Actor,
    revision: Revision,
    keys: Sequence[str],
    *,
    after: tuple[str, str] = ("", ""),
    limit: int,
    most: int = sys.maxsize,
) -> Sequence[VisibleVersion]:
    """The entries under `keys` that were visible to the transaction of `revision`, by (namespace,
    key). Values have at most `most` bytes together, or are that of the first entry."""
    moment = {"seen": revision.seen, "at": revision.at, "most": most}
    rows = hot.fetch_all(_KNOWN, _page(actor, keys, after, limit) | moment)
    return [VisibleVersion._make(row) for row in rows]


# Namespaces are walked by name until the page is full, so that few are searched for the keys.
_SHARED = """
SELECT n.name, e.key, n.unregistered_at IS NULL, e.version, e.size_bytes, e.updated_at, e.actor_name
FROM namespaces n
CROSS JOIN LATERAL (
    SELECT * FROM entries e
    WHERE e.namespace_id = n.id AND e.key = ANY(%(keys)s::text[])
        AND NOT e.deleted AND (e.expires_at IS NULL OR e.expires_at > now())
    ORDER BY e.key LIMIT %(keys_count)s
) e
WHERE n.workspace_id = %(workspace)s AND n.name >= %(after_namespace)s
    AND (%(namespaces)s::text = '' OR n.name ~ %(namespaces)s)
    AND (n.name, e.key) > (%(after_namespace)s::text, %(after_key)s::text)
ORDER BY n.name, e.key LIMIT %(limit)s
"""


class SharedEntry(NamedTuple):
    """An entry under a scope's key, as it is now, without its value."""

    namespace: str
    key: str
    registered: bool
    version: int
    size_bytes: int
    updated_at: datetime
    actor_name: str


def read_shared(
    actor: Actor, keys: Sequence[str], *, after: tuple[str, str] = ("", ""), limit: int = 50
) -> Sequence[SharedEntry]:
    """The current entries under `keys` that the actor may see: up to `limit` after `after`, by
    (namespace, key)."""
    rows = hot.fetch_all(_SHARED, _page(actor, keys, after, limit) | {"keys_count": len(keys)})
    return [SharedEntry._make(row) for row in rows]


def _page(actor: Actor, keys: Sequence[str], after: tuple[str, str], limit: int) -> dict[str, Any]:
    return {
        "workspace": actor.workspace_id,
        "namespaces": glob_regex(actor.namespaces) if actor.namespaces else "",
        "keys": list(keys),
        "after_namespace": after[0],
        "after_key": after[1],
        "limit": limit,
    }
