"""How tables are stored, which models cannot declare."""

from __future__ import annotations

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("state_admin", "0001_initial")]

    operations = [
        # Room on each page for the new versions of rows that every write changes, so that they
        # stay HOT.
        migrations.RunSQL(
            "ALTER TABLE entries SET (fillfactor = 85);"
            "ALTER TABLE threads SET (fillfactor = 70);"
            "ALTER TABLE runs SET (fillfactor = 70);",
            "ALTER TABLE entries RESET (fillfactor);"
            "ALTER TABLE threads RESET (fillfactor);"
            "ALTER TABLE runs RESET (fillfactor);",
        ),
        # Worth nothing after a minute: models/presence.py.
        migrations.RunSQL("ALTER TABLE presences SET UNLOGGED", "ALTER TABLE presences SET LOGGED"),
    ]
