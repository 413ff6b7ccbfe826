"""The calls of a minute that failed, for the metrics."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("state_admin", "0009_change_traceparent")]

    operations = [
        migrations.AddField(
            "traffic",
            "failures",
            models.BigIntegerField(default=0, db_default=0),
        ),
    ]
