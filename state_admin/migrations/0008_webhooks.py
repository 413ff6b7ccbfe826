"""Webhooks, their secrets and their deliveries."""

from __future__ import annotations

import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("state_admin", "0007_search_and_redaction"),
    ]

    operations = [
        migrations.CreateModel(
            name="Webhook",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("public_id", models.CharField(db_collation="C", max_length=36)),
                ("name", models.CharField(max_length=128)),
                ("url", models.TextField()),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("active", "Active"),
                            ("paused", "Paused"),
                            ("disabled", "Disabled"),
                        ],
                        default="active",
                        max_length=8,
                    ),
                ),
                ("status_reason", models.TextField(blank=True, default="")),
                (
                    "kinds",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=128),
                        db_default=[],
                        default=list,
                        size=None,
                    ),
                ),
                (
                    "namespaces",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=128),
                        db_default=[],
                        default=list,
                        size=None,
                    ),
                ),
                ("key", models.TextField(blank=True, db_collation="C", default="")),
                ("prefix", models.TextField(blank=True, db_collation="C", default="")),
                (
                    "thread",
                    models.CharField(blank=True, db_collation="C", default="", max_length=128),
                ),
                ("run", models.CharField(blank=True, db_collation="C", default="", max_length=128)),
                (
                    "grant_namespaces",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=128),
                        db_default=[],
                        default=list,
                        size=None,
                    ),
                ),
                (
                    "grant_thread_prefixes",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=128),
                        db_default=[],
                        default=list,
                        size=None,
                    ),
                ),
                ("created_by", models.CharField(max_length=150)),
                ("place_xid", models.BigIntegerField()),
                ("place_id", models.BigIntegerField()),
                ("place_at", models.DateTimeField()),
                ("failing_since", models.DateTimeField(blank=True, null=True)),
                ("last_error", models.TextField(blank=True, default="")),
                ("last_delivered_at", models.DateTimeField(blank=True, null=True)),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                (
                    "updated_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="webhooks",
                        to="state_admin.workspace",
                    ),
                ),
            ],
            options={
                "db_table": "webhooks",
            },
        ),
        migrations.CreateModel(
            name="WebhookDelivery",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("public_id", models.CharField(db_collation="C", max_length=36)),
                ("change_xid", models.BigIntegerField()),
                ("change_id", models.BigIntegerField()),
                ("event_id", models.CharField(db_collation="C", max_length=64)),
                ("kind", models.CharField(max_length=48)),
                ("subject", models.TextField(blank=True, default="")),
                ("body", models.TextField()),
                ("test", models.BooleanField(default=False)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("queued", "Queued"),
                            ("delivering", "Delivering"),
                            ("delivered", "Delivered"),
                            ("failed", "Failed"),
                            ("dead", "Dead"),
                        ],
                        default="queued",
                        max_length=10,
                    ),
                ),
                ("attempts", models.IntegerField(default=0)),
                ("response_status", models.IntegerField(blank=True, null=True)),
                ("latency_ms", models.IntegerField(blank=True, null=True)),
                ("error", models.TextField(blank=True, default="")),
                (
                    "next_attempt_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("lease_expires_at", models.DateTimeField(blank=True, null=True)),
                ("claim", models.BigIntegerField(default=0)),
                ("replays", models.IntegerField(default=0)),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                ("attempted_at", models.DateTimeField(blank=True, null=True)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                (
                    "webhook",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="deliveries",
                        to="state_admin.webhook",
                    ),
                ),
            ],
            options={
                "db_table": "webhook_deliveries",
            },
        ),
        migrations.CreateModel(
            name="WebhookSecret",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("salt", models.CharField(max_length=64)),
                ("key_id", models.CharField(max_length=16)),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                ("expires_at", models.DateTimeField(blank=True, null=True)),
                (
                    "webhook",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="secrets",
                        to="state_admin.webhook",
                    ),
                ),
            ],
            options={
                "db_table": "webhook_secrets",
            },
        ),
        migrations.AddIndex(
            model_name="webhook",
            index=models.Index(fields=["workspace", "-id"], name="webhooks_newest"),
        ),
        migrations.AddConstraint(
            model_name="webhook",
            constraint=models.UniqueConstraint(fields=("public_id",), name="webhooks_id_unique"),
        ),
        migrations.AddIndex(
            model_name="webhookdelivery",
            index=models.Index(
                condition=models.Q(("status__in", ["queued", "delivering", "failed"])),
                fields=["webhook", "id"],
                name="webhook_deliveries_unfinished",
            ),
        ),
        migrations.AddIndex(
            model_name="webhookdelivery",
            index=models.Index(
                condition=models.Q(
                    ("status__in", ["queued", "delivering", "failed"]), ("test", True)
                ),
                fields=["id"],
                name="webhook_deliveries_tests",
            ),
        ),
        migrations.AddIndex(
            model_name="webhookdelivery",
            index=models.Index(
                condition=models.Q(("status", "delivering")),
                fields=["lease_expires_at"],
                name="webhook_deliveries_leases",
            ),
        ),
        migrations.AddIndex(
            model_name="webhookdelivery",
            index=models.Index(fields=["webhook", "-id"], name="webhook_deliveries_newest"),
        ),
        migrations.AddIndex(
            model_name="webhookdelivery",
            index=models.Index(
                fields=["webhook", "status", "-id"], name="webhook_deliveries_by_status"
            ),
        ),
        migrations.AddIndex(
            model_name="webhookdelivery",
            index=models.Index(
                condition=models.Q(("status__in", ["delivered", "dead"])),
                fields=["status", "finished_at"],
                name="webhook_deliveries_finished",
            ),
        ),
        migrations.AddConstraint(
            model_name="webhookdelivery",
            constraint=models.UniqueConstraint(
                fields=("public_id",), name="webhook_deliveries_id_unique"
            ),
        ),
        migrations.AddConstraint(
            model_name="webhookdelivery",
            constraint=models.UniqueConstraint(
                condition=models.Q(("status", "delivering"), ("test", False)),
                fields=("webhook",),
                name="webhook_deliveries_in_flight",
            ),
        ),
    ]
