"""Calls of the API and the depth of the queues, by the minute."""

from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("state_admin", "0023_trail_without_constraint")]

    operations = [
        migrations.CreateModel(
            name="Traffic",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("minute", models.DateTimeField()),
                ("reads", models.BigIntegerField(default=0)),
                ("writes", models.BigIntegerField(default=0)),
                ("conflicts", models.BigIntegerField(default=0)),
                ("queued", models.IntegerField(blank=True, null=True)),
                (
                    "workspace",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="state_admin.workspace",
                    ),
                ),
            ],
            options={
                "db_table": "traffic",
                "constraints": [
                    models.UniqueConstraint(
                        fields=["workspace", "minute"], name="traffic_minute_unique"
                    )
                ],
            },
        ),
    ]
