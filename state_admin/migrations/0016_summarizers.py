"""Compaction policies of workspaces and agents; what models cost and whether they answer."""

from __future__ import annotations

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

import state_admin.models.fields

_MOVE = """
INSERT INTO compaction_policies (workspace_id, agent_id, body, version, updated_by)
SELECT id, '', policy, 1, 'migration' FROM workspaces WHERE policy::text <> '{}'
"""


class Migration(migrations.Migration):
    dependencies = [
        ("state_admin", "0015_config"),
    ]

    operations = [
        migrations.AddField(
            model_name="compaction",
            name="input_tokens",
            field=models.BigIntegerField(default=0),
        ),
        migrations.AddField(
            model_name="compaction",
            name="instructions",
            field=models.TextField(blank=True, default=""),
        ),
        migrations.AddField(
            model_name="compaction",
            name="output_tokens",
            field=models.BigIntegerField(default=0),
        ),
        migrations.AddField(
            model_name="compaction",
            name="provider",
            field=models.CharField(blank=True, default="", max_length=128),
        ),
        migrations.CreateModel(
            name="CompactionPolicy",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "agent_id",
                    models.CharField(blank=True, db_collation="C", default="", max_length=128),
                ),
                ("body", state_admin.models.fields.RawJSON(default="{}")),
                ("version", models.BigIntegerField(default=1)),
                (
                    "updated_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("updated_by", models.CharField(max_length=150)),
                (
                    "workspace",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="state_admin.workspace",
                    ),
                ),
            ],
            options={
                "db_table": "compaction_policies",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("workspace", "agent_id"), name="compaction_policies_of_unique"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ModelCircuit",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("provider", models.CharField(db_collation="C", max_length=128)),
                ("model", models.CharField(db_collation="C", max_length=128)),
                ("failures", models.IntegerField(default=0)),
                ("open_until", models.DateTimeField(blank=True, null=True)),
                ("last_error", models.TextField(blank=True, default="")),
                (
                    "workspace",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="state_admin.workspace",
                    ),
                ),
            ],
            options={
                "db_table": "model_circuits",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("workspace", "provider", "model"), name="model_circuits_of_unique"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ModelSpending",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("day", models.DateField()),
                ("cost_usd", models.DecimalField(decimal_places=6, default=0, max_digits=14)),
                (
                    "workspace",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="state_admin.workspace",
                    ),
                ),
            ],
            options={
                "db_table": "model_spending",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("workspace", "day"), name="model_spending_day_unique"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("cost_usd__gte", 0)), name="model_spending_not_negative"
                    ),
                ],
            },
        ),
        migrations.RunSQL(_MOVE, migrations.RunSQL.noop),
        migrations.RemoveField(
            model_name="workspace",
            name="policy",
        ),
    ]
