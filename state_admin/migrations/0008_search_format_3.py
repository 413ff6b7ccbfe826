"""The format of a search index: 2 had no words of keys."""

from __future__ import annotations

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("state_admin", "0007_runs_by_parent")]

    operations = [
        migrations.RunSQL(
            "CREATE INDEX search_documents_older ON search_documents (entry_id)"
            " WHERE NOT terms @@ '''~3'''::tsquery",
            "DROP INDEX search_documents_older",
        ),
        migrations.RunSQL(
            "DROP INDEX search_documents_outdated",
            "CREATE INDEX search_documents_outdated ON search_documents (entry_id)"
            " WHERE NOT terms @@ '''~2'''::tsquery",
        ),
    ]
