"""The columns for the author of a row, shared by all history tables."""

from __future__ import annotations

from django.db import models


class ActorKind(models.TextChoices):
    USER = "user"
    TOKEN = "token"  # noqa: S105
    SYSTEM = "system"


class ActorStamp(models.Model):
    """The author of a row. The name is copied, so that renaming a user does not change history."""

    actor_kind = models.CharField(max_length=8, choices=ActorKind.choices)
    actor_id = models.CharField(max_length=64)
    actor_name = models.CharField(max_length=150)
    reason = models.TextField(default="", db_default="")
    request_id = models.CharField(max_length=64, default="", db_default="")

    class Meta:
        abstract = True
