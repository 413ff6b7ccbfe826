"""The words of the titles of threads."""

from __future__ import annotations

from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.operations import AddIndexConcurrently
from django.contrib.postgres.search import SearchVector
from django.db import migrations


class Migration(migrations.Migration):
    atomic = False  # CREATE INDEX CONCURRENTLY, which does not block writes

    dependencies = [("state_admin", "0008_search_format_3")]

    operations = [
        AddIndexConcurrently(
            "thread",
            GinIndex(SearchVector("title", config="simple"), name="threads_title_words"),
        ),
    ]
