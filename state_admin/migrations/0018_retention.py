"""What snapshot and history compactions removed, and where they go on."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("state_admin", "0017_compaction_jobs")]

    operations = [
        migrations.AddField(
            "compaction", "reason", models.TextField(blank=True, db_default="", default="")
        ),
        migrations.AddField(
            "compaction", "to_revision", models.BigIntegerField(blank=True, null=True)
        ),
        migrations.AddField(
            "compaction", "rows_before", models.BigIntegerField(blank=True, null=True)
        ),
        migrations.AddField(
            "compaction", "bytes_before", models.BigIntegerField(blank=True, null=True)
        ),
        migrations.AddField(
            "compaction", "bytes_removed", models.BigIntegerField(db_default=0, default=0)
        ),
        migrations.AddField(
            "compaction", "progress", models.JSONField(db_default={}, default=dict)
        ),
        migrations.AddConstraint(
            "compaction",
            models.UniqueConstraint(
                condition=models.Q(("status__in", ["queued", "running"])),
                fields=("namespace", "kind"),
                name="compactions_single_history",
            ),
        ),
    ]
