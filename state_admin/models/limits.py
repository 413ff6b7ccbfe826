"""The rate limit of a token and the quotas of a workspace, with their current use."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from . import hot
from .access import ApiToken
from .workspaces import Workspace


class RateBucket(models.Model):
    """The token bucket of a rate-limited API token: its level, and when it had that level."""

    token = models.OneToOneField(ApiToken, on_delete=models.CASCADE, primary_key=True)
    level = models.FloatField()
    at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "rate_buckets"


class WorkspaceUsage(models.Model):
    """The size of a workspace at its last measurement (services/quotas.py)."""

    workspace = models.OneToOneField(Workspace, on_delete=models.CASCADE, primary_key=True)
    entries = models.BigIntegerField(default=0)
    bytes = models.BigIntegerField(default=0)
    threads = models.BigIntegerField(default=0)
    messages = models.BigIntegerField(default=0)
    measured_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "workspace_usage"


_FILLED = "least(%(size)s, b.level + extract(epoch FROM now() - b.at) * %(per_second)s)"

_TAKE = f"""
INSERT INTO rate_buckets AS b (token_id, level, at)
VALUES (%(token)s, least(%(size)s::float8, %(size)s - %(requested)s), now())
ON CONFLICT (token_id) DO UPDATE SET level = least(%(size)s, {_FILLED} - %(requested)s), at = now()
WHERE {_FILLED} >= %(requested)s
RETURNING level
"""

_WAIT = f"""
SELECT (%(requested)s - {_FILLED}) / %(per_second)s FROM rate_buckets b WHERE token_id = %(token)s
"""


def take_tokens(*, token_id: int, per_minute: int, requested: int) -> tuple[float, float]:
    """Take `requested` calls from a token's bucket, which holds one minute of calls and refills
    evenly; a negative number returns calls.

    Returns the calls left in the bucket and 0.0; or, if there were too few, 0.0 and the seconds
    until there are enough.
    """
    parameters = {
        "token": token_id,
        "size": float(per_minute),
        "per_second": per_minute / 60,
        "requested": float(requested),
    }
    if taken := hot.fetch_one(_TAKE, parameters):
        return taken[0], 0.0
    row = hot.fetch_one(_WAIT, parameters)
    return 0.0, max(float(row[0]), 0.001) if row else 0.001


_MEASURE = """
INSERT INTO workspace_usage AS u (workspace_id, entries, bytes, threads, messages, measured_at)
SELECT w.id, coalesce(e.entries, 0), coalesce(e.bytes, 0), coalesce(t.threads, 0),
    coalesce(t.messages, 0), now()
FROM workspaces w
LEFT JOIN (
    SELECT n.workspace_id, count(*) AS entries, sum(e.size_bytes) AS bytes
    FROM entries e JOIN namespaces n ON n.id = e.namespace_id
    WHERE NOT e.deleted GROUP BY n.workspace_id
) e ON e.workspace_id = w.id
LEFT JOIN (
    SELECT workspace_id, count(*) AS threads, sum(message_count) AS messages
    FROM threads GROUP BY workspace_id
) t ON t.workspace_id = w.id
WHERE %(workspace)s::bigint IS NULL AND w.frozen_at IS NULL OR w.id = %(workspace)s
ON CONFLICT (workspace_id) DO UPDATE SET entries = excluded.entries, bytes = excluded.bytes,
    threads = excluded.threads, messages = excluded.messages, measured_at = now()
RETURNING u.workspace_id
"""


def measure_usage(workspace_id: int | None = None) -> int:
    """Count the content of one workspace, or of every one; returns how many were measured."""
    return len(hot.fetch_all(_MEASURE, {"workspace": workspace_id}))
