"""An index that finds the forks of a thread."""

from __future__ import annotations

from django.db import migrations, models
from django.db.models.fields.json import KeyTransform


class Migration(migrations.Migration):
    dependencies = [("state_admin", "0012_plugins")]

    operations = [
        migrations.AddIndex(
            model_name="thread",
            index=models.Index(
                models.F("workspace"),
                KeyTransform("thread_id", "forked_from"),
                models.F("id"),
                name="threads_forks",
                condition=models.Q(forked_from__isnull=False),
            ),
        ),
    ]
