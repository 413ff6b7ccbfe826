from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("state_admin", "0008_webhooks"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["workspace", "agent_id", "-id"], name="runs_by_agent"),
        ),
    ]
