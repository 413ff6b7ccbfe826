"""A real server for the tests of streams."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.project.conftest import folder, start
from tests.project.running import Running
from tests.streams.listening import run_web_process

__all__ = ["folder", "start", "web"]


@pytest.fixture(scope="module")
def web(
    tmp_path_factory: pytest.TempPathFactory, django_db_setup: None, django_db_blocker: Any
) -> Iterator[Running]:
    """One worker with one thread, on the database of the tests: a request that blocks the thread is
    noticed."""
    env = {"WEB_WORKERS": "1", "WEB_THREADS": "1"}
    with run_web_process(tmp_path_factory.mktemp("web"), django_db_blocker, **env) as server:
        yield server
