"""The traffic of a workspace by minute: calls of the API, and the length of its queues."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple, Self

from django.db import models

from state_admin.domain.access import Actor

from . import hot
from .counts import MOST
from .workspaces import Workspace

RETENTION: Final = timedelta(hours=48)
# The minute of the row that counts all calls of a workspace. It is never purged, so that the
# metrics are monotonic counters.
EVER: Final = datetime(1970, 1, 1, tzinfo=UTC)


class TrafficQuerySet(models.QuerySet["Traffic"]):
    def timed(self) -> Self:
        """Rows of a minute, without the total."""
        return self.filter(minute__gt=EVER)


class Traffic(models.Model):
    """One minute of a workspace, or the total (EVER). Minutes without calls have no row."""

    # Without a constraint: its check would lock the workspace for each flush of each process.
    workspace = models.ForeignKey(
        Workspace, on_delete=models.CASCADE, db_index=False, db_constraint=False
    )
    minute = models.DateTimeField()
    reads = models.BigIntegerField(default=0)
    writes = models.BigIntegerField(default=0)
    conflicts = models.BigIntegerField(default=0)
    failures = models.BigIntegerField(default=0, db_default=0)
    # The queue length at the last measurement in this minute; NULL without one.
    queued = models.IntegerField(null=True, blank=True)

    objects = TrafficQuerySet.as_manager()

    class Meta:
        db_table = "traffic"
        constraints = [
            # Also used to read the last two days of a workspace.
            models.UniqueConstraint(fields=["workspace", "minute"], name="traffic_minute_unique"),
        ]


class Minute(NamedTuple):
    """A minute of a workspace; `number` counts minutes since the epoch."""

    workspace_id: int
    number: int


class Span(NamedTuple):
    """The calls of a period in intervals of equal length, oldest first, and the highest length of
    the queue in each; before the first measurement, and if it was not measured, it counts as the
    one before."""

    reads: list[int]
    writes: list[int]
    conflicts: list[int]
    failures: list[int]
    queued: list[int]


# In the order of the index, so that two processes cannot deadlock.
_ADD = """
WITH given AS (
    SELECT w.id, given.minute, given.reads, given.writes, given.conflicts, given.failures
    FROM unnest(%(workspaces)s::bigint[], %(minutes)s::bigint[], %(reads)s::bigint[],
        %(writes)s::bigint[], %(conflicts)s::bigint[], %(failures)s::bigint[])
        AS given(workspace_id, minute, reads, writes, conflicts, failures)
    JOIN workspaces w ON w.id = given.workspace_id
)
INSERT INTO traffic AS t (workspace_id, minute, reads, writes, conflicts, failures)
SELECT id, to_timestamp(minute * 60), reads, writes, conflicts, failures FROM given
UNION ALL
SELECT id, to_timestamp(0), sum(reads), sum(writes), sum(conflicts), sum(failures) FROM given
GROUP BY id
ORDER BY 1, 2
ON CONFLICT (workspace_id, minute) DO UPDATE SET reads = t.reads + excluded.reads,
    writes = t.writes + excluded.writes, conflicts = t.conflicts + excluded.conflicts,
    failures = t.failures + excluded.failures
RETURNING 1
"""

# Workspaces with empty queues and without calls in the last hour are skipped.
_MEASURE = """
INSERT INTO traffic AS t (workspace_id, minute, reads, writes, conflicts, queued)
SELECT w.id, date_trunc('minute', statement_timestamp()), 0, 0, 0,
    dispatches.count + compactions.count + deliveries.count
FROM workspaces w
CROSS JOIN LATERAL (SELECT count(*) FROM (SELECT 1 FROM dispatches
    WHERE workspace_id = w.id AND status = 'Queued' LIMIT %(most)s) counted) dispatches
CROSS JOIN LATERAL (SELECT count(*) FROM (SELECT 1 FROM compactions
    WHERE workspace_id = w.id AND status = 'queued' AND status IN ('queued', 'running')
    LIMIT %(most)s) counted) compactions
CROSS JOIN LATERAL (SELECT count(*) FROM (SELECT 1 FROM webhooks h
    JOIN webhook_deliveries d ON d.webhook_id = h.id
    WHERE h.workspace_id = w.id AND d.status IN ('queued', 'failed')
        AND d.status IN ('queued', 'delivering', 'failed')
    LIMIT %(most)s) counted) deliveries
WHERE dispatches.count + compactions.count + deliveries.count > 0 OR EXISTS (
    SELECT 1 FROM traffic b
    WHERE b.workspace_id = w.id AND b.minute > statement_timestamp() - interval '1 hour'
        AND (b.reads > 0 OR b.writes > 0 OR b.conflicts > 0 OR b.queued > 0))
ORDER BY 1
ON CONFLICT (workspace_id, minute) DO UPDATE SET queued = excluded.queued
RETURNING 1
"""

# Both days are read from ranges of the unique constraint's index.
_READ = """
SELECT day, age / %(width)s, sum(reads)::bigint, sum(writes)::bigint, sum(conflicts)::bigint,
    sum(failures)::bigint, max(queued),
    (array_agg(queued ORDER BY age) FILTER (WHERE queued IS NOT NULL))[1]
FROM (
    SELECT d.day, t.*, extract(epoch FROM d.minute - t.minute)::int / 60 AS age
    FROM (SELECT day, date_trunc('minute', statement_timestamp()) - day * interval '1 day' AS minute
        FROM unnest(ARRAY[0, 1]) day) d
    JOIN traffic t ON t.workspace_id = %(workspace)s AND t.minute <= d.minute
        AND t.minute > d.minute - %(minutes)s * interval '1 minute'
) t
GROUP BY 1, 2
"""


def add_calls(calls: Mapping[Minute, Sequence[int]]) -> None:
    """Add reads, writes, conflicts and failures to the counts of these minutes, and to the total."""
    names = ("workspaces", "minutes", "reads", "writes", "conflicts", "failures")
    rows = [(each.workspace_id, each.number, *counts) for each, counts in calls.items()]
    hot.fetch_all(_ADD, hot.unzip(names, rows))


def measure_queues() -> int:
    """Store the current queue length (dispatches, compactions and deliveries, each counted up to
    MOST) of each workspace with queued items or recent calls. Returns the number of workspaces."""
    return len(hot.fetch_all(_MEASURE, {"most": MOST}))


def read_spans(actor: Actor, *, width: int, count: int) -> tuple[Span, Span]:
    """The last `count` intervals of `width` minutes of the actor's workspace, ending now, and the
    same a day earlier; for a member (restricted tokens cannot open pages)."""
    rows = hot.fetch_all(
        _READ, {"workspace": actor.workspace_id, "width": width, "minutes": width * count}
    )
    by_place = {(day, age): values for day, age, *values in rows}
    spans = (Span([], [], [], [], []), Span([], [], [], [], []))
    for day, span in enumerate(spans):
        waiting = 0
        for age in reversed(range(count)):
            *calls, most, last = by_place.get((day, age), (0, 0, 0, 0, None, None))
            for line, value in zip(span, (*calls, waiting if most is None else most), strict=True):
                line.append(value)
            waiting = waiting if last is None else last
    return spans
