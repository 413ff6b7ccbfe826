"""The format of a search index: 2 had no words of keys."""

from __future__ import annotations

from django.db import migrations

from ._online import CreateIndexOnline


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("state_admin", "0007_runs_by_parent")]

    operations = [
        CreateIndexOnline(
            "search_documents_older",
            "search_documents (entry_id) WHERE NOT terms @@ '''~3'''::tsquery",
            # Of an earlier form of 0006.
            replaces=["search_documents_outdated"],
        ),
    ]
