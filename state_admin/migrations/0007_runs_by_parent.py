"""The runs that a run delegated to, for its timeline."""

from __future__ import annotations

from django.db import migrations, models

from ._online import CreateIndexOnline


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("state_admin", "0006_search_format")]

    operations = [
        CreateIndexOnline(
            "runs_by_parent",
            "runs (workspace_id, parent_run_id, id) WHERE NOT (parent_run_id = '')",
            state=[
                migrations.AddIndex(
                    "run",
                    models.Index(
                        fields=["workspace", "parent_run_id", "id"],
                        name="runs_by_parent",
                        condition=~models.Q(parent_run_id=""),
                    ),
                )
            ],
        ),
    ]
