"""The search index beside the entries; what was redacted, in history and in kept answers."""

from __future__ import annotations

import django.contrib.postgres.indexes
import django.contrib.postgres.search
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("state_admin", "0006_limits")]

    operations = [
        migrations.CreateModel(
            name="SearchDocument",
            fields=[
                (
                    "entry",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="document",
                        serialize=False,
                        to="state_admin.entry",
                    ),
                ),
                ("version", models.BigIntegerField()),
                ("terms", django.contrib.postgres.search.SearchVectorField()),
            ],
            options={
                "db_table": "search_documents",
                "indexes": [
                    django.contrib.postgres.indexes.GinIndex(
                        fields=["terms"], name="search_documents_terms"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="SearchPosition",
            fields=[
                (
                    "workspace",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        serialize=False,
                        to="state_admin.workspace",
                    ),
                ),
                ("xid", models.BigIntegerField()),
                ("change_id", models.BigIntegerField()),
                ("at", models.DateTimeField()),
                ("filled_to", models.BigIntegerField(null=True)),
            ],
            options={"db_table": "search_positions"},
        ),
        migrations.AddField(
            model_name="entryrevision",
            name="redacted_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="entryrevision",
            name="redacted_by",
            field=models.CharField(blank=True, db_default="", default="", max_length=150),
        ),
        migrations.AlterField(
            model_name="entryrevision",
            name="operation",
            field=models.CharField(
                choices=[
                    ("put", "Put"),
                    ("patch", "Patch"),
                    ("delete", "Delete"),
                    ("restore", "Restore"),
                    ("expire", "Expire"),
                    ("import", "Import"),
                    ("redact", "Redact"),
                ],
                max_length=8,
            ),
        ),
        migrations.AddField(
            model_name="idempotencyrecord",
            name="workspace",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                to="state_admin.workspace",
            ),
        ),
    ]
