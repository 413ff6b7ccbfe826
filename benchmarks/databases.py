"""A database for one benchmark: embedded PostgreSQL in a folder, deleted afterwards or kept."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path


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
