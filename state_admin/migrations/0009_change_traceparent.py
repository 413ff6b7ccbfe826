"""The span that made a change, so that the deliveries of webhooks continue its trace."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("state_admin", "0008_search_format_3")]

    operations = [
        migrations.AddField(
            "change",
            "traceparent",
            models.CharField(default="", db_default="", max_length=55),
        ),
    ]
