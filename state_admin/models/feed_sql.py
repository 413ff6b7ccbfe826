"""The queries of the change feed: in commit order, up to the position that can no longer change.

A row is returned once its clock (models/changes.py) is older than every open transaction. The clock
is never earlier than the row's own transaction, so a transaction that commits late has held this
horizon back; following ids alone would skip its rows. Below the horizon the order (xid, id) never
changes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from operator import attrgetter
from typing import NamedTuple

from state_admin.domain.access import Actor, matches_any

from . import hot
from .visibility import glob_regex


class Position(NamedTuple):
    """A position in the feed: the clock and the row. The default is before every change."""

    xid: int = 0
    id: int = 0


class FeedRow(NamedTuple):
    xid: int
    id: int
    at: datetime
    kind: str
    namespace: str
    key: str
    thread: str
    run: str
    version: int
    actor_name: str
    traceparent: str = ""

    @property
    def position(self) -> Position:
        return Position(self.xid, self.id)


def change_of_run(kind: str, thread_id: str, run_id: str) -> FeedRow:
    """A change of a run that has not happened, to find out who would receive it."""
    return FeedRow(0, 0, datetime.now(UTC), kind, "", "", thread_id, run_id, 0, "")


class Gap(NamedTuple):
    """Positions that no change has: those after `last` with a clock below `start`. Changes that had
    one were lost in a restore or failover (models/feed_eras.py)."""

    last: Position
    start: int


class Shift(NamedTuple):
    """How a move changed ids: changes with a clock below `clock` and an id from `low` to `high` in an
    earlier cell of the workspace have here their id plus `shift`."""

    clock: int
    low: int
    high: int
    shift: int


class FeedEnd(NamedTuple):
    """The end of a workspace's feed: its newest final change, read at the database's time `at`.

    The position is that of a committed row, not the horizon: after a crash, PostgreSQL may assign
    the numbers of transactions without a trace again.
    """

    horizon: int
    at: datetime
    position: Position
    gaps: tuple[Gap, ...] = ()
    shifts: tuple[Shift, ...] = ()

    def translate(self, position: Position) -> Position:
        """The position in this cell for one that any cell of the workspace has returned."""
        for shift in self.shifts:
            if position.xid < shift.clock and shift.low <= position.id <= shift.high:
                position = position._replace(id=position.id + shift.shift)
        return position

    def lost(self, position: Position) -> bool:
        """Whether a position was lost in a restore or failover: it is newer than what survived, or
        than the database."""
        return position.xid >= self.horizon or any(
            gap.last < position and position.xid < gap.start for gap in self.gaps
        )


class FeedFilter(NamedTuple):
    """The filters of a reader. Empty: everything it may see. `kinds`: any of them."""

    namespace: str = ""
    key: str = ""
    prefix: str = ""
    thread: str = ""
    run: str = ""
    kinds: tuple[str, ...] = ()


_COLUMNS = """c.xid::text::bigint AS xid, c.id, c.at, c.kind, c.namespace, c.key, c.thread, c.run,
    c.version, c.actor_name, c.traceparent"""

# The newest change below the horizon: one lookup in changes_feed_order.
_NEWEST = """
    SELECT c.xid, c.id FROM changes c
    WHERE c.workspace_id = w.id AND c.xid < h.xid
    ORDER BY c.xid DESC, c.id DESC LIMIT 1
"""

# The ranges of positions that were lost or skipped when an era began (models/feed_eras.py). {workspace}:
# its number. A workspace that came from another cell has those of that cell (models/workspace_moves.py).
GAPS = """ARRAY(
    SELECT ARRAY[last_xid, last_id, base + started_by::text::bigint] FROM feed_eras
    WHERE base > 0 AND base + started_by::text::bigint
        > coalesce((SELECT a.clock FROM arrivals a WHERE a.workspace_id = {workspace}), 0)
    UNION ALL
    SELECT ARRAY[(g ->> 0)::bigint, (g ->> 1)::bigint, (g ->> 2)::bigint]
    FROM arrivals a, jsonb_array_elements(a.gaps) g WHERE a.workspace_id = {workspace}
)"""
# The new ids of changes that came from another cell, in the order of the moves.
SHIFTS = """ARRAY(
    SELECT ARRAY[(s ->> 0)::bigint, (s ->> 1)::bigint, (s ->> 2)::bigint, (s ->> 3)::bigint]
    FROM arrivals a, jsonb_array_elements(a.shifts) WITH ORDINALITY AS each(s, move)
    WHERE a.workspace_id = {workspace} ORDER BY move
)"""
_OF_ROW = {"workspace": "w.id"}

END = f"""
SELECT w.id, h.xid::text::bigint, now(), n.xid::text::bigint, n.id, {GAPS.format_map(_OF_ROW)},
    {SHIFTS.format_map(_OF_ROW)}
FROM unnest(%(workspaces)b::bigint[]) AS w(id)
CROSS JOIN (SELECT feed_horizon() AS xid) h
LEFT JOIN LATERAL ({_NEWEST}) n ON true
"""

# The changes after a position of each of several workspaces: one index range each, all read in one
# snapshot. A workspace without new changes has one row with nulls, which has the time.
NEWS = f"""
SELECT w.id, now(), n.*
FROM unnest(%(workspaces)b::bigint[], %(xids)b::text[], %(ids)b::bigint[]) AS w(id, xid, place)
LEFT JOIN LATERAL (
    SELECT {_COLUMNS} FROM changes c
    WHERE c.workspace_id = w.id
        AND (c.xid, c.id) > (w.xid::xid8, w.place)
        AND c.xid < feed_horizon()
    ORDER BY c.xid, c.id
    LIMIT %(limit)s
) n ON true
ORDER BY w.id, n.xid, n.id
"""

_MATCHES = """(%(namespace)s::text = '' OR c.namespace = %(namespace)s)
    AND (%(key)s::text = '' OR c.key = %(key)s)
    AND (%(prefix)s::text = '' OR starts_with(c.key, %(prefix)s))
    AND (%(thread)s::text = '' OR c.thread = %(thread)s)
    AND (%(run)s::text = '' OR c.run = %(run)s)
    AND (%(kinds)s::text[] IS NULL OR c.kind = ANY(%(kinds)s))"""

# The filters have no index. OFFSET 0 keeps them out of the inner query, because PostgreSQL would otherwise
# read the whole table and sort when it expects few changes that match.
_PAGE = f"""
SELECT {_COLUMNS}
FROM (
    SELECT * FROM changes c
    WHERE c.workspace_id = %(workspace)s
        AND (c.xid, c.id) > (%(after_xid)s::text::xid8, %(after_id)s)
        AND (c.xid, c.id) <= (%(until_xid)s::text::xid8, %(until_id)s)
    ORDER BY c.xid, c.id OFFSET 0
) c
WHERE {_MATCHES}
    AND (%(namespaces)s::text = '' OR c.namespace = '' OR c.namespace ~ %(namespaces)s)
    AND (%(threads)s::text[] IS NULL OR c.thread = ''
        OR EXISTS (SELECT 1 FROM unnest(%(threads)s::text[]) p WHERE starts_with(c.thread, p)))
ORDER BY c.xid, c.id
LIMIT %(limit)s
"""

# Backwards from a position, for pages. The filters have no index: they are applied to so many
# changes (`window`), lazily, so that a full page reads no more changes than it needs.
_BACK = f"""
SELECT {_COLUMNS}
FROM (
    SELECT * FROM changes c
    WHERE c.workspace_id = %(workspace)s
        AND (c.xid, c.id) < (%(before_xid)s::text::xid8, %(before_id)s)
        AND c.xid < feed_horizon()
    ORDER BY c.xid DESC, c.id DESC
    LIMIT %(window)s
) c
WHERE {_MATCHES}
    AND (%(actor)s::text = '' OR c.actor_name = %(actor)s)
ORDER BY c.xid DESC, c.id DESC
LIMIT %(limit)s
"""

# The last change of such a window: one range of changes_feed_order, without reading the table.
_WINDOW_END = """
SELECT c.xid::text::bigint, c.id FROM changes c
WHERE c.workspace_id = %(workspace)s
    AND (c.xid, c.id) < (%(before_xid)s::text::xid8, %(before_id)s)
    AND c.xid < feed_horizon()
ORDER BY c.xid DESC, c.id DESC
OFFSET %(window)s - 1 LIMIT 1
"""
# The number of changes, counted up to a limit: one range of changes_feed_order.
_COUNT = """
SELECT count(*) FROM (
    SELECT 1 FROM changes c
    WHERE c.workspace_id = %(workspace)s AND c.xid < feed_horizon()
    ORDER BY c.xid DESC, c.id DESC
    LIMIT %(most)s
) c
"""
# After every change: clocks and ids are far smaller.
LATEST = Position(2**62, 2**62)


def read_end(workspace_id: int) -> FeedEnd:
    """The current end of a workspace's feed."""
    return read_row(*hot.fetch_row(END, {"workspaces": [workspace_id]})[1:])


def read_row(
    horizon: int,
    at: datetime,
    xid: int | None,
    identity: int | None,
    gaps: Sequence[Sequence[int]],
    shifts: Sequence[Sequence[int]],
) -> FeedEnd:
    """The end of the feed from its columns."""
    return FeedEnd(
        horizon,
        at,
        Position() if xid is None else Position(xid, identity or 0),
        tuple(Gap(Position(last, last_id), start) for last, last_id, start in gaps),
        tuple(Shift(*shift) for shift in shifts),
    )


def read_page(
    actor: Actor, *, after: Position, until: Position, filters: FeedFilter, limit: int
) -> Sequence[FeedRow]:
    """Up to `limit` changes after `after`, in commit order, up to and including `until`.

    `until` must be final: the end of the feed, or a position that a follower has reached.
    """
    if until <= after:
        return []
    rows = hot.fetch_all(
        _PAGE,
        {
            **_conditions(filters),
            "workspace": actor.workspace_id,
            "after_xid": str(after.xid),
            "after_id": after.id,
            "until_xid": str(until.xid),
            "until_id": until.id,
            "namespaces": glob_regex(actor.namespaces) if actor.namespaces else "",
            "threads": list(actor.thread_prefixes) or None,
            "limit": limit,
        },
    )
    return [FeedRow._make(row) for row in rows]


def read_back(
    workspace_id: int,
    *,
    before: Position,
    filters: FeedFilter,
    actor_name: str,
    limit: int,
    window: int,
) -> tuple[list[FeedRow], Position | None]:
    """Up to `limit` changes before a position, newest first, for a member of the workspace; and the
    position to continue from, None at the beginning of the feed."""
    place = {
        "workspace": workspace_id,
        "before_xid": str(before.xid),
        "before_id": before.id,
        "window": window,
    }
    parameters = {**_conditions(filters), **place, "actor": actor_name, "limit": limit + 1}
    rows = [FeedRow._make(row) for row in hot.fetch_all(_BACK, parameters)]
    if len(rows) > limit:
        return rows[:limit], rows[limit - 1].position
    end = hot.fetch_one(_WINDOW_END, place) if any(filters) or actor_name else None
    return rows, Position(*end) if end else None


def count_changes(workspace_id: int, most: int) -> int:
    """The number of changes in the feed of a workspace; not more than `most` are counted."""
    return int(hot.fetch_row(_COUNT, {"workspace": workspace_id, "most": most})[0])


def _conditions(filters: FeedFilter) -> dict[str, object]:
    return {**filters._asdict(), "kinds": list(filters.kinds) or None}


def matcher(actor: Actor, filters: FeedFilter) -> Callable[[FeedRow], bool]:
    """The filters of a page's WHERE clause as a function, for rows of the actor's workspace in
    memory. Actors that see the same get the same function, so that its result can be shared."""
    return _matcher(actor.namespaces, actor.thread_prefixes, filters)


@functools.lru_cache(maxsize=1024)
def _matcher(
    namespaces: tuple[str, ...], thread_prefixes: tuple[str, ...], filters: FeedFilter
) -> Callable[[FeedRow], bool]:
    checks = [
        _equals(attrgetter(field), value)
        for field in ("namespace", "key", "thread", "run")
        if (value := getattr(filters, field))
    ]
    if filters.kinds:
        checks.append(lambda row: row.kind in filters.kinds)
    if filters.prefix:
        checks.append(lambda row: row.key.startswith(filters.prefix))
    if namespaces:
        checks.append(lambda row: not row.namespace or matches_any(namespaces, row.namespace))
    if thread_prefixes:
        checks.append(lambda row: not row.thread or row.thread.startswith(thread_prefixes))
    return lambda row: all(check(row) for check in checks)


def _equals(read: Callable[[FeedRow], str], value: str) -> Callable[[FeedRow], bool]:
    return lambda row: read(row) == value
