"""The kind of the actor that created a token: a user and a token may have the same name."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("state_admin", "0018_deleted_workspaces")]

    operations = [
        migrations.AddField(
            "apitoken",
            "created_by_kind",
            models.CharField(db_default="", default="", max_length=8),
        ),
    ]
