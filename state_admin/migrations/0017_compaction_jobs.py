"""Compaction jobs show where they are, and workspaces take turns."""

from __future__ import annotations

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [
        ("state_admin", "0016_summarizers"),
    ]

    operations = [
        migrations.AddField(
            model_name="compaction",
            name="phase",
            field=models.CharField(
                blank=True,
                choices=[
                    ("claimed", "a worker has it"),
                    ("planning", "looking for what can be folded"),
                    ("asking", "waiting for the summary"),
                    ("applying", "putting the summary in its place"),
                ],
                db_default="",
                default="",
                max_length=8,
            ),
        ),
        migrations.RemoveIndex(model_name="compaction", name="compactions_unfinished"),
        migrations.AddIndex(
            model_name="compaction",
            index=models.Index(
                condition=Q(("status__in", ["queued", "running"])),
                fields=["workspace", "available_at"],
                name="compactions_unfinished",
            ),
        ),
        migrations.AddIndex(
            model_name="compaction",
            index=models.Index(
                condition=Q(("started_at__isnull", False)),
                fields=["workspace", "started_at"],
                name="compactions_served",
            ),
        ),
    ]
