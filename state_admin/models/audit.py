"""The audit log: one row per write."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Self

from django.contrib.postgres.indexes import BrinIndex
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from state_admin.domain.access import Actor

from .creation_times import OPEN, id_at, shift_moment
from .stamps import ActorStamp
from .visibility import glob_regex, thread_prefix
from .workspaces import Workspace


def narrowed(actor: Actor) -> Q:
    """The rows of an actor's workspace that a restricted token may see: those about its namespaces
    and threads, and those about neither."""
    visible = Q(workspace_id=actor.workspace_id)
    if actor.namespaces:
        visible &= Q(namespace="") | Q(namespace__regex=glob_regex(actor.namespaces))
    if actor.thread_prefixes:
        visible &= Q(thread="") | thread_prefix(actor.thread_prefixes, "thread")
    return visible


class AuditQuerySet(models.QuerySet["AuditRow"]):
    def visible_to(self, actor: Actor) -> Self:
        return self.filter(narrowed(actor))

    def of_action(self, action: str) -> Self:
        """Rows of one action such as `entry.put`, or of all actions on a noun such as `entry`."""
        return self.filter(Q(action=action) | Q(action__startswith=f"{action}."))

    def about(self, subject: str) -> Self:
        """Rows about `namespace/key`, or about a namespace, key, thread or run with this name."""
        namespace, _, key = subject.partition("/")
        condition = Q(namespace=subject) | Q(key=subject) | Q(thread=subject) | Q(run=subject)
        return self.filter(condition | Q(namespace=namespace, key=key) if key else condition)

    def since(self, moment: datetime, owner: Mapping[str, int]) -> Self:
        """`owner`: see creation_times.id_at."""
        first = id_at(self.model, "at", shift_moment(moment, -OPEN), owner)
        return self.filter(at__gte=moment, pk__gte=first)

    def until(self, moment: datetime, owner: Mapping[str, int]) -> Self:
        end = id_at(self.model, "at", shift_moment(moment, OPEN), owner)
        return self.filter(at__lte=moment, pk__lt=end)

    def nth_newest(self, number: int) -> int | None:
        """The id of the row at position `number` from the newest: one range of
        audit_workspace_newest."""
        ids = self.order_by("-pk").values_list("pk", flat=True)
        return next(iter(ids[number - 1 : number]), None)


class AuditRow(ActorStamp):
    """One write. Inserted in the transaction of the write, so that no write lacks its audit row."""

    # No constraint: its check would make all writers lock the single row of the workspace.
    workspace = models.ForeignKey(
        Workspace, on_delete=models.CASCADE, db_index=False, db_constraint=False
    )
    at = models.DateTimeField(db_default=Now(), editable=False)
    # noun.verb, for example `entry.put` or `run.done`
    action = models.CharField(max_length=48)
    namespace = models.CharField(max_length=128, default="", db_default="", db_collation="C")
    key = models.TextField(default="", db_default="", db_collation="C")
    thread = models.CharField(max_length=128, default="", db_default="", db_collation="C")
    run = models.CharField(max_length=128, default="", db_default="", db_collation="C")
    # The version or revision that the write created, or 0.
    version = models.BigIntegerField(default=0, db_default=0)
    detail = models.JSONField(default=dict, db_default={})

    objects = AuditQuerySet.as_manager()

    class Meta:
        db_table = "audit"
        indexes = [
            # The audit page and GET /audit: newest first within a workspace.
            models.Index(fields=["workspace", "-id"], name="audit_workspace_newest"),
            # Retention and "since": rows arrive in time order, so BRIN is enough.
            BrinIndex(fields=["at"], name="audit_at_brin"),
        ]
