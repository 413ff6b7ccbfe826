"""Cells (docs/scaling.md): where a workspace was moved to, and tokens that name their cell."""

from __future__ import annotations

from django.db import migrations, models

# A longer varchar of the same collation rewrites neither the table nor its index.
_WIDEN = """-- squawk-ignore changing-column-type
ALTER TABLE api_tokens ALTER COLUMN lookup TYPE varchar({}) COLLATE "C"
"""


class Migration(migrations.Migration):
    dependencies = [("state_admin", "0014_autovacuum")]

    operations = [
        migrations.AddField(
            "workspace",
            "frozen_at",
            models.DateTimeField(blank=True, editable=False, null=True),
        ),
        migrations.AddField(
            "workspace",
            "moved_to",
            models.CharField(
                blank=True,
                db_collation="C",
                db_default="",
                default="",
                editable=False,
                max_length=8,
            ),
        ),
        migrations.RunSQL(
            [_WIDEN.format(24)],
            [_WIDEN.format(16)],
            state_operations=[
                migrations.AlterField(
                    "apitoken",
                    "lookup",
                    models.CharField(db_collation="C", max_length=24),
                )
            ],
        ),
    ]
