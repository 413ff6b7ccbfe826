"""The change feed: one row per change, inserted in the transaction of the write."""

from __future__ import annotations

from typing import Self

from django.contrib.postgres.indexes import BrinIndex
from django.db import models
from django.db.models.functions import Now

from state_admin.domain.access import Actor

from .audit import narrowed
from .fields import FeedClock, Xid8
from .workspaces import Workspace


class ChangeQuerySet(models.QuerySet["Change"]):
    def visible_to(self, actor: Actor) -> Self:
        return self.filter(narrowed(actor))


class Change(models.Model):
    """One change. Order is (xid, id): ids are assigned before the commit, so that a reader that
    follows ids would skip transactions that commit late.

    `xid` is a clock: the writing transaction, or the latest one that had ended when the change was
    recorded, whichever is later. The transaction's own number could be too early: a transaction
    gets it at its first write, and may then wait for another with a higher number that changes the
    same resource first. Record a change after its resource is locked; the order is then right,
    because the second of two changes sees that the transaction of the first has ended.
    """

    # No constraint: its check would make all writers lock the single row of the workspace.
    workspace = models.ForeignKey(
        Workspace, on_delete=models.CASCADE, db_index=False, db_constraint=False
    )
    xid = Xid8(db_default=FeedClock(), editable=False)
    at = models.DateTimeField(db_default=Now(), editable=False)
    # noun.verb, as in the audit log
    kind = models.CharField(max_length=48)
    namespace = models.CharField(max_length=128, default="", db_default="", db_collation="C")
    key = models.TextField(default="", db_default="", db_collation="C")
    thread = models.CharField(max_length=128, default="", db_default="", db_collation="C")
    run = models.CharField(max_length=128, default="", db_default="", db_collation="C")
    version = models.BigIntegerField(default=0, db_default=0)
    actor_name = models.CharField(max_length=150, default="", db_default="")
    # The span that made the change, for the deliveries of webhooks; empty if traces are off.
    traceparent = models.CharField(max_length=55, default="", db_default="")

    objects = ChangeQuerySet.as_manager()

    class Meta:
        db_table = "changes"
        indexes = [
            # The feed reads a workspace in commit order from a cursor.
            models.Index(fields=["workspace", "xid", "id"], name="changes_feed_order"),
            # Retention deletes by age.
            BrinIndex(fields=["at"], name="changes_at_brin"),
        ]
