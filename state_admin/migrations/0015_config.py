"""The config registry: its secrets, and its reserved namespaces in the workspaces there are."""

from __future__ import annotations

from typing import Any

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

from state_admin.domain import config, values


def _reserve(apps: Any, schema_editor: Any) -> None:
    """Workspaces made from now on get theirs from services/workspaces.py."""
    namespaces = apps.get_model("state_admin", "Namespace").objects
    versions = apps.get_model("state_admin", "NamespaceVersion").objects
    taken = namespaces.filter(name__in=[kind.namespace for kind in config.Kind])
    if found := taken.exclude(entries=None).values_list("workspace__slug", "name").first():
        raise RuntimeError(
            f"the workspace {found[0]} keeps entries in a namespace of its own called {found[1]}, "
            "a name that now belongs to the config registry: move them, erase them, migrate again"
        )
    taken.delete()
    for workspace in apps.get_model("state_admin", "Workspace").objects.order_by("pk"):
        for kind in config.Kind:
            schema = values.dump(config.SCHEMAS[kind])
            made = namespaces.create(
                workspace=workspace, name=kind.namespace, schema=schema, default="null"
            )
            versions.create(
                namespace=made,
                schema_version=1,
                schema=schema,
                default="null",
                actor_kind="system",
                actor_id="migration",
                actor_name="migration",
            )


class Migration(migrations.Migration):
    dependencies = [("state_admin", "0014_runs")]

    operations = [
        migrations.CreateModel(
            name="ConfigSecret",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("pointer", models.CharField(db_collation="C", max_length=128)),
                ("public_id", models.CharField(db_collation="C", max_length=36)),
                ("ciphertext", models.BinaryField()),
                ("key_id", models.CharField(max_length=16)),
                (
                    "set_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                (
                    "entry",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="secrets",
                        to="state_admin.entry",
                    ),
                ),
            ],
            options={
                "db_table": "config_secrets",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("entry", "pointer"), name="config_secrets_place_unique"
                    )
                ],
            },
        ),
        migrations.RunPython(_reserve, migrations.RunPython.noop),
    ]
