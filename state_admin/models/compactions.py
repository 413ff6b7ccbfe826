"""Compactions: one row per job that replaces history by a summary or removes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from django.db import models
from django.db.models import OuterRef, Q, Subquery
from django.db.models.functions import JSONObject, Now

from state_admin.domain.access import Actor

from .fields import RawJSON
from .leases import LeasedQuerySet, LeasedRow
from .messages import Message
from .namespaces import Namespace
from .threads import Thread
from .visibility import within_limits
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


class Phase(models.TextChoices):
    """The phase of a running job."""

    CLAIMED = "claimed", "started"
    PLANNING = "planning", "selecting messages"
    ASKING = "asking", "waiting for the summary"
    APPLYING = "applying", "saving the summary"


UNFINISHED = (CompactionStatus.QUEUED, CompactionStatus.RUNNING)


def context_now() -> JSONObject:
    """For UPDATE: the `progress` of a job, with the current length of its thread's context."""
    threads = Thread.objects.filter(pk=OuterRef("thread_id"))
    return JSONObject(context_tokens=Subquery(threads.values("context_tokens")))


class CompactionQuerySet(LeasedQuerySet["Compaction"]):
    waiting = (CompactionStatus.QUEUED,)
    working = CompactionStatus.RUNNING
    due = "available_at"

    def visible_to(self, actor: Actor) -> Self:
        return self.filter(within_limits(actor))


class Compaction(LeasedRow):
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
    phase = models.CharField(
        max_length=8, choices=Phase.choices, default="", db_default="", blank=True
    )
    requested_by = models.CharField(max_length=150)
    reason = models.TextField(default="", db_default="", blank=True)
    # The policy at the time of the job, which explains it after the policy has changed.
    policy = RawJSON(default="{}")
    boundary_seq = models.IntegerField(null=True, blank=True)
    boundary_message_id = models.CharField(max_length=128, default="", blank=True)
    tokens_before = models.BigIntegerField(null=True, blank=True)
    tokens_after = models.BigIntegerField(null=True, blank=True)
    # Of snapshot and history compaction: the newest revision that may be removed, and the rows
    # before and removed.
    to_revision = models.BigIntegerField(null=True, blank=True)
    rows_before = models.BigIntegerField(null=True, blank=True)
    rows_removed = models.BigIntegerField(default=0)
    bytes_before = models.BigIntegerField(null=True, blank=True)
    bytes_removed = models.BigIntegerField(default=0, db_default=0)
    # Where the next worker continues (services/retention.py). Of context compaction: the length of
    # the context when the job ended, or when a later undo changed it.
    progress = models.JSONField(default=dict, db_default={})
    summary = models.ForeignKey(
        Message, null=True, blank=True, on_delete=models.SET_NULL, related_name="+", db_index=False
    )
    summary_text = models.TextField(default="", blank=True)
    summarizer = models.CharField(max_length=64, default="", blank=True)
    provider = models.CharField(max_length=128, default="", blank=True)
    model = models.CharField(max_length=128, default="", blank=True)
    # The instructions for the model. Its other input is the messages up to the boundary.
    instructions = models.TextField(default="", blank=True)
    input_tokens = models.BigIntegerField(default=0)
    output_tokens = models.BigIntegerField(default=0)
    cost_usd = models.DecimalField(max_digits=14, decimal_places=6, default=0)
    # Why it was skipped, failed or superseded.
    detail = models.TextField(default="", blank=True)
    available_at = models.DateTimeField(db_default=Now())
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    undone_at = models.DateTimeField(null=True, blank=True)
    undone_by = models.CharField(max_length=150, default="", blank=True)

    # The tab of a thread sets it: which of its actions are possible.
    can: Mapping[str, bool]

    objects = CompactionQuerySet.as_manager()

    class Meta:
        db_table = "compactions"
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "public_id"], name="compactions_id_unique"
            ),
            # At most one per thread and kind at a time.
            models.UniqueConstraint(
                fields=["thread", "kind"],
                name="compactions_single_flight",
                condition=Q(status__in=["queued", "running"]),
            ),
            models.UniqueConstraint(
                fields=["namespace", "kind"],
                name="compactions_single_history",
                condition=Q(status__in=["queued", "running"]),
            ),
        ]
        indexes = [
            models.Index(fields=["workspace", "-id"], name="compactions_newest"),
            # What the compactions of a day saved.
            models.Index(
                fields=["workspace", "finished_at"],
                name="compactions_done",
                condition=Q(status="done"),
            ),
            # Choosing the next job, and finding jobs that the broker lost: the waiting jobs per
            # workspace.
            models.Index(
                fields=["workspace", "available_at"],
                name="compactions_unfinished",
                condition=Q(status__in=["queued", "running"]),
            ),
            # When a job of a workspace was last started.
            models.Index(
                fields=["workspace", "started_at"],
                name="compactions_served",
                condition=Q(started_at__isnull=False),
            ),
        ]

    @property
    def rows_after(self) -> int | None:
        return None if self.rows_before is None else self.rows_before - self.rows_removed

    @property
    def bytes_after(self) -> int | None:
        return None if self.bytes_before is None else self.bytes_before - self.bytes_removed
