"""Autovacuum of the tables that grow with every write (docs/adr/0025-growth-is-pruned-by-index.md).

ALTER TABLE … SET takes a lock that blocks no reads or writes. An autovacuum of the table gives way.
"""

from __future__ import annotations

from django.db import migrations

# Vacuum after two percent of the rows were deleted or inserted, not after a fifth.
_GROWING = {
    "autovacuum_vacuum_scale_factor": "0.02",
    "autovacuum_vacuum_insert_scale_factor": "0.02",
    "autovacuum_analyze_scale_factor": "0.02",
}
_TABLES = {
    **dict.fromkeys(
        ("entries", "entry_revisions", "audit", "messages", "revisions", "state_values"), _GROWING
    ),
    # The oldest rows are deleted all the time, and the next purge passes their index entries.
    **dict.fromkeys(
        ("changes", "idempotency_records", "dispatches", "webhook_deliveries"),
        _GROWING | {"autovacuum_vacuum_scale_factor": "0.005"},
    ),
}


def _alter(table: str, options: dict[str, str]) -> migrations.RunSQL:
    pairs = ", ".join(f"{name} = {value}" for name, value in options.items())
    return migrations.RunSQL(
        f"ALTER TABLE {table} SET ({pairs})",
        f"ALTER TABLE {table} RESET ({', '.join(options)})",
    )


class Migration(migrations.Migration):
    # One table at a time, so that no lock is held while another one is waited for.
    atomic = False

    dependencies = [("state_admin", "0013_write_positions")]

    operations = [_alter(table, options) for table, options in _TABLES.items()]
