"""A session's row is found by the SHA-256 of its cookie. Everybody signs in again."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("state_admin", "0024_traffic")]

    operations = [
        migrations.RunSQL("DELETE FROM sessions", migrations.RunSQL.noop),
        migrations.AlterField(
            model_name="usersession",
            name="session_key",
            field=models.CharField(max_length=64, primary_key=True, serialize=False),
        ),
    ]
