"""The storage of a workspace, measured daily: in total, by namespace, by thread."""

from __future__ import annotations

from datetime import datetime
from typing import Self

from django.db import models
from django.utils import timezone

from state_admin.domain.access import Actor
from state_admin.domain.storage import Counts

from .namespaces import Namespace
from .threads import Thread
from .visibility import within_limits
from .workspaces import Workspace


class StorageSampleQuerySet(models.QuerySet["StorageSample"]):
    def visible_to(self, actor: Actor) -> Self:
        return self.filter(within_limits(actor))

    def totals(self) -> Self:
        """Samples of whole workspaces."""
        return self.filter(namespace=None, thread=None)

    def biggest_first(self) -> Self:
        return self.order_by("-total_bytes", "-pk")


class StorageSample(models.Model):
    """The last measurement of a day (UTC): of a namespace, of a thread, or, with neither, of the
    workspace. Rows of previous days are not changed."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_index=False)
    # Without constraints: their check would lock the row of a thread that a run is writing to. Rows
    # of a thread are deleted with it (erasures_sql.DELETED); namespaces are never deleted.
    namespace = models.ForeignKey(
        Namespace, null=True, blank=True, on_delete=models.CASCADE, related_name="+",
        db_index=False, db_constraint=False,
    )  # fmt: skip
    thread = models.ForeignKey(
        Thread, null=True, blank=True, on_delete=models.CASCADE, related_name="+",
        db_index=False, db_constraint=False,
    )  # fmt: skip
    day = models.DateField()
    measured_at = models.DateTimeField()
    # The measurements, with the names of domain.storage.Counts.
    entries = models.BigIntegerField(default=0)
    entry_bytes = models.BigIntegerField(default=0)
    history_rows = models.BigIntegerField(default=0)
    history_bytes = models.BigIntegerField(default=0)
    threads = models.BigIntegerField(default=0)
    messages = models.BigIntegerField(default=0)
    message_bytes = models.BigIntegerField(default=0)
    state_rows = models.BigIntegerField(default=0)
    state_bytes = models.BigIntegerField(default=0)
    estimated_tokens = models.BigIntegerField(default=0)
    total_rows = models.BigIntegerField(default=0)
    total_bytes = models.BigIntegerField(default=0)
    # Of the compactions that ended on this day and were not undone.
    tokens_saved = models.BigIntegerField(default=0)
    rows_removed = models.BigIntegerField(default=0)

    objects = StorageSampleQuerySet.as_manager()

    class Meta:
        db_table = "storage_samples"
        constraints = [
            # The series of one namespace, thread or workspace; a measurement overwrites today's
            # row.
            models.UniqueConstraint(
                fields=["workspace", "namespace", "thread", "day"],
                name="storage_samples_of_unique",
                nulls_distinct=False,
            ),
        ]
        indexes = [
            # The samples of one day, largest first.
            models.Index(
                fields=["workspace", "day", "-total_bytes", "-id"], name="storage_samples_biggest"
            ),
            # Retention.
            models.Index(fields=["day"], name="storage_samples_day"),
        ]

    @classmethod
    def of(
        cls,
        counts: Counts,
        *,
        workspace_id: int,
        measured_at: datetime | None = None,
        namespace_id: int | None = None,
        thread_id: int | None = None,
    ) -> Self:
        """A sample that is not saved."""
        at = measured_at or timezone.now()
        return cls(
            workspace_id=workspace_id,
            namespace_id=namespace_id,
            thread_id=thread_id,
            day=at.date(),
            measured_at=at,
            total_rows=counts.rows,
            total_bytes=counts.bytes,
            **counts.to_json(),
        )
