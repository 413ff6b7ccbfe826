"""The namespaces of the Agent Protocol's store (protocols/agent_protocol/store.py): the beginnings of
keys up to the first `..`, in the order of keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from . import hot

_BATCH = 500
_KEYS = 5_000
# Greater than every key, and more labels than a key can have.
_END = "\U0010ffff" * 129
_DEEPEST = 512

_LIVE_KEYS = """
    SELECT e.key, split_part(e.key, '..', 1) AS home FROM entries e
    WHERE e.namespace_id = %(namespace)s AND e.key >= {start} AND e.key < %(end)s::text
        AND NOT e.deleted AND (e.expires_at IS NULL OR e.expires_at > now())
    ORDER BY e.key LIMIT {limit}
"""
# Reads one key of each namespace, and continues behind the last key with the same beginning: `/` is the
# character that follows `.`.
_BEHIND = """CASE WHEN cardinality(string_to_array(w.home, '.')) < %(depth)s::int
        OR %(depth)s::int IS NULL THEN w.home || './'
    ELSE array_to_string((string_to_array(w.home, '.'))[:%(depth)s::int], '.') || '/' END"""
_WALK = f"""
WITH RECURSIVE w(key, home) AS (
    ({_LIVE_KEYS.format(start="%(start)s::text", limit=1)})
    UNION ALL
    SELECT n.* FROM w CROSS JOIN LATERAL ({_LIVE_KEYS.format(start=_BEHIND, limit=1)}) n
)
SELECT w.home, {_BEHIND} FROM w LIMIT {_BATCH}
"""
_SCAN = _LIVE_KEYS.format(start="%(start)s::text", limit=_KEYS)


def walk_namespaces(
    namespace: int, labels: Sequence[str], depth: int | None = None
) -> Iterator[list[str]]:
    """The labels of the namespaces of live entries that begin with `labels`. `depth`: only the first of
    those that have the same first `depth` labels. The cost does not depend on the number of entries."""
    place = {**_place(namespace, labels), "depth": depth and min(depth, _DEEPEST)}
    while rows := hot.fetch_all(_WALK, place):
        yield from (home.split(".") for home, _ in rows)
        if len(rows) < _BATCH:
            return
        place["start"] = rows[-1][1]


def scan_namespaces(namespace: int, labels: Sequence[str]) -> Iterator[list[str]]:
    """As walk_namespaces, but reads all keys, a part at a time, and may return a namespace twice: faster if
    all namespaces are examined and have few entries."""
    place = _place(namespace, labels)
    while rows := hot.fetch_all(_SCAN, place):
        yield from (home.split(".") for home, _ in groupby(home for _, home in rows))
        if len(rows) < _KEYS:
            return
        place["start"] = rows[-1][0] + "\x01"  # no key contains it


def _place(namespace: int, labels: Sequence[str]) -> dict[str, object]:
    beginning = ".".join(labels)
    return {
        "namespace": namespace,
        "start": beginning and beginning + ".",
        "end": beginning + "/" if beginning else _END,
    }
