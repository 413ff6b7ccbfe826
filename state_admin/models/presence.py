"""Which users have the editor of an entry, a namespace or a policy open. A hint, never a lock.

The rows are useless after a minute, so the table is unlogged (migration 0002): heartbeats are not
written to the WAL, and a crash empties the table.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final, NamedTuple

from django.db import models
from django.db.models.functions import Now

from state_admin.domain.access import Actor

from . import hot
from .access import User
from .workspaces import Workspace

SECONDS: Final = 60


class Presence(models.Model):
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_index=False)
    user = models.ForeignKey(User, on_delete=models.CASCADE)
    namespace = models.CharField(max_length=128, db_collation="C")
    key = models.TextField(db_collation="C")
    since = models.DateTimeField(db_default=Now())
    seen_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "presences"
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "namespace", "key", "user"], name="presences_of_unique"
            ),
        ]


class ActiveEditor(NamedTuple):
    """A user who edits an entry, and since when."""

    name: str
    since: datetime


_ANNOUNCE = f"""
INSERT INTO presences AS p (workspace_id, user_id, namespace, key)
VALUES (%(workspace)s, %(user)s, %(namespace)s, %(key)s)
ON CONFLICT (workspace_id, namespace, key, user_id) DO UPDATE SET seen_at = now(),
    since = CASE WHEN p.seen_at < now() - interval '{SECONDS} seconds' THEN now() ELSE p.since END
RETURNING 1
"""

_OTHERS = f"""
SELECT u.username, p.since
FROM presences p JOIN {User._meta.db_table} u ON u.id = p.user_id
WHERE p.workspace_id = %(workspace)s AND p.namespace = %(namespace)s AND p.key = %(key)s
    AND p.user_id <> %(user)s AND p.seen_at > now() - interval '{SECONDS} seconds'
ORDER BY p.since, u.username
"""


def announce(actor: Actor, namespace: str, key: str) -> list[ActiveEditor]:
    """Record that a user edits an entry now; returns the other users who do."""
    owner = {"workspace": actor.workspace_id, "user": int(actor.id)}
    subject = {**owner, "namespace": namespace, "key": key}
    hot.fetch_all(_ANNOUNCE, subject)
    return [ActiveEditor._make(row) for row in hot.fetch_all(_OTHERS, subject)]
