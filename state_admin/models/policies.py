"""Compaction policies of a workspace and of its agents. A thread's own policy is in its row
(models/threads.py)."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from . import hot
from .fields import RawJSON
from .visibility import VisibleQuerySet
from .workspaces import Workspace


class PolicyQuerySet(VisibleQuerySet["CompactionPolicy"]):
    """Policies contain no data of threads, so every member may see them."""


class CompactionPolicy(models.Model):
    """The fields that a workspace ("") or an agent sets; the others are inherited."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_index=False)
    agent_id = models.CharField(max_length=128, default="", blank=True, db_collation="C")
    body = RawJSON(default="{}")
    version = models.BigIntegerField(default=1)
    updated_at = models.DateTimeField(db_default=Now())
    updated_by = models.CharField(max_length=150)

    objects = PolicyQuerySet.as_manager()

    class Meta:
        db_table = "compaction_policies"
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "agent_id"], name="compaction_policies_of_unique"
            ),
        ]


# Executed by every append: the agent of the newest run, and two rows of one index range.
_OF_THREAD = """
SELECT a.agent_id, p.agent_id, p.body::text
FROM (SELECT coalesce(
    (SELECT agent_id FROM runs WHERE id = %(run)s::bigint), '') AS agent_id) a
LEFT JOIN compaction_policies p
    ON p.workspace_id = %(workspace)s AND p.agent_id IN ('', a.agent_id)
ORDER BY p.agent_id
"""


_OF_RUNS = """
SELECT x.place, p.body::text
FROM unnest(%(place)b::int[], %(workspace)b::bigint[], %(run)b::text[]) AS x(place, workspace, run)
JOIN runs r ON r.workspace_id = x.workspace AND r.public_id = x.run
JOIN threads t ON t.id = r.thread_id
JOIN compaction_policies p ON p.workspace_id = x.workspace
    AND p.agent_id IN ('', (SELECT agent_id FROM runs WHERE id = t.latest_run_id))
ORDER BY x.place, p.agent_id
"""


_WRITE = """
INSERT INTO compaction_policies AS p (workspace_id, agent_id, body, version, updated_by)
SELECT %(workspace)s, %(agent)s::text, %(body)s::json, 1, %(by)s::text
WHERE coalesce(%(expected)s::bigint, 0) = 0 OR EXISTS (
    SELECT FROM compaction_policies WHERE workspace_id = %(workspace)s AND agent_id = %(agent)s::text)
ON CONFLICT (workspace_id, agent_id) DO UPDATE SET
    body = excluded.body, version = p.version + 1, updated_at = now(), updated_by = %(by)s::text
WHERE %(expected)s::bigint IS NULL OR p.version = %(expected)s
RETURNING version
"""


def write(
    *, workspace_id: int, agent_id: str, body: str, by: str, expected: int | None
) -> int | None:
    """Store a policy; returns its version. None, with nothing changed, if it is not at version
    `expected` (0: it must not exist)."""
    row = hot.fetch_one(
        _WRITE,
        {
            "workspace": workspace_id,
            "agent": agent_id,
            "body": body,
            "by": by,
            "expected": expected,
        },
    )
    return row[0] if row else None


def reading_layers(addresses: hot.Addresses) -> hot.Call:
    """The statement that reads the policies of `read_layers` for the threads of several runs: place
    and JSON text."""
    return _OF_RUNS, hot.columns_of(addresses)


def read_layers(workspace_id: int, run_id: int | None) -> tuple[str, list[tuple[str, str]]]:
    """The agent of a thread whose newest run is `run_id`, and the policies of its workspace and
    agent: ("workspace" or "agent", JSON text), the workspace first."""
    rows = hot.fetch_all(_OF_THREAD, {"workspace": workspace_id, "run": run_id})
    layers = [("agent" if of else "workspace", body) for _, of, body in rows if body is not None]
    return rows[0][0], layers
