"""The positions of clients' newest writes, for read replicas (models/write_positions.py)."""

from __future__ import annotations

from django.db import migrations, models
from django.db.models.functions import Now


class Migration(migrations.Migration):
    dependencies = [("state_admin", "0012_audit_streams")]

    operations = [
        migrations.CreateModel(
            name="WritePosition",
            fields=[
                ("client", models.CharField(max_length=32, primary_key=True, serialize=False)),
                ("position", models.BigIntegerField()),
                ("written_at", models.DateTimeField(db_default=Now())),
            ],
            options={"db_table": "write_positions"},
        ),
        migrations.RunSQL(
            "ALTER TABLE write_positions SET UNLOGGED", "ALTER TABLE write_positions SET LOGGED"
        ),
    ]
