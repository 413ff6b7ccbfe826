"""Named filters of a list: a user's own, or shared in the workspace."""

from __future__ import annotations

from typing import Self

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from state_admin.domain.access import Actor

from .access import User
from .workspaces import Workspace


class ViewPage(models.TextChoices):
    """The lists that have saved views."""

    STATE = "state"
    THREADS = "threads"
    RUNS = "runs"


class SavedViewQuerySet(models.QuerySet["SavedView"]):
    def visible_to(self, actor: Actor) -> Self:
        """Those shared in the workspace, and the user's own."""
        mine = Q(owner_id=int(actor.id)) if actor.kind == "user" else Q()
        return self.filter(Q(shared=True) | mine, workspace_id=actor.workspace_id)


class SavedView(models.Model):
    """`query` is the query string of the list, without its cursor."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_index=False)
    owner = models.ForeignKey(User, on_delete=models.CASCADE)
    page = models.CharField(max_length=8, choices=ViewPage.choices)
    name = models.CharField(max_length=64)
    query = models.TextField()
    shared = models.BooleanField(default=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = SavedViewQuerySet.as_manager()

    class Meta:
        db_table = "saved_views"
        constraints = [
            # The views of a list; a user's views have different names.
            models.UniqueConstraint(
                fields=["workspace", "page", "owner", "name"], name="saved_views_name_unique"
            ),
        ]

    def __str__(self) -> str:
        return self.name


class DefaultView(models.Model):
    """The view with which a list opens for one user."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_index=False)
    user = models.ForeignKey(User, on_delete=models.CASCADE)
    page = models.CharField(max_length=8, choices=ViewPage.choices)
    view = models.ForeignKey(SavedView, on_delete=models.CASCADE, related_name="defaults")

    class Meta:
        db_table = "default_views"
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "page", "user"], name="default_views_of_unique"
            ),
        ]
