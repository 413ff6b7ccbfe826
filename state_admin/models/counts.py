"""The counts in the navigation: one statement, every count bounded, none over a whole table."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from state_admin.domain import config
from state_admin.domain.access import Actor

from . import hot
from .feed_sql import GAPS, SHIFTS, FeedEnd, read_row

MOST = 10_000
# Entries and threads are counted on every page, therefore up to this number only.
FEW = 1_000


class Counts(NamedTuple):
    """The counts of a workspace. MOST + 1 means "more than MOST".

    `entries` and `threads` are exact up to FEW. Beyond that they are the last measurement, or FEW +
    1 if that was lower. The runs of each status are counted among the first MOST + 1 active runs.
    """

    entries: int
    namespaces: int
    threads: int
    running_runs: int
    waiting_runs: int
    created_runs: int
    stuck_runs: int
    stuck_running_runs: int
    stuck_waiting_runs: int
    unfinished_compactions: int
    failed_compactions: int
    pending_tickets: int
    open_dispatches: int
    dead_dispatches: int
    tokens: int
    worker_seen: datetime | None
    failed_sweeps: int
    horizon: int
    now: datetime
    newest_xid: int | None
    newest_id: int | None
    gaps: list[list[int]]
    shifts: list[list[int]]

    @property
    def active_runs(self) -> int:
        return self.running_runs + self.waiting_runs + self.created_runs

    @property
    def stuck_created_runs(self) -> int:
        return self.stuck_runs - self.stuck_running_runs - self.stuck_waiting_runs

    @property
    def end(self) -> FeedEnd:
        """The end of the change feed at the time of the counts."""
        return read_row(
            self.horizon, self.now, self.newest_xid, self.newest_id or 0, self.gaps, self.shifts
        )


_OF_WORKSPACE = {"workspace": "%(workspace)s"}

# The limit of each namespace is a subquery for the reason given in browsing.py (_RANGE).
_COUNTS = f"""
SELECT
    (SELECT CASE WHEN count(*) > %(few)s THEN greatest(count(*), s.entries) ELSE count(*) END
        FROM (SELECT 1 FROM namespaces n CROSS JOIN LATERAL (
            SELECT 1 FROM entries e WHERE e.namespace_id = n.id AND NOT e.deleted
            ORDER BY e.key LIMIT (SELECT %(few)s::bigint + 1)) e
        WHERE n.workspace_id = %(workspace)s LIMIT %(few)s + 1) counted),
    (SELECT count(*) FROM (SELECT 1 FROM namespaces
        WHERE workspace_id = %(workspace)s AND unregistered_at IS NULL
            AND name <> ALL(%(reserved)s::text[]) LIMIT %(most)s) counted),
    (SELECT CASE WHEN count(*) > %(few)s THEN greatest(count(*), s.threads) ELSE count(*) END
        FROM (SELECT 1 FROM threads
        WHERE workspace_id = %(workspace)s ORDER BY id DESC LIMIT %(few)s + 1) counted),
    r.running, r.waiting, r.created,
    k.stuck, k.running, k.waiting,
    (SELECT count(*) FROM (SELECT 1 FROM compactions
        WHERE workspace_id = %(workspace)s AND status IN ('queued', 'running')
        LIMIT %(most)s) counted),
    (SELECT count(*) FROM (SELECT DISTINCT ON (thread_id) status
        FROM (SELECT id, thread_id, kind, status FROM compactions
            WHERE workspace_id = %(workspace)s ORDER BY id DESC LIMIT 200) newest
        WHERE kind = 'context' ORDER BY thread_id, id DESC) last
        WHERE status = 'failed'),
    (SELECT count(*) FROM (SELECT 1 FROM tickets
        WHERE workspace_id = %(workspace)s AND status = 'pending' LIMIT %(most)s) counted),
    (SELECT count(*) FROM (SELECT 1 FROM dispatches
        WHERE workspace_id = %(workspace)s AND status IN ('Queued', 'Claimed')
        LIMIT %(most)s) counted),
    (SELECT count(*) FROM (SELECT 1 FROM dispatches
        WHERE workspace_id = %(workspace)s AND status = 'DeadLetter' LIMIT %(most)s) counted),
    (SELECT count(*) FROM (SELECT 1 FROM api_tokens
        WHERE workspace_id = %(workspace)s AND revoked_at IS NULL
        AND (expires_at IS NULL OR expires_at > now()) LIMIT %(most)s) counted),
    w.seen, w.failed,
    h.xid::text::bigint, now(), n.xid::text::bigint, n.id,
    {GAPS.format_map(_OF_WORKSPACE)}, {SHIFTS.format_map(_OF_WORKSPACE)}
FROM (SELECT feed_horizon() AS xid) h
CROSS JOIN (SELECT count(*) FILTER (WHERE status = 'running') AS running,
        count(*) FILTER (WHERE status = 'waiting') AS waiting,
        count(*) FILTER (WHERE status = 'created') AS created
    FROM (SELECT status FROM runs
        WHERE workspace_id = %(workspace)s AND status <> 'done' LIMIT %(most)s) counted) r
CROSS JOIN (SELECT count(*) AS stuck, count(*) FILTER (WHERE status = 'running') AS running,
        count(*) FILTER (WHERE status = 'waiting') AS waiting
    FROM (SELECT status FROM runs
        WHERE workspace_id = %(workspace)s AND status <> 'done' AND (
            (status = 'running' AND (lease_expires_at <= now()
                OR lease_expires_at IS NULL AND lease_released_at IS NOT NULL))
            OR (status = 'waiting' AND (deadline_at <= now() OR ticket_due_at <= now()))
            OR (max_rounds > 0 AND step_count >= max_rounds)
            OR times_out_at <= now()) LIMIT %(most)s) counted) k
CROSS JOIN (SELECT max(started_at) AS seen, count(*) FILTER (WHERE error <> '') AS failed
    FROM sweeps) w
LEFT JOIN LATERAL (SELECT c.xid, c.id FROM changes c
    WHERE c.workspace_id = %(workspace)s AND c.xid < h.xid
    ORDER BY c.xid DESC, c.id DESC LIMIT 1) n ON true
LEFT JOIN LATERAL (SELECT entries, threads FROM storage_samples
    WHERE workspace_id = %(workspace)s AND namespace_id IS NULL AND thread_id IS NULL
    ORDER BY day DESC LIMIT 1) s ON true
"""


# The newest runs of all statuses, because no index has the end of runs: runs_newest. 4,000 take
# about 10 ms.
RUNS = 4_000
_ENDED = """
WITH newest AS MATERIALIZED (
    SELECT termination_reason ->> 'type' AS kind,
        extract(epoch FROM now() - finished_at)::int / 60 AS age
    FROM runs WHERE workspace_id = %(workspace)s ORDER BY id DESC LIMIT %(most)s
)
SELECT age / 1440, age %% 1440 / %(width)s, coalesce(kind, ''), count(*),
    (SELECT count(*) FROM newest) = %(most)s
FROM newest WHERE age < 2 * 1440 AND age %% 1440 < %(minutes)s GROUP BY 1, 2, 3
"""


class EndedRuns(NamedTuple):
    """The number of runs that ended in each interval, oldest first, by the type of their
    termination reason. `cut`: there are more runs than were read, so older ones may be missing."""

    now: dict[str, list[int]]
    earlier: list[int]
    cut: bool


def ended_runs(actor: Actor, *, width: int, count: int) -> EndedRuns:
    """The runs that ended in the last `count` intervals of `width` minutes, and in the same a day
    earlier, for a member. Reads the newest RUNS runs only."""
    parameters = {"workspace": actor.workspace_id, "most": RUNS, "width": width}
    rows = hot.fetch_all(_ENDED, {**parameters, "minutes": width * count})
    now: dict[str, list[int]] = {}
    earlier = [0] * count
    for day, age, kind, number, _ in rows:
        line = earlier if day else now.setdefault(kind, [0] * count)
        line[count - 1 - age] += number
    return EndedRuns(now, earlier, bool(rows) and rows[0][4])


# Counted among the newest changes of all kinds. A rate of a short time is not representative of a
# day: if these changes cover less than a day or an hour, the numbers are lower bounds.
_WRITES = """
WITH newest AS MATERIALIZED (
    SELECT at, kind, namespace FROM changes WHERE workspace_id = %(workspace)s
    ORDER BY xid DESC, id DESC LIMIT %(most)s
), reach AS (
    SELECT count(*) = %(most)s AND min(at) > now() - interval '1 day' AS cut,
        count(*) = %(most)s AND min(at) > now() - interval '1 hour' AS hour_cut
    FROM newest
)
SELECT n.namespace, count(n.namespace), count(*) FILTER (WHERE n.at > now() - interval '1 hour'),
    cut, hour_cut
FROM reach LEFT JOIN newest n ON n.at > now() - interval '1 day' AND n.kind LIKE 'entry.%%'
    AND n.namespace <> ALL(%(reserved)s::text[])
GROUP BY n.namespace, cut, hour_cut
ORDER BY 2 DESC, 1
"""


class Writes(NamedTuple):
    """The number of writes to entries of a namespace in the last day, and in the last hour."""

    namespace: str
    day: int
    hour: int


class NamespaceWrites(NamedTuple):
    """The namespaces with writes, the busiest first. `cut`: older changes of the day were not read, so
    that the numbers are lower bounds; `hour_cut`: so are those of the hour."""

    rows: list[Writes]
    cut: bool
    hour_cut: bool


def namespace_writes(actor: Actor) -> NamespaceWrites:
    """The writes to each namespace, for a member. Reads the newest MOST changes only."""
    parameters = {
        "workspace": actor.workspace_id,
        "most": MOST,
        "reserved": list(config.NAMESPACES),
    }
    rows = hot.fetch_all(_WRITES, parameters)
    # Without a write, the only row has no namespace.
    return NamespaceWrites(
        [Writes(*row[:3]) for row in rows if row[0] is not None], rows[0][3], rows[0][4]
    )


def bounded_counts(actor: Actor) -> Counts:
    """The counts of the actor's workspace, for a member (restricted tokens cannot open pages).

    Failed compactions are the threads whose last context compaction failed, among the newest 200
    compactions: the same as on the overview.
    """
    parameters = {"workspace": actor.workspace_id, "most": MOST + 1, "few": FEW}
    return Counts._make(hot.fetch_row(_COUNTS, {**parameters, "reserved": list(config.NAMESPACES)}))
