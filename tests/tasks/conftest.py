"""Workers on the database of the test, with a broker that only this test uses."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from urllib.parse import quote

import pytest
from django.conf import settings
from django.db import connection

from project import broker
from tests.project.conftest import folder, fresh_broker, start
from tests.project.running import Running

__all__ = ["folder", "fresh_broker", "start"]

Worker = Callable[[], Running]


@pytest.fixture
def start_worker(start: Callable[..., Running], folder: Path, db: None) -> Callable[..., Running]:
    """Starts a worker with these settings."""
    broker.prepare()
    return lambda **env: start(
        *("-m", "project.processes", "worker"),
        DATABASE_URL=_database_url(),
        SECRET_KEY=settings.SECRET_KEY,
        **env,
    )


@pytest.fixture
def worker(start_worker: Callable[..., Running]) -> Worker:
    return partial(start_worker, WEBHOOK_ALLOW_PRIVATE="true")


def _database_url() -> str:
    connection.ensure_connection()
    info = connection.connection.info
    user = f"{quote(info.user, safe='')}:{quote(info.password or '', safe='')}"
    return f"postgresql://{user}@/{info.dbname}?host={quote(info.host, safe='')}&port={info.port}"
