"""Saved views of lists; who has the editor of an entry open."""

from __future__ import annotations

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("state_admin", "0019_storage_accounting"),
    ]

    operations = [
        migrations.CreateModel(
            name="SavedView",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "page",
                    models.CharField(
                        choices=[("state", "State"), ("threads", "Threads"), ("runs", "Runs")],
                        max_length=8,
                    ),
                ),
                ("name", models.CharField(max_length=64)),
                ("query", models.TextField()),
                ("shared", models.BooleanField(default=False)),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to=settings.AUTH_USER_MODEL
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
                "db_table": "saved_views",
            },
        ),
        migrations.CreateModel(
            name="DefaultView",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "page",
                    models.CharField(
                        choices=[("state", "State"), ("threads", "Threads"), ("runs", "Runs")],
                        max_length=8,
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to=settings.AUTH_USER_MODEL
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
                (
                    "view",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="defaults",
                        to="state_admin.savedview",
                    ),
                ),
            ],
            options={
                "db_table": "default_views",
            },
        ),
        migrations.CreateModel(
            name="Presence",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("namespace", models.CharField(db_collation="C", max_length=128)),
                ("key", models.TextField(db_collation="C")),
                (
                    "since",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "seen_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to=settings.AUTH_USER_MODEL
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
                "db_table": "presences",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("workspace", "namespace", "key", "user"), name="presences_of_unique"
                    )
                ],
            },
        ),
        migrations.AddConstraint(
            model_name="savedview",
            constraint=models.UniqueConstraint(
                fields=("workspace", "page", "owner", "name"), name="saved_views_name_unique"
            ),
        ),
        migrations.AddConstraint(
            model_name="defaultview",
            constraint=models.UniqueConstraint(
                fields=("workspace", "page", "user"), name="default_views_of_unique"
            ),
        ),
        # Worth nothing after a minute: models/presence.py.
        migrations.RunSQL("ALTER TABLE presences SET UNLOGGED", "ALTER TABLE presences SET LOGGED"),
    ]
