"""The runs that a run delegated to, for its timeline."""

from __future__ import annotations

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False  # CREATE INDEX CONCURRENTLY, which does not block writes

    dependencies = [("state_admin", "0006_search_format")]

    operations = [
        AddIndexConcurrently(
            "run",
            models.Index(
                fields=["workspace", "parent_run_id", "id"],
                name="runs_by_parent",
                condition=~models.Q(parent_run_id=""),
            ),
        ),
    ]
