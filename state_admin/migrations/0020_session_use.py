"""When a session was last used, so that an unused one ends (SESSION_IDLE_SECONDS)."""

from __future__ import annotations

from django.db import migrations, models
from django.db.models.functions import Now


class Migration(migrations.Migration):
    dependencies = [("state_admin", "0019_token_creators")]

    # Every existing session gets the time of the migration, without a rewrite of the table.
    operations = [
        migrations.RunSQL(
            "ALTER TABLE sessions ADD COLUMN active_at timestamptz DEFAULT now() NOT NULL",
            "ALTER TABLE sessions DROP COLUMN active_at",
            state_operations=[
                migrations.AddField(
                    "usersession",
                    "active_at",
                    models.DateTimeField(db_default=Now(), editable=False),
                ),
            ],
        ),
    ]
