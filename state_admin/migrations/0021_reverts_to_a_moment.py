"""Reverts of everything that was written since a moment (docs/adr/0029-reverts-are-jobs.md)."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("state_admin", "0020_session_use")]

    operations = [
        migrations.AddField("revert", "at", models.DateTimeField(blank=True, null=True)),
        migrations.AddField(
            "revert", "filters", models.JSONField(blank=True, db_default={}, default=dict)
        ),
    ]
