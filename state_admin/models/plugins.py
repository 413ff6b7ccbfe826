"""Plugins: sets of state keys and namespaces that come and go together."""

from __future__ import annotations

from typing import Self

from django.db import models
from django.db.models.functions import Now

from state_admin.domain.access import Actor

from .workspaces import Workspace


class PluginQuerySet(models.QuerySet["Plugin"]):
    def visible_to(self, actor: Actor) -> Self:
        """A plugin reaches into every thread and its namespaces: it is beyond a narrowed token."""
        if actor.namespaces or actor.thread_prefixes:
            return self.none()
        return self.filter(workspace_id=actor.workspace_id)


class Plugin(models.Model):
    """One that is installed. What belongs to it names it: StateKey.plugin, Namespace.plugin."""

    workspace = models.ForeignKey(
        Workspace, on_delete=models.CASCADE, related_name="plugins", db_index=False
    )
    name = models.CharField(max_length=128, db_collation="C")
    description = models.TextField(default="", blank=True)
    installed_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = PluginQuerySet.as_manager()

    class Meta:
        db_table = "plugins"
        constraints = [
            # Of two that install the same name one waits for the other here; lists page by name.
            models.UniqueConstraint(fields=["workspace", "name"], name="plugins_name_unique"),
        ]

    def __str__(self) -> str:
        return self.name
