"""Runs: one activation of an agent on a thread."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Self

from django.db import models
from django.db.models import Count, F, Q
from django.db.models.functions import Now

from state_admin.domain import lifecycle
from state_admin.domain.lifecycle import RunStatus as DomainStatus

from .fields import RawJSON
from .threads import Thread
from .visibility import VisibleQuerySet
from .workspaces import Workspace


class RunStatus(models.TextChoices):
    CREATED = DomainStatus.CREATED.value
    RUNNING = DomainStatus.RUNNING.value
    WAITING = DomainStatus.WAITING.value
    DONE = DomainStatus.DONE.value


ACTIVE = (RunStatus.CREATED, RunStatus.RUNNING, RunStatus.WAITING)
# In these, a run has a lease, and neither waits nor has ended.
IN_PROGRESS = (RunStatus.CREATED, RunStatus.RUNNING)


class Origin(models.TextChoices):
    USER = "user"
    MCP = "mcp"
    SUBAGENT = "subagent"
    INTERNAL = "internal"


class RunQuerySet(VisibleQuerySet["Run"]):
    thread_lookup = "thread__public_id"

    def active(self) -> Self:
        return self.filter(status__in=ACTIVE)

    def timed(self) -> Self:
        """With `read_at`, the database's time, with which stuck runs are determined."""
        return self.annotate(read_at=Now())

    def stuck(self) -> Self:
        """Runs that require attention. `Run.stuck_reason` says why."""
        return self.filter(
            Q(status=RunStatus.RUNNING, lease_expires_at__lte=Now())
            | Q(status=RunStatus.RUNNING, lease_expires_at=None, lease_released_at__isnull=False)
            | Q(status=RunStatus.WAITING, deadline_at__lte=Now())
            | Q(status=RunStatus.WAITING, ticket_due_at__lte=Now())
            | Q(status__in=ACTIVE, max_rounds__gt=0, step_count__gte=F("max_rounds"))
            | Q(status__in=ACTIVE, times_out_at__lte=Now())
        )

    def count_by_workspace(self) -> list[tuple[str, int]]:
        """The names of workspaces and how many runs they have, the most first."""
        counts = self.values_list("workspace__slug").annotate(count=Count("pk"))
        return list(counts.order_by("-count", "workspace__slug"))


class Run(models.Model):
    workspace = models.ForeignKey(
        Workspace, on_delete=models.CASCADE, related_name="runs", db_index=False
    )
    thread = models.ForeignKey(Thread, on_delete=models.CASCADE, related_name="runs")
    public_id = models.CharField(max_length=128, db_collation="C")
    agent_id = models.CharField(max_length=128, default="", blank=True)
    status = models.CharField(max_length=8, choices=RunStatus.choices)
    # {"reason", "message", …} while waiting; its tickets are separate rows.
    waiting = models.JSONField(null=True, blank=True)
    termination_reason = models.JSONField(null=True, blank=True)
    parent_run_id = models.CharField(max_length=128, default="", blank=True, db_collation="C")
    parent_thread_id = models.CharField(
        max_length=128, default="", db_default="", blank=True, db_collation="C"
    )
    origin = models.CharField(max_length=16, choices=Origin.choices, default=Origin.USER)
    metadata = RawJSON(default="{}")
    created_from = RawJSON(default="{}")
    step_count = models.IntegerField(default=0)
    input_tokens = models.BigIntegerField(default=0)
    output_tokens = models.BigIntegerField(default=0)
    cost_usd = models.DecimalField(max_digits=14, decimal_places=6, default=0)
    max_rounds = models.IntegerField(default=0)
    times_out_at = models.DateTimeField(null=True, blank=True)
    deadline_at = models.DateTimeField(null=True, blank=True)
    lease_seconds = models.IntegerField(default=60)
    lease_expires_at = models.DateTimeField(null=True, blank=True)
    # When the lease was released. The run is running without a lease until a worker takes it over.
    lease_released_at = models.DateTimeField(null=True, blank=True)
    # Increased whenever the run may get another worker; requests with a lower token are refused.
    fencing_token = models.BigIntegerField(default=1, db_default=1)
    # The earliest expiry of its pending tickets that stay open.
    ticket_due_at = models.DateTimeField(null=True, blank=True)
    # Set by the lease sweep when it finds the run stuck; cleared by the next commit or heartbeat.
    flagged_at = models.DateTimeField(null=True, blank=True)
    start_revision = models.BigIntegerField(default=0)
    last_revision = models.BigIntegerField(default=0)
    revision_count = models.IntegerField(default=0, db_default=0)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    updated_at = models.DateTimeField(db_default=Now())
    # RunQuerySet.timed sets it.
    read_at: datetime

    objects = RunQuerySet.as_manager()

    class Meta:
        db_table = "runs"
        constraints = [
            models.UniqueConstraint(fields=["workspace", "public_id"], name="runs_id_unique"),
            # At most one active run per thread.
            models.UniqueConstraint(
                fields=["thread"],
                name="runs_one_active_per_thread",
                condition=Q(status__in=["created", "running", "waiting"]),
            ),
        ]
        indexes = [
            # The list of runs, newest first, and per status.
            models.Index(fields=["workspace", "-id"], name="runs_newest"),
            # The runs and threads of one agent.
            models.Index(fields=["workspace", "agent_id", "-id"], name="runs_by_agent"),
            # The runs that a run delegated to. Partial, because few runs have a parent.
            models.Index(
                fields=["workspace", "parent_run_id", "id"],
                name="runs_by_parent",
                condition=~Q(parent_run_id=""),
            ),
            # The lease sweep, the stuck list and the overview read only active runs.
            models.Index(
                fields=["workspace", "status"],
                name="runs_active",
                condition=~Q(status="done"),
            ),
        ]

    def __str__(self) -> str:
        return self.public_id

    @property
    def duration(self) -> timedelta | None:
        """From its creation to its end."""
        return self.finished_at - self.created_at if self.finished_at else None

    def stuck_reason(self, now: datetime) -> str:
        """Why the run requires attention, as text; "" if it does not."""
        return lifecycle.stuck_reason(
            status=self.status,
            now=now,
            lease_expires_at=self.lease_expires_at,
            lease_seconds=self.lease_seconds,
            lease_released_at=self.lease_released_at,
            ticket_due_at=self.ticket_due_at,
            deadline_at=self.deadline_at,
            times_out_at=self.times_out_at,
            step_count=self.step_count,
            max_rounds=self.max_rounds,
        )
