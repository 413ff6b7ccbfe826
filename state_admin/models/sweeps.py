"""Sweeps: the last results of each periodic job."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import models

# Sweeps start every minute. After this time without one, no worker or no beat is running.
WORKER_SILENCE = timedelta(minutes=2)


class Sweep(models.Model):
    name = models.CharField(max_length=48, primary_key=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    # Counts of the last sweep by action ({"expired": 3}).
    report = models.JSONField(default=dict)
    # The last sweep that changed anything, and its counts.
    last_effect_at = models.DateTimeField(null=True)
    last_effect = models.JSONField(default=dict)
    runs = models.BigIntegerField(default=0)
    error = models.TextField(default="")

    class Meta:
        db_table = "sweeps"


def newest_sweep() -> datetime | None:
    """The start of the newest sweep of any worker, None without one."""
    moment: datetime | None = Sweep.objects.aggregate(newest=models.Max("started_at"))["newest"]
    return moment
