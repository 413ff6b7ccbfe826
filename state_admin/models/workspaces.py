"""Workspaces: the tenants. Every other row belongs to one."""

from __future__ import annotations

from typing import Self

from django.db import models
from django.db.models.functions import Now

from state_admin.domain.access import Actor


class WorkspaceQuerySet(models.QuerySet["Workspace"]):
    def visible_to(self, actor: Actor) -> Self:
        """All for an operator, otherwise the actor's own."""
        rows = self.present()
        return rows if actor.operator else rows.filter(pk=actor.workspace_id)

    def present(self) -> Self:
        """Without the deleted workspaces, whose rows a sweep removes."""
        return self.filter(deleted_slug="")

    def deleted(self) -> Self:
        """Those whose rows a sweep removes, the oldest first."""
        return self.exclude(deleted_slug="").order_by("frozen_at", "pk")

    def frozen(self) -> Self:
        """The workspaces that refuse writes."""
        return self.filter(frozen_at__isnull=False)


class Workspace(models.Model):
    slug = models.CharField(max_length=64, db_collation="C")
    name = models.CharField(max_length=128)
    # The quotas (services/quotas.py); NULL means no limit.
    max_entries = models.BigIntegerField(null=True, blank=True)
    max_bytes = models.BigIntegerField(null=True, blank=True)
    max_threads = models.BigIntegerField(null=True, blank=True)
    # When the workspace began to refuse writes, because it is being moved (docs/workspace-moves.md), or
    # when it was deleted. Background jobs leave it out.
    frozen_at = models.DateTimeField(null=True, blank=True, editable=False)
    # The cell to which the workspace was moved; also set in that cell. "": it was not moved. Requests are
    # routed to that cell (services/cells.py).
    moved_to = models.CharField(
        max_length=8, default="", db_default="", blank=True, editable=False, db_collation="C"
    )
    # The name that a deleted workspace had. Its `slug` is then none that a workspace can have, so that its
    # name is free. "": the workspace exists.
    deleted_slug = models.CharField(
        max_length=64, default="", db_default="", blank=True, editable=False, db_collation="C"
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = WorkspaceQuerySet.as_manager()

    class Meta:
        db_table = "workspaces"
        constraints = [models.UniqueConstraint(fields=["slug"], name="workspaces_slug_unique")]

    def __str__(self) -> str:
        return self.slug
