"""How much goes on in a workspace, by the minute: calls of the API, and what waits in its queues."""

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
MINUTES: Final = 60
# The minute of the row that counts all the calls a workspace ever got. It is never purged, so that
# a monitor sees numbers that only grow.
EVER: Final = datetime(1970, 1, 1, tzinfo=UTC)


class TrafficQuerySet(models.QuerySet["Traffic"]):
    def timed(self) -> Self:
        """Those of a minute, not of all time."""
        return self.filter(minute__gt=EVER)


class Traffic(models.Model):
    """One minute of a workspace, or all of its time (EVER). Minutes in which nothing happened have
    no row."""

    # Without a constraint: its check would lock the workspace for each flush of each process.
    workspace = models.ForeignKey(
        Workspace, on_delete=models.CASCADE, db_index=False, db_constraint=False
    )
    minute = models.DateTimeField()
    reads = models.BigIntegerField(default=0)
    writes = models.BigIntegerField(default=0)
    conflicts = models.BigIntegerField(default=0)
    # What waited when it was last measured in this minute; NULL: it was not.
    queued = models.IntegerField(null=True, blank=True)

    objects = TrafficQuerySet.as_manager()

    class Meta:
        db_table = "traffic"
        constraints = [
            # The last hour of a workspace is read by it, too.
            models.UniqueConstraint(fields=["workspace", "minute"], name="traffic_minute_unique"),
        ]

    def __str__(self) -> str:
        return f"{self.workspace_id} at {self.minute}"


class Minute(NamedTuple):
    """Whose minute; `number` counts minutes since the epoch."""

    workspace_id: int
    number: int


class Hour(NamedTuple):
    """The last MINUTES minutes, oldest first, the present one last."""

    reads: list[int]
    writes: list[int]
    conflicts: list[int]
    queued: list[int]


# In the order of the index, so that two processes never wait for each other in a circle.
_ADD = """
WITH given AS (
    SELECT w.id, given.minute, given.reads, given.writes, given.conflicts
    FROM unnest(%(workspaces)s::bigint[], %(minutes)s::bigint[], %(reads)s::bigint[],
        %(writes)s::bigint[], %(conflicts)s::bigint[])
        AS given(workspace_id, minute, reads, writes, conflicts)
    JOIN workspaces w ON w.id = given.workspace_id
)
INSERT INTO traffic AS t (workspace_id, minute, reads, writes, conflicts)
SELECT id, to_timestamp(minute * 60), reads, writes, conflicts FROM given
UNION ALL
SELECT id, to_timestamp(0), sum(reads), sum(writes), sum(conflicts) FROM given GROUP BY id
ORDER BY 1, 2
ON CONFLICT (workspace_id, minute) DO UPDATE SET reads = t.reads + excluded.reads,
    writes = t.writes + excluded.writes, conflicts = t.conflicts + excluded.conflicts
RETURNING 1
"""

# Where nothing waits and nothing happened for an hour, there is nothing to draw.
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

_READ = """
SELECT extract(epoch FROM date_trunc('minute', statement_timestamp()) - minute)::int / 60,
    reads, writes, conflicts, queued
FROM traffic
WHERE workspace_id = %(workspace)s
    AND minute > date_trunc('minute', statement_timestamp()) - %(minutes)s * interval '1 minute'
"""


def add_calls(calls: Mapping[Minute, Sequence[int]]) -> None:
    """Add reads, writes and conflicts to what was counted of these minutes, and ever, before."""
    reads, writes, conflicts = zip(*calls.values(), strict=True)
    hot.fetch_all(
        _ADD,
        {
            "workspaces": [minute.workspace_id for minute in calls],
            "minutes": [minute.number for minute in calls],
            "reads": list(reads),
            "writes": list(writes),
            "conflicts": list(conflicts),
        },
    )


def measure_queues() -> int:
    """Note what waits now in each workspace where anything waits or lately happened: dispatches,
    compactions and deliveries, none counted beyond MOST. Answers how many workspaces that were."""
    return len(hot.fetch_all(_MEASURE, {"most": MOST}))


def read_hour(actor: Actor) -> Hour:
    """The last hour of the actor's workspace, for a member (no narrowed token reads pages). What
    waited in a minute without a measurement is as the one before it said."""
    rows = hot.fetch_all(_READ, {"workspace": actor.workspace_id, "minutes": MINUTES})
    by_age = {age: row for age, *row in rows}
    hour = Hour([], [], [], [])
    waiting = 0
    for age in reversed(range(MINUTES)):
        reads, writes, conflicts, queued = by_age.get(age, (0, 0, 0, None))
        waiting = waiting if queued is None else queued
        for line, value in zip(hour, (reads, writes, conflicts, waiting), strict=True):
            line.append(value)
    return hour
