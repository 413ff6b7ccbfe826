"""A database for one benchmark: embedded PostgreSQL in a folder, deleted afterwards or kept."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

_SIZES = """
SELECT relname, pg_table_size(oid), pg_indexes_size(oid) FROM pg_class
WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
"""


@contextmanager
def own_database(keep: Path | None = None) -> Iterator[None]:
    """Run with a database of its own. Set up Django inside, so that it uses this database; the
    caller migrates. With `keep`, the database is kept in that folder."""
    with nullcontext(str(keep)) if keep else tempfile.TemporaryDirectory() as folder:
        os.environ |= {
            "DJANGO_SETTINGS_MODULE": "project.settings",
            "COMMONHOLD_DATA_DIR": folder,
            "LOG_LEVEL": "ERROR",
        }
        try:
            yield
        finally:
            from django.db import connections

            connections.close_all()


def migrate() -> None:
    """Set up Django and the tables."""
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)


def begin() -> Any:
    """Set up Django and the tables. Returns an actor in a workspace of the benchmark."""
    migrate()
    from state_admin.services.actors import system_actor
    from state_admin.services.workspaces import ensure_workspace

    workspace, _ = ensure_workspace("bench")
    return system_actor(workspace.pk, "bench")


def read_sizes(cursor: Any) -> dict[str, tuple[int, int]]:
    """Return the bytes of each table and of its indexes."""
    cursor.execute(_SIZES)
    return {name: (heap, indexes) for name, heap, indexes in cursor.fetchall()}
