"""Leases with fencing tokens, tickets that expire, what a run read and could see."""

from __future__ import annotations

import django.db.models.deletion
import django.db.models.functions
from django.db import migrations, models

import state_admin.models.fields

# Number the revisions of the runs that there are.
_STEPS = """
UPDATE revisions r SET step = n.step
FROM (
    SELECT thread_id, number, row_number() OVER (PARTITION BY run_id ORDER BY number) AS step
    FROM revisions WHERE run_id IS NOT NULL
) n
WHERE r.thread_id = n.thread_id AND r.number = n.number;
UPDATE runs SET revision_count = n.steps
FROM (SELECT run_id, max(step) AS steps FROM revisions GROUP BY run_id) n
WHERE runs.id = n.run_id;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("state_admin", "0013_forks"),
    ]

    operations = [
        migrations.CreateModel(
            name="RunRead",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("revision", models.BigIntegerField()),
                ("step", models.IntegerField()),
                ("namespace", models.CharField(db_collation="C", max_length=128)),
                ("key", models.TextField(db_collation="C")),
                ("version", models.BigIntegerField()),
                ("held", models.BigIntegerField()),
                (
                    "at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.Now(), editable=False
                    ),
                ),
            ],
            options={
                "db_table": "run_reads",
            },
        ),
        migrations.AddField(
            model_name="entryrevision",
            name="xid",
            field=state_admin.models.fields.Xid8(
                db_default=state_admin.models.fields.CurrentXid(), editable=False, null=True
            ),
        ),
        migrations.AddField(
            model_name="revision",
            name="seen",
            field=state_admin.models.fields.PgSnapshot(editable=False, null=True),
        ),
        # Only now: revisions that are there already saw something else.
        migrations.AlterField(
            model_name="revision",
            name="seen",
            field=state_admin.models.fields.PgSnapshot(
                db_default=state_admin.models.fields.CurrentSnapshot(), editable=False, null=True
            ),
        ),
        migrations.AddField(
            model_name="revision",
            name="step",
            field=models.IntegerField(null=True),
        ),
        migrations.AddField(
            model_name="run",
            name="fencing_token",
            field=models.BigIntegerField(db_default=1, default=1),
        ),
        migrations.AddField(
            model_name="run",
            name="lease_released_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="run",
            name="parent_thread_id",
            field=models.CharField(
                blank=True, db_collation="C", db_default="", default="", max_length=128
            ),
        ),
        migrations.AddField(
            model_name="run",
            name="revision_count",
            field=models.IntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name="run",
            name="ticket_due_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="ticket",
            name="on_expiry",
            field=models.CharField(
                choices=[("keep", "Keep"), ("cancel", "Cancel")],
                db_default="keep",
                default="keep",
                max_length=8,
            ),
        ),
        migrations.AddIndex(
            model_name="ticket",
            index=models.Index(
                condition=models.Q(("on_expiry", "cancel"), ("status", "pending")),
                fields=["expires_at"],
                name="tickets_expiring",
            ),
        ),
        migrations.AddField(
            model_name="runread",
            name="run",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="reads",
                to="state_admin.run",
            ),
        ),
        migrations.AddField(
            model_name="runread",
            name="thread",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="state_admin.thread",
            ),
        ),
        migrations.AddField(
            model_name="runread",
            name="workspace",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                to="state_admin.workspace",
            ),
        ),
        migrations.AddIndex(
            model_name="runread",
            index=models.Index(fields=["run", "-id"], name="run_reads_of_run"),
        ),
        migrations.AddIndex(
            model_name="runread",
            index=models.Index(
                fields=["workspace", "namespace", "key", "version", "id"], name="run_reads_of_entry"
            ),
        ),
        migrations.AddConstraint(
            model_name="runread",
            constraint=models.UniqueConstraint(
                fields=("thread", "revision", "namespace", "key", "version"), name="run_reads_once"
            ),
        ),
        migrations.RunSQL(_STEPS, migrations.RunSQL.noop),
    ]
