"""Waits for the change feed: it contains nothing newer than the oldest open transaction of the
whole PostgreSQL, and a concurrent test may have a transaction open in its own database."""

from __future__ import annotations

from state_admin.models import Change, Webhook, feed_sql
from state_admin.models.feed_sql import Position
from state_admin.services import webhook_pump
from tests.project.running import wait_for


def wait_for_feed(workspace_id: int) -> None:
    """Wait until every committed change of the workspace is in its feed."""
    rows = Change.objects.filter(workspace_id=workspace_id).values_list("xid", "id")
    newest = max((Position(*row) for row in rows), default=Position())
    wait_for(lambda: feed_sql.read_end(workspace_id).position >= newest, "the feed is complete")


def pump(hook: Webhook) -> int:
    """Queue a delivery for every committed change."""
    wait_for_feed(hook.workspace_id)
    return webhook_pump.pump_webhook(hook.public_id)
