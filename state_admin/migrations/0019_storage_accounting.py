"""Daily samples of what is stored; an index that finds what the compactions of a day saved."""

from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models

_NUMBERS = (
    "entries",
    "entry_bytes",
    "history_rows",
    "history_bytes",
    "threads",
    "messages",
    "message_bytes",
    "state_rows",
    "state_bytes",
    "estimated_tokens",
    "total_rows",
    "total_bytes",
    "tokens_saved",
    "rows_removed",
)


def _subject(to: str) -> models.ForeignKey:
    return models.ForeignKey(
        blank=True,
        db_constraint=False,
        db_index=False,
        null=True,
        on_delete=django.db.models.deletion.CASCADE,
        related_name="+",
        to=to,
    )


class Migration(migrations.Migration):
    dependencies = [("state_admin", "0018_retention")]

    operations = [
        migrations.CreateModel(
            name="StorageSample",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="state_admin.workspace",
                    ),
                ),
                ("namespace", _subject("state_admin.namespace")),
                ("thread", _subject("state_admin.thread")),
                ("day", models.DateField()),
                ("measured_at", models.DateTimeField()),
                *((name, models.BigIntegerField(default=0)) for name in _NUMBERS),
            ],
            options={
                "db_table": "storage_samples",
                "indexes": [
                    models.Index(
                        fields=["workspace", "day", "-total_bytes", "-id"],
                        name="storage_samples_biggest",
                    ),
                    models.Index(fields=["day"], name="storage_samples_day"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=["workspace", "namespace", "thread", "day"],
                        name="storage_samples_of_unique",
                        nulls_distinct=False,
                    )
                ],
            },
        ),
        migrations.AddIndex(
            model_name="compaction",
            index=models.Index(
                condition=models.Q(("status", "done")),
                fields=["workspace", "finished_at"],
                name="compactions_done",
            ),
        ),
    ]
