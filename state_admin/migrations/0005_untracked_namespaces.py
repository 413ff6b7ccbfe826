"""Namespaces whose entries have no history."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("state_admin", "0004_feed_eras"),
    ]

    operations = [
        migrations.AddField(
            model_name="namespace",
            name="tracked",
            field=models.BooleanField(db_default=True, default=True),
        ),
    ]
