"""Plugins: sets of state keys and namespaces that are installed and uninstalled together."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from .visibility import WorkspaceWideQuerySet
from .workspaces import Workspace


class PluginQuerySet(WorkspaceWideQuerySet["Plugin"]):
    pass


class Plugin(models.Model):
    """An installed plugin. Its state keys and namespaces refer to it: StateKey.plugin,
    Namespace.plugin."""

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
            # Of two concurrent installations of one name, one waits for the other here; lists page
            # by name.
            models.UniqueConstraint(fields=["workspace", "name"], name="plugins_name_unique"),
        ]

    def __str__(self) -> str:
        return self.name
