"""The mailbox: dispatches of threads."""

from __future__ import annotations

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

import state_admin.models.fields


class Migration(migrations.Migration):
    dependencies = [
        ("state_admin", "0010_feed_clock"),
    ]

    operations = [
        migrations.CreateModel(
            name="Dispatch",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("public_id", models.CharField(db_collation="C", max_length=36)),
                ("agent_id", models.CharField(blank=True, default="", max_length=128)),
                ("payload", state_admin.models.fields.RawJSON(default="null")),
                ("priority", models.SmallIntegerField(default=128)),
                (
                    "available_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "dedupe_key",
                    models.CharField(blank=True, db_collation="C", default="", max_length=256),
                ),
                ("epoch", models.BigIntegerField(default=0)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("Queued", "Queued"),
                            ("Claimed", "Claimed"),
                            ("Acked", "Acked"),
                            ("Cancelled", "Cancelled"),
                            ("Superseded", "Superseded"),
                            ("DeadLetter", "Dead"),
                        ],
                        default="Queued",
                        max_length=10,
                    ),
                ),
                ("attempts", models.IntegerField(default=0)),
                ("max_attempts", models.IntegerField(default=5)),
                ("replays", models.IntegerField(default=0)),
                ("last_error", models.TextField(blank=True, default="")),
                ("claim_digest", models.CharField(blank=True, default="", max_length=64)),
                ("claimed_by", models.CharField(blank=True, default="", max_length=150)),
                ("claimed_at", models.DateTimeField(blank=True, null=True)),
                ("lease_until", models.DateTimeField(blank=True, null=True)),
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
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                (
                    "run",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="dispatches",
                        to="state_admin.run",
                    ),
                ),
                (
                    "thread",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="dispatches",
                        to="state_admin.thread",
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
            ],
            options={
                "db_table": "dispatches",
                "indexes": [
                    models.Index(
                        condition=models.Q(("status", "Queued")),
                        fields=["thread", "priority", "id", "available_at"],
                        name="dispatches_line",
                    ),
                    models.Index(
                        condition=models.Q(("status", "Queued")),
                        fields=["thread", "available_at"],
                        name="dispatches_delayed",
                    ),
                    models.Index(fields=["workspace", "-id"], name="dispatches_newest"),
                    models.Index(
                        fields=["workspace", "status", "-id"], name="dispatches_by_status"
                    ),
                    models.Index(fields=["thread", "-id"], name="dispatches_of_thread"),
                    models.Index(
                        condition=models.Q(("finished_at__isnull", False)),
                        fields=["status", "finished_at"],
                        name="dispatches_finished",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("workspace", "public_id"), name="dispatches_id_unique"
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("status", "Claimed")),
                        fields=("thread",),
                        name="dispatches_one_claimed_per_thread",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(
                            ("status__in", ["Queued", "Claimed"]),
                            models.Q(("dedupe_key", ""), _negated=True),
                        ),
                        fields=("thread", "dedupe_key"),
                        name="dispatches_dedupe",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Mailbox",
            fields=[
                (
                    "thread",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="mailbox",
                        serialize=False,
                        to="state_admin.thread",
                    ),
                ),
                ("epoch", models.BigIntegerField(default=0)),
                ("next_id", models.BigIntegerField(blank=True, null=True)),
                ("next_priority", models.SmallIntegerField(blank=True, null=True)),
                ("next_agent", models.CharField(blank=True, default="", max_length=128)),
                ("due_at", models.DateTimeField(blank=True, null=True)),
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
                "db_table": "mailboxes",
                "indexes": [
                    models.Index(
                        condition=models.Q(("next_id__isnull", False)),
                        fields=["workspace", "next_priority", "next_id"],
                        name="mailboxes_next",
                    ),
                    models.Index(
                        condition=models.Q(("next_id__isnull", False)),
                        fields=["workspace", "next_agent", "next_priority", "next_id"],
                        name="mailboxes_next_of_agent",
                    ),
                    models.Index(
                        condition=models.Q(("due_at__isnull", False)),
                        fields=["workspace", "due_at"],
                        name="mailboxes_due",
                    ),
                ],
            },
        ),
    ]
