"""A version of what clients write of a thread itself, for If-Match."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("state_admin", "0025_session_digests")]

    operations = [
        migrations.AddField(
            model_name="thread",
            name="version",
            field=models.BigIntegerField(db_default=1, default=1),
        ),
    ]
