"""Workspaces: the tenants. Everything else hangs below one."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


class Workspace(models.Model):
    slug = models.CharField(max_length=64, db_collation="C")
    name = models.CharField(max_length=128)
    # What it may hold (services/quotas.py); NULL is no limit.
    max_entries = models.BigIntegerField(null=True, blank=True)
    max_bytes = models.BigIntegerField(null=True, blank=True)
    max_threads = models.BigIntegerField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        db_table = "workspaces"
        constraints = [models.UniqueConstraint(fields=["slug"], name="workspaces_slug_unique")]

    def __str__(self) -> str:
        return self.slug
