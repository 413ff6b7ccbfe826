"""The mailbox: durable, leased units of background work for a thread."""

from __future__ import annotations

from typing import Self

from django.db import models
from django.db.models import Count, Q
from django.db.models.functions import Now

from .fields import RawJSON
from .runs import Run
from .threads import Thread
from .visibility import VisibleQuerySet
from .workspaces import Workspace


class DispatchStatus(models.TextChoices):
    """The values in the API, in the spelling of the reference implementation."""

    QUEUED = "Queued"
    CLAIMED = "Claimed"
    # Acknowledged, which does not mean that the work succeeded; the run has that result.
    ACKED = "Acked"
    CANCELLED = "Cancelled"
    SUPERSEDED = "Superseded"
    DEAD = "DeadLetter"


OPEN = (DispatchStatus.QUEUED, DispatchStatus.CLAIMED)


class Mailbox(models.Model):
    """The state shared by a thread's dispatches, created with the first one.

    Every change of a dispatch locks this row, so that a mailbox does one thing at a time. The row
    contains what a claim would return, so that claims walk mailboxes in order and skip dispatches
    behind a claimed one. Only `dispatches_sql.refresh` computes that.
    """

    thread = models.OneToOneField(
        Thread, on_delete=models.CASCADE, primary_key=True, related_name="mailbox"
    )
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_index=False)
    # Increased by each interrupt; a dispatch with a lower epoch is superseded.
    epoch = models.BigIntegerField(default=0)
    # The first available dispatch, with the columns that claims filter by. NULL: none is available,
    # or one is claimed.
    next_id = models.BigIntegerField(null=True, blank=True)
    next_priority = models.SmallIntegerField(null=True, blank=True)
    next_agent = models.CharField(max_length=128, default="", blank=True)
    # When that changes without a write: a lease expires, or a queued dispatch becomes available.
    due_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "mailboxes"
        indexes = [
            # A claim in a workspace, and one for an agent: the first free threads, in order.
            models.Index(
                fields=["workspace", "next_priority", "next_id"],
                name="mailboxes_next",
                condition=Q(next_id__isnull=False),
            ),
            models.Index(
                fields=["workspace", "next_agent", "next_priority", "next_id"],
                name="mailboxes_next_of_agent",
                condition=Q(next_id__isnull=False),
            ),
            # Before a claim, and in the sweep: mailboxes that are due.
            models.Index(
                fields=["workspace", "due_at"],
                name="mailboxes_due",
                condition=Q(due_at__isnull=False),
            ),
        ]


class DispatchQuerySet(VisibleQuerySet["Dispatch"]):
    thread_lookup = "thread__public_id"

    def dead(self) -> Self:
        return self.filter(status=DispatchStatus.DEAD)

    def concerning(self, *, thread_id: str = "", agent_id: str = "") -> Self:
        """Those of one thread and of one agent; "" means any."""
        rows = self.filter(thread__public_id=thread_id) if thread_id else self
        return rows.filter(agent_id=agent_id) if agent_id else rows

    def count_by_status(self) -> dict[str, int]:
        """The number of each status, zeros included."""
        counted = self.order_by().values_list("status").annotate(number=Count("pk"))
        return {**dict.fromkeys(DispatchStatus.values, 0), **dict(counted)}

    def bounded_counts(self, most: int) -> dict[str, int]:
        """As count_by_status, with a limit for pages: `most` + 1 means "more than `most`"."""
        rows = self.order_by()
        return {s: rows.filter(status=s)[: most + 1].count() for s in DispatchStatus.values}


class Dispatch(models.Model):
    """One unit of work. Order is by priority (0 first), then by id, that is by age."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_index=False)
    thread = models.ForeignKey(
        Thread, on_delete=models.CASCADE, related_name="dispatches", db_index=False
    )
    public_id = models.CharField(max_length=36, db_collation="C")
    run = models.ForeignKey(
        Run, null=True, blank=True, on_delete=models.CASCADE, related_name="dispatches"
    )
    agent_id = models.CharField(max_length=128, default="", blank=True)
    payload = RawJSON(default="null")
    priority = models.SmallIntegerField(default=128)
    available_at = models.DateTimeField(db_default=Now())
    dedupe_key = models.CharField(max_length=256, default="", blank=True, db_collation="C")
    epoch = models.BigIntegerField(default=0)
    status = models.CharField(
        max_length=10, choices=DispatchStatus.choices, default=DispatchStatus.QUEUED
    )
    # Failures: by nack, or by an expired lease.
    attempts = models.IntegerField(default=0)
    max_attempts = models.IntegerField(default=5)
    replays = models.IntegerField(default=0)
    # Why the last attempt failed.
    last_error = models.TextField(default="", blank=True)
    # The digest of the claim token; "" if it is not claimed.
    claim_digest = models.CharField(max_length=64, default="", blank=True)
    claimed_by = models.CharField(max_length=150, default="", blank=True)
    claimed_at = models.DateTimeField(null=True, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    updated_at = models.DateTimeField(db_default=Now())
    finished_at = models.DateTimeField(null=True, blank=True)

    objects = DispatchQuerySet.as_manager()

    class Meta:
        db_table = "dispatches"
        constraints = [
            models.UniqueConstraint(fields=["workspace", "public_id"], name="dispatches_id_unique"),
            # At most one claimed dispatch per thread; also finds it.
            models.UniqueConstraint(
                fields=["thread"],
                name="dispatches_one_claimed_per_thread",
                condition=Q(status="Claimed"),
            ),
            # At most one unfinished dispatch per dedupe key.
            models.UniqueConstraint(
                fields=["thread", "dedupe_key"],
                name="dispatches_dedupe",
                condition=Q(status__in=["Queued", "Claimed"]) & ~Q(dedupe_key=""),
            ),
        ]
        indexes = [
            # The next one of a thread; includes available_at so that dispatches that are not
            # available yet are skipped within the index.
            models.Index(
                fields=["thread", "priority", "id", "available_at"],
                name="dispatches_line",
                condition=Q(status="Queued"),
            ),
            # When the next one of a thread becomes available.
            models.Index(
                fields=["thread", "available_at"],
                name="dispatches_delayed",
                condition=Q(status="Queued"),
            ),
            # The lists, newest first: of a workspace, by status (dead letters, counts), of a thread.
            models.Index(fields=["workspace", "-id"], name="dispatches_newest"),
            models.Index(fields=["workspace", "status", "-id"], name="dispatches_by_status"),
            models.Index(fields=["thread", "-id"], name="dispatches_of_thread"),
            # Retention deletes finished ones, by age.
            models.Index(
                fields=["status", "finished_at"],
                name="dispatches_finished",
                condition=Q(finished_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return self.public_id
