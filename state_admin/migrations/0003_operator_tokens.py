"""Tokens that may manage all workspaces."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("state_admin", "0002_storage"),
    ]

    operations = [
        migrations.AddField(
            model_name="apitoken",
            name="operator",
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
