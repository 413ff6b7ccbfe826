"""The format of a search index: 1 had no member names, numbers, booleans and null."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("state_admin", "0005_untracked_namespaces")]

    operations = [
        migrations.AddField(
            model_name="searchposition",
            name="format",
            field=models.SmallIntegerField(db_default=1),
        ),
    ]
