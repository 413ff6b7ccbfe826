"""Compactions: every replacement of a long history by less is a row people can see (semantics §8)."""

from __future__ import annotations

from typing import Self

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from state_admin.domain.access import Actor

from .fields import RawJSON
from .messages import Message
from .namespaces import Namespace, glob_regex
from .threads import Thread, thread_prefix
from .workspaces import Workspace


class CompactionKind(models.TextChoices):
    CONTEXT = "context"
    SNAPSHOT = "snapshot"
    HISTORY = "history"


class CompactionStatus(models.TextChoices):
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    SKIPPED = "skipped"
    FAILED = "failed"
    SUPERSEDED = "superseded"
    CANCELLED = "cancelled"
    UNDONE = "undone"


class Trigger(models.TextChoices):
    THRESHOLD = "threshold"
    HAND = "hand"
    SCHEDULE = "schedule"


UNFINISHED = (CompactionStatus.QUEUED, CompactionStatus.RUNNING)


class CompactionQuerySet(models.QuerySet["Compaction"]):
    def visible_to(self, actor: Actor) -> Self:
        rows = self.filter(workspace_id=actor.workspace_id)
        if actor.thread_prefixes:
            rows = rows.filter(thread_prefix(actor.thread_prefixes, "thread__public_id"))
        if actor.namespaces:
            seen = Q(namespace__name__regex=glob_regex(actor.namespaces))
            rows = rows.filter(Q(namespace=None) | seen)
        return rows

    def claimable(self) -> Self:
        """Queued, or running under a lease that its worker let expire."""
        return self.filter(
            Q(status=CompactionStatus.QUEUED, available_at__lte=Now())
            | Q(status=CompactionStatus.RUNNING, lease_expires_at__lte=Now())
        )


class Compaction(models.Model):
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_index=False)
    public_id = models.CharField(max_length=128, db_collation="C")
    kind = models.CharField(max_length=8, choices=CompactionKind.choices)
    status = models.CharField(
        max_length=12, choices=CompactionStatus.choices, default=CompactionStatus.QUEUED
    )
    trigger = models.CharField(max_length=12, choices=Trigger.choices)
    thread = models.ForeignKey(
        Thread, null=True, blank=True, on_delete=models.CASCADE, related_name="compactions"
    )
    namespace = models.ForeignKey(
        Namespace, null=True, blank=True, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    requested_by = models.CharField(max_length=150)
    # The policy that was in force, so that a later change of policy explains nothing away.
    policy = RawJSON(default="{}")
    boundary_seq = models.IntegerField(null=True, blank=True)
    boundary_message_id = models.CharField(max_length=128, default="", blank=True)
    tokens_before = models.BigIntegerField(null=True, blank=True)
    tokens_after = models.BigIntegerField(null=True, blank=True)
    # Rows removed by snapshot and history compaction.
    rows_removed = models.BigIntegerField(default=0)
    summary = models.ForeignKey(
        Message, null=True, blank=True, on_delete=models.SET_NULL, related_name="+", db_index=False
    )
    summary_text = models.TextField(default="", blank=True)
    summarizer = models.CharField(max_length=64, default="", blank=True)
    model = models.CharField(max_length=128, default="", blank=True)
    cost_usd = models.DecimalField(max_digits=14, decimal_places=6, default=0)
    # Why it was skipped, failed or superseded, in words.
    detail = models.TextField(default="", blank=True)
    attempts = models.IntegerField(default=0)
    available_at = models.DateTimeField(db_default=Now())
    lease_expires_at = models.DateTimeField(null=True, blank=True)
    # Fencing: a worker that lost its lease finds another number here and stops.
    claim = models.BigIntegerField(default=0)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    undone_at = models.DateTimeField(null=True, blank=True)
    undone_by = models.CharField(max_length=150, default="", blank=True)

    objects = CompactionQuerySet.as_manager()

    class Meta:
        db_table = "compactions"
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "public_id"], name="compactions_id_unique"
            ),
            # One at a time per thread (semantics §8.6), decided by the database.
            models.UniqueConstraint(
                fields=["thread", "kind"],
                name="compactions_single_flight",
                condition=Q(status__in=["queued", "running"]),
            ),
        ]
        indexes = [
            models.Index(fields=["workspace", "-id"], name="compactions_newest"),
            # The sweep that finds what the broker lost.
            models.Index(
                fields=["available_at"],
                name="compactions_unfinished",
                condition=Q(status__in=["queued", "running"]),
            ),
        ]
