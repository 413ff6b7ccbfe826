"""Deleted workspaces keep their name in another column, so that it is free (models/workspaces.py)."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("state_admin", "0017_reverts")]

    operations = [
        migrations.AddField(
            "workspace",
            "deleted_slug",
            models.CharField(
                blank=True,
                db_collation="C",
                db_default="",
                default="",
                editable=False,
                max_length=64,
            ),
        ),
    ]
