"""Reverts of requests as jobs (docs/adr/0029-reverts-are-jobs.md)."""

from __future__ import annotations

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("state_admin", "0016_workspace_moves"),
    ]

    operations = [
        migrations.CreateModel(
            name="Revert",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "actor_kind",
                    models.CharField(
                        choices=[("user", "User"), ("token", "Token"), ("system", "System")],
                        max_length=8,
                    ),
                ),
                ("actor_id", models.CharField(max_length=64)),
                ("actor_name", models.CharField(max_length=150)),
                ("reason", models.TextField(db_default="", default="")),
                ("request_id", models.CharField(db_default="", default="", max_length=64)),
                ("attempts", models.IntegerField(default=0)),
                ("lease_expires_at", models.DateTimeField(blank=True, null=True)),
                ("claim", models.BigIntegerField(default=0)),
                ("public_id", models.CharField(db_collation="C", max_length=64)),
                ("target", models.CharField(db_collation="C", max_length=64)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("queued", "Queued"),
                            ("running", "Running"),
                            ("done", "Done"),
                            ("failed", "Failed"),
                            ("cancelled", "Cancelled"),
                        ],
                        default="queued",
                        max_length=9,
                    ),
                ),
                ("namespaces", models.JSONField(default=list)),
                ("run", models.CharField(blank=True, default="", max_length=128)),
                ("total", models.BigIntegerField(blank=True, null=True)),
                ("reverted", models.BigIntegerField(default=0)),
                ("skipped", models.BigIntegerField(default=0)),
                ("progress", models.JSONField(default=dict)),
                ("detail", models.TextField(blank=True, default="")),
                (
                    "available_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                ("started_at", models.DateTimeField(blank=True, null=True)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
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
                "db_table": "reverts",
                "indexes": [
                    models.Index(fields=["workspace", "-id"], name="reverts_newest"),
                    models.Index(
                        condition=models.Q(("status__in", ["queued", "running"])),
                        fields=["available_at"],
                        name="reverts_unfinished",
                    ),
                    models.Index(
                        condition=models.Q(("finished_at__isnull", False)),
                        fields=["finished_at"],
                        name="reverts_finished",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("workspace", "public_id"), name="reverts_id_unique"
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("status__in", ["queued", "running"])),
                        fields=("workspace", "target", "actor_kind", "actor_id"),
                        name="reverts_single_flight",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="RevertEntry",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("namespace", models.CharField(db_collation="C", max_length=128)),
                ("key", models.TextField(db_collation="C")),
                ("version", models.BigIntegerField()),
                ("tag_change", models.CharField(blank=True, default="", max_length=65)),
                ("why", models.TextField(blank=True, default="")),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                (
                    "revert",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="entries",
                        to="state_admin.revert",
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="state_admin.workspace",
                    ),
                ),
            ],
            options={
                "db_table": "revert_entries",
                "indexes": [
                    models.Index(
                        condition=models.Q(("why", ""), _negated=True),
                        fields=["revert", "id"],
                        name="revert_entries_skipped",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("revert", "namespace", "key"), name="revert_entries_unique"
                    )
                ],
            },
        ),
    ]
