"""Tickets: points at which a run waits for a human decision, and the decision."""

from __future__ import annotations

from datetime import datetime
from typing import Self

from django.db import models
from django.db.models import Min, Q
from django.db.models.functions import Now

from .fields import RawJSON
from .runs import Run
from .visibility import VisibleQuerySet
from .workspaces import Workspace


class TicketStatus(models.TextChoices):
    PENDING = "pending"
    RESUMED = "resumed"
    CANCELLED = "cancelled"
    VOID = "void"


class OnExpiry(models.TextChoices):
    """What happens to a ticket that was not decided in time."""

    KEEP = "keep"  # the ticket remains open, and its run is stuck
    CANCEL = "cancel"


class TicketQuerySet(VisibleQuerySet["Ticket"]):
    thread_lookup = "run__thread__public_id"

    def pending(self) -> Self:
        return self.filter(status=TicketStatus.PENDING)

    def expired(self) -> Self:
        return self.filter(expires_at__lte=Now())

    def in_time(self) -> Self:
        return self.exclude(expires_at__lte=Now())

    def first_due(self) -> datetime | None:
        """The earliest expiry of those that stay open."""
        due: datetime | None
        due = self.filter(on_expiry=OnExpiry.KEEP).aggregate(due=Min("expires_at"))["due"]
        return due


class Ticket(models.Model):
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_index=False)
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="tickets")
    public_id = models.CharField(max_length=128, db_collation="C")
    tool_call_id = models.CharField(max_length=256, default="", blank=True)
    tool_name = models.CharField(max_length=256, default="", blank=True)
    arguments = RawJSON(default="null")
    resume_mode = models.CharField(max_length=32, default="replay_tool_call")
    reason = models.TextField(default="", blank=True)
    response_schema = RawJSON(null=True, blank=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    on_expiry = models.CharField(
        max_length=8, choices=OnExpiry.choices, default=OnExpiry.KEEP, db_default=OnExpiry.KEEP
    )
    status = models.CharField(
        max_length=12, choices=TicketStatus.choices, default=TicketStatus.PENDING
    )
    payload = RawJSON(null=True, blank=True)
    decided_by = models.CharField(max_length=150, default="", blank=True)
    decided_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = TicketQuerySet.as_manager()

    class Meta:
        db_table = "tickets"
        constraints = [
            models.UniqueConstraint(fields=["workspace", "public_id"], name="tickets_id_unique"),
        ]
        indexes = [
            # The inbox.
            models.Index(
                fields=["workspace", "id"],
                name="tickets_pending",
                condition=Q(status="pending"),
            ),
            # The sweep of those that expire automatically.
            models.Index(
                fields=["expires_at"],
                name="tickets_expiring",
                condition=Q(status="pending", on_expiry="cancel"),
            ),
        ]
