"""Reverts: one row per job that undoes the writes of a request or restores entries to a moment, and one
per entry that is not yet reverted or was skipped.

The rows of entries are created when the job searches for them, and deleted when their entry is reverted. Those of skipped entries remain, with the reason.
"""

from __future__ import annotations

from typing import Self

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from state_admin.domain.access import Actor
from state_admin.domain.moments import readable

from .leases import LeasedQuerySet, LeasedRow
from .stamps import ActorStamp
from .visibility import VisibleQuerySet
from .workspaces import Workspace


class RevertStatus(models.TextChoices):
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


UNFINISHED = (RevertStatus.QUEUED, RevertStatus.RUNNING)
# As the tag change of an entry: the request changed several tags of it, or a tag and something else.
MIXED = "*"


class RevertQuerySet(LeasedQuerySet["Revert"]):
    waiting = (RevertStatus.QUEUED,)
    working = RevertStatus.RUNNING
    due = "available_at"

    def visible_to(self, actor: Actor) -> Self:
        """Those of the workspace; for a token with limits, its own ones."""
        rows = self.filter(workspace_id=actor.workspace_id)
        return rows.by(actor) if actor.restricted else rows

    def by(self, actor: Actor) -> Self:
        return self.filter(actor_kind=actor.kind, actor_id=actor.id)


class Revert(LeasedRow, ActorStamp):
    """A job that reverts the writes of the request `target`, or, with `at`, those since then to the entries
    that `filters` select. It writes on behalf of the actor that requested it, with `public_id` as the
    request id, so it can be reverted like a request."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_index=False)
    public_id = models.CharField(max_length=64, db_collation="C")
    # With `at`: that time and a digest of the filters, so that each selection has one unfinished job.
    target = models.CharField(max_length=64, db_collation="C")
    at = models.DateTimeField(null=True, blank=True)
    filters = models.JSONField(default=dict, db_default={}, blank=True)
    status = models.CharField(
        max_length=9, choices=RevertStatus.choices, default=RevertStatus.QUEUED
    )
    # The limits of the actor's token (Actor.namespaces), and the run on whose behalf it writes.
    namespaces = models.JSONField(default=list)
    run = models.CharField(max_length=128, default="", blank=True)
    # Entries: all (NULL: the search has not ended), and how many were reverted and skipped so far.
    total = models.BigIntegerField(null=True, blank=True)
    reverted = models.BigIntegerField(default=0)
    skipped = models.BigIntegerField(default=0)
    # Where the next worker continues (services/revert_jobs.py).
    progress = models.JSONField(default=dict)
    # Why it failed, or waits for another attempt.
    detail = models.TextField(default="", blank=True)
    available_at = models.DateTimeField(db_default=Now())
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    objects = RevertQuerySet.as_manager()

    class Meta:
        db_table = "reverts"
        constraints = [
            models.UniqueConstraint(fields=["workspace", "public_id"], name="reverts_id_unique"),
            # A repeated request by the same actor finds the unfinished one.
            models.UniqueConstraint(
                fields=["workspace", "target", "actor_kind", "actor_id"],
                name="reverts_single_flight",
                condition=Q(status__in=["queued", "running"]),
            ),
        ]
        indexes = [
            models.Index(fields=["workspace", "-id"], name="reverts_newest"),
            # Finding jobs without a worker.
            models.Index(
                fields=["available_at"],
                name="reverts_unfinished",
                condition=Q(status__in=["queued", "running"]),
            ),
            # Deleting old ones.
            models.Index(
                fields=["finished_at"],
                name="reverts_finished",
                condition=Q(finished_at__isnull=False),
            ),
        ]

    @property
    def subject(self) -> str:
        """What it reverts, in plain text."""
        if self.at is None:
            return self.target
        filters = (f"{name.replace('_', ' ')} {text}" for name, text in self.filters.items())
        return f"{', '.join(filters)} since {readable(self.at)}"

    @property
    def examined(self) -> int:
        return self.reverted + self.skipped


class RevertEntryQuerySet(VisibleQuerySet["RevertEntry"]):
    namespace_lookup = "namespace"

    def skipped(self) -> Self:
        return self.exclude(why="")


class RevertEntry(models.Model):
    """An entry that a job found, with the version that it must still have: the newest one of the request,
    or that of the search."""

    # Without a foreign key in the database: the row of the job has it.
    workspace = models.ForeignKey(
        Workspace, on_delete=models.CASCADE, db_index=False, db_constraint=False
    )
    revert = models.ForeignKey(
        Revert, on_delete=models.CASCADE, db_index=False, related_name="entries"
    )
    namespace = models.CharField(max_length=128, db_collation="C")
    key = models.TextField(db_collation="C")
    version = models.BigIntegerField()
    # The tag that the request added (`-` and the tag: to be removed) or removed (`+`), or MIXED. Else "".
    tag_change = models.CharField(max_length=65, default="", blank=True)
    # Why it was skipped; "": not examined yet.
    why = models.TextField(default="", blank=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = RevertEntryQuerySet.as_manager()

    class Meta:
        db_table = "revert_entries"
        constraints = [
            # The order in which the job reverts them.
            models.UniqueConstraint(
                fields=["revert", "namespace", "key"], name="revert_entries_unique"
            ),
        ]
        indexes = [
            # The list of skipped entries.
            models.Index(
                fields=["revert", "id"], name="revert_entries_skipped", condition=~Q(why="")
            ),
        ]
