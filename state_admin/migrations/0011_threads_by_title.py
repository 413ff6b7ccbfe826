"""The words of the titles of threads."""

from __future__ import annotations

from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVector
from django.db import migrations

from ._online import CreateIndexOnline


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("state_admin", "0010_traffic_failures")]

    operations = [
        CreateIndexOnline(
            "threads_title_words",
            "threads USING gin (to_tsvector('simple'::regconfig, COALESCE(title, '')))",
            state=[
                migrations.AddIndex(
                    "thread",
                    GinIndex(SearchVector("title", config="simple"), name="threads_title_words"),
                )
            ],
        ),
    ]
