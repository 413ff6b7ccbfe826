"""The reads that runs report: which version of which entry, at which step."""

from __future__ import annotations

from typing import Self

from django.db import models
from django.db.models import F, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce, Now

from .entries import Entry
from .runs import Run
from .threads import Thread
from .visibility import VisibleQuerySet
from .workspaces import Workspace


class RunReadQuerySet(VisibleQuerySet["RunRead"]):
    namespace_lookup = "namespace"
    thread_lookup = "thread__public_id"

    def behind(self, version: int, row_id: int) -> Self:
        """The rows after a given one, with the newest version first."""
        return self.filter(Q(version__lt=version) | Q(version=version, id__lt=row_id))

    def with_current(self) -> Self:
        """Each with `current`, the version that a read returns now; 0 if there is none."""
        entry = (
            Entry.objects.all()
            .live()
            .filter(
                namespace__workspace_id=OuterRef("workspace_id"),
                namespace__name=OuterRef("namespace"),
                key=OuterRef("key"),
            )
        )
        return self.annotate(current=Coalesce(Subquery(entry.values("version")[:1]), 0))

    def stale(self) -> Self:
        """Reads whose entry has another version now, or had at the commit. After with_current."""
        return self.exclude(version=F("current"), held=F("version"))


class RunRead(models.Model):
    """One read that a commit reported. Version 0: the entry did not exist."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_index=False)
    thread = models.ForeignKey(Thread, on_delete=models.CASCADE, related_name="+", db_index=False)
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="reads", db_index=False)
    revision = models.BigIntegerField()
    step = models.IntegerField()
    namespace = models.CharField(max_length=128, db_collation="C")
    key = models.TextField(db_collation="C")
    version = models.BigIntegerField()
    # The version of the entry when the step was committed.
    held = models.BigIntegerField()
    at = models.DateTimeField(db_default=Now(), editable=False)
    # RunReadQuerySet.with_current sets it.
    current: int

    objects = RunReadQuerySet.as_manager()

    class Meta:
        db_table = "run_reads"
        constraints = [
            # The reads of a revision; they are deleted with their thread.
            models.UniqueConstraint(
                fields=["thread", "revision", "namespace", "key", "version"],
                name="run_reads_once",
            ),
        ]
        indexes = [
            # The reads of a run, newest first.
            models.Index(fields=["run", "-id"], name="run_reads_of_run"),
            # The readers of a version.
            models.Index(
                fields=["workspace", "namespace", "key", "version", "id"],
                name="run_reads_of_entry",
            ),
        ]
