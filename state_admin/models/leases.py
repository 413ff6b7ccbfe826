"""Rows that one worker at a time processes under a lease: compactions, reverts, webhook deliveries.

A claim takes a free row: one that is due and not claimed, or one whose lease has expired. It begins
a lease and increments `claim`, a fencing token against the previous worker: every later step is an
UPDATE of `held`. The rule is here as a queryset and as SQL for the statements that choose the next
row.

Not here: dispatches, which external workers claim by mailbox and hold by a token (dispatches_sql),
and runs, whose lease is taken over while they work (services/leases.py).
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, ClassVar, Self, TypeVar

from django.db import models
from django.db.models import Exists, F, OuterRef, Q
from django.db.models.functions import Now

from .workspaces import Workspace


class LeasedRow(models.Model):
    # Claims, including those of workers that died.
    attempts = models.IntegerField(default=0)
    lease_expires_at = models.DateTimeField(null=True, blank=True)
    # The fencing token: a worker that lost its lease finds another number and writes nothing.
    claim = models.BigIntegerField(default=0)

    class Meta:
        abstract = True


_Row = TypeVar("_Row", bound=LeasedRow)


class LeasedQuerySet(models.QuerySet[_Row]):
    """`waiting` and `working` are statuses. `due` is the column with the time from which a waiting
    row may be claimed."""

    waiting: ClassVar[tuple[str, ...]]
    working: ClassVar[str]
    due: ClassVar[str]

    def claimable(self) -> Self:
        """Waiting and due, or with an expired lease."""
        return self.filter(
            Q(status__in=self.waiting, **{f"{self.due}__lte": Now()})
            | Q(status=self.working, lease_expires_at__lte=Now())
        )

    def in_open_workspaces(self) -> Self:
        """Without those of workspaces that refuse writes. Not by a join, with which Django would not
        check the conditions of an UPDATE again after a wait for the row."""
        return self.filter(~Exists(Workspace.objects.frozen().filter(pk=OuterRef("workspace_id"))))

    def held(self, pk: int, claim: int) -> Self:
        """The row, unless it was finished, cancelled or claimed again since the claim."""
        return self.filter(pk=pk, claim=claim, status=self.working)

    @classmethod
    def claimed(cls, lease: timedelta) -> dict[str, Any]:
        """The columns of a claim for UPDATE: a lease of the duration `lease`."""
        return {
            "status": cls.working,
            "attempts": F("attempts") + 1,
            "claim": F("claim") + 1,
            "lease_expires_at": Now() + lease,
        }

    @classmethod
    def claimable_sql(cls, row: str) -> str:
        """The condition of `claimable` in SQL for a table with the alias `row`."""
        waiting = ", ".join(f"'{status}'" for status in cls.waiting)
        return f"""(
    ({row}.status IN ({waiting}) AND {row}.{cls.due} <= statement_timestamp())
    OR ({row}.status = '{cls.working}' AND {row}.lease_expires_at <= statement_timestamp())
)"""

    @classmethod
    def claimed_sql(cls, row: str) -> str:
        """The same columns as `claimed` for SQL, with the parameter `lease`."""
        return f"""status = '{cls.working}', attempts = {row}.attempts + 1,
    claim = {row}.claim + 1, lease_expires_at = statement_timestamp() + %(lease)s"""
