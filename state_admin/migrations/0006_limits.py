from __future__ import annotations

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("state_admin", "0005_revision_run"),
    ]

    operations = [
        migrations.CreateModel(
            name="RateBucket",
            fields=[
                (
                    "token",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        serialize=False,
                        to="state_admin.apitoken",
                    ),
                ),
                ("level", models.FloatField()),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "db_table": "rate_buckets",
            },
        ),
        migrations.CreateModel(
            name="WorkspaceUsage",
            fields=[
                (
                    "workspace",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        serialize=False,
                        to="state_admin.workspace",
                    ),
                ),
                ("entries", models.BigIntegerField(default=0)),
                ("bytes", models.BigIntegerField(default=0)),
                ("threads", models.BigIntegerField(default=0)),
                ("messages", models.BigIntegerField(default=0)),
                (
                    "measured_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
            ],
            options={
                "db_table": "workspace_usage",
            },
        ),
        migrations.AddField(
            model_name="apitoken",
            name="rate_per_minute",
            field=models.PositiveIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="workspace",
            name="max_bytes",
            field=models.BigIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="workspace",
            name="max_entries",
            field=models.BigIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="workspace",
            name="max_threads",
            field=models.BigIntegerField(blank=True, null=True),
        ),
    ]
