"""A database for one benchmark: embedded PostgreSQL in a folder, deleted afterwards or kept."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path


@contextmanager
def own_database(keep: Path | None = None) -> Iterator[None]:
    """Django is set up inside, so that it finds this database and no other; migrating is the
    caller's. With `keep`, the database stays in that folder."""
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
