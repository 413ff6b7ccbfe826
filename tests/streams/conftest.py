"""A real server for the tests of streams."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.project.conftest import folder, start
from tests.project.running import Running
from tests.streams.listening import web_on_this_database

__all__ = ["folder", "start", "web"]


@pytest.fixture(scope="module")
def web(
    tmp_path_factory: pytest.TempPathFactory, django_db_setup: None, django_db_blocker: Any
) -> Iterator[Running]:
    """One worker with one thread, on the database of the tests: a request that blocks the thread is
    noticed."""
    begun: list[Running] = []

    def begin(*arguments: str, **env: str) -> Running:
        begun.append(Running(tmp_path_factory.mktemp("web"), *arguments, **env))
        return begun[-1]

    with django_db_blocker.unblock():
        server = web_on_this_database(begin, WEB_WORKERS="1", WEB_THREADS="1")
    yield server
    for process in begun:
        process.kill_all()
